"""The line after `:`: a command as on the command line, completed as it is typed."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from console.errors import ConsoleError
from console.runner.words import CommandWords
from console.tui.commands.line import TypedCommand, typed_command
from console.tui.drawing import cell, safe, stack_lines

SHOWN = 8
WORD_CELLS = 16


class CommandScreen(ModalScreen[TypedCommand | None]):
    """Returns the command, or None. tab takes the first word offered; enter runs it, or copies what needs a shell.

    typed  initial content of the line
    """

    AUTO_FOCUS = "#line"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Close"),
        Binding("tab", "complete", "Complete", priority=True),
    ]

    def __init__(self, words: CommandWords, region: str, typed: str = "") -> None:
        super().__init__()
        self._words, self._region = words, region
        hint = "command of the command line, without `console`"
        self._line = Input(typed, hint, select_on_focus=False, id="line", compact=True)
        self._line.cursor_blink = False
        self._offers = Static(id="offers")

    def compose(self) -> ComposeResult:
        with Vertical(id="command"):
            yield self._offers
            yield self._line

    def on_mount(self) -> None:
        self._offer()

    def on_input_changed(self) -> None:
        self._offer()

    def on_key(self, event: Key) -> None:
        """Keys typed before the line has the focus are not lost."""
        if not self._line.has_focus and event.is_printable and event.character:
            self._line.value += event.character
            self._line.cursor_position = len(self._line.value)
            self._line.focus()
            event.stop()

    def _offer(self, error: str = "") -> None:
        offers = self._words.complete(self._line.value)[:SHOWN]
        width = max(20, self.app.size.width - 6)
        lines = [
            cell(Content.assemble(cell(safe(word, "bold", 60), WORD_CELLS), " ", safe(help, "$text-muted", 120)), width)
            for word, help in offers
        ]
        if error:
            lines = [safe(error, "$text-error", 300)]
        region = f" · about {self._region} unless regions are named" if self._region else ""
        lines.append(Content.styled(f": enter runs it · tab completes · esc closes{region}", "$text-muted"))
        self._offers.update(stack_lines(lines))

    def action_complete(self) -> None:
        typed = self._line.value
        if offers := self._words.complete(typed):
            done = typed[: len(typed) - len(typed.split(" ")[-1])]
            self._line.value = f"{done}{offers[0][0]} "
            self._line.cursor_position = len(self._line.value)

    def on_input_submitted(self) -> None:
        if not self._line.value.strip():
            self.dismiss(None)
            return
        try:
            command = typed_command(self._line.value, self._words, self._region)
        except ConsoleError as error:
            self._offer(f"✗ {error}" + (f" → {error.hint}" if error.hint else ""))
            return
        self.dismiss(command)
