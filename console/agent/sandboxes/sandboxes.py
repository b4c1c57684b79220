"""The sandboxes of one pipeline in its agent: begin, build, continue by a rollout, drop."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from uuid import uuid4

from console.agent.errors import CommitGone
from console.agent.execution.executor import PlanExecutor
from console.agent.feeds.follower import FeedFollower
from console.agent.resilience.quarantine import Quarantine
from console.agent.rollout.context import RolloutContext
from console.agent.rollout.recorder import Recorder
from console.agent.sandboxes.live_rows import SandboxFeeds
from console.agent.sandboxes.store import SandboxStore, named_paths
from console.agent.spark_session import SparkHandle
from console.agent.store import housekeeping, log
from console.agent.store.ledger import Releases
from console.errors import Conflict, DataError
from console.model.created import TableSettings
from console.model.event import Accepted, Fenced, Logged, Resumed
from console.model.live import Release
from console.model.plan import Plan
from console.model.rollout_id import rollout_id
from console.model.sandbox import Sandbox, SandboxOrder, check_name
from console.model.sandbox_plan import ContinuedPlan, cannot_preview, continuable, continued, described, sandboxed
from console.model.step import Backfill
from console.paths import version_path


@dataclass(slots=True, kw_only=True)
class OpenSandbox:
    """A sandbox in this process. executor: of its build, None before the first"""

    order: SandboxOrder
    recorder: Recorder
    executor: PlanExecutor | None = None

    @property
    def plan(self) -> Plan:
        assert self.recorder.plan is not None  # stored before the sandbox's order
        return self.recorder.plan

    @property
    def running(self) -> bool:
        return self.executor is not None and self.executor.is_alive()

    def stop(self) -> None:
        if self.executor is not None:
            self.executor.stop()
            self.executor.join()
            self.executor = None


@dataclass(slots=True, kw_only=True)
class Sandboxes:
    """All sandboxes of a pipeline. The caller holds the pipeline's lock, except for `listed`.

    keep_hours    as of `RolloutContext`
    created_with  settings of the tables that are built
    feeds         of the sandboxes into which live rows flow
    """

    warehouse: Path
    pipeline: str
    spark: SparkHandle
    releases: Releases
    follower: FeedFollower
    keep_hours: float
    created_with: TableSettings
    feeds: SandboxFeeds
    store: SandboxStore = field(init=False)
    _open: dict[str, OpenSandbox] = field(default_factory=dict, init=False)
    _taken: tuple[int, frozenset[str]] = field(default=(-1, frozenset()), init=False)

    def __post_init__(self) -> None:
        self.store = SandboxStore(self.warehouse, self.pipeline)

    def resume(self) -> None:
        """Continue from where the last agent stopped: incomplete drops, and unfinished builds."""
        self.store.sweep()
        for order in self.store.orders():
            if order.name not in self._open:
                self._open[order.name] = OpenSandbox(order=order, recorder=Recorder(self.store.log(order.name)))
            if order.dropping:
                self._drop(self._open[order.name])
        self._build_all()

    def begin(self, plan: Plan, order: SandboxOrder) -> Sandbox:
        """Begin a sandbox of a plan; for one of the same name and change, extend the expiry, and retry it if it failed.

        One of that name with another change, another live release or fewer days is dropped first.

        raises  DataError E_PREVIEW, E_PREVIEW_NAME; Conflict E_STALE, E_TAKEN
        """
        check_name(order.name)
        if why := cannot_preview(plan):
            raise DataError(f"this change cannot be previewed: {why}", hint="console apply", code="E_PREVIEW")
        live = self.releases.in_state("live")
        now = live.row.id if live else ""
        if now != plan.live:
            why = f"the plan starts from {plan.live or 'no release'}, but live is {now or 'no release'}"
            raise Conflict(why, hint="console preview", code="E_STALE")
        known = self._open.get(order.name)
        if known is not None and not _fits(known, plan, order):
            self.drop(order.name)
            known = None
        sandbox = self._go_on(known, order) if known else self._new(plan, order)
        self._feed_all()
        return self._listed(sandbox)

    def _new(self, plan: Plan, order: SandboxOrder) -> OpenSandbox:
        plan_digest = plan.digest()
        built = sandboxed(plan, order.name, f"p{uuid4().hex[:8]}", self.created_with)
        steps = tuple((s.id, s.rows if isinstance(s, Backfill) else 0) for s in built.steps)
        event = Accepted(
            release=order.name, was=plan.live, plan=plan_digest, by=order.by, host=order.host, steps=steps, allowed=plan.allowed
        )  # fmt: skip
        recorder = Recorder(self.store.log(order.name))
        recorder.accept(rollout_id(f"{self.pipeline}-{order.name}", 0), built, event)
        self.store.write(order)
        sandbox = self._open[order.name] = OpenSandbox(order=order, recorder=recorder)
        self._build(sandbox)
        return sandbox

    def _go_on(self, sandbox: OpenSandbox, order: SandboxOrder) -> OpenSandbox:
        sandbox.order = replace(order, days=sandbox.order.days, at=sandbox.order.at)
        self.store.write(sandbox.order)
        if sandbox.recorder.status.held == "failed":
            sandbox.stop()
            sandbox.recorder.store(Resumed(order.by))
            self._build(sandbox)
        return sandbox

    def drop(self, name: str) -> tuple[str, ...]:
        """Drop a sandbox with the versions that only it names; returns their paths.

        raises  DataError E_NO_PREVIEW
        """
        sandbox = self._named(name)
        sandbox.order = replace(sandbox.order, dropping=True)
        self.store.write(sandbox.order)
        return self._drop(sandbox)

    def _drop(self, sandbox: OpenSandbox) -> tuple[str, ...]:
        name = sandbox.order.name
        sandbox.stop()
        self.feeds.end(name)
        paths: tuple[str, ...] = ()
        if sandbox.recorder.plan is not None:
            paths = housekeeping.own_versions(self.releases, sandbox.plan.release, frozenset(), self.store.paths())
            Quarantine(self.warehouse / "_console" / self.pipeline).forget(sandbox.recorder.rollout)
        dropped = tuple(path for path in paths if housekeeping.drop_version(self.warehouse, path))
        self.store.forget(name)
        self._open.pop(name, None)
        return dropped

    def tick(self, now: float) -> tuple[str, ...]:
        """Drop expired sandboxes, continue interrupted builds, and feed those that are ready. Returns the names of those dropped."""
        gone = tuple(name for name, sandbox in self._open.items() if sandbox.order.expires <= now)
        for name in gone:
            self.drop(name)
        self._build_all()
        self._feed_all()
        return gone

    def due(self, now: float) -> bool:
        """Whether `tick` has anything to do."""
        opened = tuple(self._open.values())
        if any(each.order.expires <= now or self._unfinished(each) for each in opened):
            return True
        return {each.order.name for each in opened if self._follows(each)} != self.feeds.fed

    def stop(self) -> None:
        """Stop all builds and feeds because the agent ends; the next one continues them."""
        for sandbox in self._open.values():
            sandbox.stop()
        self.feeds.stop()

    def listed(self) -> tuple[Sandbox, ...]:
        """The current state of all sandboxes, oldest first."""
        shown = sorted(tuple(self._open.values()), key=lambda each: (each.order.at, each.order.name))
        return tuple(self._listed(each) for each in shown if not each.order.dropping)

    def release(self, name: str) -> Release:
        """raises  DataError E_NO_PREVIEW"""
        return self._named(name).plan.release

    def opened(self) -> tuple[OpenSandbox, ...]:
        return tuple(self._open.values())

    def continued(self, plan: Plan) -> ContinuedPlan:
        """The plan of a rollout, continued from a sandbox of the same change, whose own build and feeding end here: its versions,
        with the positions of their feeds, are the rollout's from now on."""
        candidates = ((each, continuable(each.plan, plan)) for each in self._open.values() if not each.order.dropping)
        usable = [(sandbox, tables) for sandbox, tables in candidates if tables and self._tells_all(sandbox, tables)]
        if not usable:
            return ContinuedPlan(plan)
        sandbox, tables = max(usable, key=lambda each: each[0].recorder.status.rows_done)
        sandbox.stop()
        self.feeds.end(sandbox.order.name)
        steps = {s.id for s in sandbox.plan.steps if isinstance(s, Backfill) and s.target in tables}
        fences = tuple(fenced for fenced in sandbox.recorder.events(Fenced) if fenced.step in steps)
        line = Logged(f"continues from preview {sandbox.order.name}: {', '.join(tables)}")
        return ContinuedPlan(continued(sandbox.plan, plan, tables), (*fences, line))

    # -- builds

    def _build_all(self) -> None:
        for sandbox in self._open.values():
            if self._unfinished(sandbox):
                self._build(sandbox)

    def _unfinished(self, sandbox: OpenSandbox) -> bool:
        return not sandbox.running and self._shown(sandbox).state == "building" and not self.spark.lost

    def _build(self, sandbox: OpenSandbox) -> None:
        """Copy its newest days, in a thread; no effect if a rollout has taken over its versions."""
        if self._shown(sandbox).state == "adopted":
            return
        context = RolloutContext(
            warehouse=self.warehouse,
            spark=self.spark,
            releases=self.releases,
            recorder=sandbox.recorder,
            follower=self.follower,
            keep_hours=self.keep_hours,
            newest_days=sandbox.order.days,
        )
        sandbox.executor = PlanExecutor(context, _nothing)
        sandbox.executor.start()

    def _tells_all(self, sandbox: OpenSandbox, tables: Iterable[str]) -> bool:
        """Whether the tables' logs still have all commits, from which a rollout learns what was built. After weeks of live rows
        Delta cleans a log up."""
        states = filter(None, map(sandbox.plan.release.table, tables))
        paths = (version_path(self.warehouse, state.version.path) for state in states)
        try:
            return all(log.commit(path, 0).version == 0 for path in paths if log.exists(path))
        except CommitGone:
            return False

    # -- live rows

    def _feed_all(self) -> None:
        """Feed exactly the sandboxes that are to get live rows and have their history."""
        wanted = {each.order.name: each for each in self._open.values() if self._follows(each)}
        for name in self.feeds.fed - wanted.keys():
            self.feeds.end(name)
        for name in wanted.keys() - self.feeds.fed:
            self.feeds.feed(name, wanted[name].plan)

    def _follows(self, sandbox: OpenSandbox) -> bool:
        order = sandbox.order
        return order.follows and not order.dropping and not sandbox.running and self._shown(sandbox).state == "ready"

    def _listed(self, sandbox: OpenSandbox) -> Sandbox:
        return replace(self._shown(sandbox), feeding=self.feeds.state(sandbox.order.name))

    def _shown(self, sandbox: OpenSandbox) -> Sandbox:
        # every second, so that the table is read only after a change; nobody but this process makes any
        written = self.releases.written
        if written != self._taken[0]:
            self._taken = written, named_paths(self.releases)
        return described(sandbox.order, sandbox.plan, sandbox.recorder.status, self._taken[1])

    def _named(self, name: str) -> OpenSandbox:
        if name not in self._open or self._open[name].order.dropping:
            known = ", ".join(sorted(self._open)) or "none"
            raise DataError(
                f"{self.pipeline} has no preview {name!r:.60} (there is: {known})",
                hint="console preview --list",
                code="E_NO_PREVIEW",
            )
        return self._open[name]


def _fits(sandbox: OpenSandbox, plan: Plan, order: SandboxOrder) -> bool:
    """Whether the sandbox has the requested change and days."""
    same = (sandbox.plan.desired, sandbox.plan.live) == (plan.desired, plan.live)
    return same and order.days <= sandbox.order.days and not sandbox.order.dropping


def _nothing() -> None:
    """Nothing to refollow: the build of a sandbox ends before the steps that would need it."""
