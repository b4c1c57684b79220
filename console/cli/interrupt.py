"""Ctrl-C, SIGTERM and a closed terminal: the first signal stops cleanly, the second exits immediately."""

import contextlib
import os
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(Exception):
    """The work was stopped by a signal; `farewell` describes what continues without this console."""

    def __init__(self, number: int, farewell: str = "") -> None:
        super().__init__(farewell)
        self.number = number
        self.farewell = farewell

    @property
    def exit_code(self) -> int:
        return 128 + self.number


def run_interruptible(work: Coroutine[Any, Any, T], farewell: Callable[[], str] = lambda: "") -> T:
    """Run `work` to its end, in an event loop of its own.

    farewell  called after the first signal: one line on what continues and how to return
    raises    Interrupted after a first signal, once the work has cleaned up; a second signal ends the process
    """
    import asyncio  # 40 ms that a help text can do without

    received: list[int] = []
    running: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = []

    def stop(number: int, _: FrameType | None) -> None:
        # a plain handler, not the loop's: the second signal must work while the loop is busy
        if received:
            os._exit(128 + number)
        received.append(number)
        for loop, task in running:
            loop.call_soon_threadsafe(task.cancel)

    async def main() -> T:
        task = asyncio.create_task(work)
        running.append((asyncio.get_running_loop(), task))
        if received:
            task.cancel()
        return await task

    before = _listen(stop)
    try:
        result = asyncio.run(main())
    except asyncio.CancelledError:
        if not received:
            raise
    else:
        if not received:
            return result
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    raise Interrupted(received[0], farewell())


def _listen(stop: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Install the handler; returns those it replaced. A thread cannot install any: then its caller handles Ctrl-C."""
    before: dict[int, Any] = {}
    with contextlib.suppress(ValueError):
        for number in SIGNALS:
            before[number] = signal.signal(number, stop)
    return before
