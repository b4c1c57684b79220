"""The ordinary runner over regions that may not exist yet: builds them first, and shows the progress."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from console.demo.prepare import PIPELINE, Demo, build, drivers, operator, planner, start_traffic
from console.errors import Conflict, ConsoleError
from console.runner.fleet import Fleet
from console.runner.journal import Journal
from console.runner.view import Outcome


class DemoFleet(Fleet):
    """A `Fleet` whose first refresh builds missing regions and starts the traffic.

    Until then the note of every view shows the progress, and no rollout can be started.
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
        self._require_built()
        return await super().run(regions, yes=yes, attached=attached)

    async def start(self, region: str) -> None:
        self._require_built()
        await super().start(region)

    async def close(self) -> None:
        if self._building and not self._building.done():
            self._building.cancel()
        await super().close()

    async def _build(self) -> None:
        try:
            if not self._demo.built:
                await build(self._demo, self._log, self._report)
        except ConsoleError as error:
            for region in self._demo.regions:
                self._board.set(region.name, note="", problem=f"the demo could not be built: {error}")
            raise
        if self._traffic:
            await asyncio.to_thread(start_traffic, self._demo, self._log)

    def _report(self, region: str, note: str) -> None:
        self._board.set(region, note=note)

    def _require_built(self) -> None:
        if self._building is None or not self._building.done():
            raise Conflict("the demo's regions are still being built", hint="wait until the regions show their plans")
