"""The region's agent in a process: one controller per pipeline, one follower and one Spark for all, and the duties of each second."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from console.agent.agent_log import describe, write_log
from console.agent.connect.handle import ConnectHandle
from console.agent.feeds.follower import FeedFollower
from console.agent.maintenance.erased_rows import ErasedRowsSearch
from console.agent.maintenance.maintainer import Maintainer
from console.agent.pipeline import PipelineController
from console.agent.sampler import Sampler
from console.agent.second_spark.process import SecondSpark
from console.agent.settings import Settings
from console.agent.sleeper import SparkSleeper
from console.agent.soak.all_rounds import CheckRounds
from console.agent.spark_session import SparkHandle
from console.agent.store.samples import SampleRing
from console.agent.way_back.prover import WayBackProver
from console.errors import DataError
from console.model.event import Lagging
from console.model.following import Following
from console.model.measured import FeedSample
from console.text import redacted

RETRY_SECONDS = 10.0  # between two attempts to load a pipeline
TICK_SECONDS = 1.0  # between two ticks
# of a region without Spark that nobody watches: nobody waits for its lag, and the first row waits longer for its Spark
RESTING_TICK_SECONDS = 4.0
REPORT_SECONDS = 60.0  # between two reports of one failure


class RegionAgent:
    """Controllers, follower and Spark of a region, from `start` to `stop`; the caller holds the region's lock.

    warehouse  its folder
    settings   what Spark and the follower are started with
    lock_fd    the lock's descriptor, which the JVM inherits
    """

    def __init__(self, warehouse: Path, settings: Settings, lock_fd: int) -> None:
        self.warehouse, self.settings = warehouse, settings
        self.spark = _spark(settings, lock_fd, str(warehouse))
        self._second_spark = _second_spark(settings, lock_fd, str(warehouse))
        self.follower = FeedFollower(self.spark, settings.tick_seconds, self.report, settings.follow)
        self.ring = SampleRing(warehouse)
        self._last_seen = self.ring.last_at  # the agent before this one
        self.sampler = Sampler(ring=self.ring, follower=self.follower)
        self._controllers: dict[str, PipelineController] = {}
        self.maintainer = Maintainer(self.spark, self._all, self.report, lambda: tuple(self._failed_pipelines))
        self.prover = WayBackProver(
            controllers=self._all, keep_hours=settings.rollback_window_hours, report=self.report
        )
        self.erased = ErasedRowsSearch(
            controllers=self._all, keep_hours=settings.rollback_window_hours, report=self.report
        )
        self.rounds = CheckRounds(controllers=self._all, report=self.report)
        self.sleeper = SparkSleeper(
            spark=self.spark,
            follower=self.follower,
            follow=settings.follow,
            controllers=self._all,
            busy=(lambda: self.maintainer.running, lambda: self.prover.running, lambda: self.rounds.running),
        )
        self._guard = threading.Lock()
        self._failed_pipelines: dict[str, str] = {}  # pipelines that failed to load → why
        self._tried = 0.0  # monotonic: last retry of the failed pipelines
        self._reported: dict[
            tuple[str, str], float
        ] = {}  # pipeline, its tick's failure → monotonic: when to report again

    def start(self) -> None:
        """Load every pipeline of the region, continue its rollout, and start the follower."""
        marker = self.warehouse / "_console" / "marker.json"
        if not marker.exists():
            # readable by the agent's user alone, regardless of the umask
            marker.touch(mode=0o600)
            marker.write_text(json.dumps({"format_version": 1, "region": self.settings.region}))
        for rollouts in sorted((self.warehouse / "_console").glob("*/rollouts")):
            self._load(rollouts.parent.name)
        self.follower.start()

    def _load(self, pipeline: str) -> None:
        """Load one pipeline and continue its rollout. A failure does not affect the others; it is retried (`tick`)."""
        try:
            self.controller(pipeline).resume()
        except Exception as error:
            reason = describe(error)
            if self._failed_pipelines.get(pipeline) != reason:
                write_log(pipeline, "error", f"failed to load; retrying: {reason}")
            self._failed_pipelines[pipeline] = reason
        else:
            if self._failed_pipelines.pop(pipeline, None):
                write_log(pipeline, "info", "loaded")

    def _all(self) -> tuple[PipelineController, ...]:
        return tuple(self._controllers.values())

    def expect_driver_exit(self) -> None:
        """The agent is ending: from now on a JVM that exits does not count as lost, since it may have received the same
        signal."""
        self.spark.ending = True

    def stop(self) -> None:
        """Stop the follower, every executor and Spark; rollouts keep their state for the next agent."""
        self.follower.stop()
        self.rounds.stop()
        self.sleeper.stop()
        for controller in self._controllers.values():
            controller.halt()
        if self.follower.is_alive():
            self.follower.join(20)
        self.spark.stop()

    def controller(self, pipeline: str) -> PipelineController:
        """The controller of a pipeline, created at its first use.

        raises  DataError if the name is not a pipeline's name; RegionError if its tables cannot be read
        """
        if not pipeline or not all(char.isalnum() or char in "-_" for char in pipeline):
            raise DataError(f"{pipeline!r:.60} is not a pipeline's name")
        with self._guard:
            if pipeline not in self._controllers:
                self._controllers[pipeline] = PipelineController(
                    self.warehouse,
                    pipeline,
                    self.spark,
                    self.follower,
                    self.settings,
                    self._last_seen,
                    second_spark=self._second_spark,
                )
            return self._controllers[pipeline]

    def report(self, pipeline: str, level: str, text: str) -> None:
        """Write to the log and to the pipeline's watchers. Never raises: logging must not stop a feed.

        level  info, warning or error
        """
        text = redacted(text)
        write_log(pipeline, level, text)
        with suppress(Exception):
            self.controller(pipeline).recorder.log(text, level)

    def lagging(self, pipeline: str, controller: PipelineController) -> Lagging:
        """The lag of its feeds, with the other facts that a watching console shows."""
        watchers, sandboxes = controller.recorder.named_watchers, controller.sandboxes.listed()
        status = controller.recorder.status
        return replace(
            self.follower.lag(pipeline),
            watchers=watchers,
            sandboxes=sandboxes,
            way_back=self.prover.proof(pipeline),
            on_hold=controller.cleaning.held(),
            erased=self.erased.found(pipeline),
            soak=status.soak,
            watch=status.watch,
            following=Following(self.settings.follow, self.spark.asleep_since),
        )

    @property
    def tick_seconds(self) -> float:
        """Until the next tick."""
        watched = any(controller.recorder.watchers for controller in self._all())
        return TICK_SECONDS if watched or not self.sleeper.resting else RESTING_TICK_SECONDS

    def tick(self) -> None:
        """Once in `tick_seconds`: send the lag to everyone who watches, and let controllers and maintenance do their due work."""
        controllers = dict(self._controllers)
        samples = self._sampled(controllers)
        for name, controller in controllers.items():
            try:
                controller.tick()
                if controller.recorder.watchers:
                    lagging = self.lagging(name, controller)
                    controller.recorder.publish(replace(lagging, samples=samples.get(name, ())))
            except (
                Exception
            ) as error:  # a full disk, for example: retried in the next second, and reported once a minute
                text, now = f"{type(error).__name__}: {str(error)[:200]}", time.monotonic()
                if now >= self._reported.get((name, text), now):
                    self._reported = {key: until for key, until in self._reported.items() if until > now}
                    self._reported[name, text] = now + REPORT_SECONDS
                    self.report(name, "warning", text)
        self._retry_failed()
        self.maintainer.tick()
        self.prover.tick()
        self.erased.tick()
        self.rounds.tick()
        self.sleeper.tick()

    def _sampled(self, controllers: Mapping[str, PipelineController]) -> dict[str, tuple[FeedSample, ...]]:
        failed = self.sampler.failed
        try:
            samples = self.sampler.tick({name: controller.recorder.status for name, controller in controllers.items()})
        except Exception as error:  # figures are the least important duty of an agent
            write_log("agent", "warning", f"no samples: {describe(error)}")
            return {}
        if self.sampler.failed not in ("", failed):
            write_log("agent", "warning", self.sampler.failed)
        return samples

    def _retry_failed(self) -> None:
        if self._failed_pipelines and time.monotonic() - self._tried > RETRY_SECONDS:
            self._tried = time.monotonic()
            for pipeline in tuple(self._failed_pipelines):
                self._load(pipeline)

    def driver_lost(self) -> bool:
        """Whether Spark was started and its JVM has exited."""
        return self.spark.lost


def _second_spark(settings: Settings, lock_fd: int, warehouse: str) -> Callable[[], SecondSpark] | None:
    own = settings.second_spark
    return None if own is None else lambda: SecondSpark(own, lock_fd, warehouse)


def _spark(settings: Settings, lock_fd: int, warehouse: str) -> SparkHandle:
    return ConnectHandle(settings, warehouse) if settings.remote else SparkHandle(settings, lock_fd, warehouse)
