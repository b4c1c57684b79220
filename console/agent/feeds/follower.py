"""The live service: moves every feed of the releases that are kept current, tick by tick. Never stops for a build."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from console.agent.feeds.live_feed import LiveFeed, below, standing
from console.agent.resilience.failure import cause, is_retryable, message
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.errors import CheckFailed, ConsoleError
from console.model.event import Ailing, Lagging
from console.text import redacted, safe_text

HEARTBEAT_COMMITS = 200
# A position over commits without rows is committed by then as well, for the logs after it may be cleaned up in time: a day
# after it last moved, and sooner after a start, for an agent that is started anew each night must get there too.
HEARTBEAT_SECONDS, FIRST_HEARTBEAT_SECONDS = 24 * 3600.0, 3600.0
ENDING = "E_ENDING"  # the code of what nobody need wait for any more, since the agent ends
# After a tick the follower rests three times as long as the tick took, and longer on a machine that has more to do than
# cores: so following takes at most a quarter of a core from builds, queries and neighbours, and rows are some seconds late.
REST = 3.0
MOST_CROWDED = 4.0
MAX_REST_SECONDS = 12.0
# A lag that is asked for is measured anew where it is older than this, and than ten times what measuring took.
LAG_SECONDS = 1.0
LAG_SHARE = 10.0


@dataclass(slots=True)
class Followed:
    """The edges of one pipeline that the follower moves, in order: sources before what hangs below them."""

    edges: tuple[LiveFeed, ...] = ()
    lag: Lagging | None = None  # not measured yet
    behind: dict[tuple[str, str, str], tuple[int, int, float]] = field(default_factory=dict)  # the same by edge
    unmeasured: frozenset[tuple[str, str, str]] = frozenset()  # edges that could not be; it was said
    stale_at: float = 0.0  # monotonic: from then on the lag says nothing of now
    level: bool = False  # the last tick left no edge behind the position at which it began, but for these
    late: tuple[LiveFeed, ...] = ()  # which stood still


class FeedFollower(threading.Thread):
    """One thread a region. Each tick: take a snapshot of every landing table's version, then move each edge towards it."""

    def __init__(self, spark: SparkHandle, tick_seconds: float, said: Callable[[str, str, str], None]) -> None:
        super().__init__(name="follower", daemon=True)
        self._spark = spark
        self._tick = tick_seconds
        self._said = said  # (pipeline, level, text)
        self._guard = threading.Lock()
        self._moving = threading.Lock()
        self._pipelines: dict[str, Followed] = {}
        self._wishes: list[tuple[str, Future[dict[str, int]]]] = []
        self._wake = threading.Event()
        self._ended = False
        self._session: Any = None
        self._stands: dict[tuple[str, str, str], tuple[int, float]] = {}  # edge → position, due (monotonic) if it stays

    def follow(self, pipeline: str, edges: tuple[LiveFeed, ...]) -> None:
        """From the next tick on, keep exactly these edges current; ones already followed keep their place."""
        with self._guard:
            old = {edge.key: edge for edge in self._pipelines.get(pipeline, Followed()).edges}
            kept: dict[tuple[str, str, str], LiveFeed] = {}
            for edge in edges:
                kept.setdefault(edge.key, _as_now(old.get(edge.key), edge))
            self._pipelines[pipeline] = Followed(tuple(kept.values()))
        self._wake.set()

    def edges(self, pipeline: str) -> tuple[LiveFeed, ...]:
        with self._guard:
            return self._pipelines.get(pipeline, Followed()).edges

    def lag(self, pipeline: str) -> Lagging:
        """How far the pipeline's feeds are behind, by the logs of now, for between two ticks rows land as well; and which fail."""
        with self._guard:
            followed = self._pipelines.get(pipeline, Followed())
        if followed.lag is None or time.monotonic() > followed.stale_at:
            self._measure(pipeline, followed)
        return replace(followed.lag or Lagging(0, 0, 0.0), ailing=_ailing(followed.edges))

    def aligned(self, pipeline: str) -> "Future[dict[str, int]]":
        """A future of table path → Delta version at which every followed feed of the pipeline has drained its source
        up to one common landing position. Landing paths carry that position; tables below a feed that stands still are
        left out. It ends with `ENDING` if the agent does."""
        wish: Future[dict[str, int]] = Future()
        with self._guard:
            if self._ended:
                wish.set_exception(_ending())
                return wish
            if not self._pipelines.get(pipeline, Followed()).edges:
                wish.set_result({})
                return wish
            self._wishes.append((pipeline, wish))
        self._wake.set()
        return wish

    def level(self, pipeline: str) -> bool:
        """Whether all followed feeds of the pipeline that move stand at one landing position, as the last tick left them."""
        with self._guard:
            followed = self._pipelines.get(pipeline, Followed())
        return followed.level and all(edge.health.standing for edge in followed.late)

    def settle(self) -> None:
        """Return when the tick that was under way has ended: from now on only what is followed is touched."""
        if self.is_alive() and threading.current_thread() is not self:
            with self._moving:
                pass

    def heed(self, pipeline: str, edges: Iterable[LiveFeed]) -> None:
        """Let feeds go by these definitions from now on; one that stands still by another goes on."""
        given = {edge.key: edge for edge in edges}
        with self._moving:
            for held in self.edges(pipeline):
                if (edge := given.get(held.key)) and held.differs(edge):
                    _as_now(held, edge)

    @contextmanager
    def still(
        self, pipeline: str, seconds: float, *, level: bool = True, needed: Callable[[LiveFeed], bool] = lambda _: True
    ) -> Iterator[None]:
        """Hold the follower between two ticks, with all feeds of the pipeline at one landing position.

        level   False: wherever they are
        needed  feeds that have to be there; another may stand still
        raises  what a needed feed stands still by; CheckFailed E_LAG if they did not come there in time, E_ENDING if the
                agent ends meanwhile
        """
        deadline = time.monotonic() + seconds
        while True:
            with self._moving:
                if level and (
                    stuck := [e.health.standing for e in self.edges(pipeline) if needed(e) and e.health.standing]
                ):
                    raise is_retryable(stuck[0])
                if not level or not self.edges(pipeline) or (self.level(pipeline) and not self._ended):
                    yield
                    return
            try:
                self.aligned(pipeline).result(max(deadline - time.monotonic(), 0.0))
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
            wishes, self._wishes = [wish for _, wish in self._wishes], []
        _fail(wishes)  # who waits for a feed must not keep the agent from ending
        self._wake.set()

    def run(self) -> None:
        while not self._ended:
            started = time.monotonic()
            with self._guard:
                names = list(self._pipelines)
            for name in names:
                if not self._ended:
                    self._tick_of(name)
            spent = time.monotonic() - started
            with self._guard:
                awaited = bool(
                    self._wishes
                )  # a build, or a gate that is being opened, stands still until we are through
            self._wake.wait(
                self._tick if awaited else max(self._tick, min(spent * REST * _crowded(), MAX_REST_SECONDS))
            )
            self._wake.clear()

    def _tick_of(self, name: str) -> None:
        """No failure may end the thread on which every feed of the region hangs."""
        try:
            with self._moving:
                self._move(name)
        except Exception as error:
            with suppress(Exception):
                self._said(name, "error", f"following: {cause(error)}")

    def _move(self, name: str) -> None:
        with self._guard:  # edges and wishes of one moment: who follows a release and then asks means its feeds as well
            followed = self._pipelines[name]
            wishes = [wish for pipeline, wish in self._wishes if pipeline == name]
        if not followed.edges:
            self._grant(wishes, {})
            return
        targets = {edge.target_path for edge in followed.edges}
        # one snapshot of all landing tables; one that is missing is its feeds' own failure
        landing = {edge.source_path for edge in followed.edges} - targets
        ends = {path: end for path in landing if (end := log.latest_version(path, missing_ok=True)) >= 0}
        level = True
        for edge in followed.edges:
            if self._ended:
                return
            level &= self._move_edge(name, edge, ends, bool(wishes)) or edge.health.standing is not None
        if wishes and level:
            late = standing(followed.edges)
            self._grant(wishes, {**ends, **{path: log.latest_version(path) for path in targets if path not in late}})
        with self._guard:
            followed.level, followed.late = level, tuple(edge for edge in followed.edges if edge.health.standing)
        self._measure(name, followed)

    def _grant(self, wishes: list["Future[dict[str, int]]"], pins: dict[str, int]) -> None:
        with self._guard:
            granted = [wish for _, wish in self._wishes if wish in wishes]  # the others ended with the follower
            self._wishes = [entry for entry in self._wishes if entry[1] not in wishes]
        for wish in granted:
            wish.set_result(pins)

    def _move_edge(self, name: str, edge: LiveFeed, ends: Mapping[str, int], fully: bool) -> bool:
        """Move one edge; returns whether it has drained its source up to the end."""
        if not edge.health.due():
            return False
        try:
            end = ends[edge.source_path] if edge.source_path in ends else log.latest_version(edge.source_path)
            if self._session is None:
                self._session = self._spark.session()
            if edge.writer is None:
                edge.open(self._session)
            # also where the source is shorter than what was seen of it: the step says so
            while edge.seen != end and edge.step(self._session, end) >= 0:
                if not fully:
                    break
            if edge.writer and edge.seen - edge.writer.position > (0 if self._overdue(edge) else HEARTBEAT_COMMITS):
                edge.heartbeat(self._session)
        except Exception as error:
            self._failed(name, edge, error)
            return False
        if edge.health.stopped:
            self._said(name, "info", f"{edge.feed.materialization} goes on")
        edge.health.fine()
        return edge.seen >= end

    def _overdue(self, edge: LiveFeed) -> bool:
        """Whether the committed position has stood where it is for long enough."""
        now, position = time.monotonic(), edge.writer.position if edge.writer else -1
        at, due = self._stands.get(edge.key, (position, now + FIRST_HEARTBEAT_SECONDS))
        self._stands[edge.key] = (position, due if at == position else now + HEARTBEAT_SECONDS)
        return at == position and now >= due

    def _failed(self, name: str, edge: LiveFeed, error: Exception) -> None:
        self._session = None  # the next try asks for a new one, which tells a Spark that is of no more use
        edge.writer = None  # what it was about to commit may be in the log: whoever goes on takes the feed over first
        edge.health.fails(error, edge.feed.target)
        if why := edge.health.stopped:
            self._said(name, "error", f"{edge.feed.materialization} stopped: {message(why)}")
        else:
            self._said(name, "warning", f"{edge.feed.materialization}: {cause(error)}; try {edge.health.tries}")

    def _measure(self, name: str, followed: Followed) -> None:
        """A feed whose logs cannot be read just now counts by what was last known of it, if anything was."""
        started, behind, failed = time.monotonic(), {}, {}
        for edge in followed.edges:
            try:
                behind[edge.key] = edge.pending(log.latest_version(edge.source_path))
            except ConsoleError:
                continue
            except Exception as error:
                failed[edge.key] = f"{edge.feed.materialization}: its lag cannot be measured: {cause(error)}"
                if edge.key in followed.behind:
                    behind[edge.key] = followed.behind[edge.key]
        known = behind.values()
        with self._guard:
            new = failed.keys() - followed.unmeasured
            followed.behind, followed.unmeasured = behind, frozenset(failed)
            followed.lag = Lagging(
                sum(c for c, _, _ in known), sum(r for _, r, _ in known), max([0.0, *(s for _, _, s in known)])
            )
            now = time.monotonic()
            followed.stale_at = now + max(LAG_SECONDS, LAG_SHARE * (now - started))
        for key in new:
            self._said(name, "warning", failed[key])


def _as_now(held: LiveFeed | None, edge: LiveFeed) -> LiveFeed:
    """An edge keeps its place, and reads what its release names now: a joined table's version may be another, and what
    it stands still by may be allowed."""
    if held is None:
        return edge
    if held.health.stopped and held.differs(edge):
        held.health.fine()
    held.feed, held.source, held.joins = edge.feed, edge.source, edge.joins
    return held


def _ailing(edges: Iterable[LiveFeed]) -> tuple[Ailing, ...]:
    """The feeds whose last try failed, and what hangs below them. edges: sources before what hangs below them"""
    edges = tuple(edges)
    return tuple(_ill(edge, below(edge, edges)) for edge in edges if edge.health.tries or edge.health.standing)


def _ill(edge: LiveFeed, below: tuple[str, ...]) -> Ailing:
    why = edge.health.standing
    told = str(why) if why else edge.health.trouble
    return Ailing(
        feed=edge.feed.materialization,
        target=edge.feed.target,
        path=edge.target.version.path,
        tries=edge.health.tries,
        standing=why is not None,
        why=safe_text(redacted(told)),
        hint=safe_text(redacted(why.hint)) if why else "",
        code=why.code if why else "",
        below=below,
    )


def _crowded() -> float:
    """Processes that want to run, a core; between 1 and `MOST_CROWDED`."""
    return min(max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0), MOST_CROWDED)


def _ending() -> CheckFailed:
    return CheckFailed("the agent is ending", hint="try again when it runs", code=ENDING)


def _fail(wishes: Iterable["Future[dict[str, int]]"]) -> None:
    for wish in wishes:
        wish.set_exception(_ending())
