"""Positions of feeds whose source gets commits without rows, with the real follower over real logs. No Java."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import follower, health
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.health import LAST_SECONDS
from console.agent.feeds.live_feed import LiveFeed
from console.agent.session_on_demand import SessionOnDemand
from console.agent.store import log
from tests.agent.copying import by_arrow
from tests.faults.rules.tables import SCHEMA, column_values, copying_feed, foreign, rows

pytestmark = pytest.mark.slow

HOUR, DAY = 3600.0, 24 * 3600.0


class QuietFeedSetup:
    """A follower, moved by hand, of one feed from `landing` to `copy`, and the clock that it looks at."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.landing, self.copy = foreign(place / "landing", rows(0), rows(1)), str(place / "copy")
        DeltaTable.create(self.copy, schema=SCHEMA, partition_by=["day"])
        self.broken, self.now = False, 1000.0
        by_arrow(monkeypatch, self._met)
        for module in (follower, health):
            monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: self.now))
        self.start()

    def _met(self, _: object) -> None:
        if self.broken:
            raise OSError(5, "Input/output error")

    def start(self) -> None:
        """As a fresh agent does."""
        spark = SimpleNamespace(session=object, live_session=object, give_up=lambda _: None)
        self.follower = FeedFollower(cast(Any, spark), 0.01, lambda *_: None)
        self.feed: LiveFeed = copying_feed(self.landing, self.copy, start=-1 if log.latest_version(self.copy) else 0)
        self.follower.follow("web", (self.feed,))
        self.after(0.0)

    def after(self, seconds: float) -> None:
        self.now += seconds
        self.follower._move_pipeline("web")

    def arrive(self, *numbers: int) -> None:
        write_deltalake(self.landing, rows(*numbers), mode="append", partition_by=["day"])

    @property
    def commits(self) -> int:
        return log.latest_version(self.copy)

    @property
    def committed(self) -> int:
        return self.feed.committed()


@pytest.fixture
def setup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> QuietFeedSetup:
    made = QuietFeedSetup(tmp_path, monkeypatch)
    assert made.committed == 1
    return made


def test_a_source_without_rows_for_longer_than_its_log_is_kept_is_gone_on_with_after_a_restart(
    setup: QuietFeedSetup,
) -> None:
    nights = 60
    for night in range(nights):
        setup.arrive()
        setup.after(DAY)
        if night == nights // 3:
            DeltaTable(setup.landing).create_checkpoint()
    newest = log.latest_version(setup.landing)
    for file in Path(setup.landing, "_delta_log").glob("0*"):
        at = time.time() - (newest - int(file.name[:20])) * DAY
        os.utime(file, (at, at))
    DeltaTable(setup.landing).cleanup_metadata()  # older than 30 days
    assert not Path(setup.landing, "_delta_log", f"{2:020}.json").exists()
    setup.start()
    setup.arrive(7)
    setup.after(1.0)
    assert setup.feed.health.stopped is None
    assert column_values(setup.copy) == [1, 7]


@pytest.mark.parametrize("restart", [False, True])
def test_a_position_over_commits_without_rows_is_committed_a_day_after_it_moved_and_an_hour_after_a_start(
    restart: bool, setup: QuietFeedSetup
) -> None:
    setup.after(HOUR)
    setup.arrive(5)
    setup.after(0.0)
    setup.after(0.0)  # sees where it stands now
    due = DAY
    if restart:
        setup.start()
        due = HOUR
    setup.arrive()
    before = setup.commits
    setup.after(due - 1)
    assert (setup.committed, setup.commits) == (2, before)
    setup.after(1.0)
    assert (setup.committed, setup.commits) == (3, before + 1)
    for _ in range(3):  # and nothing more while nothing more is to be seen
        setup.after(DAY)
    assert setup.commits == before + 1


@pytest.mark.parametrize("between", [0.5 * DAY, 0.9 * DAY])
def test_a_feed_that_moves_commits_nothing_but_its_rows(between: float, setup: QuietFeedSetup) -> None:
    setup.arrive(2)
    setup.after(0.0)
    before = setup.commits
    for n in range(6):
        setup.arrive(10 + n)
        setup.after(between / 2)
        setup.arrive()  # a compaction, say
        setup.after(between / 2)
    assert setup.commits == before + 6


def test_after_a_failure_a_session_is_asked_for_anew(setup: QuietFeedSetup) -> None:
    """So that a Spark which is of no more use is found by the feed that fails on it, where nobody else asks for one."""
    sessions = iter(range(9))
    setup.follower._session = SessionOnDemand(
        cast(
            Any,
            SimpleNamespace(
                session=lambda: next(sessions), live_session=lambda: next(sessions), give_up=lambda _: None
            ),
        )
    )
    setup.broken = True
    setup.arrive(2)
    setup.after(0.0)
    setup.after(LAST_SECONDS)
    assert next(sessions) == 2
