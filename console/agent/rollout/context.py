"""The context of a rollout: paths, states of tables, live feeds, and the request to stop."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from console import paths
from console.agent.feeds import app_ids
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, live_feeds_of, relay_feeds
from console.agent.rollout.recorder import Recorder
from console.agent.second_spark.process import SecondSpark
from console.agent.spark_jobs import RunningJob
from console.agent.spark_session import SparkHandle
from console.agent.store import open_tables
from console.agent.store.ledger import Releases
from console.agent.store.table_stats import table_stats
from console.errors import RegionError
from console.model.live import Feed, Release, TableState, TableStats
from console.model.plan import Plan
from console.model.tuning import BatchLimits, limits


class RolloutStopped(Exception):
    """The rollout was paused, cancelled, or its agent ends. Not an error."""


@dataclass(slots=True, kw_only=True)
class RolloutContext:
    """One rollout in progress in this process.

    keep_hours  the rollback window: how long the new versions keep removed files, besides the rollout itself
    halt        set when the executor is to stop
    job         the running Spark jobs, None between jobs
    second_spark  makes the region's second Spark for one build; None if the region has none
    newest_days of a sandbox: days that are copied of each table; None for all
    before      after the promotion: the release that was live before it, with which the new one is still compared
    """

    warehouse: Path
    spark: SparkHandle
    releases: Releases
    recorder: Recorder
    follower: FeedFollower
    keep_hours: float
    halt: threading.Event = field(default_factory=threading.Event)
    job: RunningJob | None = None
    second_spark: Callable[[], SecondSpark] | None = None
    newest_days: int | None = None
    before: Release | None = None
    live_feeds: dict[tuple[str, str], LiveFeed] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        if self.recorder.plan is None:
            raise RegionError("no plan was accepted here", hint="console apply")
        return self.recorder.plan

    @property
    def limits(self) -> BatchLimits:
        """The plan's limits, with changes since its acceptance."""
        return limits(self.plan, self.recorder.status.tuning)

    def check_halt(self) -> None:
        """raises RolloutStopped if the executor is to stop"""
        if self.halt.is_set():
            raise RolloutStopped

    @contextmanager
    def jobs(self, session: Any, what: str) -> Iterator[None]:
        """Context of Spark jobs of this thread, which a halt cancels.

        what    a name for the jobs
        raises  RolloutStopped if the executor is to stop already
        """
        with self.spark.job(session, f"{self.recorder.rollout} {what}") as job:
            self.job = job
            try:
                self.check_halt()
                yield
            finally:
                self.job = None

    def path(self, version_path: str) -> str:
        return paths.version_path(self.warehouse, version_path)

    def state(self, table: str) -> TableState:
        """A table's state in the new release."""
        return _in(self.plan.release, table)

    def live(self) -> Release:
        """The release with which the new one is compared: the live one, or the one before it.

        raises  RegionError if no release is live
        """
        if self.before is not None:
            return self.before
        stored = self.releases.in_state("live")
        if stored is None:
            raise RegionError("no release is live here", hint="console plan")
        if self.newest_days is not None and stored.row.id != self.plan.live:
            raise RegionError(
                f"it began beside {self.plan.live or 'no release'}, and {stored.row.id} is live by now",
                hint="console preview builds it again",
                code="E_STALE",
            )
        return stored.release

    def live_state(self, table: str) -> TableState:
        return _in(self.live(), table)

    def stats(self, table: str, path: str, time: str = "", version: int | None = None) -> TableStats:
        """A table's statistics from its log, as of a version (None: the latest), with days by the column `time`.

        raises  RegionError if there is no table
        """
        stats = table_stats(table, path, time, version)
        if stats is None:
            raise RegionError(f"{table}: {path} is not a Delta table", hint="console doctor")
        return stats

    def live_feed(self, target: str, materialization: str) -> LiveFeed:
        """A live feed of the new release: one object for the build and, later, the follower."""
        self.live_feeds_in_order()
        return self.live_feeds[(target, materialization)]

    def live_feeds_in_order(self) -> tuple[LiveFeed, ...]:
        """All live feeds of the new release, sources before the tables below them."""
        if not self.live_feeds:
            for live_feed in (*self._relay_feeds(), *live_feeds_of(self.plan.release, self.path, guarded=True)):
                self.live_feeds[(live_feed.spec.target, live_feed.spec.materialization)] = live_feed
        return tuple(self.live_feeds.values())

    def _relay_feeds(self) -> tuple[LiveFeed, ...]:
        """The feeds from live landing versions to new ones."""
        if not self.plan.release.relays:
            return ()
        return relay_feeds(self.live(), self.plan.release, self.path)

    def position_at(self, table: str, materialization: str, fence: int) -> int:
        """The position that a feed of the live version of a table had reached at version `fence` of that table's log.

        raises  RegionError E_NO_POSITION if the log does not have it
        """
        live = self.live()
        path = self.path(_in(live, table).version.path)
        feeds = live.feeds_into(table)
        same = next((feed for feed in feeds if feed.materialization == materialization), None)
        if same is None and len(feeds) == 1:
            same = feeds[0]
        number = open_tables.position(path, self._live_id(path, same), as_of=fence) if same else None
        if number is None:
            raise RegionError(
                f"{path}: no position of {materialization} at version {fence}",
                code="E_NO_POSITION",
                hint="console plan",
            )
        return number & ((1 << 40) - 1)

    def _live_id(self, path: str, feed: Feed) -> str:
        return app_ids.live_id(path, feed, self.path(_in(self.live(), feed.source).version.path))


def _in(release: Release, table: str) -> TableState:
    state = release.table(table)
    if state is None:
        raise RegionError(f"release {release.id} has no table {table}", hint="console plan")
    return state
