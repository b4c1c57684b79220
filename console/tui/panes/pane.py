"""A scrolling pane with one drawing of one region."""

from collections.abc import Callable
from itertools import zip_longest
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Resize
from textual.reactive import reactive

from console.runner.view import RegionView
from console.tui.drawing import safe, stack_lines
from console.tui.quiet import Line, Titled

CHUNK_LINES = 40  # lines
AGES_SECONDS = 10.0  # after which a drawing of the same view is another, since it has grown older
Drawing = Callable[[RegionView, int, float], Content]


class Pane(Titled, VerticalScroll, can_focus=True):
    """Shows `drawing(view, width, now)`; widgets are updated only where the drawing differs.

    follow  keep the last line in sight, unless the operator has scrolled up
    inputs  all that the drawing depends on, where that is less than view and time; while equal, nothing is drawn
    """

    ALLOW_MAXIMIZE = True
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
        inputs: Callable[[RegionView], object] | None = None,
        follow: bool = False,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.border_title = safe(title)
        self.now = self._drawn_at = 0.0
        self._drawing = drawing
        self._inputs = inputs
        self._last_inputs: object = None
        self._follow = follow
        self._at_end = True
        self._parts = [Line()]
        self._content = Content("")

    def compose(self) -> ComposeResult:
        yield from self._parts

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._at_end = new_value >= self.max_scroll_y - 1

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Nothing but its own border depends on the focus: Textual would style and draw all lines in it anew."""
        self.app.stylesheet.update_nodes([self], animate=False)

    def show(self, view: RegionView | None, now: float) -> None:
        aged = not 0 <= now - self._drawn_at < AGES_SECONDS
        self.now = now
        if view == self.view and aged:
            self._redraw()
        self.view = view

    def renew(self) -> None:
        """Draw what may differ although the view is the same: for a drawing of more than one region."""
        self._redraw()

    def watch_view(self) -> None:
        self._redraw()

    def on_resize(self, event: Resize) -> None:
        self._redraw()
        self._stay_at_end()

    def _redraw(self) -> None:
        width = self.scrollable_content_region.width
        if width <= 0:
            return
        if self._inputs:
            current_inputs = (width, self._inputs(self.view) if self.view else None)
            if current_inputs == self._last_inputs:
                return
            self._last_inputs = current_inputs
        self._drawn_at = self.now
        content = self._drawing(self.view, width, self.now) if self.view else Content("")
        if content.is_same(self._content):
            return
        self._content = content
        self._update(content)
        self._stay_at_end()

    def _stay_at_end(self) -> None:
        """After more lines or another size: neither moves what is in sight, so `_at_end` says how it was before."""
        if self._follow and self._at_end:
            self.scroll_end(animate=False)

    def _update(self, content: Content) -> None:
        """One widget for each chunk of lines: Textual then draws only those in view that have changed."""
        chunks = [content]
        if not self._follow:  # its end could be scrolled to only after a new widget is laid out
            lines = content.split("\n", allow_blank=True)
            chunks = [stack_lines(lines[at : at + CHUNK_LINES]) for at in range(0, len(lines), CHUNK_LINES)]
        if fresh := [Line() for _ in chunks[len(self._parts) :]]:
            self._parts += fresh
            self.mount(*fresh)
        for part, new in zip_longest(self._parts, chunks):
            part.display = new is not None
            if new is not None:
                part.update(new)
