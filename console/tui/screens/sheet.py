"""Sheets over a screen: all keys, the command log, the graph of a region. They scroll, and indicate hidden lines."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from console.tui.drawing import stack_lines


class SheetBody(VerticalScroll, can_focus=True):
    """The lines of a sheet; its lower border shows how many lines are out of sight."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "down", show=False),
        Binding("k", "scroll_up", "up", show=False),
        Binding("space", "page_down", "next page", show=False),
        Binding("g", "scroll_home", "first", show=False),
        Binding("G", "scroll_end", "last", show=False),
    ]

    def on_mount(self) -> None:
        self.watch(self, "scroll_y", self._sign, init=False)
        self.watch(self, "virtual_size", self._sign, init=False)

    def on_resize(self) -> None:
        self._sign()

    def _sign(self) -> None:
        above, below = round(self.scroll_y), round(self.max_scroll_y - self.scroll_y)
        parts = [f"↑ {above} above" if above > 0 else "", f"↓ {below} below" if below > 0 else "", "esc closes"]
        self.border_subtitle = " · ".join(part for part in parts if part)


class SheetScreen(ModalScreen[None]):
    """An overlay, closed by esc, ?, q or enter."""

    AUTO_FOCUS = "#sheet"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,enter,f1", "dismiss", "Close")]

    def __init__(self, title: str, lines: Sequence[Content]) -> None:
        super().__init__()
        self._title, self._lines = title, tuple(lines)

    def compose(self) -> ComposeResult:
        sheet = SheetBody(Static(stack_lines(self._lines)), id="sheet")
        sheet.border_title = self._title
        yield sheet
