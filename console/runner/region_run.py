"""One region's rollout as a run sees it: handed over, waited for, and let through its gate."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from console.drivers.protocol import Driver, Verb
from console.errors import Conflict, ConsoleError, RegionError, Unreachable, away
from console.model.event import Promoted
from console.model.fleet import FleetWaves
from console.model.live import ReleaseRow
from console.model.plan import Plan
from console.model.status import Status
from console.runner.actions import JournaledActions, gate
from console.runner.view import Outcome, RegionView
from console.runner.watch import FIRST_SECONDS, LAST_SECONDS, RegionBoard, RegionWatcher, under_way

AWAY_SECONDS = 30.0  # for which a run waits for a region that it may go on without
OnFailure = Literal["keep", "discard"]
HAND_OVERS = 4  # attempts to hand a plan over, each repeating the same request


class RegionOps(Protocol):
    """What a run may do in a region: the fleet's own acts."""

    async def refresh(self, regions: Sequence[str] = ()) -> None: ...

    def pending(self, region: str) -> Plan: ...

    async def carries(self, region: str, plan: Plan) -> bool: ...

    async def hand_over(self, region: str, fleet: FleetWaves | None = None) -> str: ...

    async def promote(self, region: str) -> Promoted: ...

    async def control(self, region: str, verb: Verb) -> Status: ...

    def driver(self, region: str) -> Driver: ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run goes, whatever the region.

    patience    seconds for which it waits while a link is lost
    without     regions that it goes on without where they are away: their outcome is `behind`, and their plan waits
    on_failure  what becomes of a failed rollout; None leaves it to the region's policy
    """

    patience: float
    without: frozenset[str] = frozenset()
    on_failure: OnFailure | None = None

    def waits(self, name: str) -> float:
        return min(self.patience, AWAY_SECONDS) if name in self.without else self.patience


class RegionRun:
    """Carries one region's pending plan to its gate, or through it; one outcome a region, whatever happens."""

    def __init__(
        self,
        hands: RegionOps,
        board: RegionBoard,
        followers: Mapping[str, RegionWatcher],
        desk: JournaledActions,
        manner: RunOptions,
        *,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._hands = hands
        self._board = board
        self._followers = followers
        self._desk = desk
        self.manner = manner
        self._sleep = sleep

    async def carry(self, name: str, fleet: FleetWaves, *, yes: bool) -> Outcome:
        """See docs/design.md, how a rollout runs. Every ConsoleError ends in the outcome. fleet: what it is part of."""
        follower = self._followers[name]
        follower.carrying += 1
        try:
            view = self._board[name]
            if view.plan is None and not view.problem:
                await self._hands.refresh([name])
            return await self._carried(name, fleet, yes)
        except ConsoleError as error:
            if away(error) and name in self.manner.without:
                return Outcome(name, "behind")
            return Outcome(name, self._board[name].status.shown, error)
        finally:
            follower.carrying -= 1

    async def _carried(self, name: str, fleet: FleetWaves, yes: bool) -> Outcome:
        plan, status = self._hands.pending(name), self._board[name].status
        if under_way(status):
            if not await self._hands.carries(name, plan):
                raise Conflict(
                    f"{name}: another rollout, {status.rollout} by {status.by}, is under way ({status.shown})",
                    hint=f"let it end, or console cancel --region {name}",
                    code="E_UNDER_WAY",
                )
            if status.held == "paused":
                raise RegionError(f"{name}: {status.rollout} is {status.why}", hint=f"console resume --region {name}")
            await self._wake(name)
            return await self._to_the_end(name, status.rollout, yes)
        if nothing_to_do(plan):
            return Outcome(name, "unchanged")
        return await self._to_the_end(name, await self._handed_over(name, fleet), yes)

    async def _handed_over(self, name: str, fleet: FleetWaves) -> str:
        """Repeating it is harmless: a region that has accepted the plan names its rollout again."""
        pause = FIRST_SECONDS
        for _ in range(HAND_OVERS - 1):
            try:
                return await self._hands.hand_over(name, fleet)
            except Unreachable as error:
                self._board.set(name, link="unreachable", link_why=str(error))
            await self._sleep(pause)
            pause *= 4
        return await self._hands.hand_over(name, fleet)

    async def _wake(self, name: str) -> None:
        # out of reach is no end: the follower goes on trying, and the wait below has its own patience
        with suppress(Unreachable):
            await self._hands.driver(name).wake()
        self._followers[name].start()

    async def _to_the_end(self, name: str, rollout: str, yes: bool) -> Outcome:
        pause, lost = FIRST_SECONDS, False
        while True:
            status = await self._stands(name, rollout)
            if status.state == "live":
                await self._see_winner(name, yes)
                return Outcome(name, "live")
            if status.held == "failed":
                raise await self._failed(name, status)
            if not under_way(status):
                raise Conflict(f"{name}: {status.rollout} was ended ({status.state}) by {status.decided_by}")
            if shut := gate(self._board[name], yes):
                raise shut
            try:
                await self._hands.promote(name)
            except Conflict:
                # ours may be the promotion that it collides with, if an answer was lost
                if not lost or not await self._won(name):
                    raise
                return Outcome(name, "live")
            except Unreachable:
                lost = True
                await self._sleep(pause)
                pause = min(LAST_SECONDS, pause * 2)
                await self._meet_again(name)

    async def _meet_again(self, name: str) -> None:
        with suppress(Unreachable):
            self._followers[name].meet(await self._hands.driver(name).state(self._board.pipeline))

    async def _stands(self, name: str, rollout: str) -> Status:
        """The rollout's status once it asks for a decision.

        raises  Unreachable if the link stays lost; what broke the following
        """
        follower = self._followers[name]

        def decides(view: RegionView) -> bool:
            status = view.status
            stands = status.shown in ("awaiting-confirmation", "failed") or not under_way(status) or self._taken(status)
            return (stands and status.rollout == rollout) or follower.broken is not None

        while True:
            view = await self._board.until(name, lambda view: decides(view) or view.link == "unreachable")
            if not decides(view):
                try:
                    view = await self._board.until(
                        name, lambda view: decides(view) or view.link != "unreachable", self.manner.waits(name)
                    )
                except TimeoutError:
                    raise Unreachable(
                        f"{name}: out of reach for {self.manner.waits(name):g} s ({self._board[name].link_why}); a batch may be running",
                        hint="the same command goes on where the region is",
                    ) from None
            if follower.broken:
                raise follower.broken
            if self._taken(view.status):
                raise _taken_over(name, view.status)
            if decides(view):
                return view.status

    def _taken(self, status: Status) -> bool:
        """Whether another console steers by now, and this one only looks."""
        return under_way(status) and status.console not in ("", self._desk.who.console)

    async def _failed(self, name: str, status: Status) -> RegionError:
        hint = status.hint or f"console retry --region {name}"
        if (self.manner.on_failure or self._board[name].region.policy.on_failure) == "discard":
            await self._hands.control(name, "discard")
            said = "as --on-failure says" if self.manner.on_failure else "as its policy says"
            hint = f"what it built was discarded, {said}"
        return RegionError(f"{name}: {status.why}", hint=hint, code="E_FAILED")

    async def _see_winner(self, name: str, yes: bool) -> None:
        """raises  Conflict if this run was to promote, and someone else did"""
        status = self._board[name].status
        if not yes or self._desk.tried(name, "promote", status.rollout):
            return
        row = await self._promoted(name)
        if row is None:
            return
        if self._ours(row) and not self._desk.tried_elsewhere(name, "promote", status.rollout):
            return  # an earlier process of ours, which did not live to hear the answer
        when = datetime.fromtimestamp(row.at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        raise Conflict(
            f"{name}: {row.id} was promoted by {row.by} from {row.host} at {when}",
            hint="console status",
            code="E_PROMOTED",
        )

    async def _won(self, name: str) -> bool:
        row = await self._promoted(name)
        return row is not None and self._ours(row)

    async def _promoted(self, name: str) -> ReleaseRow | None:
        """The line of the rollout's release, once it is live."""
        state = await self._hands.driver(name).state(self._board.pipeline)
        release = state.status.release
        return next((row for row in state.releases if row.id == release and row.state == "live"), None)

    def _ours(self, row: ReleaseRow) -> bool:
        return (row.by, row.host) == (self._desk.who.name, self._desk.who.host)


def _taken_over(name: str, status: Status) -> Conflict:
    when = datetime.fromtimestamp(status.taken_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return Conflict(
        f"{name}: {status.taken_by} took {status.rollout} over at {when}",
        hint=f"console attach --region {name} follows it; --take-over takes it back",
        code="E_TAKEN_OVER",
    )


def nothing_to_do(plan: Plan) -> bool:
    """True where the region already is what the files say."""
    return not plan.changes or not plan.steps
