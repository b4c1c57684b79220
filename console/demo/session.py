"""One invocation of `console demo`: its options, executed in the right order."""

import asyncio
import shutil
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.demo.cockpit import DemoFleet, ScreenRunner
from console.demo.prepare import Demo, demo_home, screen_processes, stop_all_in
from console.demo.prepare import stop as stop_all
from console.demo.run import DemoOutput, headless, prepare

QUIT_SECONDS = 1.0  # seconds for traffic, and then for each agent, to end after the screen has closed


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoOptions:
    """The options of `console demo`."""

    prepare: bool
    live: bool
    stop: bool
    reset: bool
    log: Path | None
    plant: str
    chaos: bool


def run_command(root: Path, options: DemoOptions, screen: ScreenRunner | None) -> int:
    """Returns the exit code; raises ConsoleError."""
    output = DemoOutput(data=sys.stdout, progress=sys.stderr)
    if options.stop or options.reset:
        home = demo_home(root)
        _run_interruptible(stop_all_in(home))
        if options.reset and home.exists():
            shutil.rmtree(home)
        if options.stop:
            output.say("demo stopped; its tables are kept")
            return 0
    demo = Demo.of(root)
    if options.prepare:
        return int(_run_interruptible(prepare(demo, options.log, options.live, output)))
    if screen is None:
        return int(_run_interruptible(headless(demo, options.log, options.plant, output, chaos=options.chaos)))
    screen_processes(demo.home).register_self("screen")
    try:
        fleet = DemoFleet(demo, options.log, chaos="judged" if options.chaos else "none")
        return screen(fleet, title="demo", coach=True)
    finally:
        screen_processes(demo.home).unregister_self("screen")
        if options.live:
            output.say("traffic and agents keep running; console demo --stop ends them")
        else:
            _run_interruptible(stop_all(demo, QUIT_SECONDS))
            output.say("demo stopped; console demo continues from here, --reset starts over")


def _run_interruptible(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it; SIGTERM and a closed terminal end it like Ctrl-C, so that no process of the demo is left behind.

    raises  SystemExit with the code of such a signal: 143 or 129
    """
    received: list[int] = []

    async def cancellable() -> Any:
        task = asyncio.current_task()
        assert task is not None

        def stop(number: int) -> None:
            if not received:  # a second signal must not interrupt the cleanup
                task.cancel()
            received.append(number)

        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                asyncio.get_running_loop().add_signal_handler(number, stop, number)
        return await work

    try:
        return asyncio.run(cancellable())
    except asyncio.CancelledError:
        raise SystemExit(128 + received[0] if received else 130) from None
