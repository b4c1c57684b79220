"""The controller of one pipeline: its releases, its rollout, and every operation that changes them."""

import threading
from pathlib import Path
from typing import Literal

from console import paths
from console.agent.execution.executor import SPARE_HOURS, PlanExecutor
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, feeds_to_follow, live_feeds_of, ranked
from console.agent.rollout import ownership
from console.agent.rollout.acceptance import Acceptance
from console.agent.rollout.context import RolloutContext
from console.agent.rollout.ownership import in_progress
from console.agent.rollout.promotion import Promotion
from console.agent.rollout.recorder import Recorder
from console.agent.rollout.recover import record_missing_decision
from console.agent.rollout.retune import retune
from console.agent.rollout.watchdog import Watchdog, is_attached
from console.agent.spark_session import Settings, SparkHandle
from console.agent.store import housekeeping
from console.agent.store.ledger import Releases, Rollouts
from console.errors import Conflict, RegionError
from console.model.created import table_settings
from console.model.event import (
    ENDED,
    Ended,
    Entered,
    Paused,
    Promoted,
    Resumed,
    RolledBack,
    StepStarted,
)
from console.model.fleet import FleetWaves
from console.model.live import Release
from console.model.plan import Plan
from console.model.status import Status
from console.model.step import CatchUp
from console.model.step_id import VALIDATE
from console.model.tuning import Tuning


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
    ) -> None:
        """last_seen: when an agent was last known to run in this region, seconds since 1970; 0 where its events tell"""
        self.warehouse = warehouse
        self.pipeline = pipeline
        self.releases = Releases(warehouse, pipeline)
        self.rollouts = Rollouts(warehouse, pipeline)
        self.recorder = Recorder(self.rollouts, last_seen)
        self.watchdog = Watchdog(settings.keep_failed_hours)
        self._spark = spark
        self._follower = follower
        self._settings = settings
        self._lock = threading.RLock()
        self._executor: PlanExecutor | None = None
        self._acceptance = Acceptance(
            pipeline=pipeline,
            releases=self.releases,
            rollouts=self.rollouts,
            recorder=self.recorder,
            resolve=self.path,
            created_with=table_settings(settings.rollback_window_hours + SPARE_HOURS),
        )
        self._promotion = Promotion(
            pipeline=pipeline,
            releases=self.releases,
            rollouts=self.rollouts,
            recorder=self.recorder,
            spark=spark,
            follower=follower,
            resolve=self.path,
            refollow=self._refollow,
        )

    @property
    def lock(self) -> threading.RLock:
        """Held for one operation on the pipeline."""
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

    # -- the agent's own calls

    def resume(self) -> None:
        """Continue where the last agent stopped: its feeds, a decision that it could not record, its plan."""
        with self._lock:
            self._refollow()
            if record_missing_decision(self.recorder, self.releases, self.rollouts):
                self._refollow()
            self.watchdog.attached = is_attached(self.recorder.progress())
            if in_progress(self.recorder.status) and not self.recorder.status.held:
                self._start_executor()

    def tick(self) -> None:
        """Once a second: restart an executor that a full disk ended, and let the watchdog look."""
        running = self._executor is not None and self._executor.is_alive()
        status = self.recorder.status
        idle = in_progress(status) and status.state != "awaiting-confirmation" and not status.held and not running
        if idle and not self._spark.lost and self._lock.acquire(blocking=False):
            try:
                self.resume()
            finally:
                self._lock.release()
        self.watchdog.tick(self, running)

    def halt(self) -> None:
        """Stop the executor because the agent ends; the rollout's state stays as it is."""
        with self._lock:
            self._stop_executor()

    # -- an operator's calls

    def accept(self, plan: Plan, by: str, host: str, attached: bool = False, fleet: FleetWaves | None = None) -> str:
        """Store a plan and begin its rollout; for a plan whose rollout is in progress, only return that rollout.

        attached  pause when no console watches
        fleet     the waves of the fleet that the rollout belongs to
        returns   the rollout's id, `<pipeline>-<number>`
        raises    Conflict E_UNDER_WAY during another rollout, E_STALE if the plan starts from another release
        """
        with self._lock:
            if repeated := self._acceptance.repeated(plan):
                return repeated
            rollout = self._acceptance.begin(plan, by=by, host=host, attached=attached, fleet=fleet)
            self.watchdog.attached = attached
            self._start_executor()
            return rollout

    def control(self, verb: str, by: str) -> Status:
        """pause, resume, retry, cancel or discard the rollout; pausing twice changes nothing.

        raises  Conflict E_STATE where the verb does not fit the rollout's state
        """
        with self._lock:
            status = self.recorder.status
            if verb == "pause" and status.held == "paused":
                return status
            if not _fits(verb, status):
                state = f"{status.shown}{ownership.last_decision(status, self.recorder.progress())}"
                why = f"{self.pipeline} has had no rollout" if status.state == "none" else f"{self.pipeline} is {state}"
                raise Conflict(f"{verb} does not fit: {why}", hint="console status", code="E_STATE")
            match verb:
                case "pause":
                    self._stop_executor()
                    self.recorder.store(Paused(by))
                case "resume":
                    self._continue(by)
                case "retry":
                    self._retry(status, by)
                case "cancel":
                    self._abandon("cancelled", by)
                case _:
                    self._abandon("discarded", by)
            return self.recorder.status

    def tune(self, change: Tuning, by: str, host: str, *, reset: bool = False) -> Status:
        """Change limits of the rollout from its next batch on; stored, so that the next agent keeps them.

        reset   go back to the plan first
        raises  Conflict E_STATE without a rollout in progress; DataError E_RANGE, or for a table that is not live
        """
        with self._lock:
            if not in_progress(self.recorder.status):
                raise Conflict(f"{self.pipeline}: nothing is under way", hint="console status", code="E_STATE")
            return retune(self.recorder, self.live, change, by=by, host=host, reset=reset)

    def promote(self, rollout: str, live: str, by: str, host: str) -> Promoted:
        """Open the gate of a rollout (`rollout.promotion.Promotion.promote`)."""
        with self._lock:
            return self._promotion.promote(rollout, live, by, host)

    def rollback(self, live: str, by: str, host: str) -> RolledBack:
        """Make the previous release live again (`rollout.promotion.Promotion.rollback`)."""
        with self._lock:
            return self._promotion.rollback(live, by, host)

    def cleanup(self, by: str, *, dry_run: bool, previous: bool) -> tuple[str, ...]:
        """Delete versions that no kept release names.

        dry_run   only name them
        previous  include the release to which a rollback would return
        returns   their paths, relative to the warehouse
        """
        with self._lock:
            status = self.recorder.status
            building = "" if status.state in ENDED else status.release
            removable = housekeeping.superseded(self.releases, previous=previous, building=building)
            if dry_run:
                return removable.versions
            if previous and status.state in ENDED - {"cleaned"}:
                self.recorder.store(Ended("cleaned", by))
            return housekeeping.clean_up(self.warehouse, self.releases, removable, self._release_feeds)

    # -- the executor

    def _continue(self, by: str) -> None:
        self.recorder.store(Resumed(by))
        self._start_executor()

    def _retry(self, status: Status, by: str) -> None:
        if status.state in ("validating", "awaiting-confirmation"):
            self._stop_executor()
            self.recorder.store(Entered("validating"))  # again: the earlier checks no longer count
            self.recorder.store(StepStarted(str(VALIDATE)))
        self._continue(by)

    def _abandon(self, state: Literal["cancelled", "discarded"], by: str) -> None:
        """End the rollout and delete what was built for it alone; the live release is not touched."""
        self._stop_executor()
        release = self.recorder.status.release
        self.recorder.store(Ended(state, by))
        self._refollow()
        housekeeping.drop_preview(self.warehouse, self.releases, release, self._follower.finish_tick)

    def _start_executor(self) -> None:
        self._stop_executor()
        if self.recorder.status.state == "awaiting-confirmation" and not self.recorder.status.held:
            self._refollow()
            return
        keep = self._settings.rollback_window_hours
        context = RolloutContext(
            warehouse=self.warehouse,
            spark=self._spark,
            releases=self.releases,
            recorder=self.recorder,
            follower=self._follower,
            keep_hours=keep,
        )
        self._executor = PlanExecutor(context, self._refollow)
        self._executor.start()

    def _stop_executor(self) -> None:
        if self._executor is not None:
            self._executor.stop()
            self._executor.join()
            self._executor = None

    # -- the follower

    def _refollow(self) -> None:
        """Follow live, previous, and the release being built once it has caught up; a shared version is fed by the
        first of them in rank.
        """
        releases: list[tuple[LiveFeed, ...]] = []
        status = self.recorder.status
        for stored in ranked(self.releases.all()):
            if stored.row.state in ("live", "previous"):
                releases.append(live_feeds_of(stored.release, self.path))
            elif stored.row.id == status.release and self._is_built(status):
                executor = self._executor
                releases.append(
                    executor.context.live_feeds_in_order() if executor else live_feeds_of(stored.release, self.path)
                )
        self._follower.follow(self.pipeline, feeds_to_follow(releases))

    def _is_built(self, status: Status) -> bool:
        """Whether the release of the rollout has history and live rows, so that it is to be kept current."""
        if status.state != "catching-up":
            return status.state in ("validating", "awaiting-confirmation", "promoting")
        steps = self.recorder.plan.steps if self.recorder.plan else ()
        catching_up = {step.id for step in steps if isinstance(step, CatchUp)}
        return bool(status.steps) and all(step.state == "done" for step in status.steps if step.id in catching_up)

    def _release_feeds(self) -> None:
        """Return when the follower uses no version of a release that is no longer kept."""
        self._refollow()
        self._follower.finish_tick()


def _fits(verb: str, status: Status) -> bool:
    """Whether the rollout is in a state in which the verb means something."""
    match verb:
        case "pause":
            return in_progress(status) and not status.held
        case "resume":
            return status.held == "paused"
        case "retry":
            return status.held == "failed" or (status.state == "awaiting-confirmation" and not status.held)
        case "cancel" | "discard":
            return in_progress(status)
        case _:
            return False
