"""Feeds whose source gets commits without rows: how far their position follows. The real follower over real logs. No Java."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import follower
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed
from console.agent.resilience import health
from console.agent.resilience.health import LAST_SECONDS
from console.agent.store import log
from tests.agent.copying import by_arrow
from tests.faults.rules.tables import SCHEMA, edge, foreign, held, rows

HOUR, DAY = 3600.0, 24 * 3600.0


class Scene:
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
        spark = SimpleNamespace(session=object)
        self.follower = FeedFollower(cast(Any, spark), 0.01, lambda *_: None)
        self.edge: LiveFeed = edge(self.landing, self.copy, start=-1 if log.latest_version(self.copy) else 0)
        self.follower.follow("web", (self.edge,))
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
        return self.edge.committed()


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene(tmp_path, monkeypatch)
    assert made.committed == 1
    return made


def test_a_source_without_rows_for_longer_than_its_log_is_kept_is_gone_on_with_after_a_restart(scene: Scene) -> None:
    nights = 60
    for night in range(nights):
        scene.arrive()
        scene.after(DAY)
        if night == nights // 3:
            DeltaTable(scene.landing).create_checkpoint()
    newest = log.latest_version(scene.landing)
    for file in Path(scene.landing, "_delta_log").glob("0*"):
        at = time.time() - (newest - int(file.name[:20])) * DAY
        os.utime(file, (at, at))
    DeltaTable(scene.landing).cleanup_metadata()  # older than 30 days
    assert not Path(scene.landing, "_delta_log", f"{2:020}.json").exists()
    scene.start()
    scene.arrive(7)
    scene.after(1.0)
    assert scene.edge.health.stopped is None
    assert held(scene.copy) == [1, 7]


@pytest.mark.parametrize("restart", [False, True])
def test_a_position_over_commits_without_rows_is_committed_a_day_after_it_moved_and_an_hour_after_a_start(
    restart: bool, scene: Scene
) -> None:
    scene.after(HOUR)
    scene.arrive(5)
    scene.after(0.0)
    scene.after(0.0)  # sees where it stands now
    due = DAY
    if restart:
        scene.start()
        due = HOUR
    scene.arrive()
    before = scene.commits
    scene.after(due - 1)
    assert (scene.committed, scene.commits) == (2, before)
    scene.after(1.0)
    assert (scene.committed, scene.commits) == (3, before + 1)
    for _ in range(3):  # and nothing more while nothing more is to be seen
        scene.after(DAY)
    assert scene.commits == before + 1


@pytest.mark.parametrize("between", [0.5 * DAY, 0.9 * DAY])
def test_a_feed_that_moves_commits_nothing_but_its_rows(between: float, scene: Scene) -> None:
    scene.arrive(2)
    scene.after(0.0)
    before = scene.commits
    for n in range(6):
        scene.arrive(10 + n)
        scene.after(between / 2)
        scene.arrive()  # a compaction, say
        scene.after(between / 2)
    assert scene.commits == before + 6


def test_after_a_failure_a_session_is_asked_for_anew(scene: Scene) -> None:
    """So that a Spark which is of no more use is found by the feed that fails on it, where nobody else asks for one."""
    sessions = iter(range(9))
    scene.follower._spark = cast(Any, SimpleNamespace(session=lambda: next(sessions)))
    scene.follower._session = None
    scene.broken = True
    scene.arrive(2)
    scene.after(0.0)
    scene.after(LAST_SECONDS)
    assert next(sessions) == 2
