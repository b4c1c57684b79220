"""An agent's measurements every ten seconds: rates of feeds, landing tables and history, written even without a watcher."""

import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest

from console.agent.feeds.follower import FeedFigures
from console.agent.sampler import Sampler
from console.agent.store.samples import SampleRing
from console.model.event import Lagging
from console.model.measured import SAMPLE_SECONDS, FeedSample
from console.model.status import Status
from console.model.step_status import StepStatus
from tests.agent.manual_clock import ManualClock

pytestmark = pytest.mark.slow


def figures(
    feed: str, source: str, target: str, *, landing: bool = False, lag: float = 0.0, behind: int = 0
) -> FeedFigures:
    return FeedFigures(
        key=(source, target, feed), feed=feed, source=source, from_landing=landing, moved=0, behind=behind, lag=lag
    )  # fmt: skip


PARSE, PARSE_NEW = (
    figures("parse", "landing", "requests/1", landing=True),
    figures("parse", "landing", "requests/2", landing=True),
)
HOURS = figures("hours", "requests/1", "by_hour/1", lag=4.5, behind=9)


@dataclass
class Feeds:
    """A follower's figures, in a test's hand."""

    feeds: tuple[FeedFigures, ...] = (PARSE, PARSE_NEW, HOURS)
    moved: dict[str, int] = field(default_factory=dict)  # by target

    def lag(self, pipeline: str) -> Lagging:
        return Lagging(commits=3, rows=12, seconds=4.5)

    def figures(self, pipeline: str) -> tuple[FeedFigures, ...]:
        return tuple(replace(each, moved=self.moved.get(each.key[1], 0)) for each in self.feeds)


def status(rows: int, rollout: str = "web-1") -> Status:
    return Status(rollout=rollout, steps=(StepStatus(id="backfill", rows_done=rows, slices=9),))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def feeds() -> Feeds:
    return Feeds()


@pytest.fixture
def sampler(tmp_path: Path, clock: ManualClock, feeds: Feeds) -> Sampler:
    return Sampler(ring=SampleRing(tmp_path), follower=cast(Any, feeds), clock=clock)


def test_rates_are_those_of_the_seconds_since_the_last_measurement(
    sampler: Sampler, clock: ManualClock, feeds: Feeds
) -> None:
    sampler.tick({"web": status(1000)})
    feeds.moved = {"requests/1": 600, "requests/2": 500, "by_hour/1": 50}
    clock.go(20.0)
    whole, parse, newer, hours = sampler.tick({"web": status(5000)})["web"]
    assert whole == FeedSample(at=clock.now(), feed="", rows=30.0, lag=4.5, behind=12, backfill=200.0)
    assert (parse.feed, parse.rows) == ("parse", 30.0), "the live release's feed; both releases read the same rows"
    assert (newer.feed, newer.rows) == ("parse → requests/2", 25.0), "the feed of that name in the new release"
    assert hours == FeedSample(at=clock.now(), feed="hours", rows=2.5, lag=4.5, behind=9)
    assert sampler.ring.page("web", 0.0).samples[-4:] == (whole, parse, newer, hours)


def test_it_measures_every_ten_seconds_and_not_each_time_it_is_asked(sampler: Sampler, clock: ManualClock) -> None:
    taken = 0
    for _ in range(100):
        taken += bool(sampler.tick({"web": status(0)}))
        clock.go(1.0)
    assert taken == 100 / SAMPLE_SECONDS


def test_what_begins_anew_has_no_rate_below_zero(sampler: Sampler, clock: ManualClock, feeds: Feeds) -> None:
    feeds.moved = {"requests/1": 600}
    sampler.tick({"web": status(1000)})
    feeds.moved, feeds.feeds = {"requests/1": 0}, (PARSE, HOURS)
    clock.go(10.0)
    whole, *_ = sampler.tick({"web": status(10, rollout="web-2")})["web"]
    assert (whole.rows, whole.backfill) == (0.0, 0.0)
    feeds.feeds = (PARSE, PARSE_NEW, HOURS)  # a feed that is followed anew, with rows from before
    feeds.moved = {"requests/2": 10_000}
    clock.go(10.0)
    assert sampler.tick({"web": status(10, rollout="web-2")})["web"][0].rows == 0.0


def test_a_full_disk_is_named_once_and_stops_nothing(
    sampler: Sampler, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(sampler.ring, "append", full)
        assert sampler.tick({"web": status(0)})["web"]
        assert sampler.failed == "samples are not kept: No space left on device"
    clock.go(10.0)
    sampler.tick({"web": status(0)})
    assert sampler.failed == ""


def test_a_measurement_of_a_hundred_feeds_takes_milliseconds(tmp_path: Path, clock: ManualClock) -> None:
    """Each ten seconds: a hundredth of a second would be a thousandth of a core."""
    many = Feeds(tuple(figures(f"m{at}", f"s{at}", f"t{at}", landing=True) for at in range(100)))
    sampler = Sampler(ring=SampleRing(tmp_path), follower=cast(Any, many), clock=clock)
    took = []
    for _ in range(20):
        began = time.thread_time()
        assert len(sampler.tick({"web": status(0)})["web"]) == 101
        took.append(time.thread_time() - began)
        clock.go(10.0)
    assert sorted(took)[10] < 0.02
