"""The Textual app: follows the cockpit, keeps the screens up to date and dispatches actions; it draws nothing itself."""

import asyncio
import gc
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial

from rich.text import Text
from textual.app import App, SystemCommand
from textual.filter import LineFilter
from textual.screen import Screen
from textual.theme import Theme

from console.errors import ConsoleError
from console.runner.view import Cockpit
from console.runner.waves import queued_regions
from console.text import safe_text
from console.tui.actions import ActionRequest, RegionAction
from console.tui.dialogs.content import DialogFactory
from console.tui.dialogs.dialog import Dialog
from console.tui.dispatch import Dispatcher, Severity
from console.tui.groups import PlanGrouping
from console.tui.labels import working
from console.tui.screens.base import BaseScreen
from console.tui.screens.home import HomeScreen
from console.tui.state import ScreenState, needs_attention
from console.tui.terminal.ascii import glyph_filters
from console.tui.terminal.driver import TerminalDriver

REPAINT_SECONDS = 0.125  # at least, however fast the views change
REPAINT_BACKOFF = (
    4  # pause before the next repaint, in durations of the last one: keys come first, on a slow machine too
)
CLOSE_SECONDS = 1.0  # for links and journal: a remote side that does not answer must not delay quitting
UNSEEN_SECONDS = 2.0  # after which a repaint counts as done that was never shown because its screen was closed
EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
DARK_THEME = Theme(
    "console", primary="#5aa9d6", secondary="#8fa7b8", accent="#e0b05a", success="#7cbf7f", warning="#e3b04b",
    error="#e2707a", background="#0e1318", surface="#131a21", panel="#1b242d", foreground="#d5dde3", dark=True,
    variables={"text-muted": "#8b9aa6", "text-disabled": "#46545f"},
)  # fmt: skip
COMMANDS: tuple[tuple[str, RegionAction, str], ...] = (
    ("Start", "start", "roll out the pending change, wave by wave"),
    ("Pause or resume", "pause", "the rollout of the selected region"),
    ("Promote", "promote", "open the gate of the selected region"),
    ("Roll back", "rollback", "to the previous release"),
    ("Cancel the rollout", "cancel", "of the selected region"),
    ("Retry", "retry", "after a failure"),
    ("Discard", "discard", "drop what a failed or paused rollout has built"),
    ("Refresh", "refresh", "read project files and regions again"),
)


class ConsoleApp(App[int]):
    """Draws a cockpit until the operator quits.

    clock            seconds since 1970, UTC
    repaint_seconds  shortest time between two repaints
    """

    CSS_PATH = "app.tcss"
    TITLE = "console"

    def __init__(
        self,
        cockpit: Cockpit,
        *,
        title: str = "",
        coach: bool = False,
        readonly: bool = False,
        clock: Callable[[], float] = time.time,
        repaint_seconds: float = REPAINT_SECONDS,
    ) -> None:
        super().__init__(driver_class=TerminalDriver)
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (120, "-wide")]
        self._cockpit = cockpit
        self._clock = clock
        self._title, self._coach, self._readonly = title, coach, readonly
        self._repaint_seconds = repaint_seconds
        self._dirty = False
        self._next_repaint = 0.0  # by the monotonic clock
        self._dialog_open = False
        self._grouping = PlanGrouping()
        self.state = self._snapshot()
        self.dispatcher = Dispatcher(cockpit, self)
        self.register_theme(DARK_THEME)
        self.theme = DARK_THEME.name

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
            queued=queued_regions(views, desired),
        )

    def get_line_filters(self) -> list[LineFilter]:
        encoding = getattr(sys.__stderr__, "encoding", None) or "ascii"
        return [*super().get_line_filters(), *glyph_filters(encoding, os.environ.get("TERM", ""))]

    async def on_mount(self) -> None:
        gc.freeze()  # else each full collection scans everything ever loaded, and a key waits 0.1 s
        self._install_signal_handlers()
        await self.push_screen(HomeScreen(self.state))
        self.set_interval(self._repaint_seconds, self._repaint)
        self.run_worker(self._follow(), group="follow")
        self.run_worker(self.dispatcher.dispatch(ActionRequest("refresh", ())), group="refresh")

    async def on_unmount(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._cockpit.close()
        gc.unfreeze()

    def _install_signal_handlers(self) -> None:
        loop = asyncio.get_running_loop()
        for number, code in EXIT_CODES.items():
            loop.add_signal_handler(number, partial(self.exit, return_code=code))

    async def _follow(self) -> None:
        while True:
            try:
                changes = self._cockpit.changes()
                self._dirty = True  # for changes from before the subscription
                async for _ in changes:
                    self._dirty = True
            except ConsoleError as error:
                self.dispatcher.show_error(error)
            await asyncio.sleep(1)

    def _repaint(self) -> None:
        started = time.monotonic()
        if not self._dirty or started < self._next_repaint:
            return
        self._dirty = False
        self._next_repaint = started + UNSEEN_SECONDS
        before, self.state = self.state, self._snapshot()
        if not self.app_focus and needs_attention(before, self.state):
            self.bell()
        for screen in self.screen_stack:
            if isinstance(screen, BaseScreen | Dialog):
                screen.state = self.state
        self.call_after_refresh(self._painted, started)

    def _painted(self, started: float) -> None:
        now = time.monotonic()
        self._next_repaint = now + REPAINT_BACKOFF * (now - started)

    def on_action_request(self, request: ActionRequest) -> None:
        self.run_worker(self.dispatcher.dispatch(request), group=request.action)

    async def confirm(self, dialog: DialogFactory) -> bool:
        """Ask the operator; False at once while another dialog is open."""
        if self._dialog_open:
            return False
        self._dialog_open = True
        try:
            return await self.push_screen_wait(Dialog(self.state, dialog))
        finally:
            self._dialog_open = False

    def toast(self, text: str, severity: Severity = "information", title: str = "") -> None:
        lines = "\n".join(safe_text(line, 400) for line in text.split("\n", 3))
        self.notify(lines, title=safe_text(title, 60), severity=severity, timeout=12, markup=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        if isinstance(screen, BaseScreen):
            for name, action, description in COMMANDS:
                if action == "refresh" or not self.state.readonly:
                    yield SystemCommand(name, description, partial(screen.action_request, action))
            yield SystemCommand("Witness", "smallest rows on which the edited queries differ", screen.action_witness)

    def action_help_quit(self) -> None:
        self.toast("press q to quit; the agents keep running")

    async def action_quit(self) -> None:
        self.exit(message=self._farewell())

    def _farewell(self) -> Text | None:
        """Which rollouts continue without the console, and how to come back to them."""
        running = [name for name, view in self.state.views.items() if working(view)]
        later = sorted(self.state.queued)
        sentences = []
        if running:
            sentences.append(
                f"{', '.join(running)}: the agents continue to the gate. `console` shows them, `console pause` stops them."
            )
        if later:
            sentences.append(
                f"{', '.join(later)}: not started; `console apply --regions {','.join(later)}` starts them."
            )
        return Text(safe_text(" ".join(sentences))) if sentences else None
