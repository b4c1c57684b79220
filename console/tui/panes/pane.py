"""A scrolling pane around one drawing of one region."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.reactive import reactive
from textual.widgets import Static

from console.runner.view import RegionView
from console.tui.drawing import said

Drawing = Callable[[RegionView, int, float], Content]


class Pane(VerticalScroll, can_focus=True):
    """Draws `view` as `drawing(view, width, now)` says; it is redrawn only where the drawing differs.

    follow  keep the last line in sight, unless the operator has scrolled up
    told    what the drawing is made from, where that is less than the view and the time
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
    ]
    view: reactive[RegionView | None] = reactive(None)

    def __init__(
        self,
        title: str,
        drawing: Drawing,
        *,
        told: Callable[[RegionView], object] | None = None,
        follow: bool = False,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.border_title = said(title)
        self.now = 0.0
        self._drawing = drawing
        self._told = told
        self._last: object = None
        self._follow = follow
        self._body = Static()
        self._drawn = Content("")

    def compose(self) -> ComposeResult:
        yield self._body

    def show(self, view: RegionView | None, now: float) -> None:
        self.now = now
        self.view = view

    def watch_view(self) -> None:
        self._redraw()

    def on_resize(self, event: Resize) -> None:
        self._redraw()

    def _redraw(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        if self._told:
            told = (width, self._told(self.view) if self.view else None)
            if told == self._last:
                return
            self._last = told
        content = self._drawing(self.view, width, self.now) if self.view else Content("")
        if content.is_same(self._drawn):
            return
        at_end = self.scroll_y >= self.max_scroll_y - 1
        self._drawn = content
        self._body.update(content)
        if self._follow and at_end:
            self.scroll_end(animate=False)
