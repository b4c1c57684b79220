"""Base of both full screens: banner, coach line, keys, and the state they are drawn from."""

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
from console.tui.panes.guide import draw_guide
from console.tui.quiet import Line
from console.tui.screens.help import HelpScreen
from console.tui.state import ScreenState


class BaseScreen(Screen[None]):
    """A full screen. Set `state` to redraw it; it posts `ActionRequest` and never calls a region itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "request('start')", "Start", tooltip="roll out the pending change, wave by wave"),
        Binding("p", "request('pause')", "Pause", tooltip="pause or resume the rollout"),
        Binding(
            "P", "request('promote')", "Promote", key_display="P", tooltip="open the gate; asks for the region's name"
        ),
        Binding("R", "request('rollback')", "Roll back", show=False, tooltip="go back to the previous release"),
        Binding("X", "request('cancel')", "Cancel", show=False, tooltip="end the rollout and drop what it has built"),
        Binding("t", "request('retry')", "Retry", show=False, tooltip="retry after a failure"),
        Binding(
            "D", "request('discard')", "Discard", show=False, tooltip="drop what a failed or paused rollout has built"
        ),
        Binding("r", "request('refresh')", "Refresh", show=False, tooltip="read project files and regions again"),
        Binding("v", "pane('checks')", "Validations", show=False, tooltip="the checks of the selected region"),
        Binding("l", "pane('log')", "Log", show=False, tooltip="the log of the selected region"),
        Binding("w", "witness", "Witness", show=False, tooltip="smallest rows on which the edited queries differ"),
        Binding("question_mark,f1", "help", "Help", key_display="?", tooltip="all keys"),
        Binding("q", "app.quit", "Quit", tooltip="quit; agents keep running"),
        Binding("ctrl+z", "app.suspend_process", "Suspend", show=False, tooltip="suspend to the shell; fg resumes"),
    ]
    state: reactive[ScreenState] = reactive(ScreenState(views={}), repaint=False)  # its widgets repaint themselves
    in_region: ClassVar[bool] = False  # whether it is the screen of one region
    main_keys: ClassVar[tuple[BindingType, ...]] = ()  # keys of its main pane, first in the footer

    def __init__(self, state: ScreenState) -> None:
        super().__init__()
        self._banner = Line(id="banner")
        self._coach = Line(id="coach")
        self._guide = Line(id="guide")
        self.set_reactive(BaseScreen.state, state)

    def compose(self) -> ComposeResult:
        yield self._banner
        yield Vertical(*self.body(), id="parts")
        yield self._guide
        yield self._coach
        foot = Static(_foot((*self.main_keys, *BaseScreen.BINDINGS, *self.BINDINGS)), id="foot")
        foot.auto_links = False  # keys keep their own colour
        yield foot

    def body(self) -> ComposeResult:
        """The widgets between banner and coach line."""
        yield from ()

    def on_mount(self) -> None:
        self.redraw()

    def watch_state(self) -> None:
        if self.is_mounted:
            self.redraw()

    @property
    def current_region(self) -> str:
        """The selected region; "" for none."""
        return ""

    @property
    def target_regions(self) -> tuple[str, ...]:
        """The regions that an action applies to."""
        return (self.current_region,) if self.current_region else ()

    def redraw(self) -> None:
        self._banner.update(_banner(self.state), layout=False)
        self._coach.display = self.state.coach
        self.update_coach()

    def update_coach(self) -> None:
        """Show the next keys for the selected region, above them what the demo tells of it."""
        view = self.state.views.get(self.current_region)
        guide = draw_guide(view) if view else Content("")
        self._guide.display = bool(guide)
        self._guide.update(guide)
        if self.state.coach:
            advice = coach(self.state, self.current_region, in_region=self.in_region)
            self._coach.update(Content.assemble(("next  ", "$text-muted"), advice), layout=False)

    def action_request(self, action: RegionAction) -> None:
        self.post_message(ActionRequest(action, self.target_regions))

    def action_pane(self, name: str) -> None:
        """Show a pane of the selected region."""

    def action_witness(self) -> None:
        """Show the witnesses of the selected region, and search for them."""
        if region := self.current_region:
            self.action_pane("witness")
            self.post_message(ActionRequest("witness", (region,)))

    def action_help(self) -> None:
        self.app.push_screen(HelpScreen())


def _foot(bindings: Iterable[BindingType]) -> Content:
    """The keys shown in the footer, in one line; each can be clicked."""
    parts = []
    for binding in bindings:
        if isinstance(binding, Binding) and binding.show:
            key = binding.key_display or binding.key
            hint = Content.assemble((f" {key}", "bold $text-accent"), f" {binding.description} ")
            action = binding.action if "." in binding.action else f"screen.{binding.action}"
            parts.append(hint.stylize(Style.from_meta({"@click": action})))
    return Content("").join(parts)


def _banner(state: ScreenState) -> Content:
    counts: dict[str, int] = {}
    for view in state.views.values():
        word = state_label(view).text
        counts[word] = counts.get(word, 0) + 1
    states = ", ".join(f"{number} {word}" for word, number in counts.items())
    number = len(state.views)
    return Content.assemble(
        (" console ", "bold $text-accent"),
        safe(f"{state.title}  " if state.title else " ", "bold", 60),
        safe(f"{number} {'region' if number == 1 else 'regions'}" + (f": {states}" if states else ""), "$text-muted"),
        ("  read-only", "bold $text-warning") if state.readonly else "",
    )
