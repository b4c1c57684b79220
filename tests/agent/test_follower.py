"""The follower: alignment of the old and the new release at one landing position. No Java: the feeds only count versions."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.feeds.follower import FIRST_HEARTBEAT_SECONDS, HEARTBEAT_COMMITS, HEARTBEAT_SECONDS, FeedFollower
from console.agent.feeds.live_feed import LiveFeed
from console.agent.feeds.readings import Readings
from console.model.live import Feed

pytestmark = pytest.mark.slow


@dataclass(slots=True)
class Counting(LiveFeed):
    """Reaches its source's end at the first step; `meanwhile` happens while it moves."""

    meanwhile: Callable[[], None] = lambda: None

    def open(self, session: Any) -> Any:
        self.seen = max(self.seen, 0)
        return None

    def step(self, session: Any, end: int, rows_limit: int = 0, readings: Any = None) -> int:
        self.meanwhile()
        self.seen = end
        return 1

    def pending(self, end: int) -> tuple[int, int, float]:
        return (0, 0, 0.0)


@contextmanager
def ticking() -> Iterator[FeedFollower]:
    """A follower that ticks every hundredth of a second, once it is started."""
    spark = SimpleNamespace(session=object, live_session=object, give_up=lambda _: None)
    thread = FeedFollower(cast(Any, spark), 0.01, lambda *_: None)
    try:
        yield thread
    finally:
        thread.stop()
        thread.join(60)


@pytest.fixture
def follower() -> Iterator[FeedFollower]:
    with ticking() as thread:
        yield thread


def table(place: Path, name: str, commits: int) -> str:
    path = str(place / name)
    for n in range(commits):
        write_deltalake(path, pa.table({"n": [n]}), mode="append")
    return path


def counting_feed(place: Path, source: str, target: str, meanwhile: Callable[[], None] = lambda: None) -> Counting:
    nothing = cast(Any, None)
    feed = Feed(materialization=target, source=target, target="landing", sql="SELECT n FROM landing")
    return Counting(
        spec=feed, source=nothing, target=nothing, joins=(), source_path=source,
        target_path=table(place, target, 1), meanwhile=meanwhile,
    )  # fmt: skip


def test_an_alignment_is_over_the_feeds_that_were_followed_when_it_was_asked_for(
    tmp_path: Path, follower: FeedFollower
) -> None:
    """A new release's feeds and the request for alignment arrive while the follower moves another pipeline in that tick."""
    landing = table(tmp_path, "landing", 3)
    old, new = counting_feed(tmp_path, landing, "old"), counting_feed(tmp_path, landing, "new")
    answers: list[Future[dict[str, int]]] = []

    def build_reaches_validation() -> None:
        if not answers:
            follower.follow("mixed", (old, new))
            answers.append(follower.align("mixed"))

    follower.follow("column", (counting_feed(tmp_path, landing, "other", build_reaches_validation),))
    follower.follow("mixed", (old,))
    follower.start()
    until = time.monotonic() + 60
    while not answers and time.monotonic() < until:
        follower.join(0.01)
    pins = answers[0].result(10)
    assert {old.target_path, new.target_path} <= pins.keys()
    assert (old.seen, new.seen) == (2, 2)


def test_a_pipeline_without_feeds_is_aligned_at_once(tmp_path: Path, follower: FeedFollower) -> None:
    follower.follow("web", (counting_feed(tmp_path, table(tmp_path, "landing", 2), "old"),))
    request = follower.align("web")
    follower.follow("web", ())
    follower.start()
    assert request.result(10) == {}


@pytest.mark.parametrize(("took", "kept"), [(0.0, 1.0), (0.05, 1.0), (0.5, 5.0), (3.0, 30.0)])
def test_a_lag_is_measured_for_a_tenth_of_the_time_at_most_and_holds_a_second_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took: float, kept: float
) -> None:
    follower = FeedFollower(cast(Any, None), 1.0, lambda *_: None)
    clock, asked = [5000.0], list[float]()
    monkeypatch.setattr("console.agent.feeds.follower.time", SimpleNamespace(monotonic=lambda: clock[0]))
    source = table(tmp_path, "landing", 1)
    counted = counting_feed(tmp_path, source, "copy")

    def pending(end: int) -> tuple[int, int, float]:
        asked.append(clock[0])
        clock[0] += took
        return (1, 2, 3.0)

    monkeypatch.setattr(Counting, "pending", lambda _, end: pending(end))
    follower.follow("web", (counted,))
    for _ in range(3):
        assert (follower.lag("web").commits, follower.lag("web").rows, follower.lag("web").seconds) == (1, 2, 3.0)
    assert len(asked) == 1
    clock[0] = asked[0] + took + kept
    follower.lag("web")
    assert len(asked) == 1
    clock[0] += 0.001
    follower.lag("web")
    assert len(asked) == 2


@dataclass(slots=True)
class Beating(Counting):
    """Its position is committed by a heartbeat alone; what it is asked for is noted."""

    opened: int = 0
    beats: int = 0

    def open(self, session: Any) -> Any:
        assert session is not None
        self.opened += 1
        self.writer = cast(Any, SimpleNamespace(position=0))
        return self.writer

    def step(self, session: Any, end: int, rows_limit: int = 0, readings: Any = None) -> int:
        assert session is not None
        self.seen = end
        return 0

    def heartbeat(self, session: Any) -> None:
        assert session is not None
        self.beats += 1
        assert self.writer is not None
        self.writer.position = self.seen


def test_a_position_over_commits_without_rows_is_committed_after_so_many_or_so_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [5000.0]
    monkeypatch.setattr("console.agent.feeds.follower.time", SimpleNamespace(monotonic=lambda: clock[0]))
    reports: list[tuple[str, ...]] = []
    follower = FeedFollower(
        cast(Any, SimpleNamespace(session=object, live_session=object, give_up=lambda _: None)),
        1.0,
        lambda *each: reports.append(each),
    )
    nothing, source = cast(Any, None), str(tmp_path / "landing")
    beating = Beating(
        spec=Feed(materialization="copy", source="copy", target="landing", sql="SELECT 1"),
        source=nothing,
        target=nothing,
        joins=(),
        source_path=source,
        target_path=str(tmp_path / "copy"),
    )

    def beats(end: int, after: float = 0.0) -> int:
        clock[0] += after
        assert follower._move_feed("web", beating, {source: end}, Readings(), fully=True), reports
        return beating.beats

    many, first, later = HEARTBEAT_COMMITS, FIRST_HEARTBEAT_SECONDS, HEARTBEAT_SECONDS
    assert [beats(end) for end in (0, 1, many, many + 1)] == [0, 0, 0, 1]
    assert [beats(many + 2), beats(many + 2, first - 1), beats(many + 2, later)] == [1, 1, 2], "one commit is enough"
    assert [beats(many + 2, later), beats(many + 2, later)] == [2, 2], "none is needed where nothing came"
    assert [beats(many + 3), beats(many + 3, later - 1), beats(many + 3, 1.0)][-1] == 3
    assert beating.opened == 1


def test_a_position_that_stands_since_the_start_is_committed_within_the_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [5000.0]
    monkeypatch.setattr("console.agent.feeds.follower.time", SimpleNamespace(monotonic=lambda: clock[0]))
    follower = FeedFollower(
        cast(Any, SimpleNamespace(session=object, live_session=object, give_up=lambda _: None)), 1.0, lambda *_: None
    )
    nothing, source = cast(Any, None), str(tmp_path / "landing")
    beating = Beating(
        spec=Feed(materialization="copy", source="copy", target="landing", sql="SELECT 1"),
        source=nothing,
        target=nothing,
        joins=(),
        source_path=source,
        target_path=str(tmp_path / "copy"),
    )
    for after, beats in ((0.0, 0), (3599.0, 0), (1.0, 1)):
        clock[0] += after
        assert follower._move_feed("web", beating, {source: 1}, Readings(), fully=True)
        assert beating.beats == beats
