"""The log of commands that were run; each line can be copied."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from console.tui.commands.ran import RanCommand
from console.tui.drawing import safe
from console.tui.screens.base import CopyRequest
from console.tui.times import clock


class RanScreen(ModalScreen[None]):
    """An overlay; y or enter copies the line under the cursor, esc closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,at,q", "dismiss", "Close"),
        Binding("y", "copy", "Copy"),
        Binding("j", "move(1)", "down"),
        Binding("k", "move(-1)", "up"),
    ]

    def __init__(self, ran: Sequence[RanCommand]) -> None:
        super().__init__()
        self._ran = tuple(ran)
        self._list = OptionList(*map(_option, self._ran), id="sheet")

    def compose(self) -> ComposeResult:
        self._list.border_title = "what was run" if self._ran else "what was run: nothing yet"
        self._list.border_subtitle = "y copies the line · esc closes" if self._ran else "esc closes"
        yield self._list

    def on_mount(self) -> None:
        if self._ran:
            self._list.highlighted = len(self._ran) - 1

    def action_move(self, by: int) -> None:
        if by > 0:
            self._list.action_cursor_down()
        else:
            self._list.action_cursor_up()

    def action_copy(self) -> None:
        if self._list.highlighted is not None:
            self.post_message(CopyRequest(self._ran[self._list.highlighted].line))

    def on_option_list_option_selected(self) -> None:
        self.action_copy()


def _option(ran: RanCommand) -> Option:
    result = safe(f"  {ran.result}", "$text-muted", 120)
    return Option(Content.assemble((f"{clock(ran.at)} ", "$text-muted"), safe(ran.line, "bold", 300), result))
