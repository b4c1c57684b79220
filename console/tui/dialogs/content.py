"""The content of a confirmation as a value: its lines, the text to be typed, and what blocks it."""

from collections.abc import Awaitable, Callable

from textual.content import Content

from console.record import dataclass
from console.tui.state import ScreenState


@dataclass(frozen=True, slots=True)
class DifferingDay:
    """A day of a comparison for which rows can be fetched."""

    region: str
    table: str
    day: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DialogContent:
    """Drawn by `Dialog`.

    title         one line
    environments  of the regions concerned, shown as badges
    lines         the body; wrapped by the dialog
    verb          label of the confirming button
    typed         the text to be typed first; "" if the button is enough
    blocked       why the action is refused now; "" if it is not
    reason_for    what a reason has to be typed for; "" for nothing
    ticket_for    what a ticket has to be named for; "" for nothing
    harmless      nothing is lost: the confirming button has the focus, not Cancel
    details       shown by f2 instead of the body
    differing     days for which f3 fetches rows, one after the other
    """

    title: str
    environments: tuple[str, ...]
    lines: tuple[Content, ...]
    verb: str
    typed: str = ""
    blocked: str = ""
    reason_for: str = ""
    ticket_for: str = ""
    harmless: bool = False
    details: tuple[Content, ...] = ()
    differing: tuple[DifferingDay, ...] = ()


@dataclass(frozen=True, slots=True)
class DialogAnswer:
    """What was typed into a confirmed dialog; "" where it did not ask."""

    reason: str = ""
    ticket: str = ""


DialogFactory = Callable[[ScreenState], DialogContent]
ReadRows = Callable[[DifferingDay], Awaitable[tuple[Content, ...]]]
