"""Starts and stops the executor of a pipeline's rollout: at most one runs, and none at the gate."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from console.agent.execution.executor import PlanExecutor
from console.agent.rollout.context import RolloutContext
from console.agent.rollout.followed_feeds import FollowedFeeds
from console.agent.second_spark.process import SecondSpark
from console.agent.spark_session import SparkHandle


@dataclass(slots=True, kw_only=True)
class Execution:
    """The executor of one pipeline, if one runs. The caller holds the pipeline's lock.

    feeds       receive the context of each executor, since the follower moves the same feed objects
    keep_hours, second_spark  see `RolloutContext`
    """

    warehouse: Path
    spark: SparkHandle
    feeds: FollowedFeeds
    keep_hours: float
    second_spark: Callable[[], SecondSpark] | None = None
    executor: PlanExecutor | None = None

    @property
    def running(self) -> bool:
        return self.executor is not None and self.executor.is_alive()

    def start(self) -> None:
        """Execute the rest of the plan, in place of any running executor; at the gate nothing is left to execute."""
        self.stop()
        feeds, status = self.feeds, self.feeds.recorder.status
        if status.state == "awaiting-confirmation" and not status.held:
            feeds.refollow()
            return
        context = RolloutContext(
            warehouse=self.warehouse,
            spark=self.spark,
            releases=feeds.releases,
            recorder=feeds.recorder,
            follower=feeds.follower,
            keep_hours=self.keep_hours,
            second_spark=self.second_spark,
        )
        feeds.building = context
        self.executor = PlanExecutor(context, feeds.refollow)
        self.executor.start()

    def stop(self) -> None:
        """Stop the executor and wait for its end; the rollout's state does not change."""
        if self.executor is not None:
            self.executor.stop()
            self.executor.join()
            self.executor = None
            self.feeds.building = None
