"""Rules 7 and 8, the part that decides: which tables are ours, who still needs what of them. No Java."""

from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from console.agent.feeds import once
from console.agent.feeds.follow import Follower
from console.agent.line import Line
from console.agent.session import Settings, Spark
from console.agent.store import log
from console.agent.upkeep import keeper
from console.errors import Conflict, DataError
from console.model.event import Accepted, Ended, Entered, Fenced
from console.model.live import Feed, Release, TableState
from console.model.plan import Plan
from console.model.step import Promote
from tests.faults.rules.tables import SCHEMA, commit, foreign, number, rows, state

FEED = Feed("every", "landing", "copy", "SELECT n, day FROM landing")


def opened(place: Path) -> Line:
    spark = Spark(Settings("eu"), -1)
    return Line(place, "web", spark, Follower(spark, 1.0, lambda *_: None), Settings("eu"))


def release(id: str, copy: str, *, managed: bool = True) -> Release:
    landing = state("landing", kind="landing", managed=managed)
    made = state("copy")
    return Release(id, "web", "d", (landing, moved(made, copy)), (FEED,))


def moved(made: TableState, path: str) -> TableState:
    return replace(made, version=replace(made.version, path=path))


@pytest.fixture
def line(tmp_path: Path) -> Line:
    """r1 is live and has carried landing up to version 1; r2 is being built, has a fence, and nothing opened its feed."""
    foreign(tmp_path / "landing", *(rows(n) for n in range(4)))
    for path in ("copy/a-1", "copy/b-2"):
        DeltaTable.create(str(tmp_path / path), schema=SCHEMA, partition_by=["day"])
    first, second = release("r1", "copy/a-1"), release("r2", "copy/b-2")
    live = str(tmp_path / "copy/a-1")
    commit(live, once.live_id(live, FEED), number(3, 1), rows(0, 1))
    found = opened(tmp_path)
    found.releases.propose(first, "web-1", "ada", "laptop")
    found.releases.swap("", "r1", "ada", "laptop")
    found.releases.propose(second, "web-2", "ada", "laptop")
    plan = Plan(1, "t", "web", "eu", "d", "r1", "c", (), (Promote(),), second)
    found.recorder.accept("web-2", plan, Accepted("r2", "r1", "digest", "ada", "laptop", (("promote", 0),)))
    found.recorder.store(Entered("backfilling"))
    found.recorder.store(Fenced("backfill/copy/every", "landing", 2, 1, 3))
    return found


def test_feeds_need_what_comes_after_their_position_and_a_rollout_its_fence(line: Line) -> None:
    landing = str(line.warehouse / "landing")
    wanted = {
        (need.version, need.why.split(":")[1].split(" of ")[-1].strip()) for need in keeper.needs([line])[landing]
    }
    assert wanted == {(1, "r1"), (-1, "r2"), (2, "backfill/copy/every")}
    line.recorder.store(Ended("discarded", "ada"))
    line.releases.drop("r2")
    assert [need.version for need in keeper.needs([line])[landing]] == [1]


def test_what_others_write_is_never_touched(line: Line, tmp_path: Path) -> None:
    ours = {Path(path).relative_to(tmp_path).as_posix() for path in keeper.ours(line)}
    assert ours == {"landing", "copy/a-1", "copy/b-2"}
    theirs = opened(tmp_path / "other")
    foreign(tmp_path / "other" / "landing", rows(1))
    theirs.releases.propose(release("r1", "copy/a-1", managed=False), "web-1", "ada", "laptop")
    assert keeper.ours(theirs) == {}
    with pytest.raises(DataError, match="keeps no table 'landing'"):
        keeper.accept(theirs, Follower(Spark(Settings("eu"), -1), 1.0, lambda *_: None), "landing", "ada")


def test_a_dry_run_names_what_is_crowded_and_changes_nothing_and_one_pass_goes_at_a_time(line: Line) -> None:
    kept = keeper.Keeper(Spark(Settings("eu"), -1), lambda: [line], lambda *_: None)
    before = [log.latest_version(path) for path in keeper.ours(line)]
    done = kept.keep(line, keeper.Wish(dry_run=True, many=4))
    assert done == (keeper.Done("landing", "compacted", "day=2026-11-01: 4 files"),)
    assert [log.latest_version(path) for path in keeper.ours(line)] == before
    kept._busy.acquire()
    with pytest.raises(Conflict, match="being kept already"):
        kept.keep(line, keeper.Wish(dry_run=True))


def test_rows_expire_never_beside_a_rollout(line: Line) -> None:
    kept = keeper.Keeper(Spark(Settings("eu"), -1), lambda: [line], lambda *_: None)
    short = state("copy", retention_days=1, time="day")
    (done,) = kept._expire(line, "", short, keeper.Wish(expire=True))
    assert (done.what, "a rollout is under way" in done.detail) == ("left", True)
