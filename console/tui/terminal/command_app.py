"""An app in which commands are typed, copied and logged: the common base of its screens."""

import asyncio
import os
import time
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.app import App
from textual.notifications import Notify

from console.paths import pictures_dir
from console.text import safe_text
from console.tui.dispatch import Dispatcher, Severity
from console.tui.screens.base import BaseScreen, CopyRequest
from console.tui.state import ScreenState
from console.tui.terminal.driver import TerminalDriver
from console.tui.terminal.escape import clipboard_sequence, tmux_copy

if TYPE_CHECKING:  # loaded when first shown: the first picture needs none of them
    from console.runner.words import CommandWords
    from console.tui.commands.line import TypedCommand
    from console.tui.commands.ran import RanCommand

COMMANDS_KEPT = 500


class CommandApp(App[int]):
    """Its keys lead to commands, to the clipboard and to files of the operator's.

    words  the command line's own words, for `:`
    clock  seconds since 1970, UTC
    """

    state: ScreenState
    dispatcher: Dispatcher

    def __init__(self, words: "CommandWords | None", clock: Callable[[], float]) -> None:
        super().__init__(driver_class=TerminalDriver)
        self._words, self._clock = words, clock
        self._ran: deque[RanCommand] = deque(maxlen=COMMANDS_KEPT)

    def _write(self, sequence: str) -> None:
        if self._driver is not None and not self.is_headless:
            self._driver.write(sequence)

    def on_notify(self, message: Notify) -> None:
        """A text that is shown already is not shown a second time: on a low terminal, copies of it cover the panes."""
        new = message.notification
        if any((known.message, known.title) == (new.message, new.title) for known in self._notifications):
            message.prevent_default()

    def toast(self, text: str, severity: Severity = "information", title: str = "") -> None:
        lines = "\n".join(safe_text(line, 400) for line in text.split("\n", 3))
        self.notify(lines, title=safe_text(title, 60), severity=severity, timeout=12, markup=False)

    def on_copy_request(self, message: CopyRequest) -> None:
        self.copy_to_clipboard(message.text)
        self.toast(f"copied: {message.label or message.text}{message.more}")

    def copy_to_clipboard(self, text: str) -> None:
        """To the terminal in front of the operator; through tmux where it runs in one."""
        self._clipboard = text
        self._write(clipboard_sequence(text, os.environ))
        if os.environ.get("TMUX") and not self.is_headless:
            self.run_worker(asyncio.to_thread(tmux_copy, text, os.environ), group="tmux")

    def ran(self, line: str, result: str) -> None:
        """Log an action as the equivalent command."""
        from console.tui.commands.ran import RanCommand

        self._ran.append(RanCommand(at=self._clock(), line=line, result=result))

    def action_commands_run(self) -> None:
        from console.tui.screens.ran import RanScreen

        self.push_screen(RanScreen(tuple(self._ran)))

    def action_handover(self) -> None:
        from console.tui.screens.handover import HandoverScreen

        self.push_screen(HandoverScreen(self.state))

    def action_command(self, typed: str = "") -> None:
        """typed: initial content of the line"""
        from console.tui.screens.command import CommandScreen

        if self._words is None:
            self.toast("commands can be typed where `console` itself opened the screen", "warning")
        else:
            region = self.screen.current_region if isinstance(self.screen, BaseScreen) else ""
            self.push_screen(CommandScreen(self._words, region, typed), self._typed)

    def _typed(self, command: "TypedCommand | None") -> None:
        """Perform a typed command, through the same dialogs as its key; one that needs a shell is copied."""
        if command is None:
            return
        if command.view:
            if command.view == "handover":
                self.action_handover()
            elif isinstance(self.screen, BaseScreen):
                self.screen.action_goto(command.view)
            return
        if command.action is None and command.limits is None and not command.note and not command.approves:
            self.copy_to_clipboard(command.line)
            self.toast(f"copied, since it prints to a shell: {command.line}")
            return
        screen = self.screen
        selected = screen.target_regions if isinstance(screen, BaseScreen) else ()
        self.run_worker(self.dispatcher.typed(command, selected), group="typed")

    def action_export(self) -> None:
        name = self.screen.name_of if isinstance(self.screen, BaseScreen) else "screen"
        stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(self._clock()))
        try:
            path = self.save_screenshot(f"console-{name}-{stamp}.svg", path=str(pictures_dir()))
        except OSError as error:
            self.toast(f"the picture could not be saved: {error}", "error")
            return
        self.toast(f"saved: {path}")
