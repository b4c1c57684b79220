"""All regions of one pipeline: what they hold, what is planned, and carrying it, wave after wave."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal
from uuid import uuid4

from console import paths
from console.drivers.protocol import Driver, QueryResult, RegionState, Verb, Who
from console.errors import AtGate, Conflict, ConsoleError, DataError, Problems, Unreachable, UsageError
from console.model.event import Promoted, RolledBack
from console.model.fleet import FleetWaves
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Region
from console.model.status import Status
from console.runner.actions import JournaledActions
from console.runner.journal import Journal
from console.runner.region_run import OnFailure, RegionRun, RunOptions, nothing_to_do
from console.runner.view import Outcome, RegionView
from console.runner.watch import Changes, RegionBoard, RegionWatcher, WitnessSearch, under_way
from console.runner.waves import Waves, may_go_on, ready, skipped, waves

HEARD_SECONDS = 30.0  # for the event of a promotion to arrive after its answer
SEEN_SECONDS = 2.0  # for what a control changed to be told to our own view
PAUSED_SECONDS = 1.0  # between two looks for the pause file
Planner = Callable[[Pipeline, Live, Region], Plan]


class Fleet:
    """Implements `runner.view.Cockpit`. Belongs to the event loop it is made in.

    drivers, pipelines  by region name; the same names
    planner      pure; runs in a thread
    parallelism  regions of one wave carried at once
    patience     seconds for which a run waits for a region whose link is lost
    without      regions that a run goes on without where they are away
    on_failure   what becomes of a failed rollout, whatever the regions' policies say; "" leaves it to them
    """

    def __init__(
        self,
        pipeline: str,
        drivers: Mapping[str, Driver],
        pipelines: Mapping[str, Pipeline],
        planner: Planner,
        journal: Journal,
        who: Who,
        *,
        parallelism: int = 8,
        patience: float = 600.0,
        without: Collection[str] = (),
        on_failure: OnFailure | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.pipeline = pipeline
        self.who = who
        self._drivers = dict(drivers)
        self._pipelines = dict(pipelines)
        self._planner = planner
        self._journal = journal
        self._parallelism = parallelism
        self._desk = JournaledActions(journal, pipeline, who)
        regions = {name: driver.region for name, driver in drivers.items()}
        self._board = RegionBoard(pipeline, (regions[name] for wave in waves(regions.values()) for name in wave))
        self._followers = {
            name: RegionWatcher(driver, self._board, journal, sleep=sleep, decided=self._decided)
            for name, driver in self._drivers.items()
        }
        self._sleep = sleep
        manner = RunOptions(patience, frozenset(without), on_failure)
        self._carrier = RegionRun(self, self._board, self._followers, self._desk, manner, sleep=sleep)
        self._proofs = WitnessSearch(self._board)
        self._errors: dict[str, ConsoleError] = {}
        self._going: Counter[str] = Counter()  # regions of the runs that are under way here
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def views(self) -> Mapping[str, RegionView]:
        return self._board.views

    def changes(self) -> Changes:
        return self._board.changes()

    def driver(self, region: str) -> Driver:
        """raises  UsageError for a region that is not of this fleet"""
        if region not in self._drivers:
            known = ", ".join(self.views)
            raise UsageError(f"there is no region {region!r:.80}", hint=f"one of {known}")
        return self._drivers[region]

    # -- looking

    async def refresh(self, regions: Sequence[str] = ()) -> None:
        await asyncio.gather(*(self._refresh(name) for name in self._named(regions)))

    async def _refresh(self, name: str, again: int = 3) -> None:
        if self._board[name].link == "idle":
            self._board.set(name, link="connecting")
        try:
            live = await self._ask(name)
            plan = await asyncio.to_thread(self._planner, self._pipelines[name], live, self._board[name].region)
        except ConsoleError as error:
            self._errors[name] = error
            link = "unreachable" if error.exit_code == 5 else self._board[name].link
            why = str(error)
            self._board.set(name, plan=None, problem=why, link=link, link_why=why if link == "unreachable" else "")
        else:
            self._errors.pop(name, None)
            self._board.set(name, plan=plan, problem="", witness=self._proofs.beside(name, plan, live))
            if again and plan.live != self._board[name].live:  # which changed meanwhile
                await self._refresh(name, again - 1)
        if self._board[name].link == "connecting":
            self._board.set(name, link="idle")

    async def _ask(self, name: str) -> Live:
        driver, asked = self._drivers[name], (self.pipeline, _landing(self._pipelines[name]))
        both = driver.survey(*asked), driver.state(self.pipeline)
        live, state = await asyncio.gather(*both, return_exceptions=True)
        if isinstance(state, RegionState):
            self._followers[name].meet(state)
            self._followers[name].start()
        if isinstance(live, BaseException):
            raise live
        if isinstance(state, BaseException):
            raise state
        return live

    async def witness(self, region: str) -> None:
        await self._proofs.seek(self.driver(region).region, self.pending(region))

    def _decided(self, name: str) -> None:
        """What is live has changed there: so has the plan."""
        self._spawn(self._refresh(name), f"refresh {name}")

    # -- carrying

    async def run(
        self, regions: Sequence[str] = (), *, yes: bool = False, attached: bool = False
    ) -> tuple[Outcome, ...]:
        names = self._named(regions)
        order = waves(self._board[name].region for name in names)
        away = sorted(self._carrier.manner.without)
        await self._desk.note_fleet(order, {"yes": yes, "attached": attached, **({"without": away} if away else {})})
        reviewed = tuple((name, self._desired(name)) for name in names)
        return await self._waves(order, FleetWaves(uuid4().hex[:12], order, reviewed, attached), yes)

    async def _waves(self, order: Waves, fleet: FleetWaves, yes: bool) -> tuple[Outcome, ...]:
        names = [name for wave in order for name in wave]
        self._going.update(names)
        try:
            return await self._one_by_one(order, fleet, yes)
        finally:
            self._going.subtract(names)

    async def _one_by_one(self, order: Waves, fleet: FleetWaves, yes: bool) -> tuple[Outcome, ...]:
        outcomes: tuple[Outcome, ...] = ()
        slots = asyncio.Semaphore(self._parallelism)

        async def one(name: str) -> Outcome:
            async with slots:
                await self._unpaused(name)
                return await self._carrier.carry(name, fleet, yes=yes)

        for index, wave in enumerate(order):
            told = await asyncio.gather(*(one(name) for name in wave))
            outcomes += tuple(told)
            if not may_go_on([self._since(outcome) for outcome in told]):
                return outcomes + skipped(order[index + 1 :])
        return outcomes

    def _since(self, outcome: Outcome) -> Outcome:
        """An outcome as it is by now: a person may have opened the gate while others of its wave were still on their way."""
        opened = isinstance(outcome.error, AtGate) and self._board[outcome.region].status.state == "live"
        return Outcome(outcome.region, "live") if opened else outcome

    async def _unpaused(self, name: str) -> None:
        """Return once this machine's pause file is gone; no region begins meanwhile."""
        while (why := paths.paused(paths.pause_file())) is not None:
            self._board.set(name, note=f"waits: all regions are paused by {paths.pause_file()}{why and f': {why}'}")
            await self._sleep(PAUSED_SECONDS)
        if self._board[name].note.startswith("waits:"):
            self._board.set(name, note="")

    async def start(self, region: str) -> None:
        await self.hand_over(region)

    async def hand_over(self, region: str, fleet: FleetWaves | None = None) -> str:
        """Give the region its pending plan, with the waves that it is part of; returns the rollout's id, `web-7`.

        raises  Problems with the plan's refusals, UsageError if nothing is to do; Conflict as `Driver.accept`
        """
        driver, plan = self.driver(region), self.pending(region)
        if plan.refusals:
            raise Problems.of(plan.refusals)
        if nothing_to_do(plan):
            raise UsageError(f"{region}: nothing to start, it is what the files say", hint="console plan")
        body = {"plan": plan.digest(), "desired": plan.desired, "live": plan.live}
        attached, later = fleet is not None and fleet.attached, fleet if fleet and len(fleet.waves) > 1 else None
        try:
            rollout = await self._desk.act(
                region, "accept", body, lambda: driver.accept(plan, self.who, attached=attached, fleet=later)
            )
        except Conflict as error:
            rollout = await self._joined(region, plan, error)
        with suppress(Unreachable):  # it is accepted all the same; the follower goes on asking
            self._followers[region].meet(await driver.state(self.pipeline))
        self._followers[region].start()
        return rollout

    async def _joined(self, region: str, plan: Plan, error: Conflict) -> str:
        """The rollout that another console began for the same change; estimates in its plan may differ from ours."""
        state = await self._drivers[region].state(self.pipeline)
        self._followers[region].meet(state)
        if under_way(state.status) and await self.carries(region, plan):
            return state.status.rollout
        raise error

    def pending(self, region: str) -> Plan:
        """The plan that would run.

        raises  what kept the region from being surveyed or planned
        """
        if error := self._errors.get(region):
            raise error
        plan = self._board[region].plan
        if plan is None:
            raise DataError(f"{region}: not planned yet", hint="console plan")
        return plan

    def _desired(self, region: str) -> str:
        """Digest of the region's pipeline as the files say."""
        plan = self._board[region].plan
        return plan.desired if plan else self._pipelines[region].digest()

    async def carries(self, region: str, plan: Plan) -> bool:
        """True if the plan that the region carries makes the same change from the same release."""
        accepted = await self._followers[region].accepted()
        return accepted is not None and (accepted.desired, accepted.live) == (plan.desired, plan.live)

    # -- steering

    async def control(self, region: str, verb: Verb) -> Status:
        driver = self.driver(region)
        rollout = self._board[region].status.rollout
        status = await self._desk.act(
            region, verb, {"rollout": rollout}, lambda: driver.control(self.pipeline, verb, self.who)
        )
        self._followers[region].start()
        with suppress(TimeoutError):  # a run that begins now must not meet the status from before the deed
            await self._board.until(
                region,
                lambda view: view.status.seq >= status.seq or view.status.rollout != status.rollout,
                SEEN_SECONDS,
            )
        return status

    async def promote(self, region: str) -> Promoted:
        driver, status = self.driver(region), self._board[region].status
        if not under_way(status) and status.state != "live":
            raise Conflict(f"{region}: nothing waits at its gate: {status.shown}", hint="console status")
        body = {"rollout": status.rollout, "live": status.was}
        promoted = await self._desk.act(
            region,
            "promote",
            body,
            lambda: driver.promote(self.pipeline, status.rollout, status.was, self.who),
        )
        await self._heard(region, promoted.release)
        self._go_on(region)
        return promoted

    async def rollback(self, region: str) -> RolledBack:
        driver, live, previous = self.driver(region), self._board[region].live, self._board[region].previous
        rolled = await self._desk.roll_back(driver, region, live, previous)
        await self._heard(region, rolled.release)
        return rolled

    async def _heard(self, region: str, release: str) -> None:
        """Wait until the view knows what is live now, so that the next act starts from it."""
        self._followers[region].start()
        with suppress(TimeoutError):
            await self._board.until(region, lambda view: view.live == release, HEARD_SECONDS)

    async def cleanup(self, region: str, *, dry_run: bool = False, previous: bool = False) -> tuple[str, ...]:
        driver = self.driver(region)
        if dry_run:
            return await driver.cleanup(self.pipeline, self.who, dry_run=True, previous=previous)
        return await self._desk.act(
            region,
            "cleanup",
            {"previous": previous},
            lambda: driver.cleanup(self.pipeline, self.who, dry_run=False, previous=previous),
        )

    async def query(
        self, region: str, sql: str, tables: Sequence[str], args: Mapping[str, tuple[str, str]], limit: int
    ) -> QueryResult:
        return await self.driver(region).query(self.pipeline, sql, tables, args, limit)

    async def trigger(self, region: str, kind: Literal["copy", "sink"], name: str) -> dict[str, Any]:
        driver = self.driver(region)
        return await self._desk.act(
            region, kind, {"name": name}, lambda: driver.run(self.pipeline, kind, name, self.who)
        )

    def _go_on(self, promoted: str) -> None:
        """After a promotion by hand: the waves whose turn it is now begin, whichever console began the rollout."""
        fleet = self._board[promoted].status.fleet
        wanted = {name: self._desired(name) for name in self.views}
        if fleet and (rest := ready(self.views, wanted, fleet, self._going)):
            self._spawn(self._later_waves(rest, fleet), "waves")

    async def _later_waves(self, rest: Waves, fleet: FleetWaves) -> None:
        try:
            outcomes = await self._waves(rest, fleet, False)
        except ConsoleError as error:
            outcomes = tuple(Outcome(name, "skipped", error) for name in rest[0])
        for outcome in outcomes:
            if outcome.error and outcome.error.exit_code != 3:
                self._board.set(outcome.region, note=str(outcome.error))

    async def close(self) -> None:
        self._proofs.stop()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(follower.stop() for follower in self._followers.values()))
        self._board.close()
        for driver in self._drivers.values():
            with suppress(ConsoleError):
                await driver.close()
        await asyncio.to_thread(self._journal.close)

    def _named(self, regions: Sequence[str]) -> tuple[str, ...]:
        for name in regions:
            self.driver(name)
        return tuple(name for name in self.views if not regions or name in regions)

    def _spawn(self, work: Any, name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _landing(pipeline: Pipeline) -> tuple[str, ...]:
    return tuple(table.name for table in pipeline.tables if table.kind == "landing")
