"""A region's events and log: stored and fleeting lines, filtered, with the number of dropped ones."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, assert_never

from textual.content import Content

from console.model.event import Recorded
from console.model.logline import Level, level_of, logline
from console.record import dataclass
from console.runner.view import RegionView
from console.tui.drawing import safe
from console.tui.panes.per_event import PerEvent

MAX_LINE = 300  # characters: a line of a megabyte freezes a terminal
LEVEL_STYLES: dict[Level, str] = {"info": "", "warning": "$text-warning", "error": "$text-error"}
STORED, FLEETING = "▪", "·"
LogLines = Literal["all", "stored", "warnings"]
LINES: tuple[LogLines, ...] = ("all", "stored", "warnings")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One line. stored: the region keeps it; others are lost with their agent"""

    text: str
    stored: bool


class LogEntries:
    """The lines of the rollout in the view seen last; read again only when there are more of them."""

    def __init__(self) -> None:
        self._events: tuple[Recorded, ...] = ()
        self._log: tuple[str, ...] = ()
        self._entries: tuple[LogEntry, ...] = ()
        self._stored = PerEvent(_stored_line)

    def of(self, view: RegionView) -> tuple[LogEntry, ...]:
        if view.events is not self._events or view.status.log is not self._log:
            self._events, self._log = view.events, view.status.log
            of_event, own = self._stored.of(view.events), view.status.rollout
            stored = [
                line for recorded, line in zip(view.events, of_event, strict=True) if line and recorded.rollout == own
            ]
            self._entries = tuple(_entries(stored, view.status.log))
        return self._entries


def latest_entries(view: RegionView, most: int) -> list[LogEntry]:
    """The last lines of the view's rollout, at most this many."""
    own = [recorded for recorded in view.events if recorded.rollout == view.status.rollout]
    return _entries(list(filter(None, map(_stored_line, own[-most:]))), view.status.log[-most:])[-most:]


def _stored_line(recorded: Recorded) -> str:
    """ "" for an event without a line"""
    return logline(recorded.event, recorded.at) if recorded.seq else ""


def _entries(stored: Sequence[str], latest: Sequence[str]) -> list[LogEntry]:
    """Oldest first: what the region has stored, and the latest lines that this console has received."""
    known, shown = set(stored), set(latest)
    older = [LogEntry(line, True) for line in stored if line not in shown]
    return [*older, *(LogEntry(line, line in known) for line in latest)]


def chosen(entries: Sequence[LogEntry], sought: str, lines: LogLines = "all") -> list[LogEntry]:
    """The lines of that kind that contain every word of the filter, and none of those after `!`."""
    match lines:
        case "all":
            kept = list(entries)
        case "stored":
            kept = [entry for entry in entries if entry.stored]
        case "warnings":
            kept = [entry for entry in entries if level_of(entry.text) != "info"]
        case _:
            assert_never(lines)
    words = sought.lower().split()
    return [entry for entry in kept if _matches(entry.text.lower(), words)] if words else kept


def _matches(text: str, words: Sequence[str]) -> bool:
    return all((word[1:] not in text) if word.startswith("!") and word[1:] else word in text for word in words)


def log_lines(entries: Sequence[LogEntry], sought: str = "", lines: LogLines = "all") -> list[Content]:
    """The lines that match the filter; if there are none, the reason."""
    if not entries:
        return [Content.styled("no entries yet: what the region does is logged here.", "$text-muted")]
    selected = chosen(entries, sought, lines)
    if not selected and lines != "all":
        why = f"none of {len(entries)} lines is of these ({lines}); i shows the others"
        return [Content.styled(f"{why}, esc clears the filter." if sought else f"{why}.", "$text-muted")]
    if not selected:
        return [Content.styled(f"none of {len(entries)} lines has these words; esc clears the filter.", "$text-muted")]
    return [_line(entry) for entry in selected]


def log_title(entries: Sequence[LogEntry], sought: str, dropped: int, lines: LogLines = "all") -> str:
    """`log · 9 of 120 lines · ▪ stored · fleeting · 0 dropped`."""
    some = bool(sought.strip()) or lines != "all"
    of = f"{len(chosen(entries, sought, lines))} of {len(entries)}" if some else str(len(entries))
    only = f" · {'stored ones' if lines == 'stored' else 'warnings and errors'}" if lines != "all" else ""
    return f"log · {of} lines{only} · {STORED} stored {FLEETING} fleeting · {dropped} dropped"


@lru_cache(2048)
def _line(entry: LogEntry) -> Content:
    style = LEVEL_STYLES[level_of(entry.text)]
    sign = (f"{STORED} ", "$text-accent") if entry.stored else (f"{FLEETING} ", "$text-muted")
    return Content.assemble(sign, safe(entry.text, style, MAX_LINE))
