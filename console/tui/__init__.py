"""The terminal screens over one cockpit. Importing this package does not load Textual; running it does."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.runner.view import Cockpit
    from console.runner.words import CommandWords


def run(
    cockpit: "Cockpit",
    *,
    title: str = "",
    coach: bool = False,
    readonly: bool = False,
    words: "CommandWords | None" = None,
    memory: Path | None = None,
) -> int:
    """Show the cockpit until the operator quits, then close it. Needs a terminal and no running event loop.

    title     pipeline or project, shown in the banner
    coach     show the line with the next keys
    readonly  refuse every action that changes a region
    words     the command line's words, for `:`
    memory    the file that keeps cursor, order, filter and theme between sessions
    returns   the exit code: 0, or 130, 143 and 129 after SIGINT, SIGTERM and SIGHUP
    """
    gc.disable()  # until the first picture: nothing loaded before it is garbage
    from console.tui.app import ConsoleApp
    from console.tui.fleet.memory import ScreenMemory
    from console.tui.terminal.loop import bounded_loop

    app = ConsoleApp(cockpit, title=title, coach=coach, readonly=readonly, words=words, memory=ScreenMemory(memory))
    with bounded_loop() as loop:
        app.run(loop=loop)
    return app.return_code or 0
