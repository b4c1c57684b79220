"""One region's part of a run: submit its plan, wait for the rollout, and open its gate if that is allowed."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from console.drivers.protocol import Driver
from console.errors import Conflict, ConsoleError, RegionError, Unreachable, is_unreachable
from console.model.event import Promoted
from console.model.fleet import FleetWaves
from console.model.identity import AgentReason, agent_reason
from console.model.live import ReleaseRow
from console.model.plan import Plan
from console.model.status import Status, Verb
from console.runner import after_promotion
from console.runner.actions import JournaledActions, gate
from console.runner.view import Outcome, RegionView
from console.runner.watch import FIRST_SECONDS, LAST_SECONDS, RegionBoard, RegionWatcher, under_way

AWAY_SECONDS = 30.0  # wait for an unreachable region that the run may leave out
OnFailure = Literal["keep", "discard"]
SELF_OPENING_SECONDS = 120.0  # for an agent that promotes by itself
SUBMIT_ATTEMPTS = 4  # attempts, each with the same request


class RegionOps(Protocol):
    """Operations of the fleet that a run uses in one region."""

    async def refresh(self, regions: Sequence[str] = ()) -> None: ...

    def pending(self, region: str) -> Plan: ...

    async def carries_same_change(self, region: str, plan: Plan) -> bool: ...

    async def submit(self, region: str, fleet: FleetWaves | None = None) -> str: ...

    async def promote(self, region: str) -> Promoted: ...

    async def control(self, region: str, verb: Verb) -> Status: ...

    def driver(self, region: str) -> Driver: ...


@dataclass(frozen=True, slots=True)
class RunOptions:
    """Options of a run, the same for all regions.

    reconnect_seconds  how long it waits while a link is lost
    without            regions to leave out if they are unreachable: their outcome is `behind`, and their plan waits
    on_failure         keep or discard a failed rollout; None leaves it to the region's policy
    """

    reconnect_seconds: float
    without: frozenset[str] = frozenset()
    on_failure: OnFailure | None = None

    def waits(self, name: str) -> float:
        return min(self.reconnect_seconds, AWAY_SECONDS) if name in self.without else self.reconnect_seconds


class RegionRun:
    """Runs one region's pending plan up to its gate, or through it. Every run ends in exactly one outcome."""

    def __init__(
        self,
        ops: RegionOps,
        board: RegionBoard,
        watchers: Mapping[str, RegionWatcher],
        actions: JournaledActions,
        options: RunOptions,
        *,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        self._ops = ops
        self._board = board
        self._watchers = watchers
        self._actions = actions
        self.options = options
        self._sleep = sleep

    async def run(self, name: str, fleet: FleetWaves, *, yes: bool) -> Outcome:
        """Run the plan; a ConsoleError becomes the outcome's error.

        fleet  the waves that the region's rollout is part of
        """
        watcher = self._watchers[name]
        watcher.active_runs += 1
        try:
            view = self._board[name]
            if view.plan is None and not view.problem:
                await self._ops.refresh([name])
            return await self._run_rollout(name, fleet, yes)
        except ConsoleError as error:
            if is_unreachable(error) and name in self.options.without:
                return Outcome(name, "behind")
            return Outcome(name, self._board[name].status.shown, error)
        finally:
            watcher.active_runs -= 1

    async def until_watched(self, outcome: Outcome) -> Outcome:
        """The outcome once the checks after a promotion have ended, or one has failed: then with the error that holds the
        next wave. The outcome of a region that is not watched is returned unchanged.
        """
        name = outcome.region
        try:
            while after_promotion.is_watched(view := self._board[name]) and not after_promotion.held(view):
                self._watchers[name].start()
                await self._reached(
                    name, lambda view: not after_promotion.is_watched(view) or bool(view.status.watched.holds)
                )
        except ConsoleError as error:
            return Outcome(name, self._board[name].status.shown, error)
        held = after_promotion.held(self._board[name])
        if outcome.state != "live" and self._board[name].status.state != "live":
            held = None  # it had nothing to do: the release rolled back there is another rollout's
        return outcome if held is None else Outcome(name, self._board[name].status.shown, held)

    async def _reached(self, name: str, true: Callable[[RegionView], bool]) -> RegionView:
        """The view once a condition is true of it.

        raises  Unreachable if the link stays lost
        """
        view = await self._board.until(name, lambda view: true(view) or view.link == "unreachable")
        if true(view):
            return view
        try:
            return await self._board.until(
                name, lambda view: true(view) or view.link != "unreachable", self.options.waits(name)
            )
        except TimeoutError:
            raise Unreachable(
                f"{name}: unreachable for {self.options.waits(name):g} s ({self._board[name].link_why}); a batch may be running",
                region=name,
                hint="the same command continues from there",
            ) from None

    async def _run_rollout(self, name: str, fleet: FleetWaves, yes: bool) -> Outcome:
        plan, status = self._ops.pending(name), self._board[name].status
        if under_way(status):
            if not await self._ops.carries_same_change(name, plan):
                raise Conflict(
                    f"{name}: another rollout, {status.rollout} by {status.by}, is under way ({status.shown})",
                    region=name,
                    hint=f"wait until it ends, or console cancel --region {name}",
                    code="E_UNDER_WAY",
                )
            if status.held == "paused":
                raise RegionError(
                    f"{name}: {status.rollout} is {status.why}", region=name, hint=f"console resume --region {name}"
                )
            await self._start_agent(name)
            return await self._until_decided(name, status.rollout, yes, fleet.attached)
        if nothing_to_do(plan):
            return Outcome(name, "unchanged")
        return await self._until_decided(name, await self._submit_with_retries(name, fleet), yes, fleet.attached)

    async def _submit_with_retries(self, name: str, fleet: FleetWaves) -> str:
        """Repeating the request is harmless: a region that has accepted the plan returns the same rollout."""
        backoff = FIRST_SECONDS
        for _ in range(SUBMIT_ATTEMPTS - 1):
            try:
                return await self._ops.submit(name, fleet)
            except Unreachable as error:
                self._board.set(name, link="unreachable", link_why=str(error))
            await self._sleep(backoff)
            backoff *= 4
        return await self._ops.submit(name, fleet)

    async def _start_agent(self, name: str) -> None:
        # unreachable is not final: the watcher keeps trying, and the wait below has its own timeout
        with suppress(Unreachable):
            await self._ops.driver(name).start_agent()
        self._watchers[name].start()

    async def _until_decided(self, name: str, rollout: str, yes: bool, attached: bool) -> Outcome:
        backoff, answer_lost = FIRST_SECONDS, False
        while True:
            status = await self._await_decision(name, rollout)
            if status.state == "live":
                await self._check_promoter(name, yes)
                return Outcome(name, "live")
            if status.held == "failed":
                raise await self._failed(name, status)
            if held := after_promotion.held(self._board[name]):
                raise held
            if not under_way(status):
                raise Conflict(
                    f"{name}: {status.rollout} was ended ({status.state}) by {status.decided_by}", region=name
                )
            if _opens_itself(self._board[name]) and await self._opened_itself(name, attached):
                continue
            if blocked := gate(self._board[name], yes):
                raise blocked
            try:
                await self._ops.promote(name)
            except Conflict:
                # the agent may have promoted by itself, or this console, if an answer was lost
                row = await self._promoted_row(name)
                by_policy = row is not None and agent_reason(row.by) is AgentReason.POLICY
                if not by_policy and not (answer_lost and row is not None and self._ours(row)):
                    raise
                return Outcome(name, "live")
            except Unreachable:
                answer_lost = True
                await self._sleep(backoff)
                backoff = min(LAST_SECONDS, backoff * 2)
                await self._refresh_state(name)

    async def _opened_itself(self, name: str, attached: bool) -> bool:
        """Wait until its agent has promoted, as its policy says, or the gate has closed again; False if it takes too long.

        attached  an attached run waits for the end of the soak as well, however long: its rollout would pause without it
        """
        if attached:
            await self._board.until(name, lambda view: not _opens_itself(view) or not _soaks(view))
        with suppress(TimeoutError):
            await self._board.until(name, lambda view: not _opens_itself(view), SELF_OPENING_SECONDS)
            return True
        return False

    async def _refresh_state(self, name: str) -> None:
        with suppress(Unreachable):
            self._watchers[name].adopt_state(await self._ops.driver(name).state(self._board.pipeline))

    async def _await_decision(self, name: str, rollout: str) -> Status:
        """Wait until the rollout needs a decision; returns its status then.

        raises  Unreachable if the link stays lost; the error that ended the watching
        """
        watcher = self._watchers[name]

        def needs_decision(view: RegionView) -> bool:
            status = view.status
            stands = (
                status.shown in ("awaiting-confirmation", "failed")
                or not under_way(status)
                or self._steered_elsewhere(status)
            )
            return (stands and status.rollout == rollout) or watcher.fatal_error is not None

        while True:
            view = await self._reached(name, needs_decision)
            if watcher.fatal_error:
                raise watcher.fatal_error
            if self._steered_elsewhere(view.status):
                raise _taken_over(name, view.status)
            if needs_decision(view):
                return view.status

    def _steered_elsewhere(self, status: Status) -> bool:
        """Whether another console has taken over the rollout, and this one only watches."""
        return under_way(status) and status.console not in ("", self._actions.who.console)

    async def _failed(self, name: str, status: Status) -> RegionError:
        hint = status.hint or f"console retry --region {name}"
        if (self.options.on_failure or self._board[name].region.policy.on_failure) == "discard":
            await self._ops.control(name, "discard")
            reason = "as --on-failure says" if self.options.on_failure else "as its policy says"
            hint = f"what it built was discarded, {reason}"
        return RegionError(f"{name}: {status.why}", region=name, hint=hint, code="E_FAILED")

    async def _check_promoter(self, name: str, yes: bool) -> None:
        """raises  Conflict if this run should have promoted and someone else did"""
        status = self._board[name].status
        if not yes or self._actions.tried(name, "promote", status.rollout):
            return
        row = await self._promoted_row(name)
        if row is None or agent_reason(row.by) is AgentReason.POLICY:
            return
        if self._ours(row) and not self._actions.tried_elsewhere(name, "promote", status.rollout):
            return  # an earlier process of this console promoted, and died before it received the answer
        when = datetime.fromtimestamp(row.at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        raise Conflict(
            f"{name}: {row.id} was promoted by {row.by} from {row.host} at {when}",
            region=name,
            hint="console status",
            code="E_PROMOTED",
        )

    async def _promoted_row(self, name: str) -> ReleaseRow | None:
        """The row of the rollout's release, if it is live."""
        state = await self._ops.driver(name).state(self._board.pipeline)
        release = state.status.release
        return next((row for row in state.releases if row.id == release and row.state == "live"), None)

    def _ours(self, row: ReleaseRow) -> bool:
        return (row.by, row.host) == (self._actions.who.name, self._actions.who.host)


def _taken_over(name: str, status: Status) -> Conflict:
    when = datetime.fromtimestamp(status.taken_at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
    return Conflict(
        f"{name}: {status.taken_by} took {status.rollout} over at {when}",
        region=name,
        hint=f"console attach --region {name} follows it; --take-over takes it back",
        code="E_TAKEN_OVER",
    )


def _opens_itself(view: RegionView) -> bool:
    """Whether its agent promotes by itself, now or once the soak has ended."""
    at_gate = view.status.shown == "awaiting-confirmation" and view.link != "unreachable"
    if not at_gate or view.accepted is None or not view.accepted.gate.auto:
        return False
    return all(
        each.state == "passed" or (each.kind, each.state) == ("soak", "waiting") for each in view.gate.conditions
    )


def _soaks(view: RegionView) -> bool:
    """Whether its policy lets it wait longer at its gate."""
    return any((each.kind, each.state) == ("soak", "waiting") for each in view.gate.conditions)


def nothing_to_do(plan: Plan) -> bool:
    """True if the region already matches the files."""
    return not plan.changes or not plan.steps
