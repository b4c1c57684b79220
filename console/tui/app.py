"""The Textual app: follows the cockpit, keeps the screens up to date and dispatches actions; it draws nothing itself."""

import asyncio
import gc
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.command import Provider
from textual.events import Event, Key, MouseDown, MouseScrollDown, MouseScrollUp
from textual.filter import LineFilter
from textual.screen import Screen
from textual.theme import Theme

from console.errors import ConsoleError
from console.runner.outlook.attention import Attention
from console.runner.together.readiness import split_waves
from console.runner.view import Cockpit, Position
from console.runner.waves import queued_regions
from console.text import safe_text
from console.tui.actions import ActionRequest
from console.tui.dispatch import Dispatcher, Severity
from console.tui.fleet.memory import ScreenMemory, ScreenPlace
from console.tui.groups import PlanGrouping
from console.tui.history.store import HistoryStore
from console.tui.playback.controls import PlaybackRequest, perform
from console.tui.repaint import REPAINT_SECONDS, RepaintSchedule
from console.tui.screens.base import SCREEN_NAMES, BaseScreen, GoTo, HistoryRequest, ScreenName
from console.tui.screens.home import HomeScreen
from console.tui.state import ScreenState, farewell, noteworthy, only_lag_differs
from console.tui.terminal.ascii import glyph_filters
from console.tui.terminal.command_app import CommandApp
from console.tui.terminal.escape import notice_sequence
from console.tui.terminal.themes import THEMES

if TYPE_CHECKING:  # loaded when first shown: the first picture needs none of them
    from console.runner.words import CommandWords
    from console.tui.dialogs.content import DialogAnswer, DialogFactory
    from console.tui.dialogs.dialog import Dialog
    from console.tui.history.state import AuditState, RolloutKey
    from console.tui.screens.history import AuditRequest, RolloutsRequest

CLOSE_SECONDS = 1.0  # for links and journal: a remote side that does not answer must not delay quitting
EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
OTHER_STYLES = Path(__file__).with_name("screens.tcss")
NAMED_THEMES = {theme.name: theme for theme in THEMES}
WIDE = 120  # columns of a screen, below which it has the class `NARROW`
NARROW = "-narrow"
AGE_SECONDS = 10  # seconds without a change after which everything is redrawn, since figures have aged


def palette() -> type[Provider]:
    """The commands of the palette, loaded when it is opened."""
    from console.tui.screens.palette import ConsoleCommands

    return ConsoleCommands


class ConsoleApp(CommandApp):
    """Draws a cockpit until the operator quits.

    repaint_seconds  shortest time between two repaints
    words            the command line's own words, for `:`
    memory           kept between sessions: cursor, order, filter, and the time of the last visit
    """

    CSS_PATH = "app.tcss"
    TITLE = "console"
    COMMANDS: ClassVar[set[Any]] = {palette}

    def __init__(
        self,
        cockpit: Cockpit,
        *,
        title: str = "",
        coach: bool = False,
        readonly: bool = False,
        repaint_seconds: float = REPAINT_SECONDS,
        words: "CommandWords | None" = None,
        memory: ScreenMemory | None = None,
    ) -> None:
        super().__init__(words, cockpit.now)
        self.HORIZONTAL_BREAKPOINTS = [(0, NARROW), (WIDE, "-wide")]
        self._cockpit = cockpit
        self._title, self._coach, self._readonly = title, coach, readonly
        self.repaints = RepaintSchedule(repaint_seconds)
        self._dialog: Dialog | None = None
        self._grouping = PlanGrouping()
        self._attention = Attention()
        self._memory = memory or ScreenMemory(None)
        self._looked = self._memory.looked
        self._last_place = self._memory.place
        self._places: dict[tuple[ScreenName, str], ScreenPlace] = {}
        self._last_tick = 0
        self._history = HistoryStore(cockpit, self.repaints.outdate, self._verified)
        self.state = self._snapshot()
        self.dispatcher = Dispatcher(cockpit, self)
        for theme in THEMES:
            self.register_theme(theme)
        self._begin_theme(self._memory.theme if self._memory.theme in self.available_themes else THEMES[0].name)

    def _begin_theme(self, name: str) -> None:
        """Draw the first picture in this theme. A change of theme would parse the stylesheet a second time for it."""
        if self.available_themes[name].dark:  # like Textual's own theme, with which everything else begins
            self.set_reactive(ConsoleApp.theme, name)
            self.stylesheet.set_variables(self.get_css_variables())
        else:
            self.theme = name

    def _snapshot(self) -> ScreenState:
        views = dict(self._cockpit.views)
        desired = {name: view.plan.desired for name, view in views.items() if view.plan}
        return ScreenState(
            views=views,
            title=self._title,
            coach=self._coach,
            readonly=self._readonly,
            at=self._clock(),
            groups=self._grouping.of(views),
            plans=self._grouping.labels(views),
            needs=self._attention.of(views, self._clock()),
            looked=self._looked,
            queued=queued_regions(views, desired),
            splits=split_waves(views, desired),
            position=self._position(),
            history=self._history.state,
        )

    def _position(self) -> Position | None:
        return self._cockpit.player.position if self._cockpit.player else None

    def get_theme(self, theme_name: str) -> Theme | None:
        """Textual copies all of its themes twice for each line that it draws."""
        return NAMED_THEMES.get(theme_name) or super().get_theme(theme_name)

    def get_line_filters(self) -> list[LineFilter]:
        encoding = getattr(sys.__stderr__, "encoding", None) or "ascii"
        return [*super().get_line_filters(), *glyph_filters(encoding, os.environ.get("TERM", ""))]

    def get_default_screen(self) -> Screen[None]:
        self._home = HomeScreen(self.state, height=self.size.height, classes=NARROW if self.size.width < WIDE else "")
        return self._home

    async def on_mount(self) -> None:
        self._home.call_after_refresh(self._add_styles)
        self._home.call_after_refresh(self._collect_garbage)
        self._install_signal_handlers()
        self._home.call_after_refresh(self._restore)  # its list has its regions at this point
        self.set_interval(self.repaints.seconds, self._repaint)
        self.run_worker(self._follow(), group="follow")
        if self.state.position is None:
            self.run_worker(self.dispatcher.dispatch(ActionRequest(action="refresh", regions=())), group="refresh")

    def _restore(self) -> None:
        """Restore the operator's last place."""
        self._home.restore(self._memory.fleet)
        place = self._memory.place
        for name in SCREEN_NAMES:
            if name == place.screen == "fleet":
                self._home.come_back(place)
            elif name == place.screen and place.region in self.state.views:
                self._places[name, place.region] = place
                self.post_message(GoTo(name, place.region))

    def exit(self, result: int | None = None, return_code: int = 0, message: RenderableType | None = None) -> None:
        last = (screen for screen in reversed(self.screen_stack) if isinstance(screen, BaseScreen))
        self._last_place = next(last, self._home).place()  # once the screens are closed, nothing has the focus
        super().exit(result, return_code, message)

    def _leave(self, screen: BaseScreen) -> None:
        """Store the operator's place on that screen."""
        self._places[screen.name_of, screen.current_region] = screen.place()

    def _add_styles(self) -> None:
        """The styles of the other screens and of dialogs: parsed with the first of these, not before the first picture."""
        self.stylesheet.add_source(OTHER_STYLES.read_text(), (str(OTHER_STYLES), ""))

    def _collect_garbage(self) -> None:
        """Collect from now on; objects loaded before the first picture are not garbage."""
        gc.enable()
        gc.freeze()  # else each full collection scans everything ever loaded, and a key waits 0.1 s

    async def on_unmount(self) -> None:
        self._memory.save(self._home.remembered(), self._last_place, self._clock(), self.theme)
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._history.close()
                await self._cockpit.close()
        gc.enable()
        gc.unfreeze()

    def _install_signal_handlers(self) -> None:
        loop = asyncio.get_running_loop()
        for number, code in EXIT_CODES.items():
            loop.add_signal_handler(number, partial(self.exit, return_code=code))

    async def _follow(self) -> None:
        while True:
            try:
                changes = self._cockpit.changes()
                self.repaints.outdate()  # for changes from before the subscription
                async for view in changes:
                    if self.repaints.outdated:
                        continue  # everything is redrawn in any case
                    if only_lag_differs(self.state.views.get(view.region.name), view):
                        self.repaints.outdate_lag()
                    else:
                        self.repaints.outdate()
            except ConsoleError as error:
                self.dispatcher.show_error(error)
            await asyncio.sleep(1)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key | MouseDown | MouseScrollDown | MouseScrollUp) and not event.is_forwarded:
            self.repaints.key(time.monotonic())
            self.screen.call_after_refresh(self.repaints.key_painted)
        await super().on_event(event)

    def on_repaint_request(self) -> None:
        self.repaints.outdate()

    def _repaint(self) -> None:
        if not self.is_running:
            return  # it is being shut down: its screens lose their widgets one by one
        started = time.monotonic()
        if not self.repaints.begin(started):
            if not self.repaints.outdated:
                self._tick()
            return
        before, self.state = self.state, self._snapshot()
        live = self.state.position is None
        if live and not self.app_focus and (news := noteworthy(before, self.state)):
            self._write(notice_sequence(news, os.environ))
        seen = True
        for screen in reversed(self.screen_stack):
            if isinstance(screen, BaseScreen):
                screen.adopt(self.state, seen=seen)
                seen = False  # a full screen covers those below it
        if self._dialog is not None:
            self._dialog.state = self.state
        self.call_after_refresh(self._painted)

    def _tick(self) -> None:
        """Once a second, if nothing else was drawn: the clock, and figures that have aged."""
        if (now := int(self._clock())) == (last := self._last_tick):
            return
        self._last_tick = now
        if now // AGE_SECONDS != last // AGE_SECONDS:
            self.repaints.outdate()
            return
        self.state = replace(self.state, at=self._clock(), position=self._position())
        if isinstance(self.screen, BaseScreen):
            self.screen.set_reactive(BaseScreen.state, self.state)
            self.screen.show_time()

    def _painted(self) -> None:
        self.repaints.end(time.monotonic())

    def on_action_request(self, request: ActionRequest) -> None:
        self.run_worker(self.dispatcher.dispatch(request), group=request.action)

    async def confirm(self, dialog: "DialogFactory") -> bool:
        """Ask the operator; False at once while another dialog is open."""
        return await self.confirm_with_answer(dialog) is not None

    async def confirm_with_answer(self, dialog: "DialogFactory") -> "DialogAnswer | None":
        """What the operator typed; None if the dialog was not confirmed."""
        from console.tui.dialogs.dialog import Dialog
        from console.tui.dialogs.examples import example_lines

        if self._dialog is not None:
            return None
        asked = self._dialog = Dialog(self.state, dialog, partial(example_lines, self._cockpit))
        try:
            return asked.answer if await self.push_screen_wait(asked) else None
        finally:
            self._dialog = None

    def on_go_to(self, message: GoTo) -> None:
        """Show another screen: the fleet screen stays below, and the others replace each other."""
        from console.tui.screens.switch import screen_of

        region = message.region or next(iter(self.state.views), "")
        if message.name not in ("fleet", "history") and not region:
            self.toast("there is no region to show", "warning")
            return
        while isinstance(self.screen, BaseScreen) and self.screen is not self._home:
            self._leave(self.screen)
            self.pop_screen()
        if message.name != "fleet":
            screen = screen_of(message.name, self.state, region, message.pane)
            screen.set_class(
                self.size.width < WIDE, NARROW
            )  # otherwise its first picture would be laid out as a wide one
            self.push_screen(screen)
            if not message.pane and (place := self._places.get((message.name, region))):
                screen.call_after_refresh(screen.come_back, place)

    def on_history_request(self, message: HistoryRequest) -> None:
        self.run_worker(self._recall(message.region), group="past", exclusive=True)

    async def _recall(self, region: str) -> None:
        """Give the rollout's screen the events that are no longer in the views."""
        try:
            events = await self._cockpit.recorded(region)
        except ConsoleError as error:
            self.dispatcher.show_error(error, region)
            return
        if isinstance(self.screen, BaseScreen) and self.screen.current_region == region:
            self.screen.adopt_history(events)

    async def on_playback_request(self, message: PlaybackRequest) -> None:
        player = self._cockpit.player
        if player is None:
            return
        if message.pressed == "time":
            from console.tui.playback.jump import JumpScreen

            self.push_screen(JumpScreen(player.position), self._jump)
            return
        if why := await perform(message.pressed, player):
            self.toast(why, "warning")
        self._moved()

    async def _jump(self, at: float | None) -> None:
        if at is not None and self._cockpit.player:
            await self._cockpit.player.seek(at)
            self._moved()

    def _moved(self) -> None:
        """A playback moved: everything is redrawn, including the rollouts that were read before."""
        self.repaints.outdate()
        self.run_worker(self._history.read(self.state.views), group="history")

    def on_rollouts_request(self, message: "RolloutsRequest") -> None:
        wanted = message.rollout
        work = self._history.read(self.state.views) if wanted is None else self._history.read_whole(wanted)
        self.run_worker(work, group="history")

    def on_audit_request(self, message: "AuditRequest") -> None:
        from console.tui.commands.ran import command_line

        if message.cancel:
            self._history.stop_audit(message.rollout)
        else:
            self._history.audit(message.rollout)
            region, rollout = message.rollout
            self.ran(command_line(f"verify --rollout {rollout}", (region,)), "begun")

    def _verified(self, key: "RolloutKey", audit: "AuditState") -> None:
        from console.tui.history.whole import verdict_text

        differs = any(finding.ok is False for finding in audit.findings)
        severity: Severity = "error" if differs or audit.error else "information"
        self.toast(f"{key[1]}: {audit.error or verdict_text(audit.findings)}", severity, key[0])

    def action_coach(self) -> None:
        self._coach = not self._coach
        self.repaints.outdate()

    def action_help_quit(self) -> None:
        self.toast("press q to quit; the agents keep running")

    async def action_quit(self) -> None:
        text = farewell(self.state)
        self.exit(message=Text(safe_text(text)) if text else None)
