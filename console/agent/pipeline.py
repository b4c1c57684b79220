"""The controller of one pipeline: its releases, its rollout, and every operation that changes them, one at a time."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from console import paths
from console.agent.agent_log import write_log
from console.agent.cleanup.due_holds import DueHolds
from console.agent.cleanup.stages import Cleanup
from console.agent.execution.control import RolloutControl
from console.agent.execution.execution import Execution
from console.agent.execution.executor import SPARE_HOURS
from console.agent.feeds.follower import FeedFollower
from console.agent.relay.intake_gate import IntakeGate
from console.agent.rollout.acceptance import Acceptance
from console.agent.rollout.followed_feeds import FollowedFeeds
from console.agent.rollout.ownership import in_progress
from console.agent.rollout.promotion import Promotion
from console.agent.rollout.recorder import Recorder
from console.agent.rollout.recover import record_missing_decision
from console.agent.rollout.retune import retune
from console.agent.rollout.self_opening import SelfOpeningGate
from console.agent.rollout.watchdog import Watchdog, is_attached
from console.agent.rows.release_files import ReleaseFiles
from console.agent.sandboxes.live_rows import SandboxFeeds
from console.agent.sandboxes.sandboxes import Sandboxes
from console.agent.second_spark.process import SecondSpark
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store.ledger import Releases, Rollouts
from console.errors import RegionError
from console.model.created import table_settings
from console.model.event import Promoted, RolledBack
from console.model.fleet import FleetWaves
from console.model.live import Release
from console.model.plan import Plan
from console.model.sandbox import Sandbox, SandboxOrder
from console.model.sandbox_plan import ContinuedPlan
from console.model.status import Status, Verb
from console.model.tuning import Tuning
from console.text import redacted

HALT_SECONDS = 0.2  # between two looks whether a drop holds the lock


class PipelineController:
    """Serialises everything that changes a pipeline's releases or its rollout."""

    def __init__(
        self,
        warehouse: Path,
        pipeline: str,
        spark: SparkHandle,
        follower: FeedFollower,
        settings: Settings,
        last_seen: float = 0.0,
        *,
        second_spark: Callable[[], SecondSpark] | None = None,
    ) -> None:
        """
        last_seen     when an agent was last known to run in this region, seconds since 1970; 0 to use the rollout's events
        second_spark  as of `RolloutContext`
        """
        self.warehouse, self.pipeline = warehouse, pipeline
        self._spark = spark
        self._lock = threading.RLock()
        self.releases = Releases(warehouse, pipeline)
        self.rollouts = Rollouts(warehouse, pipeline)
        self.recorder = Recorder(self.rollouts, last_seen)
        self.watchdog = Watchdog(settings.keep_failed_hours)
        self.self_opening = SelfOpeningGate()
        self.intake = IntakeGate()
        self.kept_files = ReleaseFiles(self.path)
        self.feeds = FollowedFeeds(
            pipeline=pipeline, releases=self.releases, recorder=self.recorder, follower=follower, resolve=self.path
        )
        self.execution = self._executing(settings.rollback_window_hours, second_spark)
        self.acceptance = Acceptance(
            pipeline=pipeline,
            releases=self.releases,
            rollouts=self.rollouts,
            recorder=self.recorder,
            resolve=self.path,
            created_with=table_settings(settings.rollback_window_hours + SPARE_HOURS),
            continued=self._continued,
        )
        self.sandboxes = self._sandboxes(settings)
        self._promotion = self._promoting(spark, follower)
        self.cleaning = self._cleanup()
        self.due_holds = DueHolds()

    def _executing(self, keep_hours: float, second_spark: Callable[[], SecondSpark] | None) -> Execution:
        return Execution(
            warehouse=self.warehouse,
            spark=self._spark,
            feeds=self.feeds,
            keep_hours=keep_hours,
            second_spark=second_spark,
        )

    def _promoting(self, spark: SparkHandle, follower: FeedFollower) -> Promotion:
        return Promotion(
            pipeline=self.pipeline,
            releases=self.releases,
            rollouts=self.rollouts,
            recorder=self.recorder,
            spark=spark,
            follower=follower,
            resolve=self.path,
            refollow=self.feeds.refollow,
            intake=self.intake,
            kept_files=self.kept_files,
        )

    def _sandboxes(self, settings: Settings) -> Sandboxes:
        feeds = SandboxFeeds(
            spark=self._spark,
            tick_seconds=settings.tick_seconds,
            pace=settings.follow,
            releases=self.releases,
            resolve=self.path,
            report=self._report,
        )
        return Sandboxes(
            warehouse=self.warehouse,
            pipeline=self.pipeline,
            spark=self._spark,
            releases=self.releases,
            follower=self.feeds.follower,
            keep_hours=settings.rollback_window_hours,
            created_with=self.acceptance.created_with,
            feeds=feeds,
        )

    def _report(self, level: str, text: str) -> None:
        """Write to the log and to the watchers. Never raises: logging must not stop a feed."""
        text = redacted(text)
        write_log(self.pipeline, level, text)
        with suppress(Exception):
            self.recorder.log(text, level)

    def _cleanup(self) -> Cleanup:
        return Cleanup(
            warehouse=self.warehouse,
            pipeline=self.pipeline,
            releases=self.releases,
            recorder=self.recorder,
            feeds=self.feeds,
            sandboxes=self.sandboxes.store,
        )

    def _continued(self, plan: Plan) -> ContinuedPlan:
        return self.sandboxes.continued(plan)

    @property
    def spark(self) -> SparkHandle:
        return self._spark

    @property
    def lock(self) -> threading.RLock:
        """Lock held for one operation on the pipeline."""
        return self._lock

    def path(self, version_path: str) -> str:
        """The absolute path of a version."""
        return paths.version_path(self.warehouse, version_path)

    def live(self) -> Release:
        """raises RegionError if no release is live yet"""
        stored = self.releases.in_state("live")
        if stored is None:
            raise RegionError(f"{self.pipeline}: no release is live here yet", hint="console apply")
        return stored.release

    def readable(self, name: str = "") -> Release:
        """The live release, or a sandbox's by its name.

        raises  RegionError if no release is live yet; DataError E_NO_PREVIEW
        """
        return self.sandboxes.release(name) if name else self.live()

    # -- the agent's own calls

    def resume(self) -> None:
        """Continue from where the last agent stopped: its feeds, a decision that it could not record, its plan."""
        with self._lock:
            self.feeds.refollow()
            if record_missing_decision(self.recorder, self.releases, self.rollouts):
                self.feeds.refollow()
            self.watchdog.attached = is_attached(self.recorder.progress())
            if in_progress(self.recorder.status) and not self.recorder.status.held:
                self.execution.start()
            self.sandboxes.resume()
            self.cleaning.resume()

    def tick(self) -> None:
        """Once a second: restart an executor that a full disk ended, drop sandboxes that have expired and releases whose
        hold is over, let the watchdog look, and open a gate that opens by itself.
        """
        running = self.execution.running
        status = self.recorder.status
        idle = in_progress(status) and status.state != "awaiting-confirmation" and not status.held and not running
        if idle and not self._spark.lost and self._lock.acquire(blocking=False):
            try:
                self.resume()
            finally:
                self._lock.release()
        now = time.time()
        if self.sandboxes.due(now) and self._lock.acquire(blocking=False):
            try:
                for name in self.sandboxes.tick(now):
                    self.recorder.log(f"preview {name} has expired and is dropped")
            finally:
                self._lock.release()
        self.due_holds.tick(self)
        self.watchdog.tick(self, running)
        self.self_opening.tick(self)

    def halt(self) -> None:
        """Stop the executor because the agent ends; the rollout's state does not change."""
        self.due_holds.end()
        locked = False
        # a drop may last for many minutes, and the next agent continues it
        while not self.due_holds.dropping and not (locked := self._lock.acquire(timeout=HALT_SECONDS)):
            pass
        try:
            self.execution.stop()
            self.sandboxes.stop()
        finally:
            if locked:
                self._lock.release()

    # -- an operator's calls

    def accept(self, plan: Plan, by: str, host: str, attached: bool = False, fleet: FleetWaves | None = None) -> str:
        """Store a plan and begin its rollout; for a plan whose rollout is in progress, only return that rollout.

        attached  pause when no console watches
        fleet     the waves of the fleet that the rollout belongs to
        returns   the rollout's id, `<pipeline>-<number>`
        raises    Conflict E_UNDER_WAY during another rollout, E_STALE if the plan starts from another release
        """
        with self._lock:
            if repeated := self.acceptance.repeated(plan):
                return repeated
            rollout = self.acceptance.begin(plan, by=by, host=host, attached=attached, fleet=fleet)
            self.watchdog.attached = attached
            self.execution.start()
            return rollout

    def control(self, verb: Verb, by: str) -> Status:
        """pause, resume, retry, cancel or discard the rollout (`execution.control.RolloutControl.apply`)."""
        with self._lock:
            return RolloutControl(
                warehouse=self.warehouse,
                pipeline=self.pipeline,
                releases=self.releases,
                recorder=self.recorder,
                execution=self.execution,
                feeds=self.feeds,
                spared=self.sandboxes.store.paths(),
            ).apply(verb, by)

    def tune(self, change: Tuning, by: str, host: str, *, reset: bool = False) -> Status:
        """Change limits of the rollout from its next batch on (`rollout.retune.retune`)."""
        with self._lock:
            return retune(self.recorder, self.live, change, pipeline=self.pipeline, by=by, host=host, reset=reset)

    def promote(self, rollout: str, live: str, by: str, host: str) -> Promoted:
        """Open the gate of a rollout (`rollout.promotion.Promotion.promote`)."""
        with self._lock:
            return self._promotion.promote(rollout, live, by, host)

    def rollback(self, live: str, by: str, host: str) -> RolledBack:
        """Make the previous release live again (`rollout.promotion.Promotion.rollback`)."""
        with self._lock:
            return self._promotion.rollback(live, by, host)

    def preview(self, plan: Plan, order: SandboxOrder) -> Sandbox:
        """Build a sandbox of a plan (`sandboxes.Sandboxes.begin`)."""
        with self._lock:
            return self.sandboxes.begin(plan, order)

    def drop_preview(self, name: str) -> tuple[str, ...]:
        """Drop a sandbox (`sandboxes.Sandboxes.drop`); returns the paths of its versions."""
        with self._lock:
            return self.sandboxes.drop(name)

    def cleanup(self, by: str, *, dry_run: bool, previous: bool, let_go: Sequence[str] = ()) -> tuple[str, ...]:
        """Delete versions that no kept release names (`cleanup.stages.Cleanup.remove`); returns their paths."""
        with self._lock:
            return self.cleaning.remove(by, dry_run=dry_run, previous=previous, let_go=let_go)

    def hold(self, by: str, hours: float, *, dry_run: bool, let_go: Sequence[str] = ()) -> tuple[str, ...]:
        """Begin the cleanup of the previous release (`cleanup.stages.Cleanup.hold`)."""
        with self._lock:
            return self.cleaning.hold(by, hours, dry_run=dry_run, let_go=let_go)

    def restore(self) -> str:
        """End the hold of a release (`cleanup.stages.Cleanup.restore`); returns its id."""
        with self._lock:
            return self.cleaning.restore()
