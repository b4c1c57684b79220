"""Promotes several regions at once: all are ready, or nothing is sent; then all requests leave together."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from console.drivers.protocol import Driver, RegionState
from console.errors import AtGate, Conflict, ConsoleError, Unreachable
from console.model.consent import Declaration
from console.model.event import Promoted
from console.runner.actions import JournaledActions
from console.runner.flips import FlipEnd, Flips, RegionFlip
from console.runner.together.readiness import Readiness, readiness
from console.runner.view import RegionView
from console.runner.watch import FIRST_SECONDS, LAST_SECONDS, RegionBoard, RegionWatcher

Declared = Mapping[str, Sequence[Declaration]]  # by region
NOTHING: Declared = {}
ASKED_AGAIN_SECONDS = 120.0  # for a region whose answer was lost, its next agent's start included


class Barrier:
    """Flips regions together and measures when.

    desired  region → digest of its pipeline according to the files
    declare  stores a declaration with a region's rollout
    clock    seconds since 1970, UTC; never turned back while a barrier runs
    """

    def __init__(
        self,
        board: RegionBoard,
        drivers: Mapping[str, Driver],
        watchers: Mapping[str, RegionWatcher],
        actions: JournaledActions,
        *,
        desired: Callable[[str], str],
        declare: Callable[[str, Declaration], Awaitable[object]],
        sleep: Callable[[float], Awaitable[None]],
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.board = board
        self.drivers = drivers
        self.watchers = watchers
        self.actions = actions
        self.desired = desired
        self._declare = declare
        self._sleep = sleep
        self._clock = clock or _steady_clock()

    async def promote(self, confirmed: Mapping[str, str], declared: Declared) -> Flips:
        """Promote all of these regions, or none if one is not ready; see `Cockpit.promote_together`."""
        missing = await self._read(confirmed)
        judged = self._judged(confirmed, missing, declared)
        if all(each.error is None or self._only_waits(each, declared) for each in judged):
            judged = self._judged(confirmed, await self._declared(declared, judged))
        if any(each.error for each in judged):
            return Flips(tuple(map(self._unsent, judged)))
        ready = [each.region for each in judged if not each.live]
        start = _Start(len(ready))
        flips = await asyncio.gather(*(self._flip(name, ready, start) for name in ready))
        flipped = {flip.region: flip for flip in flips}
        return Flips(tuple(flipped.get(each.region) or self._unsent(each) for each in judged))

    async def _read(self, confirmed: Mapping[str, str]) -> dict[str, ConsoleError]:
        """Read each region's state now, from its agent where one will be needed; the errors of regions without an answer."""
        missing: dict[str, ConsoleError] = {}

        async def one(name: str) -> None:
            try:
                if confirmed[name]:
                    await self.drivers[name].start_agent()
                self._adopt(name, await self.drivers[name].state(self.board.pipeline))
            except ConsoleError as error:
                missing[name] = error

        await asyncio.gather(*map(one, confirmed))
        return missing

    def _judged(
        self, confirmed: Mapping[str, str], known: Mapping[str, ConsoleError], declared: Declared = NOTHING
    ) -> tuple[Readiness, ...]:
        """The readiness of the regions with these declarations. known: why some of them are not ready"""
        views = [_after(self.board[name], declared.get(name, ())) for name in confirmed]
        moved = {name: _moved(self.board[name], rollout) for name, rollout in confirmed.items()}
        wrong = {name: error for name in confirmed if (error := known.get(name) or moved[name])}
        judged = readiness(views, {name: self.desired(name) for name in confirmed})
        return tuple(
            Readiness(region=each.region, error=wrong[each.region]) if each.region in wrong else each for each in judged
        )

    def _only_waits(self, judged: Readiness, declared: Declared) -> bool:
        """Whether a region with these declarations lacks only approvals, a ticket or time: all of them count only afterwards."""
        gate = _after(self.board[judged.region], declared.get(judged.region, ())).gate
        return isinstance(judged.error, AtGate) and all(each.kind != "check" for each in gate.closed_by)

    async def _declared(self, declared: Declared, judged: Sequence[Readiness]) -> dict[str, ConsoleError]:
        """Store the declarations, in every region before any is promoted; the errors of regions that refused one."""
        refused: dict[str, ConsoleError] = {}
        for each in judged:
            try:
                for statement in declared.get(each.region, ()) if not each.live else ():
                    await self._declare(each.region, statement)
            except ConsoleError as error:
                refused[each.region] = error
        return refused

    def _unsent(self, judged: Readiness) -> RegionFlip:
        view = self.board[judged.region]
        if judged.live:
            return RegionFlip(region=judged.region, end="live", release=view.live, was=view.previous)
        end: FlipEnd = "refused" if judged.error else "held"
        release, was = view.status.release, view.live
        return RegionFlip(region=judged.region, end=end, release=release, was=was, error=judged.error)

    async def _flip(self, name: str, together: Sequence[str], start: "_Start") -> RegionFlip:
        """Send the promotion once every region's intent is in the journal. A lost answer is asked for again: the region
        promotes once.
        """
        driver, status, backoff = self.drivers[name], self.board[name].status, FIRST_SECONDS
        sent, lost = 0.0, False
        until = self._clock() + ASKED_AGAIN_SECONDS
        body = {"rollout": status.rollout, "live": status.was, "together": list(together)}

        async def request() -> Promoted:
            nonlocal sent
            await start.together()
            sent = sent or self._clock()
            return await driver.promote(self.board.pipeline, status.rollout, status.was, self.actions.who)

        def ended(end: FlipEnd, error: ConsoleError | None) -> RegionFlip:
            release, was = status.release, status.was
            return RegionFlip(region=name, end=end, release=release, was=was, sent=sent, error=error)

        while True:
            try:
                done = await self.actions.perform(name, "promote", body, request)
            except _CalledOff:
                return ended("held", None)
            except Unreachable as error:
                if self._clock() >= until:
                    return ended("unknown", error)
            except ConsoleError as error:
                start.call_off()  # without effect once the requests have left
                return await self._found_live(name, sent if lost else 0.0) or ended("refused", error)
            else:
                known = self._clock()
                return replace(ended("promoted", None), version=done.version, known=known)
            lost = True
            await self._sleep(backoff)
            backoff = min(LAST_SECONDS, backoff * 2)
            with suppress(ConsoleError):  # the next attempt reports it
                await driver.start_agent()

    async def _found_live(self, name: str, sent: float) -> RegionFlip | None:
        """The flip of a region that refused to promote because its agent, a person or an earlier request had promoted it.

        sent  when that request was sent; 0 if there was none
        """
        rollout = self.board[name].status.rollout
        try:
            state = await self.drivers[name].state(self.board.pipeline)
        except ConsoleError:
            return None
        self._adopt(name, state)
        row = next((row for row in state.releases if row.state == "live"), None)
        if row is None or (state.status.rollout, state.status.state) != (rollout, "live"):
            return None
        flip = RegionFlip(region=name, end="live", release=row.id, was=state.previous)
        ours = (row.by, row.host) == (self.actions.who.name, self.actions.who.host)
        return replace(flip, end="promoted", sent=sent, known=self._clock()) if sent and ours else flip

    def _adopt(self, name: str, state: RegionState) -> None:
        self.watchers[name].adopt_state(state)


class _CalledOff(Conflict):
    """Another region's request could not be recorded, so that none was sent."""


class _Start:
    """Releases all requests at the same moment, once each of them is recorded, or none."""

    def __init__(self, requests: int) -> None:
        self._missing = requests
        self._leave: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    async def together(self) -> None:
        """raises  _CalledOff if a request could not be recorded"""
        self._missing -= 1
        if not self._missing:
            self._leave.set_result(True)
        if not await asyncio.shield(self._leave):
            raise _CalledOff("not sent: the promotion of another region could not be recorded")

    def call_off(self) -> None:
        if not self._leave.done():
            self._leave.set_result(False)


def _after(view: RegionView, declared: Sequence[Declaration]) -> RegionView:
    """The view with these declarations."""
    consent = view.status.consent
    for each in declared:
        consent = consent.after(each, 0.0)
    return replace(view, status=replace(view.status, consent=consent)) if declared else view


def _moved(view: RegionView, confirmed: str) -> Conflict | None:
    """The error if the region's rollout is not the confirmed one. confirmed: "" for a region that was live"""
    name, status = view.region.name, view.status
    if not confirmed or status.rollout == confirmed:
        return None
    now = f"now it has {status.rollout or 'no rollout'}, {status.shown}"
    why = f"{name}: changed while it was being confirmed: {now}"
    return Conflict(why, region=name, hint=f"console status --region {name}", code="E_STALE")


def _steady_clock() -> Callable[[], float]:
    """Seconds since 1970 that are never turned back: differences are measured with it."""
    begun, ticks = time.time(), time.monotonic()
    return lambda: begun + time.monotonic() - ticks
