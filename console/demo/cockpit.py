"""The ordinary runner over regions that do not exist yet: it builds them first, and shows how far it has come."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from console.demo.prepare import PIPELINE, Demo, build, drivers, operator, planner, start_traffic
from console.errors import Conflict, ConsoleError
from console.runner.fleet import Fleet
from console.runner.journal import Journal
from console.runner.view import Outcome


class DemoFleet(Fleet):
    """A `Fleet` whose first refresh builds what is missing and starts the traffic.

    Until then every view says in its note what is being done, and nothing can be started.
    """

    def __init__(self, demo: Demo, log: Path | None, *, traffic: bool = True) -> None:
        super().__init__(PIPELINE, drivers(demo.regions), demo.pipelines(), planner, Journal(), operator())
        self._demo, self._log, self._traffic = demo, log, traffic
        self._building: asyncio.Task[None] | None = None

    async def refresh(self, regions: Sequence[str] = ()) -> None:
        if self._building is None:
            self._building = asyncio.create_task(self._build())
        await asyncio.shield(self._building)
        await super().refresh(regions)

    async def run(
        self, regions: Sequence[str] = (), *, yes: bool = False, attached: bool = False
    ) -> tuple[Outcome, ...]:
        self._see_built()
        return await super().run(regions, yes=yes, attached=attached)

    async def start(self, region: str) -> None:
        self._see_built()
        await super().start(region)

    async def close(self) -> None:
        if self._building and not self._building.done():
            self._building.cancel()
        await super().close()

    async def _build(self) -> None:
        try:
            if not self._demo.built:
                await build(self._demo, self._log, self._tell)
        except ConsoleError as error:
            for region in self._demo.regions:
                self._board.set(region.name, note="", problem=f"the demo could not be built: {error}")
            raise
        if self._traffic:
            await asyncio.to_thread(start_traffic, self._demo, self._log)

    def _tell(self, region: str, note: str) -> None:
        self._board.set(region, note=note)

    def _see_built(self) -> None:
        if self._building is None or not self._building.done():
            raise Conflict("the demo's regions are still being built", hint="wait until their notes are gone")
