"""The handover, as `console handover` prints it: to be read here, or copied as a whole."""

from typing import ClassVar

from textual.binding import Binding, BindingType

from console.runner.handover.facts import handover
from console.runner.handover.markdown import markdown
from console.tui.drawing import safe
from console.tui.screens.base import CopyRequest
from console.tui.screens.sheet import SheetScreen
from console.tui.state import ScreenState

MOST_CHARACTERS = 2_000  # of a line


class HandoverScreen(SheetScreen):
    """Markdown of this moment; y copies it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "copy", "Copy"), Binding("h", "dismiss", "Close")]

    def __init__(self, state: ScreenState) -> None:
        given = handover(state.title, state.views, state.queued, "", state.at)
        self._text = markdown(given)
        shown = self._text.replace("\u200b", "")  # only prevents a chat from notifying people
        lines = [safe(line, "bold" if line.startswith("#") else "", MOST_CHARACTERS) for line in shown.split("\n")]
        super().__init__("handover · y copies it", lines)

    def action_copy(self) -> None:
        self.post_message(CopyRequest(self._text, label=f"the handover, {len(self._text):,} characters of Markdown"))
