"""The `console` program: wires the command line to drivers and screen. The only module that knows both faces."""

import os
import sys
from typing import TYPE_CHECKING, NoReturn

from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring, execute, real_drivers
from console.text import guard_tracebacks

if TYPE_CHECKING:
    from console.runner.view import Cockpit


def screen(cockpit: "Cockpit", *, title: str = "", coach: bool = False, readonly: bool = False) -> int:
    """Open the terminal screen; it lasts until the operator leaves."""
    from console.cli.words import ScreenWords
    from console.paths import screen_file
    from console.tui import run

    memory = screen_file(title) if cockpit.player is None else None
    return run(cockpit, title=title, coach=coach, readonly=readonly, words=ScreenWords(cli), memory=memory)


def main() -> NoReturn:
    """Run the command line as called; always ends in SystemExit with one of the documented codes."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            # a name in another alphabet must not end a run on an ASCII terminal
            stream.reconfigure(errors="backslashreplace")
    guard_tracebacks()
    # No other package's plugin decides what a project's files mean. The search for one reads the metadata of every package that
    # is installed, a tenth of a short command's time; pydantic looks here when it builds the first document. A program that
    # imports this package keeps its plugins.
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    shown = False

    def show(cockpit: "Cockpit", *, title: str = "", coach: bool = False, readonly: bool = False) -> int:
        nonlocal shown
        shown = True
        return screen(cockpit, title=title, coach=coach, readonly=readonly)

    try:
        cli.main(prog_name="console", obj=CliContext(Wiring(real_drivers, show, execute)))
    except SystemExit as end:
        if shown and isinstance(end.code, int):
            from console.process import leave

            leave(end.code)  # threads that the screen began may work on
        raise


if __name__ == "__main__":
    main()
