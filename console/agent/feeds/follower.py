"""The live service: moves all feeds of the current releases, tick by tick. It never stops for a build."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

from console.agent.errors import AgentEnding
from console.agent.failure import cause, fresh_copy, message
from console.agent.feeds.ailing import failing
from console.agent.feeds.live_feed import LiveFeed, stalled_targets
from console.agent.feeds.pacing import Pacing
from console.agent.feeds.readings import Readings
from console.agent.session_on_demand import SessionOnDemand
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.errors import CheckFailed, ConsoleError
from console.model.event import Lagging
from console.model.region import FOLLOW, Follow

HEARTBEAT_COMMITS = 200
# Log clean-up waits for committed positions, so a position is also committed a day after it last changed, however few commits
# it has passed; sooner after a start, so that an agent restarted every night commits one too.
HEARTBEAT_SECONDS, FIRST_HEARTBEAT_SECONDS = 24 * 3600.0, 3600.0
# A measured lag is reused for this long, or for ten times the duration of its measurement if that is longer.
LAG_SECONDS = 1.0
LAG_SHARE = 10.0


@dataclass(slots=True, kw_only=True)
class Followed:
    """The followed feeds of one pipeline, upstream before downstream, and their lag as last measured."""

    feeds: tuple[LiveFeed, ...] = ()
    lag: Lagging | None = None  # None: not measured yet
    behind: dict[tuple[str, str, str], tuple[int, int, float]] = field(default_factory=dict)  # lag by feed
    unmeasured: frozenset[tuple[str, str, str]] = frozenset()  # feeds whose lag could not be measured; already reported
    stale_at: float = 0.0  # monotonic: when the lag has to be measured again
    aligned: bool = False  # the last tick moved all feeds, except stalled ones, to the position at which it began
    stalled: tuple[LiveFeed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedFigures:
    """One followed feed in figures.

    source        path of its source
    from_landing  whether the source is no other feed's target
    moved         rows since the feed was first followed
    behind, lag   waiting rows, and seconds, as last measured
    """

    key: tuple[str, str, str]
    feed: str
    source: str
    from_landing: bool
    moved: int
    behind: int
    lag: float

    @property
    def target(self) -> str:
        """The version that it fills, relative to the warehouse: `requests/3fa2c1-2`."""
        return "/".join(self.key[1].rstrip("/").rsplit("/", 2)[-2:])


class FeedFollower(threading.Thread):
    """One thread per region. Each tick takes a snapshot of the landing tables' versions, then moves every feed towards it.

    report  called with (pipeline, level, text)
    """

    def __init__(
        self,
        spark: SparkHandle,
        tick_seconds: float,
        report: Callable[[str, str, str], None],
        follow: Follow = FOLLOW,
    ) -> None:
        super().__init__(name="follower", daemon=True)
        self._follow = follow
        self._pacing = Pacing(tick_seconds=tick_seconds, follow=follow)
        self._report = report
        self._guard = threading.Lock()
        self._tick_lock = threading.Lock()
        self._followed: dict[str, Followed] = {}
        self._requests: list[tuple[str, Future[dict[str, int]]]] = []
        self._wake = threading.Event()
        self._ended = False
        self._session = SessionOnDemand(spark)  # a region without new rows needs none
        self._heartbeats: dict[tuple[str, str, str], tuple[int, float]] = {}  # feed → position, due (monotonic)

    def follow(self, pipeline: str, feeds: tuple[LiveFeed, ...]) -> None:
        """Follow exactly these feeds from the next tick on; feeds that were followed before keep their progress."""
        with self._guard:
            old = {feed.key: feed for feed in self._followed.get(pipeline, Followed()).feeds}
            kept: dict[tuple[str, str, str], LiveFeed] = {}
            for feed in feeds:
                kept.setdefault(feed.key, _refreshed(old.get(feed.key), feed))
            self._followed[pipeline] = Followed(feeds=tuple(kept.values()))
        self._wake.set()

    def feeds(self, pipeline: str) -> tuple[LiveFeed, ...]:
        with self._guard:
            return self._followed.get(pipeline, Followed()).feeds

    def lag(self, pipeline: str) -> Lagging:
        """Lag of the pipeline's feeds by the current logs (rows also land between two ticks), and the feeds that fail."""
        with self._guard:
            followed = self._followed.get(pipeline, Followed())
        if followed.lag is None or time.monotonic() > followed.stale_at:
            self._measure(pipeline, followed)
        return replace(followed.lag or Lagging(commits=0, rows=0, seconds=0.0), ailing=failing(followed.feeds))

    def figures(self, pipeline: str) -> tuple[FeedFigures, ...]:
        """The followed feeds, with the lag as last measured."""
        with self._guard:
            followed = self._followed.get(pipeline, Followed())
            behind = followed.behind
        targets = {feed.target_path for feed in followed.feeds}
        figures = []
        for feed in followed.feeds:
            _, rows, seconds = behind.get(feed.key, (0, 0, 0.0))
            figures.append(
                FeedFigures(
                    key=feed.key,
                    feed=feed.spec.materialization,
                    source=feed.source_path,
                    from_landing=feed.source_path not in targets,
                    moved=feed.rows_moved,
                    behind=rows,
                    lag=seconds,
                )
            )
        return tuple(figures)

    def align(self, pipeline: str) -> "Future[dict[str, int]]":
        """Request the Delta versions at which all followed feeds of the pipeline have reached one common landing position.

        returns  a future of table path → version; a landing table's is that position, tables downstream of a stalled feed
                 are left out; it fails with `AgentEnding` if the agent ends
        """
        request: Future[dict[str, int]] = Future()
        with self._guard:
            if self._ended:
                request.set_exception(_ending_error())
                return request
            if not self._followed.get(pipeline, Followed()).feeds:
                request.set_result({})
                return request
            self._requests.append((pipeline, request))
        self._wake.set()
        return request

    def forget(self, request: "Future[dict[str, int]]") -> None:
        """Drop a request for which nobody waits any more, so that the follower rests again."""
        with self._guard:
            self._requests = [entry for entry in self._requests if entry[1] is not request]

    def is_aligned(self, pipeline: str) -> bool:
        """Whether the last tick left all feeds of the pipeline, except stalled ones, at one landing position."""
        with self._guard:
            followed = self._followed.get(pipeline, Followed())
        return followed.aligned and all(feed.health.standing for feed in followed.stalled)

    def finish_tick(self) -> None:
        """Wait for the end of the current tick: afterwards only currently followed feeds are touched."""
        if self.is_alive() and threading.current_thread() is not self:
            with self._tick_lock:
                pass

    @property
    def last_used(self) -> float:
        """Monotonic: when a feed last needed Spark; 0 for never."""
        return self._session.last_used

    def let_go(self, idle_seconds: float) -> bool:
        """Give up its session, so that Spark can be ended; False if a feed has needed it within that time, or needs it now."""
        if not self._tick_lock.acquire(blocking=False):
            return False
        try:
            if time.monotonic() - self.last_used < idle_seconds:
                return False
            self._session.drop()
            return True
        finally:
            self._tick_lock.release()

    def redefine(self, pipeline: str, feeds: Iterable[LiveFeed]) -> None:
        """Give followed feeds new definitions; a feed that its old one had stopped is retried."""
        by_key = {feed.key: feed for feed in feeds}
        with self._tick_lock:
            for current in self.feeds(pipeline):
                if (feed := by_key.get(current.key)) and current.differs(feed):
                    _refreshed(current, feed)

    @contextmanager
    def hold(
        self,
        pipeline: str,
        seconds: float,
        *,
        aligned: bool = True,
        needed: Callable[[LiveFeed], bool] = lambda _: True,
    ) -> Iterator[None]:
        """Hold the follower between two ticks, with all feeds of the pipeline at one landing position.

        aligned  False: hold it at once, at whatever positions
        needed   feeds that must have reached it; others may have stalled
        raises   the error of a needed feed that has stalled; CheckFailed E_LAG after `seconds`, E_ENDING if the agent ends
        """
        deadline = time.monotonic() + seconds
        while True:
            with self._tick_lock:
                if aligned and (
                    errors := [e.health.standing for e in self.feeds(pipeline) if needed(e) and e.health.standing]
                ):
                    raise fresh_copy(errors[0])
                if not aligned or not self.feeds(pipeline) or (self.is_aligned(pipeline) and not self._ended):
                    yield
                    return
            try:
                self.align(pipeline).result(max(deadline - time.monotonic(), 0.0))
            except FutureTimeout:
                lag = self.lag(pipeline)
                raise CheckFailed(
                    f"the new version is {lag.commits} commits ({lag.rows:,} rows) behind and did not catch up in {seconds:.0f} s",
                    hint="try again when the follower has caught up; `console status` shows its lag",
                    code="E_LAG",
                ) from None

    def stop(self) -> None:
        with self._guard:
            self._ended = True
            requests, self._requests = [request for _, request in self._requests], []
        _fail(requests)  # waiting requests must not keep the agent from ending
        self._wake.set()

    def run(self) -> None:
        while not self._ended:
            started = time.monotonic()
            with self._guard:
                names = list(self._followed)
            for name in names:
                if not self._ended:
                    self._tick_pipeline(name)
            elapsed = time.monotonic() - started
            with self._guard:
                awaited = bool(self._requests)  # a build or a promotion is waiting: no long rest
            self._wake.wait(self._pacing.rest(elapsed, awaited=awaited, asleep=not self._session.is_open))
            self._wake.clear()

    def _tick_pipeline(self, name: str) -> None:
        """Move one pipeline's feeds. No failure may end the thread: all feeds of the region depend on it."""
        try:
            with self._tick_lock:
                self._move_pipeline(name)
        except Exception as error:
            with suppress(Exception):
                self._report(name, "error", f"following: {cause(error)}")

    def _move_pipeline(self, name: str) -> None:
        with (
            self._guard
        ):  # feeds and requests as of one moment: a request made after `follow` includes the feeds given there
            followed = self._followed[name]
            requests = [request for pipeline, request in self._requests if pipeline == name]
        if not followed.feeds:
            self._answer(requests, {})
            return
        targets = {feed.target_path for feed in followed.feeds}
        # one snapshot of all landing tables; a missing one fails in its own feeds
        landing = {feed.source_path for feed in followed.feeds} - targets
        ends = {path: end for path in landing if (end := log.latest_version(path, missing_ok=True)) >= 0}
        aligned = True
        with Readings() as readings:
            for feed in followed.feeds:
                if self._ended:
                    return
                moved = self._move_feed(name, feed, ends, readings, fully=bool(requests))
                aligned &= moved or feed.health.standing is not None
        if requests and aligned:
            stalled = stalled_targets(followed.feeds)
            self._answer(
                requests, {**ends, **{path: log.latest_version(path) for path in targets if path not in stalled}}
            )
        with self._guard:
            followed.aligned, followed.stalled = aligned, tuple(feed for feed in followed.feeds if feed.health.standing)
        self._measure(name, followed)

    def _answer(self, requests: list["Future[dict[str, int]]"], pins: dict[str, int]) -> None:
        with self._guard:
            answered = [
                request for _, request in self._requests if request in requests
            ]  # the others were failed by `stop`
            self._requests = [entry for entry in self._requests if entry[1] not in requests]
        for request in answered:
            request.set_result(pins)

    def _move_feed(
        self, name: str, feed: LiveFeed, ends: Mapping[str, int], readings: Readings, *, fully: bool
    ) -> bool:
        """Move one feed by a range, or `fully` to the end; returns whether it has reached the end of its source."""
        if not feed.health.due():
            return False
        try:
            end = ends[feed.source_path] if feed.source_path in ends else log.latest_version(feed.source_path)
            if self._follow.keeps_spark:
                self._session.get()
            if feed.writer is None:
                feed.open(self._session)
            # `!=`: if the source has become shorter than `seen`, the step reports it
            while feed.seen != end and feed.step(self._session, end, readings=readings) >= 0:
                if not fully:
                    break
            if feed.writer:
                limit = 0 if self._heartbeat_due(feed) else HEARTBEAT_COMMITS
                if feed.seen - feed.writer.position > limit:
                    feed.heartbeat(self._session)
        except Exception as error:
            self._failed(name, feed, error)
            return False
        if feed.health.stopped:
            self._report(name, "info", f"{feed.spec.materialization} continues")
        feed.health.reset()
        return feed.seen >= end

    def _heartbeat_due(self, feed: LiveFeed) -> bool:
        """Whether the committed position has not changed for so long that it has to be committed anew."""
        now, position = time.monotonic(), feed.writer.position if feed.writer else -1
        at, due = self._heartbeats.get(feed.key, (position, now + FIRST_HEARTBEAT_SECONDS))
        self._heartbeats[feed.key] = (position, due if at == position else now + HEARTBEAT_SECONDS)
        return at == position and now >= due

    def _failed(self, name: str, feed: LiveFeed, error: Exception) -> None:
        self._session.drop()  # the next attempt opens a new one, which detects a dead JVM
        feed.writer = None  # its last commit may be in the log or not: the next attempt takes the feed over first
        feed.health.record_failure(error, feed.spec.target, feed.own_query)
        if why := feed.health.stopped:
            self._report(name, "error", f"{feed.spec.materialization} stopped: {message(why)}")
        else:
            self._report(name, "warning", f"{feed.spec.materialization}: {cause(error)}; try {feed.health.tries}")

    def _measure(self, name: str, followed: Followed) -> None:
        """Measure the lag. A feed whose logs cannot be read now counts with its last known lag, if any."""
        started, behind, failed = time.monotonic(), {}, {}
        for feed in followed.feeds:
            try:
                behind[feed.key] = feed.pending(log.latest_version(feed.source_path))
            except ConsoleError:
                continue
            except Exception as error:
                failed[feed.key] = f"{feed.spec.materialization}: its lag cannot be measured: {cause(error)}"
                if feed.key in followed.behind:
                    behind[feed.key] = followed.behind[feed.key]
        known = behind.values()
        with self._guard:
            new = failed.keys() - followed.unmeasured
            followed.behind, followed.unmeasured = behind, frozenset(failed)
            followed.lag = Lagging(
                commits=sum(c for c, _, _ in known),
                rows=sum(r for _, r, _ in known),
                seconds=max([0.0, *(s for _, _, s in known)]),
            )
            now = time.monotonic()
            followed.stale_at = now + max(LAG_SECONDS, LAG_SHARE * (now - started))
        for key in new:
            self._report(name, "warning", failed[key])


def _refreshed(current: LiveFeed | None, feed: LiveFeed) -> LiveFeed:
    """A followed feed keeps its progress and takes the definition of the new release: a joined table may have another
    version, and the error that stopped the feed may be allowed now."""
    if current is None:
        return feed
    if current.health.stopped and current.differs(feed):
        current.health.reset()
    current.spec, current.source, current.joins = feed.spec, feed.source, feed.joins
    current.guarded = feed.guarded
    return current


def _ending_error() -> AgentEnding:
    return AgentEnding("the agent is ending", hint="try again when it runs")


def _fail(requests: Iterable["Future[dict[str, int]]"]) -> None:
    for request in requests:
        request.set_exception(_ending_error())
