"""An audit over its own link: progress arrives as notifications, and closing the link cancels it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from console.drivers.frames import Link
from console.errors import ConsoleError, DataError
from console.model import codec
from console.model.receipt import AuditProgress


@asynccontextmanager
async def hearing_audit(link: Link, tell: Callable[[AuditProgress], None]) -> AsyncIterator[None]:
    """Call `tell` with each progress report while the body waits for the answer; then close the link."""
    link.listen()
    hearing = asyncio.create_task(_hear(link, tell), name=f"audit {link.peer}")
    try:
        yield
    finally:
        hearing.cancel()
        with suppress(asyncio.CancelledError, ConsoleError):
            await hearing
        await link.close()


async def _hear(link: Link, tell: Callable[[AuditProgress], None]) -> None:
    async for _, params in link.notifications():
        with suppress(DataError):  # fleeting: an unreadable report is ignored
            tell(codec.decode(AuditProgress, params))
