"""The prompt for the time to which a playback should go."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from console.errors import UsageError
from console.runner.recording.times import read_moment
from console.runner.view import Position
from console.tui.drawing import safe


class JumpScreen(ModalScreen[float | None]):
    """A line to type a time into; esc goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "Back", key_display="esc")]

    def __init__(self, position: Position) -> None:
        super().__init__()
        self._position = position
        self._why = Static(
            Content.styled("13:02 · 13:02:10 · 2026-11-02T13:02Z · +5m · -1h", "$text-muted"), id="offers"
        )

    def compose(self) -> ComposeResult:
        typed = Input(placeholder="time, or how far", id="line", compact=True)
        typed.cursor_blink = False
        box = Vertical(self._why, typed, id="command")
        box.border_title = "go to a time of the recording (UTC)"
        yield box

    def on_input_submitted(self, message: Input.Submitted) -> None:
        position = self._position
        try:
            self.dismiss(read_moment(message.value, position.at, position.begins, position.ends))
        except UsageError as error:
            self._why.update(safe(str(error), "$text-warning", 200))

    def action_leave(self) -> None:
        self.dismiss(None)
