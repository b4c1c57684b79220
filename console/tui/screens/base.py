"""Base of all full screens: banner, coach line, keys, and the state they are drawn from."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.reactive import Reactive, reactive
from textual.screen import Screen
from textual.widget import Widget

from console.model.event import Recorded
from console.runner.view import RegionView
from console.tui.actions import ActionRequest, RegionAction, coach, tune_objection
from console.tui.commands.keys import ALWAYS, FooterKey, action_keys, draw_footer, screen_key, screen_keys
from console.tui.commands.printing import printing_commands
from console.tui.drawing import stack_lines
from console.tui.fleet.banner import draw_banner
from console.tui.fleet.memory import ScreenPlace
from console.tui.panes.guide import draw_guide
from console.tui.panes.pane import Pane
from console.tui.playback.bar import draw_bar, draw_missing, playback_keys
from console.tui.playback.controls import BINDINGS as PLAYBACK_BINDINGS
from console.tui.playback.controls import Control, PlaybackRequest
from console.tui.quiet import Line
from console.tui.state import ScreenState

ScreenName = Literal["fleet", "rollout", "plan", "gate", "history"]
SCREEN_NAMES: tuple[ScreenName, ...] = ("fleet", "rollout", "plan", "gate", "history")
GUIDED: tuple[ScreenName, ...] = ("fleet", "rollout")  # on these, the demo's lines are shown however low the terminal
GUIDED_LINES = 30  # of a terminal in which the other screens have room for them as well


@dataclass
class GoTo(Message):
    """The operator asked for another screen, of a region if it is the screen of one, with one of its panes chosen."""

    name: ScreenName
    region: str
    pane: str = ""


class RepaintRequest(Message):
    """A part of the screen is outdated although no region has changed."""


@dataclass
class CopyRequest(Message):
    """The operator asked for a text on the clipboard.

    label  description of the copied text, if not the text itself; more remark about other texts
    """

    text: str
    label: str = ""
    more: str = ""


@dataclass
class HistoryRequest(Message):
    """The view no longer holds the first events of its rollout, and they are wanted."""

    region: str


class BaseScreen(Screen[None]):
    """A full screen. Set `state` to redraw it; it posts `ActionRequest` and never calls a region itself."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("1", "goto('fleet')", "Fleet", tooltip="all regions: does anything need me?"),
        Binding("2", "goto('rollout')", "Rollout", tooltip="the region's rollout: what is happening, and why"),
        Binding("3", "goto('plan')", "Plan", tooltip="the region's plan"),
        Binding("4", "goto('gate')", "Gate", tooltip="is it safe to confirm?"),
        Binding("5", "goto('history')", "History", tooltip="what happened in all regions"),
        Binding("n", "next_need", "Next", tooltip="go to the next region that needs you"),
        Binding("s", "request('start')", "Start", tooltip="roll out the pending change, wave by wave"),
        Binding("p", "request('pause')", "Pause", tooltip="pause or resume the rollout"),
        Binding("P", "request('promote')", "Promote", tooltip="open the gate; asks for the region's name"),
        Binding("R", "request('rollback')", "Roll back", tooltip="go back to the previous release"),
        Binding("X", "request('cancel')", "Cancel", tooltip="end the rollout and drop what it has built"),
        Binding("t", "request('retry')", "Retry", tooltip="retry after a failure"),
        Binding("D", "request('discard')", "Discard", tooltip="drop what a failed or paused rollout has built"),
        Binding("T", "tune", "Tune", tooltip="limits of a running rollout"),
        Binding("r", "request('refresh')", "Refresh", tooltip="read project files and regions again"),
        Binding("d", "goto('plan')", "Diff", tooltip="what the plan changes, table by table"),
        Binding("g", "graph", "Graph", tooltip="which table is computed from which"),
        Binding("v", "pane('checks')", "Validations", tooltip="the checks of the selected region"),
        Binding("l", "pane('log')", "Log", tooltip="the log of the selected region"),
        Binding("V", "verify", "Verify", tooltip="check a rollout's receipts against the tables; again: cancel it"),
        Binding("h", "handover", "Handover", tooltip="what the next shift must know, to copy"),
        Binding("w", "witness", "Witness", tooltip="smallest rows on which the edited queries differ"),
        Binding("e", "troubled", "Errors", tooltip="only regions in trouble; again: all"),
        Binding("o", "order", "Order", tooltip="next order of the regions"),
        Binding("left_square_bracket", "tab(-1)", "Previous pane", tooltip="previous pane below"),
        Binding("right_square_bracket", "tab(1)", "Next pane", tooltip="next pane below"),
        Binding("plus", "zoom(True)", "Zoom", tooltip="the focused pane alone"),
        Binding("underscore", "zoom(False)", "Unzoom", tooltip="all panes again"),
        Binding("y", "copy", "Copy", tooltip="copy the command that prints these numbers; again: the next"),
        Binding("at", "commands_run", "Commands", tooltip="what was run, as commands to copy"),
        Binding("colon", "command", "Command", tooltip="a command in the words of the command line"),
        Binding("ctrl+s", "export", "Export", tooltip="save the screen as a picture"),
        Binding("question_mark,f1", "help", "Help", tooltip="all keys"),
        Binding("q", "app.quit", "Quit", tooltip="quit; agents keep running"),
        Binding("ctrl+z", "app.suspend_process", "Suspend", tooltip="suspend to the shell; fg resumes"),
        *PLAYBACK_BINDINGS,
    ]
    # Its widgets repaint themselves. Never compared with the one before, since a repaint is asked for because of a change.
    state: reactive[ScreenState] = reactive(ScreenState(views={}), repaint=False, always_update=True)
    focused: Reactive[Widget | None] = Reactive(None, repaint=False)  # both widgets repaint themselves
    ALLOW_IN_MAXIMIZED_VIEW = "#banner,#guide,#coach,#foot"
    ESCAPE_TO_MINIMIZE = True
    in_region: ClassVar[bool] = False  # whether it is the screen of one region
    name_of: ClassVar[ScreenName] = "fleet"

    def __init__(self, state: ScreenState, *, classes: str | None = None) -> None:
        super().__init__(classes=classes)
        self._banner = Line(id="banner")
        self._coach = Line(id="coach")
        self._player = Line(id="player")
        self._guide = Line(id="guide")
        self._foot = Line(id="foot")
        self._foot.auto_links = False  # keys keep their own colour
        self._copied: tuple[tuple[str, ...], int] = ((), 0)
        self._outdated = False  # the state has changed since the screen was drawn
        self.set_reactive(BaseScreen.state, state)

    def compose(self) -> ComposeResult:
        yield self._banner
        yield Vertical(*self.body(), id="parts")
        yield self._guide
        yield self._coach
        yield self._player
        yield self._foot

    def body(self) -> ComposeResult:
        """The widgets between banner and coach line."""
        yield from ()

    def on_mount(self) -> None:
        self.redraw()

    def adopt(self, state: ScreenState, *, seen: bool) -> None:
        """Draw this state: now if the screen is seen, else once it is."""
        if seen:
            self.state = state
        else:
            self.set_reactive(BaseScreen.state, state)
            self._outdated = True

    def on_screen_resume(self) -> None:
        if self._outdated:
            self._outdated = False
            self.redraw()

    def on_resize(self) -> None:
        if self.is_mounted:
            self.show_time()
            self.update_keys()

    def adopt_history(self, events: Sequence[Recorded]) -> None:
        """Draw with these events, which are older than those of the views, from now on; only a rollout's screen does."""

    def watch_state(self) -> None:
        if self.is_mounted:
            self.redraw()

    @property
    def current_region(self) -> str:
        """The selected region; "" for none."""
        return ""

    @property
    def current_view(self) -> RegionView | None:
        return self.state.views.get(self.current_region)

    @property
    def target_regions(self) -> tuple[str, ...]:
        """The regions to which an action applies."""
        return (self.current_region,) if self.current_region else ()

    def redraw(self) -> None:
        self.show_time()
        self._coach.display = self.state.coach and self.state.position is None
        self._player.display = self.state.position is not None
        self.update_keys()

    def show_time(self) -> None:
        """Redraw the parts that age while nothing happens."""
        width = self.app.size.width
        self._banner.update(draw_banner(self.state, self.current_view, width), layout=False)
        if position := self.state.position:
            self._player.update(stack_lines(filter(None, (draw_bar(position, width), draw_missing(position, width)))))

    def update_keys(self) -> None:
        """Show the next keys for the selected region, in the coach line and in the footer, and the demo's lines about it."""
        view = self.current_view if self.name_of in GUIDED or self.app.size.height >= GUIDED_LINES else None
        guide = draw_guide(view, self.app.size.width - 2) if view else Content("")
        self._guide.display = bool(guide)
        self._guide.update(guide)
        if self.state.coach and self.state.position is None:
            advice = coach(self.state, self.current_region, in_region=self.in_region, here=screen_key(self.name_of))
            self._coach.update(Content.assemble(("next  ", "$text-muted"), advice), layout=False)
        self._foot.update(draw_footer(self.footer_keys(), self.app.size.width), layout=False)

    def footer_keys(self) -> Sequence[FooterKey]:
        """The keys that apply now, in the order in which they are shown."""
        actions = action_keys(self.state, self.current_view, self.target_regions)
        if position := self.state.position:
            actions = playback_keys(position)
        return (*self.own_keys(), *actions, *screen_keys(self.name_of), *ALWAYS)

    def own_keys(self) -> tuple[FooterKey, ...]:
        """Keys of this screen alone that apply now."""
        return ()

    def refuse(self, why: str) -> None:
        """Say why a key does nothing."""
        self.app.notify(why, severity="warning", timeout=6, markup=False)

    def action_request(self, action: RegionAction) -> None:
        self.post_message(ActionRequest(action=action, regions=self.target_regions))

    def action_goto(self, name: ScreenName) -> None:
        if name == self.name_of:
            self.refuse(f"this is the {name} screen")
        else:
            self.post_message(GoTo(name, self.current_region))

    def action_next_need(self) -> None:
        self.refuse("n goes from one region that needs you to the next on the fleet screen; 1 leads there")

    def action_order(self) -> None:
        self.refuse("o orders the regions on the fleet screen; 1 leads there")

    def action_troubled(self) -> None:
        self.refuse("e hides regions without trouble on the fleet screen; 1 leads there")

    async def action_verify(self) -> None:
        self.refuse("V verifies a rollout on the screen of the past; 5 leads there")

    def action_tab(self, by: int) -> None:
        self.refuse("this screen has no panes to turn to")

    def action_zoom(self, larger: bool) -> None:
        """The focused pane alone, or all of them again."""
        panes = [pane for pane in self.query(Pane) if pane.region.area]
        pane = self.focused if isinstance(self.focused, Pane) else next(iter(panes), None)
        if not larger and self.maximized is None:
            self.refuse("all panes are shown; + shows the focused one alone")
        elif not larger or pane is None:
            self.minimize()
        else:
            pane.focus()
            self.maximize(pane, container=False)

    def on_descendant_focus(self) -> None:
        """While one pane is zoomed, the newly focused pane replaces it."""
        pane = self.focused  # the current focus: the event's widget may have lost it again
        if self.maximized is not None and isinstance(pane, Pane) and pane is not self.maximized:
            self.maximize(pane, container=False)

    def place(self) -> ScreenPlace:
        """The operator's current place, to be restored later."""
        pane = self.focused.id or "" if isinstance(self.focused, Pane) else ""
        zoomed = "yes" if self.maximized is not None else ""
        return ScreenPlace(screen=self.name_of, region=self.current_region, pane=pane, zoomed=zoomed)

    def come_back(self, place: ScreenPlace) -> None:
        """Restore the view that the operator left; a pane that no longer exists is ignored."""
        pane = next((pane for pane in self.query(Pane) if place.pane and pane.id == place.pane), None)
        if pane is not None and pane.display:
            pane.focus()
            if place.zoomed:
                self.maximize(pane, container=False)

    async def action_tune(self) -> None:
        """Begin the command that changes limits."""
        view = self.current_view
        if why := self.state.refusal("tune"):
            self.refuse(why)
        elif view is None:
            self.refuse("no region is selected")
        elif why := tune_objection(view, self.state.readonly):
            self.refuse(why)
        else:
            await self.run_action(f"app.command({f'tune --region {view.region.name} '!r})")

    def action_pane(self, name: str) -> None:
        """Show a pane of the selected region."""

    def action_witness(self) -> None:
        """Show the witnesses of the selected region, and search for them."""
        if why := self.state.refusal("witness"):
            self.refuse(why)
        elif region := self.current_region:
            self.action_pane("witness")
            self.post_message(ActionRequest(action="witness", regions=(region,)))
        else:
            self.refuse("no region is selected")

    def action_graph(self) -> None:
        from console.tui.fleet.graph import draw_graph
        from console.tui.screens.sheet import SheetScreen

        view = self.current_view
        if view is None:
            self.refuse("no region is selected")
        elif lines := draw_graph(view):
            self.app.push_screen(SheetScreen(f"tables of {view.region.name}", lines))
        else:
            self.refuse(f"{view.region.name}: no plan yet, and so no graph; r reads it again")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.state.position is not None if action == "playback" else super().check_action(action, parameters)

    def action_playback(self, control: Control) -> None:
        self.post_message(PlaybackRequest(control))

    def action_copy(self) -> None:
        """Copy a command that prints the numbers of the focused pane; pressed again, the next one."""
        position = self.state.position
        lines = (position.command,) if position else self.copied_commands()
        self._copied = (lines, (self._copied[1] + 1) % len(lines) if lines == self._copied[0] else 0)
        at = self._copied[1]
        more = f" ({at + 1} of {len(lines)}; y copies the next)" if len(lines) > 1 else ""
        self.post_message(CopyRequest(lines[at], more))

    def copied_commands(self) -> tuple[str, ...]:
        """The commands that print the numbers of the focused pane."""
        pane = self.focused.id or "" if isinstance(self.focused, Pane) else ""
        return printing_commands(pane, self.current_region, self.state.views)

    def action_help(self) -> None:
        from console.tui.screens.help import help_sheet

        self.app.push_screen(help_sheet(self))

    async def action_handover(self) -> None:
        await self.run_action("app.handover")

    async def action_commands_run(self) -> None:
        await self.run_action("app.commands_run")

    async def action_command(self) -> None:
        await self.run_action("app.command")

    async def action_export(self) -> None:
        await self.run_action("app.export")
