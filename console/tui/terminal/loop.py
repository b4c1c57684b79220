"""An event loop whose end waits for nobody: what a thread still does is none of the screen's business any more."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

CANCEL_SECONDS = 0.5  # for tasks to let go


@contextmanager
def bounded_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A loop of its own, closed afterwards within a second or two.

    `asyncio.run` waits for every thread that `to_thread` began, and a thread cannot be cancelled: one that builds a day of
    the demo, or compiles SQL, would keep the console after its screen has gone. Whoever uses this ends the process by
    `console.process.leave`, for the interpreter waits for such threads as well.
    """
    loop = asyncio.new_event_loop()
    threads = ThreadPoolExecutor(thread_name_prefix="beside the screen")
    loop.set_default_executor(threads)
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=CANCEL_SECONDS))
        with suppress(TimeoutError):
            loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), CANCEL_SECONDS))
        threads.shutdown(wait=False, cancel_futures=True)
        asyncio.set_event_loop(None)
        loop.close()
