"""Rules 7 and 8, the decisions: which tables are ours, and which of their files and versions are still needed. No Java."""

from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace
from typing import Any, cast

import pytest
from deltalake import DeltaTable

from console.agent.errors import CompactionDiffers
from console.agent.feeds import app_ids
from console.agent.feeds.follower import FeedFollower
from console.agent.maintenance import maintainer
from console.agent.maintenance.compaction import Compacted, Crowd, crowded
from console.agent.maintenance.retention import cutoff
from console.agent.pipeline import PipelineController
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.errors import Conflict, DataError
from console.model.event import Accepted, Ended, Entered, Fenced
from console.model.live import Feed, Release, TableState
from console.model.newest import Newest
from console.model.step import Promote
from tests.faults.rules.tables import SCHEMA, commit_rows, foreign, number, rows, state
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

FEED = Feed(materialization="every", source="landing", target="copy", sql="SELECT n, day FROM landing")


def opened(place: Path) -> PipelineController:
    spark = SparkHandle(Settings(region="eu"), -1)
    return PipelineController(place, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu"))


def release(id: str, copy: str, *, managed: bool = True) -> Release:
    landing = state("landing", kind="landing", managed=managed)
    copied = state("copy")
    return Release(id=id, pipeline="web", digest="d", tables=(landing, moved(copied, copy)), feeds=(FEED,))


def moved(table: TableState, path: str) -> TableState:
    return replace(table, version=replace(table.version, path=path))


@pytest.fixture
def controller(tmp_path: Path) -> PipelineController:
    """r1 is live and has carried landing up to version 1; r2 is being built, has a fence, and nothing opened its feed."""
    foreign(tmp_path / "landing", *(rows(n) for n in range(4)))
    for path in ("copy/a-1", "copy/b-2"):
        DeltaTable.create(str(tmp_path / path), schema=SCHEMA, partition_by=["day"])
    first, second = release("r1", "copy/a-1"), release("r2", "copy/b-2")
    live = str(tmp_path / "copy/a-1")
    commit_rows(live, app_ids.live_id(live, FEED), number(3, 1), rows(0, 1))
    built = opened(tmp_path)
    built.releases.propose(first, "web-1", "ada", "laptop")
    built.releases.swap("", "r1", "ada", "laptop")
    built.releases.propose(second, "web-2", "ada", "laptop")
    plan = bare_plan(live="r1", steps=(Promote(),), release=second)
    built.recorder.accept(
        "web-2", plan, Accepted(release="r2", was="r1", plan="digest", by="ada", host="laptop", steps=(("promote", 0),))
    )
    built.recorder.store(Entered("backfilling"))
    built.recorder.store(Fenced(step="backfill/copy/every", source="landing", version=2, slices=1, rows=3))
    return built


def test_feeds_need_what_comes_after_their_position_and_a_rollout_its_fence(controller: PipelineController) -> None:
    landing = str(controller.warehouse / "landing")
    wanted = {
        (need.version, need.why.split(":")[1].split(" of ")[-1].strip())
        for need in maintainer.needs([controller])[landing]
    }
    assert wanted == {(1, "r1"), (-1, "r2"), (2, "backfill/copy/every")}
    controller.recorder.store(Ended("discarded", "ada"))
    controller.releases.drop("r2")
    assert [need.version for need in maintainer.needs([controller])[landing]] == [1]


def test_a_feed_whose_target_is_not_there_yet_may_want_everything(controller: PipelineController) -> None:
    rmtree(controller.warehouse / "copy" / "b-2")
    versions = {
        need.why.split(" of ")[-1]: need.version
        for need in maintainer.needs([controller])[str(controller.warehouse / "landing")]
    }
    assert versions["r2"] == -1


def test_what_others_write_is_never_touched(controller: PipelineController, tmp_path: Path) -> None:
    ours = {Path(path).relative_to(tmp_path).as_posix() for path in maintainer.owned_tables(controller)}
    assert ours == {"landing", "copy/a-1", "copy/b-2"}
    theirs = opened(tmp_path / "other")
    foreign(tmp_path / "other" / "landing", rows(1))
    theirs.releases.propose(release("r1", "copy/a-1", managed=False), "web-1", "ada", "laptop")
    assert maintainer.owned_tables(theirs) == {}
    with pytest.raises(DataError, match="keeps no table 'landing'"):
        maintainer.accept(
            theirs, FeedFollower(SparkHandle(Settings(region="eu"), -1), 1.0, lambda *_: None), "landing", "ada"
        )


def test_a_dry_run_names_what_is_crowded_and_changes_nothing_and_one_pass_goes_at_a_time(
    controller: PipelineController,
) -> None:
    tested = maintainer.Maintainer(SparkHandle(Settings(region="eu"), -1), lambda: [controller], lambda *_: None)
    before = [log.latest_version(path) for path in maintainer.owned_tables(controller)]
    done = tested.run(controller, maintainer.MaintenanceRequest(dry_run=True, many=4))
    assert done == (maintainer.MaintenanceResult("landing", "compacted", "day=2026-11-01: 4 files"),)
    assert [log.latest_version(path) for path in maintainer.owned_tables(controller)] == before
    tested._busy.acquire()
    with pytest.raises(Conflict, match="maintenance is running already"):
        tested.run(controller, maintainer.MaintenanceRequest(dry_run=True))


def sharing(place: Path, *declared: dict[str, Any]) -> TableState:
    """The one version that releases share, as maintenance sees it; each declares it in its own way, the first is the oldest."""
    DeltaTable.create(str(place / "copy/a-1"), schema=SCHEMA, partition_by=["day"])
    controller = opened(place)
    for n, more in enumerate(declared, 1):
        own = moved(state("copy", **more), "copy/a-1")
        controller.releases.propose(
            Release(id=f"r{n}", pipeline="web", digest="d", tables=(own,), feeds=()), f"web-{n}", "ada", "laptop"
        )
    (shared,) = maintainer.owned_tables(controller).values()
    return shared


BY_DAY: dict[str, Any] = {"time": "day"}


@pytest.mark.parametrize("days", [(30, 90), (90, 30), (30, 90, 60)])
def test_a_version_that_releases_share_keeps_its_rows_as_long_as_any_of_them_says(
    tmp_path: Path, days: tuple[int, ...]
) -> None:
    shared = sharing(tmp_path, *({**BY_DAY, "retention_days": n} for n in days))
    today = date(2026, 11, 21)
    assert cutoff(shared, today) == today - timedelta(days=90)


@pytest.mark.parametrize("other", [BY_DAY, *({"time": time, "retention_days": 30} for time in ("at", "", "time"))])
def test_it_keeps_them_for_ever_where_one_says_so_or_tells_their_age_otherwise(
    tmp_path: Path, other: dict[str, Any]
) -> None:
    short = {**BY_DAY, "retention_days": 30}
    for n, both in enumerate([(short, other), (other, short), (short, other, short)]):
        assert cutoff(sharing(tmp_path / str(n), *both), date(2026, 11, 21)) is None


def test_a_table_that_a_compaction_changed_is_reported_once_and_never_compacted_again(
    controller: PipelineController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowded table whose compaction loses a row; it is found in the hourly pass, an operator asks later."""
    controller.recorder.store(Ended("discarded", "ada"))
    tried: list[str] = []
    vacuumed: list[str] = []
    reports: list[tuple[str, str, str]] = []

    def lossy(session: Any, table: str, *_: Any) -> None:
        tried.append(table)
        raise CompactionDiffers(f"{table}: compaction in version 4 changed it", hint="RESTORE it")

    monkeypatch.setattr(maintainer, "compact", lossy)
    monkeypatch.setattr(maintainer, "vacuum", lambda _, table: vacuumed.append(table))
    monkeypatch.setattr(maintainer, "crowded", lambda table, _: crowded(table, 4))
    spark = SimpleNamespace(session=lambda **_: None, build_session=lambda: None, build_tasks=1)
    tested = maintainer.Maintainer(cast(Any, spark), lambda: [controller], lambda *each: reports.append(each))
    landing = str(controller.warehouse / "landing")
    for _ in range(2):
        tested._compact_all(controller)
    assert tried == [landing]
    assert reports == [
        ("web", "error", f"maintenance: {landing}: compaction in version 4 changed it [E_COMPACTION]; RESTORE it")
    ]
    done = tested.run(controller, maintainer.MaintenanceRequest(many=4))
    assert [(each.what, "[E_COMPACTION]" in each.detail) for each in done if each.table == "landing"] == [
        ("left", True)
    ]
    assert tried == [landing]
    assert vacuumed == [path for path in maintainer.owned_tables(controller) if path != landing]


def test_a_compaction_leaves_a_slot_to_live_rows(
    controller: PipelineController, monkeypatch: pytest.MonkeyPatch
) -> None:
    controller.recorder.store(Ended("discarded", "ada"))
    sessions: list[object] = []
    written: list[int] = []

    def compacted(session: Any, table: str, crowd: Crowd, most_tasks: int, state: TableState) -> Compacted:
        written.append(most_tasks)
        sessions.append(session)
        return Compacted(crowd, 1, 4)

    monkeypatch.setattr(maintainer, "compact", compacted)
    monkeypatch.setattr(maintainer, "vacuum", lambda *_: None)
    spark = SimpleNamespace(session=lambda: None, build_session=lambda: "of a build", build_tasks=3)
    maintainer.Maintainer(cast(Any, spark), lambda: [controller], lambda *_: None).run(
        controller, maintainer.MaintenanceRequest(many=4)
    )
    assert (written, sessions) == ([3], ["of a build"])


def test_rows_expire_never_beside_a_rollout(controller: PipelineController) -> None:
    tested = maintainer.Maintainer(SparkHandle(Settings(region="eu"), -1), lambda: [controller], lambda *_: None)
    short = state("copy", retention_days=1, time="day")
    (done,) = tested._expire(controller, "", short, maintainer.MaintenanceRequest(expire=True))
    assert (done.what, "a rollout is under way" in done.detail) == ("left", True)


def test_a_table_of_newest_rows_is_compacted_never_beside_a_rollout(
    controller: PipelineController, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction removes rows that newer batches have replaced, and the rollout's receipts would count what is left."""
    newest = Newest(key=("n",), order=("day",), tie=(), bucket=False, merged="SELECT * FROM stored")
    landing, copied = str(controller.warehouse / "landing"), replace(state("copy"), newest=newest)
    tried: list[str] = []
    monkeypatch.setattr(maintainer, "compact", lambda _, path, crowd, *__: tried.append(path) or Compacted(crowd, 1, 4))
    spark = SimpleNamespace(session=lambda: None, build_session=lambda: None, build_tasks=1)
    tested = maintainer.Maintainer(cast(Any, spark), lambda: [controller], lambda *_: None)
    request = maintainer.MaintenanceRequest(many=4)
    assert tested._compact(controller, landing, copied, maintainer.MaintenanceRequest(many=5)) == []
    (left,) = tested._compact(controller, landing, copied, request)
    assert (left.what, "a rollout is under way" in left.detail, tried) == ("left", True, [])
    controller.recorder.store(Ended("discarded", "ada"))
    (done,) = tested._compact(controller, landing, copied, request)
    assert (done.what, tried) == ("compacted", [landing])
