"""One call of `console demo`: what was wished for, done in the right order."""

import asyncio
import shutil
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.demo import ScreenRunner
from console.demo.cockpit import DemoFleet
from console.demo.prepare import Demo, demo_home, screen_processes, stop_all_in
from console.demo.prepare import stop as stop_all
from console.demo.run import DemoOutput, headless, prepare

HURRY_SECONDS = 1.0  # that traffic, and then an agent, may take to end once the screen has gone


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """The flags of `console demo`."""

    prepare: bool
    live: bool
    stop: bool
    reset: bool
    log: Path | None
    plant: str


def run_command(root: Path, wish: DemoOptions, screen: ScreenRunner | None) -> int:
    """Returns the exit code; raises ConsoleError."""
    voice = DemoOutput(sys.stdout, sys.stderr)
    if wish.stop or wish.reset:
        home = demo_home(root)
        _run_interruptible(stop_all_in(home))
        if wish.reset and home.exists():
            shutil.rmtree(home)
        if wish.stop:
            voice.say("the demo's processes are ended; its tables stay")
            return 0
    demo = Demo.of(root)
    if wish.prepare:
        return int(_run_interruptible(prepare(demo, wish.log, wish.live, voice)))
    if screen is None:
        return int(_run_interruptible(headless(demo, wish.log, wish.plant, voice)))
    screen_processes(demo.home).note_self("screen")
    try:
        return screen(DemoFleet(demo, wish.log), title="console demo", coach=True)
    finally:
        screen_processes(demo.home).forget_self("screen")
        if wish.live:
            voice.say("traffic and agents go on; console demo --stop ends them")
        else:
            _run_interruptible(stop_all(demo, HURRY_SECONDS))
            voice.say("the demo's processes are ended; console demo goes on from here, --reset begins anew")


def _run_interruptible(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it; SIGTERM and a closed terminal end it like Ctrl-C, so that no process of ours is left behind.

    raises  SystemExit with what such a signal is told by: 143, 129
    """
    received: list[int] = []

    async def heeding() -> Any:
        task = asyncio.current_task()
        assert task is not None

        def stop(number: int) -> None:
            if not received:  # a second one must not end the cleaning up
                task.cancel()
            received.append(number)

        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # nohup
                asyncio.get_running_loop().add_signal_handler(number, stop, number)
        return await work

    try:
        return asyncio.run(heeding())
    except asyncio.CancelledError:
        raise SystemExit(128 + received[0] if received else 130) from None
