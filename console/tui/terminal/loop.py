"""An event loop that closes promptly, without waiting for threads that are still busy."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

CANCEL_SECONDS = 0.5  # for tasks to finish cancellation


@contextmanager
def bounded_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """A new loop, closed afterwards within a second or two.

    `asyncio.run` waits for every thread that `to_thread` started, and a thread cannot be cancelled: one that builds a day
    of the demo, or compiles SQL, would keep the console alive after its screen has closed. The caller must end the
    process by `console.process.leave`, since the interpreter waits for such threads as well.
    """
    loop = asyncio.new_event_loop()
    threads = ThreadPoolExecutor(thread_name_prefix="screen-worker")
    loop.set_default_executor(threads)
    asyncio.set_event_loop(loop)
    try:
        yield loop
    finally:
        remaining = asyncio.all_tasks(loop)
        for task in remaining:
            task.cancel()
        if remaining:
            loop.run_until_complete(asyncio.wait(remaining, timeout=CANCEL_SECONDS))
        with suppress(TimeoutError):
            loop.run_until_complete(asyncio.wait_for(loop.shutdown_asyncgens(), CANCEL_SECONDS))
        threads.shutdown(wait=False, cancel_futures=True)
        asyncio.set_event_loop(None)
        loop.close()
