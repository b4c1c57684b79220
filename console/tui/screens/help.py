"""All keys, read from the bindings themselves."""

from collections.abc import Iterable

from textual.actions import parse
from textual.binding import Binding
from textual.content import Content
from textual.screen import Screen

from console.tui.drawing import cell
from console.tui.screens.sheet import SheetScreen

KEY_NAMES = {
    "question_mark": "?", "slash": "/", "escape": "esc", "space": "space", "enter": "enter", "colon": ":", "at": "@",
    "comma": ",", "full_stop": ".", "plus": "+", "underscore": "_", "left_square_bracket": "[", "right_square_bracket": "]", "less_than_sign": "<",
    "greater_than_sign": ">", "left": "←", "right": "→",
}  # fmt: skip
GLOBAL_KEYS = (("↑ ↓ j k", "move"), ("ctrl+p", "all commands, by name; themes"), ("tab", "next pane"))
SIGNS = (
    ("regions", "✓ live  ◆ at the gate  ▶ running  ‖ paused  ✗ failed  ! away  ○ change waiting  ↶ rolled back"),
    ("a plan", ". keep   ~ metadata, read   <= rebind   > forward   -/+ replay   >/+ hybrid   + create   - drop"),
    ("days", "▪ equal or done  □ waiting  ◪ running  ▲ retried  ✗ differing"),
)
KEY_CELLS = 10


def help_sheet(below: Screen[None]) -> SheetScreen:
    """The keys of the screen below and of its focused widget, and the symbols."""
    tooltips: dict[str, str] = {}
    for node in (below.focused, below):
        if node is None:
            continue
        for _, binding in node._bindings:
            if binding.tooltip and node.check_action(*_action(binding)) is not False:
                tooltips.setdefault(_key_name(binding), binding.tooltip)
    return SheetScreen("keys", [*_key_lines((tooltips | dict(GLOBAL_KEYS)).items()), *_sign_lines()])


def _key_lines(keys: Iterable[tuple[str, str]]) -> Iterable[Content]:
    for key, description in keys:
        yield Content.assemble(cell(Content.styled(key, "bold $text-accent"), KEY_CELLS), description)


def _sign_lines() -> Iterable[Content]:
    for name, signs in SIGNS:
        yield Content("")
        yield Content.styled(f"symbols of {name}", "$text-muted")
        yield Content(signs)


def _action(binding: Binding) -> tuple[str, tuple[object, ...]]:
    _, name, parameters = parse(binding.action)
    return name, parameters


def _key_name(binding: Binding) -> str:
    return KEY_NAMES.get(binding.key, binding.key)
