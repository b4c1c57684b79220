"""One sitting at the cockpit: follows it, keeps the screens up to date, and carries errands; it draws nothing itself."""

import asyncio
import gc
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
from console.tui.terminal.ascii import AsciiFilter
from console.tui.terminal.driver import TerminalDriver

REPAINT_SECONDS = 0.125  # however fast the views change
REPAINT_BACKOFF = 4  # times as long as a repaint took, until the next: keys come first, on a slow machine too
CLOSE_SECONDS = 1.0  # for links and journal; whoever leaves is not kept by a far side that does not answer
UNSEEN_SECONDS = 2.0  # seconds after which a repaint that nobody saw, as its screen was closed, counts as over
EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
DARK_THEME = Theme(
    "console", primary="#5aa9d6", secondary="#8fa7b8", accent="#e0b05a", success="#7cbf7f", warning="#e3b04b",
    error="#e2707a", background="#0e1318", surface="#131a21", panel="#1b242d", foreground="#d5dde3", dark=True,
    variables={"text-muted": "#8b9aa6", "text-disabled": "#46545f"},
)  # fmt: skip
COMMANDS: tuple[tuple[str, RegionAction, str], ...] = (
    ("Start", "start", "hand the pending change over, wave after wave"),
    ("Pause or go on", "pause", "of the region in view"),
    ("Promote", "promote", "open the gate of the region in view"),
    ("Roll back", "rollback", "to the release before"),
    ("Cancel the rollout", "cancel", "of the region in view"),
    ("Try again", "retry", "after a failure"),
    ("Discard", "discard", "what a failed or waiting rollout built"),
    ("Refresh", "refresh", "read files and regions again"),
)


class ConsoleApp(App[int]):
    """The Textual app. clock: seconds since 1970, UTC; repaint_seconds: shortest time between two."""

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
        self._fixed = (title, coach, readonly)
        self._repaint_seconds = repaint_seconds
        self._dirty = False
        self._rests_until = 0.0  # by the monotonic clock
        self._asking = False
        self._grouping = PlanGrouping()
        self.scene = self._look()
        self.errands = Dispatcher(cockpit, self)
        self.register_theme(DARK_THEME)
        self.theme = DARK_THEME.name

    def _look(self) -> ScreenState:
        title, coach, readonly = self._fixed
        views = dict(self._cockpit.views)
        desired = {name: view.plan.desired for name, view in views.items() if view.plan}
        waiting = queued_regions(views, desired)
        return ScreenState(views, title, coach, readonly, self._clock(), self._grouping.of(views), waiting)

    def get_line_filters(self) -> list[LineFilter]:
        encoding = getattr(sys.__stderr__, "encoding", None) or "ascii"
        filters = list(super().get_line_filters())
        return filters if "utf" in encoding.lower() else [*filters, AsciiFilter()]

    async def on_mount(self) -> None:
        gc.freeze()  # else each full collection looks through all that was ever loaded, and a key waits 0.1 s
        self._heed_signals()
        await self.push_screen(HomeScreen(self.scene))
        self.set_interval(self._repaint_seconds, self._repaint)
        self.run_worker(self._follow(), group="follow")
        self.run_worker(self.errands.carry(ActionRequest("refresh", ())), group="refresh")

    async def on_unmount(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._cockpit.close()
        gc.unfreeze()

    def _heed_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number, code in EXIT_CODES.items():
            loop.add_signal_handler(number, partial(self.exit, return_code=code))

    async def _follow(self) -> None:
        while True:
            try:
                changes = self._cockpit.changes()
                self._dirty = True  # what changed before we listened
                async for _ in changes:
                    self._dirty = True
            except ConsoleError as error:
                self.errands.complain(error)
            await asyncio.sleep(1)

    def _repaint(self) -> None:
        begun = time.monotonic()
        if not self._dirty or begun < self._rests_until:
            return
        self._dirty = False
        self._rests_until = begun + UNSEEN_SECONDS
        before, self.scene = self.scene, self._look()
        if not self.app_focus and needs_attention(before, self.scene):
            self.bell()
        for screen in self.screen_stack:
            if isinstance(screen, BaseScreen | Dialog):
                screen.scene = self.scene
        self.call_after_refresh(self._painted, begun)

    def _painted(self, begun: float) -> None:
        now = time.monotonic()
        self._rests_until = now + REPAINT_BACKOFF * (now - begun)

    def on_action_request(self, ask: ActionRequest) -> None:
        self.run_worker(self.errands.carry(ask), group=ask.deed)

    async def sure(self, asking: DialogFactory) -> bool:
        """Put a question; False at once while another one is open."""
        if self._asking:
            return False
        self._asking = True
        try:
            return await self.push_screen_wait(Dialog(self.scene, asking))
        finally:
            self._asking = False

    def say(self, text: str, severity: Severity = "information", title: str = "") -> None:
        lines = "\n".join(safe_text(line, 400) for line in text.split("\n", 3))
        self.notify(lines, title=safe_text(title, 60), severity=severity, timeout=12, markup=False)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        yield from super().get_system_commands(screen)
        if isinstance(screen, BaseScreen):
            for name, deed, about in COMMANDS:
                if deed == "refresh" or not self.scene.readonly:
                    yield SystemCommand(name, about, partial(screen.action_ask, deed))
            yield SystemCommand("Witness", "rows that the edited queries turn into others", screen.action_witness)

    def action_help_quit(self) -> None:
        self.say("q leaves the console; the agents go on")

    async def action_quit(self) -> None:
        self.exit(message=self._farewell())

    def _farewell(self) -> Text | None:
        """Which agents go on without us, and how to come back."""
        going = [name for name, view in self.scene.views.items() if working(view)]
        later = sorted(self.scene.turns)
        words = []
        if going:
            words.append(
                f"{', '.join(going)}: the agents carry on to the gate. `console` shows them, `console pause` stops them."
            )
        if later:
            words.append(f"{', '.join(later)}: not begun; `console apply --regions {','.join(later)}` goes on.")
        return Text(safe_text(" ".join(words))) if words else None
