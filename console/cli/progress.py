"""Progress of regions while a command follows them: lines on stderr for people, typed lines on stdout for programs."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from console.cli.output import Output
from console.cli.progress_text import progress_lines
from console.runner.view import Cockpit, RegionView

EVERY_SECONDS = 5.0  # seconds between two lines of the same fleeting kind about one region


class ProgressPrinter:
    """Turns views into lines: on stderr for people, as typed lines on stdout with JSON."""

    def __init__(self, output: Output, views: Mapping[str, RegionView]) -> None:
        self._output = output
        self._last = dict(views)
        self._printed_at: dict[tuple[str, str], float] = {}

    def print_changes(self, view: RegionView) -> None:
        """Print the changes of one region since its last view."""
        name = view.region.name
        for line in progress_lines(self._last.get(name, RegionView(region=view.region)), view):
            now = time.monotonic()
            if line.fleeting and now - self._printed_at.get((name, line.kind), 0.0) < EVERY_SECONDS:
                continue
            if line.fleeting:
                self._printed_at[name, line.kind] = now
            if self._output.json:
                self._output.line({"type": line.kind, "region": name, "at": time.time(), **line.data})
            else:
                self._output.info(f"{name}  {line.text}")
        self._last[name] = view

    async def listen(self, cockpit: Cockpit) -> None:
        async for view in cockpit.changes():
            self.print_changes(view)


@asynccontextmanager
async def printing_progress(cockpit: Cockpit, output: Output) -> AsyncIterator[ProgressPrinter]:
    """Print every change while the body runs, and the remaining ones at its end."""
    printer = ProgressPrinter(output, cockpit.views)
    listener = asyncio.create_task(printer.listen(cockpit))
    try:
        yield printer
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError):
            await listener
        for view in cockpit.views.values():
            printer.print_changes(view)
