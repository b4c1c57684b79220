"""A list of lines with a cursor that keys move."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.scroll_view import ScrollView


class CursorList(ScrollView, can_focus=True):
    """Its lines have numbers from 0; a list draws them, and knows what its cursor stays on.

    header_rows  rows above the first line, which never scroll
    """

    ALLOW_SELECT = False  # a double click opens a line
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "move(1)", "down", show=False),
        Binding("up,k", "move(-1)", "up", show=False),
        Binding("pagedown", "page(1)", "next page", show=False),
        Binding("pageup", "page(-1)", "previous page", show=False),
        Binding("home", "move(-1000000)", "first", show=False),
        Binding("end,G", "move(1000000)", "last", show=False),
    ]
    header_rows: ClassVar[int] = 0

    @property
    def line_count(self) -> int:
        raise NotImplementedError

    @property
    def cursor_line(self) -> int | None:
        """The line under the cursor; None if there is none."""
        raise NotImplementedError

    def move_cursor(self, line: int) -> None:
        """Move the cursor to an existing line."""
        raise NotImplementedError

    def action_move(self, by: int) -> None:
        if self.line_count:
            self.move_cursor(max(0, min(self.line_count - 1, (self.cursor_line or 0) + by)))

    def action_page(self, by: int) -> None:
        self.action_move(by * max(1, self.size.height - self.header_rows - 1))
