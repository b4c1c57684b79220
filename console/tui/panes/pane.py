"""A scrolling pane with one drawing of one region."""

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual
from textual.widget import Widget

from console.runner.view import RegionView
from console.tui.drawing import safe
from console.tui.panes.rows import WrappedRow, wrapped_rows
from console.tui.quiet import Titled

AGES_SECONDS = 10.0  # after this time a drawing of the same view is outdated, since ages are part of it
Drawing = Callable[[RegionView, int, float], Content | Sequence[Content]]


class Pane(Titled, ScrollView, can_focus=True):
    """Shows the lines of `drawing(view, width, now)`; only rows in view are drawn, and only if they have changed.

    One widget for all rows: with a widget for the text, Textual would lay out the whole screen whenever it grows.

    follow  keep the last line in sight, unless the operator has scrolled up
    inputs  everything that the drawing depends on, if that is less than view and time; while equal, nothing is drawn
    """

    ALLOW_MAXIMIZE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
    ]
    view: reactive[RegionView | None] = reactive(None, repaint=False)

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
        self._lines: Sequence[Content] = ()
        self._rows: list[WrappedRow] = []
        self._wrapped_at = 0

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        self._at_end = new_value >= self.max_scroll_y - 1
        if self._inputs:
            self._redraw()  # for a drawing that produces no more lines than needed

    @property
    def needed_rows(self) -> int:
        """Rows down to the end of the visible part, in whole pages; scrolling redraws before new rows become visible."""
        page = max(1, self.size.height)
        return -(-self.scroll_offset.y // page) * page + page

    @property
    def row_count(self) -> int:
        """Number of rows, after wrapping."""
        return len(self._rows)

    def watch_has_focus(self, _has_focus: bool) -> None:
        """Only the pane's border depends on the focus."""
        self.app.stylesheet.update_nodes([self], animate=False)

    def show(self, view: RegionView | None, now: float) -> None:
        aged = not 0 <= now - self._drawn_at < AGES_SECONDS
        self.now = now
        if view == self.view and aged:
            self._redraw()
        self.view = view

    def renew(self) -> None:
        """Redraw although the view is the same: for a drawing of more than one region."""
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
        drawn = self._drawing(self.view, width, self.now) if self.view else ()
        blocks = [drawn] if isinstance(drawn, Content) else drawn
        self._show_lines([line for block in blocks for line in _lines(block)], width)
        self._stay_at_end()

    def _show_lines(self, lines: Sequence[Content], width: int) -> None:
        before = self._rows
        known = before if width == self._wrapped_at else []
        self._lines, self._rows, self._wrapped_at = lines, wrapped_rows(lines, width, known), width
        if len(self._rows) != len(before):
            self._resize_text(len(before))
        top = self.scroll_offset.y
        for at in range(top, top + self.size.height):
            old, new = (rows[at] if at < len(rows) else None for rows in (before, self._rows))
            if old is not new and not (old and new and old.content.is_same(new.content)):
                self.refresh_line(at)

    def _resize_text(self, before: int) -> None:
        """The number of rows changed: only a pane as high as its text needs a new layout, and only if it was not cut."""
        now, shown = len(self._rows), self.container_size.height
        self.set_reactive(Widget.virtual_size, Size(0, now))
        self._scroll_update(self.virtual_size)
        height = self.styles.height
        if height is not None and height.is_auto and (before <= shown or now < shown):
            self.refresh(layout=True)

    def _stay_at_end(self) -> None:
        """After more lines or another size: neither scrolls, so `_at_end` still has the earlier state."""
        if self._follow and self._at_end:
            self.scroll_to(y=self.max_scroll_y, animate=False)

    def render_line(self, y: int) -> Strip:
        at, width, style = y + self.scroll_offset.y, self.scrollable_content_region.width, self.visual_style
        if at >= len(self._rows) or width <= 0:
            return Strip.blank(width, style.rich_style)
        return self._strip(self._rows[at], width, style)

    def _strip(self, row: WrappedRow, width: int, style: Style) -> Strip:
        selection = self.text_selection
        look = (style, self.app.theme, width) if selection is None else None
        if look is None or row.look != look:
            content = row.content
            if selection is not None and (span := selection.get_span(row.line)) is not None:
                start, end = row.part(*span)
                chosen = Style.from_styles(self.screen.get_component_styles("screen--selection"))
                content = content.stylize(chosen, start, end)
            (strip,) = Visual.to_strips(self, content, width, 1, style, apply_selection=False, pad=True)
            row.look, row.strip = look, strip
        return row.strip.apply_offsets(row.start, row.line)

    def get_selection(self, selection: Selection) -> tuple[str, str]:
        return selection.extract(self.text), "\n"

    @property
    def text(self) -> str:
        """All of its lines."""
        return "\n".join(line.plain for line in self._lines)


def _lines(block: Content) -> Sequence[Content]:
    """The lines of a block; most of a few hundred blocks are a single line."""
    return block.split("\n", allow_blank=True) if "\n" in block.plain else (block,)
