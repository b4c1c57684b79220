"""A question before a deed, as a value: what is shown, what must be typed, and what forbids it."""

from collections.abc import Callable
from dataclasses import dataclass

from textual.content import Content

from console.tui.state import ScreenState


@dataclass(frozen=True, slots=True)
class DialogContent:
    """Drawn by `Dialog`.

    title         one line
    environments  of the regions concerned, for the colour bars
    lines         the body; paragraphs are wrapped by the dialog
    verb          the label of the button that does it
    typed         what has to be typed first; "" where a button is enough
    blocked       why it cannot be done now; "" where it can
    gentle        nothing is lost by it: the button has the focus, not Cancel
    """

    title: str
    environments: tuple[str, ...]
    lines: tuple[Content, ...]
    verb: str
    typed: str = ""
    blocked: str = ""
    gentle: bool = False


DialogFactory = Callable[[ScreenState], DialogContent]
