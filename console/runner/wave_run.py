"""Runs the regions of a fleet wave by wave; a wave begins once the previous one has succeeded."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

from console import paths
from console.errors import AtGate, ConsoleError
from console.model.fleet import FleetWaves
from console.runner import after_promotion
from console.runner.region_run import RegionRun
from console.runner.view import Outcome
from console.runner.watch import RegionBoard
from console.runner.waves import Waves, may_go_on, skipped

PAUSED_SECONDS = 1.0  # between two checks for the pause file


class WaveRun:
    """Several runs may be under way at the same time, each over regions of its own.

    parallelism  regions of one wave that run at the same time
    running      number of active runs of this process per region
    """

    def __init__(
        self,
        board: RegionBoard,
        region_run: RegionRun,
        *,
        parallelism: int,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.running: Counter[str] = Counter()
        self._board = board
        self._region_run = region_run
        self._parallelism = parallelism
        self._sleep = sleep

    async def run(self, order: Waves, fleet: FleetWaves, yes: bool) -> tuple[Outcome, ...]:
        """Run the waves in order; the waves after an unsuccessful one are skipped.

        yes  promote without asking
        """
        names = [name for wave in order for name in wave]
        self.running.update(names)
        try:
            return await self._wave_by_wave(order, fleet, yes)
        finally:
            self.running.subtract(names)

    async def run_next(self, rest: Waves, fleet: FleetWaves) -> None:
        """Run the waves that a manual promotion made due; nobody waits for the outcomes: the views show failures."""
        try:
            outcomes = await self.run(rest, fleet, False)
        except ConsoleError as error:
            outcomes = tuple(Outcome(name, "skipped", error) for name in rest[0])
        for outcome in outcomes:
            if outcome.error and not isinstance(outcome.error, AtGate):
                self._board.set(outcome.region, note=str(outcome.error), waits=False)

    async def once_watched(self, promoted: str, begin: Callable[[], None]) -> None:
        """Call `begin` once a region's watch no longer holds the next wave."""
        await self._board.until(promoted, lambda view: not after_promotion.holds(view))
        begin()

    async def _wave_by_wave(self, order: Waves, fleet: FleetWaves, yes: bool) -> tuple[Outcome, ...]:
        outcomes: tuple[Outcome, ...] = ()
        slots = asyncio.Semaphore(self._parallelism)

        async def one(name: str) -> Outcome:
            async with slots:
                await self._until_unpaused(name)
                return await self._region_run.run(name, fleet, yes=yes)

        for index, wave in enumerate(order):
            ended = await asyncio.gather(*(one(name) for name in wave))
            if order[index + 1 :] and may_go_on([self._as_of_now(outcome) for outcome in ended]):
                ended = await asyncio.gather(*(self._region_run.until_watched(outcome) for outcome in ended))
            outcomes += tuple(ended)
            if not may_go_on([self._as_of_now(outcome) for outcome in ended]):
                return outcomes + skipped(order[index + 1 :])
        return outcomes

    def _as_of_now(self, outcome: Outcome) -> Outcome:
        """The outcome as of now: a person may have opened the gate while other regions of the wave were still running."""
        opened = isinstance(outcome.error, AtGate) and self._board[outcome.region].status.state == "live"
        return Outcome(outcome.region, "live") if opened else outcome

    async def _until_unpaused(self, name: str) -> None:
        """Wait until this machine's pause file is gone; no region begins while it exists."""
        while (why := paths.paused(paths.pause_file())) is not None:
            note = f"waits: all regions are paused by {paths.pause_file()}{why and f': {why}'}"
            self._board.set(name, note=note, notice="waits", waits=True)
            await self._sleep(PAUSED_SECONDS)
        if self._board[name].waits:
            self._board.set(name, note="", notice="noted", waits=False)
