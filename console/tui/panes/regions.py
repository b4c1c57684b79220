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


def matches(view: RegionView, wanted: str, plan: str = "") -> bool:
    """Whether name, environment, owner, state or plan hold every word of the filter; a word after `!` must be absent.

    plan  the letter of the region's plan, found by `plan:b`
    """
    region = view.region
    told = f"{region.name} {region.environment} {region.owner} {state_label(view).text} wave{region.wave} plan:{plan}"
    told += " drifted" if view.plan and view.plan.drift else ""
    told = f"{told} canary".lower() if region.canary else told.lower()
    return all((part[1:] not in told) if part[:1] == "!" else part in told for part in wanted.lower().split())


class RegionList(ScrollView, can_focus=True):
    """Draws those regions of `scene` that are in view; says where the cursor is and which regions are marked.

    One widget for all: of hundreds, each a widget, Textual lays out and tells every one at each key.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {CURRENT}
    ALLOW_SELECT = False  # a double click opens a region
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("home,g", "move(-1000000)", "first", show=False),
        Binding("end,G", "move(1000000)", "last", show=False),
        Binding("enter", "open", "Open", key_display="enter", tooltip="open the region: why, steps, checks, log"),
        Binding("space", "mark", "Mark", key_display="space", tooltip="mark: keys then act on the marked regions"),
    ]
    scene: reactive[ScreenState] = reactive(ScreenState({}))
    wanted: reactive[str] = reactive("")
    current: reactive[str] = reactive("", repaint=False)
    marked: reactive[frozenset[str]] = reactive(frozenset())

    @dataclass
    class Moved(Message):
        """Another region is under the cursor; "" where none is shown."""

        region: str

    @dataclass
    class Opened(Message):
        """The operator asks for this region's screen."""

        region: str

    def __init__(self) -> None:
        super().__init__()
        self._labels: Mapping[str, str] = {}
        self._tops: dict[str, int] = {}  # region shown → its first line; line 0 holds the names of the columns
        self._lines: list[tuple[str, int]] = []  # line → region, "" for the names of the columns, and which line of it
        self._kept: dict[str, tuple[RegionView | None, tuple[object, ...], list[Strip]]] = {}

    @property
    def shown(self) -> list[str]:
        """Names of the regions that the filter lets through, in order."""
        return list(self._tops)

    def on_resize(self, event: Resize) -> None:
        self._reveal()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._kept.clear()

    def watch_scene(self, scene: ScreenState) -> None:
        self._labels = plan_labels(scene.groups)
        self.marked &= frozenset(scene.views)
        self._kept = {name: kept for name, kept in self._kept.items() if name in scene.views}
        self._arrange()

    def watch_wanted(self) -> None:
        self._arrange()
        self._reveal()

    def watch_current(self, before: str, current: str) -> None:
        for name in (before, current):
            if name in self._tops:
                self.refresh_lines(self._tops[name], 2)
        self._reveal()
        self.post_message(self.Moved(current))

    def _arrange(self) -> None:
        """Which lines each region has; only those in view are drawn."""
        self._tops, self._lines = {}, [("", 0)]
        for name, view in self.scene.views.items():
            if not self.wanted or matches(view, self.wanted, self._labels.get(name, "")):
                self._tops[name] = len(self._lines)
                self._lines += ((name, 0), (name, 1)) if has_details(view) else ((name, 0),)
        self.virtual_size = Size(0, len(self._lines))
        if self.current not in self._tops:
            self.current = next(iter(self._tops), "")

    def _reveal(self) -> None:
        """Scroll until the region under the cursor is seen whole; with the first one, the names of the columns."""
        if top := self._tops.get(self.current):
            high = 2 if has_details(self.scene.views[self.current]) else 1
            place = Region(0, 0, 1, 1 + high) if top == 1 else Region(0, top, 1, high)
            self.scroll_to_region(place, animate=False)

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        if at >= len(self._lines):
            return Strip.blank(self.scrollable_content_region.width, self.visual_style.rich_style)
        name, part = self._lines[at]
        return self._drawn(name)[part]

    def _drawn(self, name: str) -> list[Strip]:
        """The lines of a region, anew only where they would look otherwise."""
        view, current = self.scene.views.get(name), name == self.current
        width = self.scrollable_content_region.width
        style = self.get_visual_style(CURRENT) if view and current else self.visual_style
        label, marked = self._labels.get(name, ""), name in self.marked
        look = (label, marked, current, width, style)
        kept = self._kept.get(name)
        if kept and kept[0] is view and kept[1] == look:  # to compare what two views say may take longer than to draw
            return kept[2]
        lines = draw_row(view, label, width, marked=marked, current=current) if view else [draw_header(width)]
        strips = [strip for line in lines for strip in Visual.to_strips(self, line, width, 1, style, pad=True)]
        self._kept[name] = (view, look, strips)
        return strips

    def action_move(self, by: int) -> None:
        if shown := self.shown:
            at = shown.index(self.current) if self.current in self._tops else 0
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
