"""All keys, read from the bindings themselves."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from console.tui.drawing import cell, stack_lines

KEY_NAMES = {"question_mark": "?", "slash": "/", "escape": "esc", "space": "space", "enter": "enter"}
GLOBAL_KEYS = (("↑ ↓ j k", "move"), ("ctrl+p", "all commands, by name; themes"), ("tab", "next pane"))
ACTION_SIGNS = ". keep   ~ metadata, read   <= rebind   > forward   -/+ replay   >/+ hybrid   + create   - drop"


class HelpScreen(ModalScreen[None]):
    """An overlay, closed by esc, ?, q or enter."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,question_mark,q,enter,f1", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        sheet = VerticalScroll(Static(self._keys()), id="sheet")
        sheet.border_title = "keys"
        sheet.border_subtitle = "esc closes"
        yield sheet

    def _keys(self) -> Content:
        below = self.app.screen_stack[-2] if len(self.app.screen_stack) > 1 else self.app.screen
        tooltips: dict[str, str] = {}
        for node in (below.focused, below):
            for _, binding in node._bindings if node else ():
                if binding.tooltip:
                    tooltips.setdefault(_key_name(binding), binding.tooltip)
        tooltips |= dict(GLOBAL_KEYS)
        lines = [
            Content.assemble(cell(Content.styled(key, "bold $text-accent"), 12), description)
            for key, description in tooltips.items()
        ]
        return stack_lines(
            [*lines, Content(""), Content.styled("symbols in a plan", "$text-muted"), Content(ACTION_SIGNS)]
        )


def _key_name(binding: Binding) -> str:
    return KEY_NAMES.get(binding.key, binding.key)
