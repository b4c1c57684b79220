"""A region whose agent is this process, so that one JVM runs its rollouts and what they are compared with; each part of a rollout
in processor seconds of the whole process tree.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

from console import planning, project
from console.agent.feeds import app_ids, commit
from console.agent.service import Service
from console.agent.settings import Settings
from console.agent.store import log
from console.agent.store.ledger import Releases
from console.model.codec import encode
from console.model.event import BatchDone, Entered, Recorded, StepDone, StepStarted
from console.model.live import Release, TableState
from console.model.plan import Plan, numbered
from console.model.step import Backfill, CatchUp, Step, Validate
from tests.bench import demo_rows
from tests.bench.large_project import KINDS
from tests.bench.processor_time import of_tree
from tests.faults.rules.tables import commit_rows, number

BY, HOST = "ada", "ops"
CARRIED_SECONDS = 3600.0


class Phase(Enum):
    """What a rollout spends its time on. BATCHES: with fence and slices;  OTHER: accepting, creating tables, entering the gate"""

    BATCHES = "batches"
    CATCHING_UP = "catching up"
    RECEIPTS = "receipts"
    CHECKS = "checks"
    OTHER = "other"


class RolloutCosts:
    """Processor seconds by target table and phase, from the events of a rollout: each costs what was spent since the one before."""

    def __init__(self, plan: Plan) -> None:
        self.of: defaultdict[tuple[str, Phase], float] = defaultdict(float)
        self._steps = {step.id: step for step in plan.steps}
        self._step: Step | None = None
        self._written = False  # the step's last batch is, so that what follows are its receipts
        self._last = of_tree()

    def hear(self, recorded: Recorded) -> None:
        now = of_tree()
        self.of[self._spent_on(recorded)] += now - self._last
        self._last = now
        match recorded.event:
            case StepStarted(step=name):
                self._step, self._written = self._steps[name], False
            case BatchDone(position=position, of=of):
                self._written = position == of
            case Entered():
                self._step = None
            case _:
                pass

    def _spent_on(self, recorded: Recorded) -> tuple[str, Phase]:
        ends = self._written or isinstance(recorded.event, StepDone)
        match self._step:
            case Backfill(target=target):
                return target, Phase.RECEIPTS if ends else Phase.BATCHES
            case CatchUp(target=target):
                return target, Phase.RECEIPTS if ends else Phase.CATCHING_UP
            case Validate():
                return "", Phase.CHECKS
            case _:
                return "", Phase.OTHER

    def phase(self, *phases: Phase) -> float:
        return sum(seconds for (_, phase), seconds in self.of.items() if phase in phases)

    def table(self, name: str) -> float:
        return sum(seconds for (target, _), seconds in self.of.items() if target == name)

    @property
    def total(self) -> float:
        return sum(self.of.values())


class MeasuredRegion:
    """One region with the demo's pipeline over a landing table of others."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.root, self.warehouse = root, root / "w"
        self.landing = self.warehouse / "landing"
        (self.warehouse / "_console").mkdir(parents=True)
        (root / "regions").mkdir()
        (root / "regions" / "us.yaml").write_text("name: us\nwarehouse: w\n")
        self.service = Service(self.warehouse, Settings(region="us", **settings), -1)
        self.agent = self.service.agent
        self._ended = threading.Event()

    def start(self) -> None:
        self.agent.start()
        self.controller = self.agent.controller("web")
        threading.Thread(target=self._tick, name="ticks", daemon=True).start()

    def _tick(self) -> None:
        while not self._ended.wait(1.0):
            self.agent.tick()

    def plan(self, files: Mapping[str, str]) -> Plan:
        """Of the region as it is to these files."""
        demo_rows.put(self.root, files)
        loaded = project.load(self.root)
        region = loaded.region("us")
        plan = planning.plan(loaded.pipeline("web", region), self.service.survey("web", ["landing"]), region, "bench")
        assert not plan.refusals, plan.refusals
        return plan

    def deploy(self, files: Mapping[str, str]) -> None:
        """Make a first release of these files live whose tables have no rows and whose feeds are at the end of their landing tables, as
        after a rollout of it `from now on`; before `start`.
        """
        release = numbered(self.plan(files), 1).release
        for state in release.tables:
            if not DeltaTable.is_deltatable(str(self.warehouse / state.version.path)):
                self._create(state)
        for feed in release.feeds:
            source, target = (self._path(release, name) for name in (feed.source, feed.target))
            empty = pa.schema(DeltaTable(target).schema().to_arrow()).empty_table()
            commit_rows(target, app_ids.live_id(target, feed), number(1, log.latest_version(source)), empty)
        releases = Releases(self.warehouse, "web")
        releases.propose(release, "web-1", BY, HOST)
        releases.swap("", release.id, BY, HOST)

    def _create(self, state: TableState) -> None:
        version = state.version
        DeltaTable.create(
            str(self.warehouse / version.path),
            schema=pa.schema([(column.name, KINDS[column.type]) for column in version.columns]),
            partition_by=list(version.partition_by) or None,
            configuration=dict(version.settings or ()) or None,
        )

    def _path(self, release: Release, table: str) -> str:
        state = release.table(table)
        assert state is not None
        return str(self.warehouse / state.version.path)

    def carry(self, plan: Plan) -> RolloutCosts:
        """Accept a plan and wait until it is at its gate, where every check has found what it should."""
        costs = RolloutCosts(plan)
        stop = self.controller.recorder.watch(1 << 40, costs.hear)
        self.accept(plan).join(CARRIED_SECONDS)
        stop()
        self.at_gate()
        return costs

    def accept(self, plan: Plan) -> threading.Thread:
        """Begin a rollout; returns the thread that carries it to its gate."""
        self.service.accept(encode(plan), BY, HOST)
        executor = self.controller.execution.executor
        assert executor is not None
        return executor

    def at_gate(self) -> None:
        """raises AssertionError if the rollout is not at its gate, or a check has found a difference"""
        status = self.controller.recorder.status
        assert status.shown == "awaiting-confirmation", status.why
        assert not [check for check in status.checks if check.ok is False], status.checks

    def promote(self) -> None:
        status = self.controller.recorder.status
        self.controller.promote(status.rollout, status.was, BY, HOST)

    def discard(self) -> None:
        self.service.control("web", "discard", BY, HOST)

    def built(self, table: str) -> str:
        """Path of the version of a table at the gate."""
        plan = self.controller.recorder.plan
        assert plan is not None
        return self._path(plan.release, table)

    def live(self, table: str) -> str:
        """Path of the live version of a table."""
        return self._path(self.controller.live(), table)

    # -- what it is compared with

    def bare(
        self, plan: Plan, path: Path, narrowed: Callable[[Any], Any] = lambda rows: rows, *, of: Path | None = None
    ) -> float:
        """Processor seconds of the plain `INSERT … SELECT` of a plan's first backfill into a table of its own, made here if it is not there.

        narrowed  of the source's rows, those that are taken
        of        another table in place of the landing table
        """
        step = next(step for step in plan.steps if isinstance(step, Backfill))
        target = plan.release.table(step.target)
        assert target is not None
        session = self.agent.spark.session()
        if not DeltaTable.is_deltatable(str(path)):
            commit.create(session, target, str(path), 24)
        with self.agent.spark.in_use():
            began = of_tree()
            rows = narrowed(session.read.format("delta").load(str(of or self.landing)))
            rows.createOrReplaceTempView(step.source)
            session.sql(step.sql).write.format("delta").mode("append").save(str(path))
            return of_tree() - began

    def same_rows(self, one: str, other: str, of_other: str = "true") -> None:
        """Compare number and content of the rows of two tables, by the columns of the first.

        of_other  condition on the second's rows
        raises    AssertionError if they differ
        """
        session = self.agent.spark.session()
        columns = sorted(field.name for field in DeltaTable(one).schema().fields)
        content = f"sum(CAST(xxhash64({', '.join(columns)}) AS DECIMAL(38, 0))) AS content"
        with self.agent.spark.in_use():
            found = [
                session.read.format("delta").load(path).where(condition).selectExpr("count(*) AS rows", content).first()
                for path, condition in ((one, "true"), (other, of_other))
            ]
        assert found[0] == found[1], f"{one} and {other} differ: {found}"

    def close(self) -> None:
        self._ended.set()
        self.agent.stop()
