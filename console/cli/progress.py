"""What happens to regions while a command follows them: lines on stderr for people, typed lines on stdout for programs."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

from console.cli.output import Output
from console.cli.status_text import told
from console.runner.view import Cockpit, RegionView

EVERY_SECONDS = 5.0  # between two lines of the same fleeting kind about one region


class Teller:
    """Turns views into lines: on stderr for people, as typed lines on stdout with JSON."""

    def __init__(self, output: Output, views: Mapping[str, RegionView]) -> None:
        self._output = output
        self._known = dict(views)
        self._spoke: dict[tuple[str, str], float] = {}

    def tell(self, view: RegionView) -> None:
        """Say what is new about one region since it was last told."""
        name = view.region.name
        for said in told(self._known.get(name, RegionView(view.region)), view):
            now = time.monotonic()
            if said.fleeting and now - self._spoke.get((name, said.kind), 0.0) < EVERY_SECONDS:
                continue
            if said.fleeting:
                self._spoke[name, said.kind] = now
            if self._output.json:
                self._output.line({"type": said.kind, "region": name, "at": time.time(), **said.data})
            else:
                self._output.info(f"{name}  {said.text}")
        self._known[name] = view

    async def listen(self, cockpit: Cockpit) -> None:
        async for view in cockpit.changes():
            self.tell(view)


@asynccontextmanager
async def telling(cockpit: Cockpit, output: Output) -> AsyncIterator[Teller]:
    """Tell every change while the body runs, and at its end what was left to tell."""
    teller = Teller(output, cockpit.views)
    listener = asyncio.create_task(teller.listen(cockpit))
    try:
        yield teller
    finally:
        listener.cancel()
        with suppress(asyncio.CancelledError):
            await listener
        for view in cockpit.views.values():
            teller.tell(view)
