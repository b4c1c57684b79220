"""The ordinary runner over regions that may not exist yet: builds them first, shows the progress, and measures the effect of the change."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from deltalake.exceptions import DeltaError

from console.demo import payoff
from console.demo.chaos import Chaos
from console.demo.prepare import PIPELINE, Demo, build, drivers, operator, start_traffic
from console.errors import Conflict, ConsoleError
from console.model.event import Promoted, RolledBack
from console.model.live import Live, Release
from console.model.status import Status, Verb
from console.runner.fleet import Fleet
from console.runner.flips import Flips
from console.runner.journal import Journal
from console.runner.region_planner import RegionPlanner
from console.runner.together.barrier import Declared
from console.runner.view import Cockpit, Outcome, RegionView

ChaosMode = Literal["none", "struck", "judged"]


class ScreenRunner(Protocol):
    """Opens the terminal screen on a cockpit, and closes the cockpit when the operator quits. Returns the exit code."""

    def __call__(self, cockpit: Cockpit, *, title: str = "", coach: bool = False, readonly: bool = False) -> int: ...


class DemoFleet(Fleet):
    """A `Fleet` whose first refresh builds missing regions and starts the traffic.

    Until then every view shows the progress of the build, and no action is possible. After a promotion or a rollback the
    view's guide shows its effect.

    chaos  `struck`: an agent is killed in the middle of a history; `judged`: all rows are compared afterwards, too
    """

    def __init__(self, demo: Demo, log: Path | None, *, traffic: bool = True, chaos: ChaosMode = "none") -> None:
        super().__init__(
            PIPELINE, drivers(demo.regions), demo.pipelines(), RegionPlanner(), Journal(), operator(), remember=True
        )
        self._demo, self._log, self._traffic = demo, log, traffic
        self._building: asyncio.Task[None] | None = None
        self._lives: dict[str, Live] = {}  # as of the last survey
        self._landed: dict[str, int] = {}  # rows at the last promotion
        self._guides: dict[str, dict[str, tuple[str, ...]]] = {name: {} for name in self.views}
        self._chaos = Chaos(demo, self._board, log, partial(self._tell, "chaos"))
        self._chaos_mode: ChaosMode = chaos

    async def refresh(self, regions: Sequence[str] = ()) -> None:
        if self._building is None:
            self._building = asyncio.create_task(self._build())
            if self._chaos_mode != "none":
                self._spawn(self._strike(self._building), "chaos")
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

    async def control(self, region: str, verb: Verb) -> Status:
        self._require_built()
        return await super().control(region, verb)

    async def promote(self, region: str) -> Promoted:
        self._require_built()
        return await super().promote(region)

    async def promote_together(self, confirmed: Mapping[str, str], declared: Declared) -> Flips:
        self._require_built()
        return await super().promote_together(confirmed, declared)

    async def rollback(self, region: str, to: str = "") -> RolledBack:
        self._require_built()
        return await super().rollback(region, to)

    async def close(self) -> None:
        if self._building and not self._building.done():
            self._building.cancel()
        await super().close()

    # -- first minutes

    async def _build(self) -> None:
        try:
            if not self._demo.built:
                await build(self._demo, self._log, self._show)
        except ConsoleError as error:
            for region in self._demo.regions:
                self._show(RegionView(region=region, problem=f"the demo could not be built: {error}"))
            raise
        if self._traffic:
            await asyncio.to_thread(start_traffic, self._demo, self._log)
            await asyncio.gather(*map(self._wake, self.views))

    async def _wake(self, name: str) -> None:
        """Start the agent, if the demo continues an earlier one: until then its feeds would be shown as stopped."""
        self._board.set(name, note="starting: its agent is not up yet", notice="starting", waits=True)
        with suppress(ConsoleError):
            await self._drivers[name].start_agent()
        self._board.set(name, note="", notice="noted", waits=False)

    def _show(self, view: RegionView) -> None:
        name = view.region.name
        view = replace(view, console=self._board[name].console)  # this console among the watchers
        self._board.set(name, **{field.name: getattr(view, field.name) for field in fields(view)})

    def _require_built(self) -> None:
        if self._building is None or not self._building.done():
            raise Conflict("the demo's regions are still being built", hint="wait until the regions show their plans")

    # -- the effect of the change

    async def _ask(self, name: str) -> Live:
        live = await super()._ask(name)
        was, self._lives[name] = self._lives.get(name), live
        if was and was.release and live.release and was.release.id != live.release.id:
            self._spawn(self._guide(name, was.release, live.release), f"guide {name}")
        return live

    async def _guide(self, name: str, was: Release, live: Release) -> None:
        """Show the effect of a promotion or a rollback. A guide that cannot be measured is left out."""
        status = self._board[name].status
        with suppress(ConsoleError, DeltaError):
            if status.state == "rolled-back":
                measured = await asyncio.to_thread(payoff.measured, self._warehouse(name), live)
                lines = payoff.returned_lines(live.id, measured, self._landed.get(name, measured.landing))
            else:
                lines = payoff.promoted_lines(await self._payoff(name, status, was, live))
            self._tell("change", name, lines)

    def _tell(self, source: Literal["chaos", "change"], name: str, lines: tuple[str, ...]) -> None:
        """Replace one topic of the region's guide."""
        guides = self._guides[name] = {**self._guides[name], source: lines}
        self._board.set(name, guide=(*guides.get("chaos", ()), *guides.get("change", ())))

    async def _strike(self, built: asyncio.Task[None]) -> None:
        await asyncio.shield(built)
        if self._chaos_mode == "judged":
            await self._chaos.beside_screen()
        else:
            await self._chaos.strike()

    async def _payoff(self, name: str, status: Status, was: Release, live: Release) -> payoff.Payoff:
        """raises  ConsoleError, DeltaError"""
        before, after = [await payoff.ask(self._drivers[name], PIPELINE, release) for release in (was, live)]
        old, new = [await asyncio.to_thread(payoff.measured, self._warehouse(name), release) for release in (was, live)]
        self._landed[name] = new.landing
        return payoff.payoff(before, after, status, old=old, new=new)

    def _warehouse(self, name: str) -> Path:
        return Path(self._board[name].region.warehouse)
