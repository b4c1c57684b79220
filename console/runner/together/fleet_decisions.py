"""Promotions and rollbacks of a fleet, alone and together, and the waves that a promotion makes due."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from console.errors import Conflict, ConsoleError
from console.model.event import Promoted, RolledBack
from console.model.fleet import FleetWaves
from console.model.identity import AgentReason, agent_reason
from console.runner.flips import Flips
from console.runner.together.barrier import Barrier, Declared
from console.runner.watch import under_way
from console.runner.wave_run import WaveRun
from console.runner.waves import Waves, ready

PROMOTION_SEEN_SECONDS = 30.0  # wait for the event of a promotion after its answer


class Promotions:
    """Makes other releases live, and starts the waves that are due then.

    wave_run starts waves that are due; None for a command that only promotes
    spawn    runs work beside this, until the fleet is closed
    """

    def __init__(
        self, barrier: Barrier, wave_run: WaveRun | None, spawn: Callable[[Coroutine[Any, Any, None], str], None]
    ) -> None:
        self._barrier = barrier
        self._board, self._drivers, self._watchers = barrier.board, barrier.drivers, barrier.watchers
        self._actions, self._desired = barrier.actions, barrier.desired
        self._wave_run = wave_run
        self._spawn = spawn
        self._starting: Counter[str] = Counter()

    async def promote(self, region: str) -> Promoted:
        """raises  Conflict if nothing waits at the region's gate; else as `Driver.promote`"""
        driver, status = self._drivers[region], self._board[region].status
        if not under_way(status) and status.state != "live":
            raise Conflict(f"{region}: nothing waits at its gate: {status.shown}", region=region, hint="console status")
        body = {"rollout": status.rollout, "live": status.was}
        request = partial(driver.promote, self._board.pipeline, status.rollout, status.was, self._actions.who)
        promoted = await self._actions.perform(region, "promote", body, request)
        await self._until_live(region, promoted.release)
        self._go_on(region)
        return promoted

    async def promote_together(self, confirmed: Mapping[str, str], declared: Declared) -> Flips:
        """As `Cockpit.promote_together`."""
        flips = await self._barrier.promote(confirmed, declared)
        if flips.promoted:
            await asyncio.gather(*(self._until_live(flip.region, flip.release) for flip in flips.promoted))
            await self._note(flips)
            for flip in flips.promoted:
                self._go_on(flip.region)
        return flips

    async def _note(self, flips: Flips) -> None:
        """Record the outcome of a barrier in the journal, and its skew in seconds."""
        ends = {flip.region: {"end": flip.end, "sent": flip.sent, "known": flip.known} for flip in flips.regions}
        skew = flips.skew
        measured = {"least": skew.least, "most": skew.most} if skew else None
        names = tuple(flip.region for flip in flips.regions)
        with suppress(ConsoleError):  # the regions are live already
            await self._actions.note_fleet((names,), {"flips": ends, "skew": measured})

    async def rollback(self, region: str, to: str) -> RolledBack:
        """raises  as `JournaledActions.roll_back`"""
        rolled = await self._actions.roll_back(self._drivers[region], self._board[region], to)
        await self._until_live(region, rolled.release)
        return rolled

    def promoted_itself(self, region: str) -> None:
        """Start the waves that are due if the region's agent has opened its gate, as its policy says."""
        status = self._board[region].status
        if status.state == "live" and agent_reason(status.decided_by) is AgentReason.POLICY:
            self._go_on(region)

    async def _until_live(self, region: str, release: str) -> None:
        """Wait until the view shows the current live release, so that the next action starts from it."""
        self._watchers[region].start()
        with suppress(TimeoutError):
            await self._board.until(region, lambda view: view.live == release, PROMOTION_SEEN_SECONDS)

    def _go_on(self, promoted: str) -> None:
        """Start the waves that a promotion made due once its watch does not hold them, whichever console began the rollout."""
        if (run := self._wave_run) is not None:
            begin = partial(self._start_next_waves, run, promoted)
            self._spawn(run.once_watched(promoted, begin), "watched")

    def _start_next_waves(self, run: WaveRun, promoted: str) -> None:
        fleet = self._board[promoted].status.fleet
        wanted = {name: self._desired(name) for name in self._board.views}
        going = run.running + self._starting  # called for each of the regions that are promoted together
        if fleet and (rest := ready(self._board.views, wanted, fleet, going)):
            self._starting.update(name for wave in rest for name in wave)
            self._spawn(self._run_next(run, rest, fleet), "waves")

    async def _run_next(self, run: WaveRun, rest: Waves, fleet: FleetWaves) -> None:
        try:
            await run.run_next(rest, fleet)
        finally:
            self._starting.subtract(name for wave in rest for name in wave)
