"""What both full screens share: banner, coach line, keys, and the scene they are drawn from."""

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.style import Style
from textual.widgets import Static

from console.tui.actions import ActionRequest, RegionAction, coach
from console.tui.drawing import safe
from console.tui.labels import state_label
from console.tui.screens.help import HelpScreen
from console.tui.state import ScreenState


class BaseScreen(Screen[None]):
    """A full screen. Set `scene` to redraw it; it posts `Ask` and never calls a region."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "ask('start')", "Start", tooltip="hand the pending change over, wave after wave"),
        Binding("p", "ask('pause')", "Pause", tooltip="pause, or go on"),
        Binding("P", "ask('promote')", "Promote", key_display="P", tooltip="open the gate: asks for the region's name"),
        Binding("R", "ask('rollback')", "Roll back", show=False, tooltip="back to the release before"),
        Binding("X", "ask('cancel')", "Cancel", show=False, tooltip="end the rollout, drop what it built"),
        Binding("t", "ask('retry')", "Try again", show=False, tooltip="go on after a failure"),
        Binding("D", "ask('discard')", "Discard", show=False, tooltip="drop what a failed or waiting rollout built"),
        Binding("r", "ask('refresh')", "Refresh", show=False, tooltip="read files and regions again"),
        Binding("v", "pane('checks')", "Validations", show=False, tooltip="the checks of the region in view"),
        Binding("l", "pane('log')", "Log", show=False, tooltip="the log of the region in view"),
        Binding("w", "witness", "Witness", show=False, tooltip="rows that the edited queries turn into others"),
        Binding("question_mark,f1", "help", "Help", key_display="?", tooltip="all keys"),
        Binding("q", "app.quit", "Quit", tooltip="leave; agents go on"),
        Binding("ctrl+z", "app.suspend_process", "Suspend", show=False, tooltip="to the shell, back with fg"),
    ]
    scene: reactive[ScreenState] = reactive(ScreenState({}), repaint=False)  # what is drawn from it repaints itself
    inside: ClassVar[bool] = False  # already the screen of one region
    front: ClassVar[tuple[BindingType, ...]] = ()  # keys of its main pane, named first in the foot

    def __init__(self, scene: ScreenState) -> None:
        super().__init__()
        self._banner = Static(id="banner")
        self._coach = Static(id="coach")
        self.set_reactive(BaseScreen.scene, scene)

    def compose(self) -> ComposeResult:
        yield self._banner
        yield Vertical(*self.parts(), id="parts")
        yield self._coach
        foot = Static(_foot((*self.front, *BaseScreen.BINDINGS, *self.BINDINGS)), id="foot")
        foot.auto_links = False  # keys keep their own colour
        yield foot

    def parts(self) -> ComposeResult:
        """What stands between banner and coach line."""
        yield from ()

    def on_mount(self) -> None:
        self.redraw()

    def watch_scene(self) -> None:
        if self.is_mounted:
            self.redraw()

    @property
    def subject(self) -> str:
        """The region in view; "" for none."""
        return ""

    @property
    def subjects(self) -> tuple[str, ...]:
        """The regions that a key acts on."""
        return (self.subject,) if self.subject else ()

    def redraw(self) -> None:
        self._banner.update(_banner(self.scene), layout=False)
        self._coach.display = self.scene.coach
        self.advise()

    def advise(self) -> None:
        """The next keys for the region in view."""
        if self.scene.coach:
            told = coach(self.scene, self.subject, inside=self.inside)
            self._coach.update(Content.assemble(("next  ", "$text-muted"), told), layout=False)

    def action_ask(self, deed: RegionAction) -> None:
        self.post_message(ActionRequest(deed, self.subjects))

    def action_pane(self, name: str) -> None:
        """Show a pane of the region in view."""

    def action_witness(self) -> None:
        """Show the witnesses of the region in view, and seek them."""
        if self.subject:
            subject = self.subject
            self.action_pane("witness")
            self.post_message(ActionRequest("witness", (subject,)))

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())


def _foot(bindings: Iterable[BindingType]) -> Content:
    """The keys that are shown, in one line; each can be clicked."""
    parts = []
    for binding in bindings:
        if isinstance(binding, Binding) and binding.show:
            key = binding.key_display or binding.key
            does = Content.assemble((f" {key}", "bold $text-accent"), f" {binding.description} ")
            action = binding.action if "." in binding.action else f"screen.{binding.action}"
            parts.append(does.stylize(Style.from_meta({"@click": action})))
    return Content("").join(parts)


def _banner(scene: ScreenState) -> Content:
    counts: dict[str, int] = {}
    for view in scene.views.values():
        word = state_label(view).text
        counts[word] = counts.get(word, 0) + 1
    states = ", ".join(f"{number} {word}" for word, number in counts.items())
    number = len(scene.views)
    return Content.assemble(
        (" console ", "bold $text-accent"),
        safe(f"{scene.title}  " if scene.title else " ", "bold", 60),
        safe(f"{number} {'region' if number == 1 else 'regions'}" + (f": {states}" if states else ""), "$text-muted"),
        ("  read-only", "bold $text-warning") if scene.readonly else "",
    )
