"""The list of rollouts: one line each, the newest first, with a cursor that stays on its rollout."""

from collections.abc import Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from console.model.identity import identity
from console.model.status import Status
from console.tui.drawing import cell, draw_label, safe
from console.tui.format import DAY, plural, short
from console.tui.history.state import ListedRollout, RolloutKey
from console.tui.labels import status_label
from console.tui.quiet import Titled
from console.tui.times import moment

MOST = 2_000
WIDE = 76


class RolloutList(Titled, OptionList):
    """Lines are replaced only if they have changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "down", show=False),
        Binding("k", "cursor_up", "up", show=False),
    ]

    def __init__(self) -> None:
        super().__init__(id="rollouts", compact=True, markup=False)
        self._keys: list[RolloutKey] = []
        self._drawn: list[Content] = []
        self._known: dict[
            RolloutKey, tuple[Status, tuple[object, ...], Content]
        ] = {}  # status, what its line shows → line

    @property
    def chosen(self) -> RolloutKey | None:
        """The rollout under the cursor."""
        at = self.highlighted
        return self._keys[at] if at is not None and at < len(self._keys) else None

    def show(self, rollouts: Sequence[ListedRollout], now: float, first: str = "") -> None:
        """Draw these rollouts. first: the region whose newest rollout is chosen at first"""
        width = max(20, self.scrollable_content_region.width - 2)
        shown = rollouts[:MOST]
        lines = [self._line(rollout, width, now) for rollout in shown]
        keys = [rollout.key for rollout in shown]
        if keys == self._keys:
            for at, line in enumerate(lines):
                if line is not self._drawn[at] and not line.is_same(self._drawn[at]):
                    self.replace_option_prompt_at_index(at, line)
        else:
            chosen = self.chosen or next((key for key in keys if key[0] == first), None)
            self._keys = keys
            self.set_options(Option(line) for line in lines)
            if keys:
                self.highlighted = keys.index(chosen) if chosen in keys else 0
        self._drawn = lines

    def _line(self, rollout: ListedRollout, width: int, now: float) -> Content:
        """Redrawn only if it has changed: most of thousands of rollouts have ended long ago, and lag changes no line."""
        status = rollout.status
        known, shown, line = self._known.get(rollout.key, (None, None, Content("")))
        if known is not status or shown is None or shown[:2] != (width, now // DAY):
            looks = (width, now // DAY, *_shown(status))
            if looks != shown:
                line = draw_rollout_line(rollout, width, now)
            self._known[rollout.key] = (status, looks, line)
        return line


def _shown(status: Status) -> tuple[object, ...]:
    """The parts of a status that its line shows."""
    return (
        status.started, status.was, status.release, status.shown, status.rollout, short(status.rows_done), status.by,
        status.decided_by, len(status.notes), status.tuned is None,
    )  # fmt: skip


def draw_rollout_line(rollout: ListedRollout, width: int, now: float) -> Content:
    """`Mon 13:02  eu  r1 → r2  ✓ live  web-2  467k  ada@laptop, bob`: time, region, releases, state, people."""
    status = rollout.status
    change = f"{status.was or 'nothing'} → {status.release}"
    parts = [
        cell(Content.styled(moment(status.started, now), "$text-muted"), 10),
        cell(safe(rollout.region, "bold", 40), 8),
        cell(safe(change, limit=60), 12),
        draw_label(status_label(status), 14),
    ]
    parts += [cell(safe(status.rollout, limit=40), 9)] if width >= WIDE else []
    parts.append(cell(Content(f"{short(status.rows_done):>5}" if status.rows_done else ""), 5))
    remarks = [_who(status), plural(len(status.notes), "note") if status.notes else "", "tuned" if status.tuned else ""]
    parts.append(safe(" · ".join(filter(None, remarks)), "$text-muted", 80))
    return Content(" ").join(parts).truncate(width, ellipsis=True)


def _who(status: Status) -> str:
    """The person who started it, and the one who decided, if different."""
    asked, decided = identity(status.by).name, identity(status.decided_by).name if status.decided_by else ""
    return f"{asked}, {decided}" if decided and decided != asked else asked
