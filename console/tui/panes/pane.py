"""A scrolling pane around one drawing of one region."""

from collections.abc import Callable
from itertools import zip_longest
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.reactive import reactive
from textual.widgets import Static

from console.runner.view import RegionView
from console.tui.drawing import safe, stack_lines

CHUNK_LINES = 40  # lines
Drawing = Callable[[RegionView, int, float], Content]


class Pane(VerticalScroll, can_focus=True):
    """Draws `view` as `drawing(view, width, now)` says; it is redrawn only where the drawing differs.

    follow      keep the last line in sight, unless the operator has scrolled up
    drawn_from  all that the drawing is made from, where that is less than the view and the time: the same, nothing is drawn
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
        drawn_from: Callable[[RegionView], object] | None = None,
        follow: bool = False,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.border_title = safe(title)
        self.now = 0.0
        self._drawing = drawing
        self._drawn_from = drawn_from
        self._made: object = None  # what the last drawing was made from
        self._follow = follow
        self._parts = [Static()]
        self._drawn = Content("")

    def compose(self) -> ComposeResult:
        yield from self._parts

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
        if self._drawn_from:
            made = (width, self._drawn_from(self.view) if self.view else None)
            if made == self._made:
                return
            self._made = made
        content = self._drawing(self.view, width, self.now) if self.view else Content("")
        if content.is_same(self._drawn):
            return
        at_end = self.scroll_y >= self.max_scroll_y - 1
        self._drawn = content
        self._update(content)
        if self._follow and at_end:
            self.scroll_end(animate=False)

    def _update(self, content: Content) -> None:
        """One widget for each few lines: Textual draws those in view, and only those that say something new."""
        drawn = [content]
        if not self._follow:  # whose end would have to wait until a new widget has its place
            lines = content.split("\n", allow_blank=True)
            drawn = [stack_lines(lines[at : at + CHUNK_LINES]) for at in range(0, len(lines), CHUNK_LINES)]
        if fresh := [Static() for _ in drawn[len(self._parts) :]]:
            self._parts += fresh
            self.mount(*fresh)
        for part, new in zip_longest(self._parts, drawn):
            part.display = new is not None
            if new is not None and not (isinstance(part.content, Content) and new.is_same(part.content)):
                part.update(new)
