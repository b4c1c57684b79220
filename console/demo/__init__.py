"""Three regions on this machine, live traffic into each, and a pending change. `command` is `console demo`."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from console.demo.cockpit import ScreenRunner

PLANTS = ("skip-day", "double-batch", "early-promote")


def command(
    root: Path,
    *,
    prepare: bool = False,
    live: bool = False,
    stop: bool = False,
    reset: bool = False,
    log: Path | None = None,
    plant: str = "",
    chaos: bool = False,
    screen: "ScreenRunner | None" = None,
) -> int:
    """Run the demo according to the flags. Results go to stdout, progress to stderr.

    root     the project: a checkout with the demo's regions/ and plans/
    prepare  build the regions and stop there; with `live`, producers and agents keep running
    stop     end the demo's own processes;  reset  the same, then start over
    plant    headless only: one of PLANTS, a fault that the check must find
    chaos    kill an agent in the middle of its backfill, and show the effect
    screen   None runs headless, to the end
    returns  the exit code: 1 if the check found a fault
    raises   ConsoleError
    """
    from console.errors import UsageError, require_spark

    if not stop:
        require_spark()
    if plant and plant not in PLANTS:
        raise UsageError(f"unknown fault {plant!r:.40}", hint=f"one of {', '.join(PLANTS)}")
    if chaos and (prepare or stop):
        raise UsageError("an agent can be killed only during a rollout", hint="console demo --chaos")
    if plant and (prepare or stop):
        raise UsageError(
            "a fault can be planted only in a headless run", hint="console demo --headless --plant skip-day"
        )

    from console.demo.session import DemoOptions, run_command

    options = DemoOptions(
        prepare=prepare, live=live, stop=stop, reset=reset, log=log.resolve() if log else None, plant=plant, chaos=chaos
    )
    return run_command(root, options, screen)
