"""The list of regions: in the order of waves, with a cursor, marks and a filter."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.visual import Visual

from console.runner.view import RegionView
from console.tui.groups import plan_labels
from console.tui.labels import state_label
from console.tui.panes.region_row import draw_header, draw_row, has_details
from console.tui.state import ScreenState

CURRENT = "region-list--current"  # in the stylesheet: the line under the cursor


def matches(view: RegionView, filter_text: str, plan: str = "") -> bool:
    """Whether name, environment, owner, state or plan contain every word of the filter; a word after `!` must be absent.

    plan  the letter of the region's plan, matched by `plan:b`
    """
    region = view.region
    text = f"{region.name} {region.environment} {region.owner} {state_label(view).text} wave{region.wave} plan:{plan}"
    text += " drifted" if view.plan and view.plan.drift else ""
    text = f"{text} canary".lower() if region.canary else text.lower()
    return all((part[1:] not in text) if part[:1] == "!" else part in text for part in filter_text.lower().split())


class RegionList(ScrollView, can_focus=True):
    """Draws those regions of `state` that are in view; keeps the cursor and the marks.

    One widget for all: with a widget a region, Textual would lay out and notify hundreds of them at each key.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {CURRENT}
    ALLOW_SELECT = False  # a double click opens a region
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("home,g", "move(-1000000)", "first", show=False),
        Binding("end,G", "move(1000000)", "last", show=False),
        Binding("enter", "open", "Open", key_display="enter", tooltip="open the region: plan, steps, checks, log"),
        Binding(
            "space", "mark", "Mark", key_display="space", tooltip="mark the region: actions then apply to all marked"
        ),
    ]
    state: reactive[ScreenState] = reactive(ScreenState(views={}))
    filter_text: reactive[str] = reactive("")
    current: reactive[str] = reactive("", repaint=False)
    marked: reactive[frozenset[str]] = reactive(frozenset())

    @dataclass
    class Moved(Message):
        """The cursor moved to another region; "" where none is shown."""

        region: str

    @dataclass
    class Opened(Message):
        """The operator opened this region's screen."""

        region: str

    def __init__(self) -> None:
        super().__init__()
        self._plans: Mapping[str, str] = {}
        self._first_line: dict[str, int] = {}  # region shown → its first line; line 0 is the header
        self._lines: list[tuple[str, int]] = []  # line → region, "" for the header, and which of its lines
        self._cache: dict[str, tuple[RegionView | None, tuple[object, ...], list[Strip]]] = {}

    @property
    def shown(self) -> list[str]:
        """Names of the regions that the filter lets through, in order."""
        return list(self._first_line)

    def on_resize(self, event: Resize) -> None:
        self._reveal()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._cache.clear()

    def watch_state(self, state: ScreenState) -> None:
        self._plans = plan_labels(state.groups)
        self.marked &= frozenset(state.views)
        self._cache = {name: cached for name, cached in self._cache.items() if name in state.views}
        self._arrange()

    def watch_filter_text(self) -> None:
        self._arrange()
        self._reveal()

    def watch_current(self, before: str, current: str) -> None:
        for name in (before, current):
            if name in self._first_line:
                self.refresh_lines(self._first_line[name], 2)
        self._reveal()
        self.post_message(self.Moved(current))

    def _arrange(self) -> None:
        """Assign lines to regions; only those in view are drawn."""
        self._first_line, self._lines = {}, [("", 0)]
        for name, view in self.state.views.items():
            if not self.filter_text or matches(view, self.filter_text, self._plans.get(name, "")):
                self._first_line[name] = len(self._lines)
                self._lines += ((name, 0), (name, 1)) if has_details(view) else ((name, 0),)
        self.virtual_size = Size(0, len(self._lines))
        if self.current not in self._first_line:
            self.current = next(iter(self._first_line), "")

    def _reveal(self) -> None:
        """Scroll the region under the cursor into view; together with the header if it is the first."""
        if top := self._first_line.get(self.current):
            high = 2 if has_details(self.state.views[self.current]) else 1
            place = Region(0, 0, 1, 1 + high) if top == 1 else Region(0, top, 1, high)
            self.scroll_to_region(place, animate=False)

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        if at >= len(self._lines):
            return Strip.blank(self.scrollable_content_region.width, self.visual_style.rich_style)
        name, part = self._lines[at]
        return self._strips(name)[part]

    def _strips(self, name: str) -> list[Strip]:
        """The lines of a region; drawn anew only where they would look different."""
        view, current = self.state.views.get(name), name == self.current
        width = self.scrollable_content_region.width
        style = self.get_visual_style(CURRENT) if view and current else self.visual_style
        plan, marked = self._plans.get(name, ""), name in self.marked
        look = (plan, marked, current, width, style)
        cached = self._cache.get(name)
        if (
            cached and cached[0] is view and cached[1] == look
        ):  # by identity: comparing views may cost more than drawing
            return cached[2]
        lines = draw_row(view, plan, width, marked=marked, current=current) if view else [draw_header(width)]
        strips = [strip for line in lines for strip in Visual.to_strips(self, line, width, 1, style, pad=True)]
        self._cache[name] = (view, look, strips)
        return strips

    def action_move(self, by: int) -> None:
        if shown := self.shown:
            at = shown.index(self.current) if self.current in self._first_line else 0
            self.current = shown[max(0, min(len(shown) - 1, at + by))]

    def action_open(self) -> None:
        if self.current:
            self.post_message(self.Opened(self.current))

    def action_mark(self) -> None:
        if self.current:
            self.marked ^= {self.current}
            self.action_move(1)

    def on_click(self, event: Click) -> None:
        at = event.y + self.scroll_offset.y
        name = self._lines[at][0] if at < len(self._lines) else ""
        if name:
            self.current = name
            if event.chain > 1:
                self.action_open()
