"""Three regions on this machine, live traffic into each, and a change that waits. `command` is `console demo`."""

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from console.runner.view import Cockpit

PLANTS = ("skip-day", "double-batch", "early-promote")


class ScreenRunner(Protocol):
    """Opens the terminal screen on a cockpit, and closes the cockpit when the operator leaves. Returns the exit code."""

    def __call__(self, cockpit: "Cockpit", *, title: str = "", coach: bool = False, readonly: bool = False) -> int: ...


def command(
    root: Path,
    *,
    prepare: bool = False,
    live: bool = False,
    stop: bool = False,
    reset: bool = False,
    log: Path | None = None,
    plant: str = "",
    screen: ScreenRunner | None = None,
) -> int:
    """Do what the flags say. Results go to stdout, talk to stderr.

    root     the project: a checkout with the demo's regions/ and plans/
    prepare  build the regions and stop there; with `live`, producers and agents go on
    stop     end the demo's own processes;  reset  the same, then begin anew
    plant    headless only: one of PLANTS, which the check must find
    screen   None runs headless, to the end
    returns  the exit code: 1 where the check found something
    raises   ConsoleError
    """
    from console.errors import UsageError

    if plant and plant not in PLANTS:
        raise UsageError(f"there is no fault {plant!r:.40} to plant", hint=f"one of {', '.join(PLANTS)}")
    if plant and (prepare or stop):
        raise UsageError("a fault is planted in a headless run", hint="console demo --headless --plant skip-day")

    from console.demo.session import DemoOptions, run_command

    return run_command(root, DemoOptions(prepare, live, stop, reset, log.resolve() if log else None, plant), screen)
