"""The list of rollouts: one line each, the newest first, with a cursor that stays on its rollout."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.segment import Segment
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from console.model.identity import identity
from console.model.status import Status
from console.tui.drawing import cell, draw_label, safe
from console.tui.format import DAY, plural, short
from console.tui.history.state import ListedRollout, RolloutKey
from console.tui.labels import status_label
from console.tui.panes.cursor import CURSOR_KEYS, moved
from console.tui.quiet import Titled
from console.tui.times import moment

MOST = 2_000
WIDE = 76
CURRENT = "rollout-list--current"  # style class of the line under the cursor


class RolloutList(Titled, ScrollView, can_focus=True):
    """Draws the lines in view, and those only if they have changed.

    One widget with one style class of its own: `OptionList` has five, and computes each again whenever the focus changes.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {CURRENT}
    ALLOW_SELECT = False  # a double click opens a rollout
    BINDINGS: ClassVar[list[BindingType]] = [*CURSOR_KEYS, Binding("enter", "open", "Open", show=False)]
    chosen: reactive[RolloutKey | None] = reactive(None, repaint=False)

    @dataclass
    class Moved(Message):
        """The cursor moved to another rollout; None if there is none."""

        rollout: RolloutKey | None

    @dataclass
    class Opened(Message):
        """The operator asked for the whole of the rollout under the cursor."""

    def __init__(self) -> None:
        super().__init__(id="rollouts")
        self._keys: list[RolloutKey] = []
        self._index: dict[RolloutKey, int] = {}
        self._drawn: list[Content] = []
        self._strips: dict[RolloutKey, tuple[Content, tuple[object, ...], Strip]] = {}
        self._known: dict[
            RolloutKey, tuple[Status, tuple[object, ...], Content]
        ] = {}  # status, what its line shows → line

    def show(self, rollouts: Sequence[ListedRollout], now: float, first: str = "") -> None:
        """Draw these rollouts. first: the region whose newest rollout is chosen at first"""
        width = max(20, self.scrollable_content_region.width - 2)
        shown = rollouts[:MOST]
        before, self._drawn = self._drawn, [self._line(rollout, width, now) for rollout in shown]
        keys = [rollout.key for rollout in shown]
        if keys == self._keys:
            for at, line in enumerate(self._drawn):
                if line is not before[at] and not line.is_same(before[at]):
                    self.refresh_line(at)
            return
        self._keys, self._index = keys, {key: at for at, key in enumerate(keys)}
        self._strips = {key: strip for key, strip in self._strips.items() if key in self._index}
        self.virtual_size = Size(0, len(keys))
        self.refresh()
        if self.chosen not in self._index:
            self.chosen = next((key for key in keys if key[0] == first), keys[0] if keys else None)
        self._reveal()

    def on_resize(self, event: Resize) -> None:
        self._reveal()

    def watch_chosen(self, before: RolloutKey | None, chosen: RolloutKey | None) -> None:
        for key in (before, chosen):
            if key in self._index:
                self.refresh_line(self._index[key])
        self._reveal()
        self.post_message(self.Moved(chosen))

    def _reveal(self) -> None:
        """Scroll the rollout under the cursor into view."""
        if self.chosen in self._index:
            self.scroll_to_region(Region(0, self._index[self.chosen], 1, 1), animate=False)

    def render_line(self, y: int) -> Strip:
        at, width = y + self.scroll_offset.y, self.scrollable_content_region.width
        if at >= len(self._keys):
            return Strip.blank(width, self.visual_style.rich_style)
        key, line = self._keys[at], self._drawn[at]
        style = self.get_visual_style(CURRENT) if key == self.chosen else self.visual_style
        look = (width, style, self.app.theme)
        cached = self._strips.get(key)
        if cached is None or cached[0] is not line or cached[1] != look:
            parts = line.render(style, end="", parse_style=self._get_style)
            segments = [Segment(text, (style + part).rich_style) for text, part in parts]
            cached = (line, look, Strip(segments).adjust_cell_length(width, style.rich_style))
            self._strips[key] = cached
        return cached[2]

    def action_move(self, by: int) -> None:
        if self._keys:
            at = self._index.get(self.chosen, 0) if self.chosen else 0
            self.chosen = self._keys[moved(at, by, len(self._keys))]

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 1))

    def action_open(self) -> None:
        if self.chosen:
            self.post_message(self.Opened())

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)  # None on the border
        at = -1 if offset is None else offset.y + self.scroll_offset.y
        if 0 <= at < len(self._keys):
            self.chosen = self._keys[at]
            if event.chain > 1:
                self.action_open()

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
