"""Stored events of all regions, the newest first, with a mark between new and seen ones. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from heapq import merge
from itertools import chain, islice
from operator import attrgetter, is_

from textual.content import Content

from console.model.breach import WatchSteered
from console.model.consent import Approved, CheckAccepted, TicketNamed
from console.model.event import (
    Accepted,
    BatchDone,
    BatchStarted,
    Checked,
    DriverLost,
    Ended,
    Entered,
    Event,
    Failed,
    Fenced,
    Logged,
    Paused,
    Promoted,
    Recorded,
    Resumed,
    RolledBack,
    StepDone,
    StepStarted,
    TakenOver,
)
from console.model.logline import Level, level_of, logline
from console.model.note import Noted
from console.model.step_id import StepId
from console.model.tuning import Tuned
from console.runner.view import RegionView
from console.tui.drawing import cell, safe, stack_lines
from console.tui.format import MINUTE
from console.tui.labels import state_words
from console.tui.panes.per_event import PerEvent
from console.tui.times import moment

LEVEL_STYLES: dict[Level, str] = {"info": "", "warning": "$text-warning", "error": "$text-error"}
MOST = 500  # lines of all regions
TIME_CELLS = 10  # length of `00:00:00Z `, which `logline` puts before its text
NOT_SEEN = Content(" ")
MOST_LINES = 6  # lines of one event, if there is room to wrap


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class Happening:
    """A stored event as a line.

    at       seconds since 1970, UTC
    brief    the text for little room: causes before places, and steps without the names of feeds
    by       who did it, "" for the agent
    routine  a step, a batch or a check as expected
    """

    at: float
    region: str
    text: str
    brief: str
    by: str
    level: Level
    routine: bool = False


class Happenings:
    """The latest events of all regions as lines; formats those of a region again only if they have changed."""

    def __init__(self) -> None:
        self._lines: dict[str, PerEvent[Happening | None]] = {}
        self._merged_from: list[tuple[Recorded, ...]] = []
        self._lasting: tuple[Happening, ...] = ()
        self._merged: tuple[Happening, ...] = ()

    def of(self, views: Mapping[str, RegionView]) -> tuple[Happening, ...]:
        """The newest first; the same object while no region's events have changed.

        A feed that stands still and a region that cannot be reached have a line at their beginning, as long as they last:
        both can begin while no rollout runs, and then no event is stored.
        """
        events = [view.events for view in views.values()]
        lasting = tuple(sorted(chain.from_iterable(map(_lasting, views.values())), reverse=True))
        same = len(events) == len(self._merged_from) and all(map(is_, events, self._merged_from))
        if same and lasting == self._lasting:
            return self._merged
        self._merged_from, self._lasting = events, lasting
        each = [filter(None, reversed(self._of_region(name, view.events))) for name, view in views.items()]
        self._merged = tuple(islice(merge(lasting, *each, key=attrgetter("at"), reverse=True), MOST))
        return self._merged

    def _of_region(self, region: str, events: tuple[Recorded, ...]) -> tuple[Happening | None, ...]:
        if region not in self._lines:
            self._lines[region] = PerEvent(partial(_happening, region))
        return self._lines[region].of(events)


def _lasting(view: RegionView) -> Iterator[Happening]:
    """Times are whole minutes, since a lag is measured again each second."""
    name, status = view.region.name, view.status
    if view.link == "unreachable" and view.heard:
        text = f"warning: not reached since: {view.link_why or 'no answer'}"
        yield Happening(at=_minute(view.heard), region=name, text=text, brief=text, by="", level="warning")
    elif status.standing and view.heard and status.lag_seconds:
        for feed in status.standing:
            text = f"error: feed {feed.feed} has moved no row since: {feed.why}"
            at = _minute(view.heard - status.lag_seconds)
            yield Happening(at=at, region=name, text=text, brief=text, by="", level="error")


def _minute(at: float) -> float:
    return at // MINUTE * MINUTE


def _happening(region: str, recorded: Recorded) -> Happening | None:
    """None for an event without a line."""
    line = logline(recorded.event, recorded.at)
    if not line:
        return None
    text, brief = _texts(recorded.event, line[TIME_CELLS:])
    return Happening(
        at=recorded.at, region=region, text=text, brief=brief, by=_who(recorded.event), level=level_of(line), routine=_routine(recorded.event),
    )  # fmt: skip


def _texts(event: Event, text: str) -> tuple[str, str]:
    """The full line, and the short one."""
    match event:
        case Entered(state=state):
            return state_words(state), state_words(state)
        case DriverLost(step=step, why=why) if why:
            return text, f"warning: Spark was lost: {why} ({_brief_step(step)})"
        case Fenced(step=step) | BatchDone(step=step) | StepDone(step=step) | DriverLost(step=step) | Failed(step=step):
            return text, text.replace(step, _brief_step(step), 1)
        case _:
            return text, text


def _brief_step(step: str) -> str:
    """`backfill requests` of `backfill/requests/parse_requests`."""
    parts = StepId.parse(step)
    return f"{parts.kind} {parts.table}".rstrip()


def _routine(event: Event) -> bool:
    match event:
        case Entered(state=state):
            return state != "awaiting-confirmation"
        case Checked(ok=ok):
            return ok is True
        case Fenced() | StepStarted() | StepDone() | BatchStarted() | BatchDone():
            return True
        case _:
            return False


def _who(event: Event) -> str:
    match event:
        case Accepted() | Entered() | Paused() | Resumed() | TakenOver() | Promoted() | RolledBack() | Ended():
            return event.by
        case Logged(incident=Noted(by=by) | Tuned(by=by) | CheckAccepted(by=by) | Approved(by=by) | TicketNamed(by=by)):
            return by
        case Logged(incident=WatchSteered(by=by)):
            return by
        case _:
            return ""


def draw_events(
    happenings: Iterable[Happening], looked: float, at: float, width: int, *, folded: bool = False, rows: int = MOST
) -> list[Content]:
    """Time, region, what, and who of each event; a line divides new events from seen ones.

    folded  one line an event, and one for a region's routine between two other events, the newest with the number of the
            others; else a long text continues in further lines
    rows    how many of them are needed: what comes after as many lines is left blank, a line for each event
    """
    lines: list[Content] = []
    before = False
    listed = list(happenings)
    others = _folded(listed, looked) if folded else {}
    for number, line in enumerate(listed):
        if looked and not before and line.at <= looked:
            before = True
            lines.append(Content.styled(f"── before {moment(looked, at)}, when you last looked ──", "$text-muted"))
        if not folded or number in others:
            seen = len(lines) < rows
            lines.append(
                _draw(line, moment(line.at, at), width, others.get(number, 0) if folded else None) if seen else NOT_SEEN
            )
    if not lines:
        nothing = "nothing yet: decisions, batches and failures of all regions are listed here."
        return [Content.styled(nothing, "$text-muted")]
    return lines


def _folded(happenings: Sequence[Happening], looked: float) -> dict[int, int]:
    """Positions of the lines that are kept → how many older ones of the same routine each stands for."""
    kept: dict[int, int] = {}
    runs: dict[tuple[str, bool], int] = {}  # region, and whether it is from before the last visit
    for number, line in enumerate(happenings):
        run = (line.region, bool(looked) and line.at <= looked)
        if line.routine and run in runs:
            kept[runs[run]] += 1
        else:
            kept[number] = 0
            if line.routine:
                runs[run] = number
            else:
                runs.pop(run, None)
    return kept


@lru_cache(4 * MOST)
def _draw(line: Happening, when: str, width: int, others: int | None) -> Content:
    """others: how many routine events the line stands for; None for a text that may take several lines"""
    who = f"+{others}" if others else line.by or "agent"
    head = Content.assemble((f"{when} ", "$text-muted"), safe(line.region, "bold", 40), " ")
    tail = safe(f" {who}", "$text-muted", 30) if width >= 60 else Content("")
    room = max(4, width - head.cell_length - tail.cell_length)
    text = safe(line.text, LEVEL_STYLES[line.level], 300)
    if text.cell_length > room:
        text = safe(line.brief, LEVEL_STYLES[line.level], 300)
    if others is not None or text.cell_length <= room:
        return head + cell(text, room) + tail
    first, *rest = text.wrap(room)
    if len(rest) >= MOST_LINES:
        rest = [*rest[: MOST_LINES - 2], cell(Content(" ").join(rest[MOST_LINES - 2 :]), room)]
    indent = " " * head.cell_length
    return stack_lines([head + cell(first, room) + tail, *(Content.assemble(indent, line) for line in rest)])
