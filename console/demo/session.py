"""One call of `console demo`: what was wished for, done in the right order."""

import asyncio
import shutil
import signal
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.demo import Screen
from console.demo.cockpit import DemoFleet
from console.demo.prepare import Demo
from console.demo.prepare import stop as stop_all
from console.demo.run import Voice, headless, prepare


@dataclass(frozen=True, slots=True)
class Wish:
    """The flags of `console demo`."""

    prepare: bool
    live: bool
    stop: bool
    reset: bool
    log: Path | None
    plant: str


def fulfil(root: Path, wish: Wish, screen: Screen | None) -> int:
    """Returns the exit code; raises ConsoleError."""
    demo, voice = Demo.of(root), Voice(sys.stdout, sys.stderr)
    if wish.stop or wish.reset:
        _wait(stop_all(demo))
        if wish.reset and demo.home.exists():
            shutil.rmtree(demo.home)
        if wish.stop:
            voice.say("the demo's processes are ended; its tables stay")
            return 0
    if wish.prepare:
        return int(_wait(prepare(demo, wish.log, wish.live, voice)))
    if screen is None:
        return int(_wait(headless(demo, wish.log, wish.plant, voice)))
    try:
        return screen(DemoFleet(demo, wish.log), title="console demo", coach=True)
    finally:
        if wish.live:
            voice.say("traffic and agents go on; console demo --stop ends them")
        else:
            _wait(stop_all(demo))
            voice.say("the demo's processes are ended; console demo goes on from here, --reset begins anew")


def _wait(work: Coroutine[Any, Any, Any]) -> Any:
    """Run it; SIGTERM ends it like Ctrl-C, so that no process of ours is left behind."""

    async def heeding() -> Any:
        task = asyncio.current_task()
        assert task is not None
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await work

    try:
        return asyncio.run(heeding())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
