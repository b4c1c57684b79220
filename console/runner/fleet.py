"""All regions of one pipeline: their state, their pending plans, and running those plans wave by wave."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal
from uuid import uuid4

from console.drivers.protocol import Driver, QueryResult, RegionState, Who
from console.errors import Conflict, ConsoleError, DataError, Problems, Unreachable, UsageError
from console.model.codec import encode
from console.model.compared import DayExamples
from console.model.consent import Declaration
from console.model.event import Promoted, Recorded, RolledBack
from console.model.fleet import FleetWaves
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.receipt import AuditProgress, Finding, Past
from console.model.region import Region
from console.model.status import Status, Verb
from console.model.tuning import Tuning
from console.runner.actions import JournaledActions
from console.runner.flips import Flips
from console.runner.journal import Journal
from console.runner.recall import Recall
from console.runner.recording.writer import RecordingWriter
from console.runner.region_planner import compiled
from console.runner.region_run import OnFailure, RegionRun, RunOptions, nothing_to_do
from console.runner.together.barrier import Barrier, Declared
from console.runner.together.fleet_decisions import Promotions
from console.runner.view import Outcome, RegionView
from console.runner.watch import Changes, RegionBoard, RegionWatcher, WitnessSearch, under_way
from console.runner.wave_run import WaveRun
from console.runner.waves import in_waves, waves

CONTROL_SEEN_SECONDS = 2.0  # wait for a control's effect to reach our own view
Planner = Callable[[Pipeline, Live, Region], Plan]


class Fleet:
    """Implements `runner.view.Cockpit`. Belongs to the event loop in which it is created.

    drivers, pipelines  by region name; the same names
    planner      pure; runs in a thread
    parallelism  regions of one wave that run at the same time
    reconnect_seconds  how long a run waits for a region whose link is lost
    without      regions that a run may leave out if they are unreachable
    remember     show in the views what the regions stored before this console watched them
    on_failure   keep or discard a failed rollout, overriding the regions' policies; None leaves it to them
    runs_on      starts the waves that a promotion made due: by this console, or by an agent, as its region's policy says
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
        reconnect_seconds: float = 600.0,
        without: Collection[str] = (),
        on_failure: OnFailure | None = None,
        remember: bool = False,
        runs_on: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.pipeline = pipeline
        self.who = who
        self._drivers = dict(drivers)
        self._pipelines = dict(pipelines)
        self._planner = planner
        self._journal = journal
        self._actions = JournaledActions(journal, pipeline, who)
        self._watching = replace(who, console=who.console or uuid4().hex)
        self._board = RegionBoard(
            pipeline, in_waves(driver.region for driver in drivers.values()), self._watching.console
        )
        self._watchers = {name: self._watcher(driver, sleep) for name, driver in self._drivers.items()}
        self._without = frozenset(without)
        options = RunOptions(reconnect_seconds, self._without, on_failure)
        region_run = RegionRun(self, self._board, self._watchers, self._actions, options, sleep=sleep)
        self._wave_run = WaveRun(self._board, region_run, parallelism=parallelism, sleep=sleep)
        around = self._board, self._drivers, self._watchers, self._actions
        barrier = Barrier(*around, desired=self._desired, declare=self.declare, sleep=sleep)
        self._promotions = Promotions(barrier, self._wave_run if runs_on else None, self._spawn)
        self._witness_search = WitnessSearch(self._board)
        self._errors, self._unplanned = dict[str, ConsoleError](), set[str]()  # unplanned: attached to, never planned
        self._tasks: set[asyncio.Task[Any]] = set()
        self._recall = Recall(self._board, self._drivers, parallelism) if remember else None

    def _watcher(self, driver: Driver, sleep: Callable[[float], Awaitable[None]]) -> RegionWatcher:
        return RegionWatcher(
            driver,
            self._board,
            self._journal,
            who=self._watching,
            sleep=sleep,
            on_live_changed=self._on_live_changed,
            on_missed=self._on_missed,
            clock=self.now,
        )

    @property
    def views(self) -> Mapping[str, RegionView]:
        return self._board.views

    def changes(self) -> Changes:
        return self._board.changes()

    @property
    def player(self) -> None:
        return None

    def now(self) -> float:
        return time.time()

    def record(self, writer: RecordingWriter) -> None:
        """Record all changes of the views; raises as `RecordingWriter.open`."""
        writer.open(self.pipeline, [view.region for view in self.views.values()])
        self._board.observe(writer)

    def driver(self, region: str) -> Driver:
        """raises  UsageError for a region that is not of this fleet"""
        if region not in self._drivers:
            known = ", ".join(self.views)
            raise UsageError(f"there is no region {region!r:.80}", hint=f"one of {known}")
        return self._drivers[region]

    # -- survey and plan

    async def refresh(self, regions: Sequence[str] = ()) -> None:
        await asyncio.gather(*(self._refresh(name) for name in self._named(regions)))

    async def attach(self, regions: Sequence[str] = ()) -> None:
        """As `refresh`, for actions that need no plan: the regions are neither surveyed nor planned, now or after a promotion."""
        await asyncio.gather(*(self._attach(name) for name in self._named(regions)))

    async def _attach(self, name: str) -> None:
        if self._board[name].plan is None:
            self._unplanned.add(name)
        try:
            self._watch(name, await self._drivers[name].state(self.pipeline))
        except ConsoleError as error:
            self._missed(name, error)

    async def _refresh(self, name: str, again: int = 3) -> None:
        self._unplanned.discard(name)
        if self._board[name].link == "idle":
            self._board.set(name, link="connecting")
        try:
            live = await self._ask(name)
            plan = await asyncio.to_thread(self._planner, self._pipelines[name], live, self._board[name].region)
        except ConsoleError as error:
            self._missed(name, error)
        else:
            self._errors.pop(name, None)
            self._board.set(name, plan=plan, problem="", witness=self._witness_search.beside(name, plan, live))
            if again and plan.live != self._board[name].live:  # promoted during planning
                await self._refresh(name, again - 1)
        if self._board[name].link == "connecting":
            self._board.set(name, link="idle")

    def _missed(self, name: str, error: ConsoleError) -> None:
        self._errors[name] = error
        why = str(error).removeprefix(f"{name}: ")  # every face writes the region's name before it
        link = "unreachable" if isinstance(error, Unreachable) else self._board[name].link
        self._board.set(name, plan=None, problem=why, link=link, link_why=why if link == "unreachable" else "")

    async def _ask(self, name: str) -> Live:
        driver, asked = self._drivers[name], (self.pipeline, _landing(self._pipelines[name]))
        both = driver.survey(*asked), driver.state(self.pipeline)
        live, state = await asyncio.gather(*both, return_exceptions=True)
        if isinstance(state, RegionState):
            self._watch(name, state)
        if isinstance(live, BaseException):
            raise live
        if isinstance(state, BaseException):
            raise state
        return live

    def _watch(self, name: str, state: RegionState) -> None:
        self._watchers[name].adopt_state(state)
        self._watchers[name].start()
        if self._recall:
            self._spawn(self._recall.samples(name), f"samples of {name}")

    async def witness(self, region: str) -> None:
        await self._witness_search.seek(self.driver(region).region, self.pending(region))

    async def recorded(self, region: str) -> tuple[Recorded, ...]:
        rollout = self._board[region].status.rollout
        return (await self.history(region, rollout)).events if rollout else ()

    async def history(self, region: str, rollout: str = "") -> Past:
        return await self.driver(region).history(self.pipeline, rollout)

    async def examples(self, region: str, table: str, day: str) -> DayExamples:
        return await self.driver(region).examples(self.pipeline, table, day)

    async def verify(self, region: str, rollout: str, tell: Callable[[AuditProgress], None]) -> tuple[Finding, ...]:
        return await self.driver(region).verify(self.pipeline, rollout, tell)

    def _on_live_changed(self, name: str) -> None:
        """Plan the region again: its live release has changed."""
        if name not in self._unplanned:
            self._spawn(self._refresh(name), f"refresh {name}")
        self._promotions.promoted_itself(name)

    def _on_missed(self, name: str) -> None:
        if self._recall:
            self._spawn(self._recall.events(name), f"past of {name}")

    # -- run

    async def run(
        self, regions: Sequence[str] = (), *, yes: bool = False, attached: bool = False
    ) -> tuple[Outcome, ...]:
        names = self._named(regions)
        order = waves(self._board[name].region for name in names)
        away = sorted(self._without)
        await self._actions.note_fleet(order, {"yes": yes, "attached": attached, **({"without": away} if away else {})})
        reviewed = tuple((name, self._desired(name)) for name in names)
        return await self._wave_run.run(order, FleetWaves(uuid4().hex[:12], order, reviewed, attached), yes)

    async def start(self, region: str) -> None:
        await self.submit(region)

    async def submit(self, region: str, fleet: FleetWaves | None = None) -> str:
        """Submit the region's pending plan, with the waves that it is part of; returns the rollout's id, `web-7`.

        raises  Problems with the plan's refusals, UsageError if there is nothing to do; Conflict as `Driver.accept`
        """
        driver, plan = self.driver(region), self.pending(region)
        if plan.refusals:
            raise Problems.of(plan.refusals)
        if nothing_to_do(plan):
            raise UsageError(
                f"{region}: nothing to start: it has what the files declare", region=region, hint="console plan"
            )
        body = {"plan": plan.digest(), "desired": plan.desired, "live": plan.live}
        attached, later = fleet is not None and fleet.attached, fleet if fleet and len(fleet.waves) > 1 else None
        try:
            rollout = await self._actions.perform(
                region, "accept", body, lambda: driver.accept(plan, self.who, attached=attached, fleet=later)
            )
        except Conflict as error:
            rollout = await self._join(region, plan, error)
        with suppress(Unreachable):  # the plan is accepted nevertheless; the watcher keeps trying
            self._watchers[region].adopt_state(await driver.state(self.pipeline))
        self._watchers[region].start()
        return rollout

    async def _join(self, region: str, plan: Plan, error: Conflict) -> str:
        """Join the rollout that another console began for the same change; its plan's estimates may differ from ours."""
        state = await self._drivers[region].state(self.pipeline)
        self._watchers[region].adopt_state(state)
        if under_way(state.status) and await self.carries_same_change(region, plan):
            return state.status.rollout
        raise error

    def pending(self, region: str) -> Plan:
        """The pending plan.

        raises  the error that kept the region from being surveyed or planned
        """
        if error := self._errors.get(region):
            raise error
        plan = self._board[region].plan
        if plan is None:
            raise DataError(f"{region}: not planned yet", region=region, hint="console plan")
        return plan

    def _desired(self, region: str) -> str:
        """Digest of the region's pipeline according to the files."""
        plan = self._board[region].plan
        return plan.desired if plan else self._pipelines[region].digest()

    async def carries_same_change(self, region: str, plan: Plan) -> bool:
        """True if the plan under way in the region makes the same change from the same release."""
        accepted = await self._watchers[region].accepted()
        return accepted is not None and (accepted.desired, accepted.live) == (plan.desired, plan.live)

    # -- control

    async def control(self, region: str, verb: Verb) -> Status:
        driver = self.driver(region)
        rollout = self._board[region].status.rollout
        status = await self._actions.perform(
            region, verb, {"rollout": rollout}, lambda: driver.control(self.pipeline, verb, self.who)
        )
        await self._until_seen(region, status)
        return status

    async def _until_seen(self, region: str, status: Status) -> None:
        """Wait until the view shows this status: a run that begins now must not see an older one."""
        self._watchers[region].start()
        with suppress(TimeoutError):
            await self._board.until(
                region,
                lambda view: view.status.seq >= status.seq or view.status.rollout != status.rollout,
                CONTROL_SEEN_SECONDS,
            )

    async def tune(self, region: str, change: Tuning, *, reset: bool = False) -> Status:
        driver, body = self.driver(region), {"rollout": self._board[region].status.rollout, "reset": reset}
        if change.hours:
            change = replace(change, zone=driver.region.zone)
        if change.query:
            live = await driver.survey(self.pipeline, _landing(self._pipelines[region]))
            change = await asyncio.to_thread(compiled, change, live)
        return await self._actions.perform(
            region,
            "tune",
            {**body, "tuning": encode(change)},
            lambda: driver.tune(self.pipeline, change, self.who, reset=reset),
        )

    async def note(self, region: str, text: str) -> Status:
        driver = self.driver(region)
        return await self._actions.perform(
            region, "note", {"text": text}, lambda: driver.note(self.pipeline, text, self.who)
        )

    async def declare(self, region: str, declared: Declaration) -> Status:
        driver, rollout = self.driver(region), self._board[region].status.rollout
        body = {"rollout": rollout, "declared": encode(declared)}
        status = await self._actions.perform(
            region, "declare", body, lambda: driver.declare(self.pipeline, rollout, declared, self.who)
        )
        await self._until_seen(region, status)
        return status

    async def promote(self, region: str) -> Promoted:
        self.driver(region)
        return await self._promotions.promote(region)

    async def promote_together(self, confirmed: Mapping[str, str], declared: Declared) -> Flips:
        for region in confirmed:
            self.driver(region)
        return await self._promotions.promote_together(confirmed, declared)

    async def rollback(self, region: str, to: str = "") -> RolledBack:
        self.driver(region)
        return await self._promotions.rollback(region, to)

    async def cleanup(
        self,
        region: str,
        *,
        dry_run: bool = False,
        previous: bool = False,
        let_go: Sequence[str] = (),
        hold: float = 0.0,
    ) -> tuple[str, ...]:
        driver = self.driver(region)
        clean = partial(driver.cleanup, self.pipeline, self.who, previous=previous, let_go=let_go, hold=hold)
        if dry_run:
            return await clean(dry_run=True)
        intent = {"previous": previous, **({"let_go": [*let_go]} if let_go else {}), **({"hold": hold} if hold else {})}
        return await self._actions.perform(region, "cleanup", intent, clean)

    async def restore(self, region: str) -> str:
        """Make the release on hold the previous one again (`Driver.restore`)."""
        return await self._actions.perform(
            region, "restore", {}, partial(self.driver(region).restore, self.pipeline, self.who)
        )

    async def query(
        self, region: str, sql: str, tables: Sequence[str], args: Mapping[str, tuple[str, str]], limit: int
    ) -> QueryResult:
        return await self.driver(region).query(self.pipeline, sql, tables, args, limit)

    async def trigger(self, region: str, kind: Literal["copy", "sink"], name: str) -> dict[str, Any]:
        driver = self.driver(region)
        return await self._actions.perform(
            region, kind, {"name": name}, lambda: driver.run(self.pipeline, kind, name, self.who)
        )

    async def close(self) -> None:
        self._witness_search.stop()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(watcher.stop() for watcher in self._watchers.values()))
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
