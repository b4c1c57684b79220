"""The list of regions: in the order of waves, with a cursor, marks and a filter."""

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
from textual.style import Style

from console.runner.view import RegionView
from console.tui.fleet.order import Order, arranged
from console.tui.fleet.region_row import ListColumn, Row, columns, draw_header, draw_row, look_of, same_row
from console.tui.labels import state_label
from console.tui.panes.cursor import CURSOR_KEYS, moved
from console.tui.state import ScreenState

CURRENT = "region-list--current"  # style class of the line under the cursor


def matches(view: RegionView, filter_text: str, plan: str = "") -> bool:
    """Whether name, environment, owner, state or plan contain every word of the filter; a word after `!` must be absent.

    plan  the label of the region's plan, matched by `plan:2f34`
    """
    region = view.region
    text = f"{region.name} {region.environment} {region.owner} {state_label(view).text} wave{region.wave} plan:{plan}"
    text += " drifted" if view.plan and view.plan.drift else ""
    text = f"{text} canary".lower() if region.canary else text.lower()
    return all((part[1:] not in text) if part[:1] == "!" else part in text for part in filter_text.lower().split())


class RegionList(ScrollView, can_focus=True):
    """Draws the regions of `state` that are in view; keeps cursor, marks, order and filter.

    One widget for all: with one widget per region, Textual would lay out and notify hundreds of them at each key. Regions
    change places only when an order is chosen, so that a key acts on the region that was under the cursor.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {CURRENT}
    ALLOW_SELECT = False  # a double click opens a region
    BINDINGS: ClassVar[list[BindingType]] = [
        *CURSOR_KEYS,
        Binding("enter", "open", "Open", tooltip="open the region: its rollout, or its plan"),
        Binding("space", "mark", "Mark", tooltip="mark the region: actions then apply to all marked"),
    ]
    state: reactive[ScreenState] = reactive(ScreenState(views={}), repaint=False)
    filter_text: reactive[str] = reactive("")
    only: reactive[frozenset[str] | None] = reactive(None)
    current: reactive[str] = reactive("", repaint=False)
    marked: reactive[frozenset[str]] = reactive(frozenset())

    @dataclass
    class Moved(Message):
        """The cursor moved to another region; "" if none is shown."""

        region: str

    @dataclass
    class Opened(Message):
        """The operator opened this region's screen."""

        region: str

    @dataclass
    class HeaderClicked(Message):
        """The operator clicked the header: the next order."""

    def __init__(self) -> None:
        super().__init__()
        self._order: Order = "waves"
        self._names: tuple[str, ...] = ()  # all regions, in the order shown
        self._shown: list[str] = []
        self._index: dict[str, int] = {}
        self._columns: Sequence[ListColumn] = ()
        self._columns_of: object = None
        self._cache: dict[str, tuple[RegionView | None, tuple[object, ...], Strip]] = {}

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        # marks are for actions; a recording has none, and uses the key for pause
        return self.state.position is None if action == "mark" else super().check_action(action, parameters)

    @property
    def shown(self) -> list[str]:
        """Names of the regions that are not hidden, in order."""
        return list(self._shown)

    @property
    def hidden(self) -> int:
        return len(self._names) - len(self._shown)

    @property
    def order(self) -> Order:
        return self._order

    def sort(self, order: Order) -> None:
        """Put the regions into another order, as of now."""
        self._order = order
        self._names = arranged(self.state.views, order, self.state.at)
        self._arrange()
        self.refresh()
        self._reveal()

    def on_resize(self, event: Resize) -> None:
        self._reveal()

    def watch_state(self, before: ScreenState, state: ScreenState) -> None:
        if tuple(state.views) != tuple(before.views):
            self.marked &= frozenset(state.views)
            self._cache = {name: cached for name, cached in self._cache.items() if name in state.views}
            kept = tuple(name for name in self._names if name in state.views)
            self._names = kept + tuple(name for name in state.views if name not in kept)
            if self._order == "waves":
                self._names = tuple(state.views)
            self._arrange()
        elif self.filter_text:
            self._arrange()
        self.refresh_changed()

    def refresh_changed(self) -> None:
        """Redraw the lines in view that have changed."""
        if not self.is_mounted or self.size.height == 0:
            return
        top = self.scroll_offset.y
        for at, name in enumerate(self._shown[top : top + self.size.height]):
            cached, view = self._cache.get(name), self.state.views.get(name)
            if not cached or cached[1] != self._look(name, self._style(name)):
                self.refresh_line(top + at + 1)
            elif cached[0] is not view:
                if cached[0] and view and same_row(cached[0], view):
                    self._cache[name] = (view, *cached[1:])
                else:
                    self.refresh_line(top + at + 1)

    def watch_filter_text(self) -> None:
        self._arrange()
        self._reveal()

    def watch_only(self) -> None:
        self._arrange()
        self._reveal()

    def watch_current(self, before: str, current: str) -> None:
        for name in (before, current):
            if name in self._index:
                self.refresh_line(self._index[name] + 1)
        self._reveal()
        self.post_message(self.Moved(current))

    def _arrange(self) -> None:
        """Determine which regions are shown, and where; only those in view are drawn."""
        views, plans, only = self.state.views, self.state.plans, self.only
        self._shown = [
            name
            for name in self._names
            if (only is None or name in only)
            and (not self.filter_text or matches(views[name], self.filter_text, plans.get(name, "")))
        ]
        self._index = {name: at for at, name in enumerate(self._shown)}
        size = Size(0, len(self._shown) + 1)
        if size != self.virtual_size:
            self.virtual_size = size
        self.refresh()
        if self.current not in self._index:
            self.current = next(iter(self._shown), "")

    def _reveal(self) -> None:
        """Scroll the region under the cursor into view; the header, line 0, never scrolls."""
        if (at := self._index.get(self.current)) is not None:
            self.scroll_to_region(Region(0, at, 1, 2), animate=False)

    def _style(self, name: str) -> Style:
        """Of a region's line, or of the header."""
        return self.get_visual_style(CURRENT) if name and name == self.current else self.visual_style

    def _look(self, name: str, style: Style) -> tuple[object, ...]:
        """Everything that a line depends on besides its view."""
        view, current = self.state.views.get(name), name == self.current
        width = self.scrollable_content_region.width
        look = look_of(view, self.state.at) if view else ""
        plan, marked = self.state.plans.get(name, ""), name in self.marked
        return plan, marked, current, width, style, look, self._columns_of, self.app.theme

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        self._choose_columns(width)
        at = y + self.scroll_offset.y - 1
        if y == 0:
            return self._strip("", width)
        if at >= len(self._shown):
            return Strip.blank(width, self.visual_style.rich_style)
        return self._strip(self._shown[at], width)

    def _choose_columns(self, width: int) -> None:
        views = self.state.views
        key = (width, tuple(views))
        if key != self._columns_of:
            self._columns_of = key
            self._columns = columns(width, list(views), [view.region.environment for view in views.values()])

    def _strip(self, name: str, width: int) -> Strip:
        """The line of a region, or the header; redrawn only if it has changed."""
        view, style = self.state.views.get(name), self._style(name)
        look = self._look(name, style)
        cached = self._cache.get(name)
        # by identity: comparing views may cost more than drawing
        if cached and cached[0] is view and cached[1] == look:
            return cached[2]
        if view:
            plan, marked, current = self.state.plans.get(name, ""), name in self.marked, name == self.current
            row = Row(view=view, plan=plan, at=self.state.at, marked=marked, current=current)
            line = draw_row(row, self._columns, width)
        else:
            line = draw_header(self._columns, width)
        strip = Strip(self._segments(line, style)).extend_cell_length(width, style.rich_style)
        self._cache[name] = (view, look, strip)
        return strip

    def _segments(self, line: Content, style: Style) -> list[Segment]:
        """A line of the right width, without Textual's search for line breaks."""
        parts = line.render(style, end="", parse_style=self._get_style)
        return [Segment(text, (style + part).rich_style) for text, part in parts]

    def action_move(self, by: int) -> None:
        if self._shown:
            self.current = self._shown[moved(self._index.get(self.current, 0), by, len(self._shown))]

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - 2))

    def action_open(self) -> None:
        if self.current:
            self.post_message(self.Opened(self.current))

    def action_mark(self) -> None:
        if self.current:
            self.marked ^= {self.current}
            self.action_move(1)

    def on_click(self, event: Click) -> None:
        if event.y == 0:
            self.post_message(self.HeaderClicked())
            return
        at = event.y + self.scroll_offset.y - 1
        if at < len(self._shown):
            self.current = self._shown[at]
            if event.chain > 1:
                self.action_open()
