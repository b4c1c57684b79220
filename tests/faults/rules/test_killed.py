"""Killed around a copy's commit and around a column added in place: whoever goes on ends the same, and nothing enters twice."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from console.agent import queries
from console.agent.pipeline import PipelineController
from console.agent.resilience.quarantine import Quarantine
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.errors import RegionError
from console.model.event import Accepted, BatchDone
from console.model.live import Feed, Release
from console.model.pipeline import Copy
from console.model.schema import Column
from console.model.step import AddColumns, Backfill, CreateTable, Fragile, Promote
from tests.faults.rules import another
from tests.faults.rules.tables import COLUMNS, column_values, commit_rows, foreign, rows, state
from tests.plans import bare_plan

pytestmark = [pytest.mark.faults, pytest.mark.spark]
LANDING = state("landing", kind="landing", managed=True)
DAILY = Copy(name="daily", into="daily_totals", sql="SELECT n, day FROM landing WHERE n < 3", mode="append")
APP = "copy/web/daily/run-1"


def live(warehouse: Path, spark: SparkHandle, copy: Copy = DAILY) -> PipelineController:
    """A region whose live release has a landing table of four rows and one copy."""
    foreign(warehouse / "landing", rows(0, 1), rows(2, 3))
    opened = another.line(warehouse, spark)
    opened.releases.propose(
        Release(id="r1", pipeline="web", digest="d", tables=(LANDING,), feeds=(), copies=(copy,)),
        "web-1",
        "ada",
        "laptop",
    )
    opened.releases.swap("", "r1", "ada", "laptop")
    return opened


def copied(opened: PipelineController, spark: SparkHandle, run: str = "run-1") -> tuple[int, bool]:
    done = queries.run_copy(queries.PipelineReader(opened), spark, "daily", run, "ada")
    return done["rows"], done["already"]


def place(warehouse: Path) -> str:
    return str(warehouse / "daily_totals" / "copy")


def entered(session: Any, warehouse: Path) -> list[int]:
    """The copy's rows, sorted; through Spark, for the table has whatever the inventory switches on."""
    if not log.exists(place(warehouse)):
        return []
    return sorted(row.n for row in session.read.format("delta").load(place(warehouse)).collect())


@pytest.mark.parametrize(("point", "seen", "report"), [("before-commit-copy", 0, (3, False)), ("after-commit-copy", 3, (0, True))])  # fmt: skip
def test_a_copy_that_was_killed_and_asked_for_again_has_its_rows_once(
    tmp_path: Path, spark: SparkHandle, session: Any, point: str, seen: int, report: tuple[int, bool]
) -> None:
    lake = tmp_path / "lake"
    opened = live(lake, spark)
    another.dies(session, tmp_path / "armed", point, lake, "copy", "run-1")
    assert len(entered(session, lake)) == seen
    assert copied(opened, spark) == report
    assert copied(opened, spark) == (0, True), "and again"
    assert entered(session, lake) == [0, 1, 2]
    assert copied(opened, spark, "run-2") == (3, False), "another run is one of its own"
    assert entered(session, lake) == [0, 0, 1, 1, 2, 2]


def test_a_copy_that_replaces_is_not_done_anew_by_asking_again(tmp_path: Path, spark: SparkHandle) -> None:
    opened = live(tmp_path, spark, replace(DAILY, mode="replace"))
    foreign(Path(place(tmp_path)), rows(7))
    assert copied(opened, spark) == (3, False)
    foreign(tmp_path / "landing", rows(1))
    assert copied(opened, spark) == (0, True)
    assert column_values(place(tmp_path)) == [0, 1, 2]


def test_two_who_ask_for_one_run_at_once_have_one(tmp_path: Path, spark: SparkHandle, session: Any) -> None:
    opened = live(tmp_path, spark)
    with ThreadPoolExecutor(3) as pool:
        messages = list(pool.map(lambda _: copied(opened, spark), range(3)))
    assert sorted(messages) == [(0, True), (0, True), (3, False)]
    assert entered(session, tmp_path) == [0, 1, 2]


def test_who_waits_for_a_run_that_goes_on_comes_back_later_and_holds_no_thread_of_the_agents(
    tmp_path: Path, spark: SparkHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = live(tmp_path, spark)
    monkeypatch.setattr(queries, "WAIT_SECONDS", 0.1)
    with (
        queries._exclusive(place(tmp_path)),
        pytest.raises(RegionError, match="another run has been writing it") as error,
    ):
        copied(opened, spark)
    assert error.value.code == "E_BUSY"
    assert not log.exists(place(tmp_path))


def at(monkeypatch: pytest.MonkeyPatch, point: str, do: Callable[[], object]) -> None:
    monkeypatch.setattr("console.crash.point", lambda name: do() if name == point else None)


def test_a_first_try_that_commits_while_it_is_asked_for_again_counts_and_no_second_does(
    tmp_path: Path, spark: SparkHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Spark job of a call that broke goes on: it commits between its successor's look at the log and its write."""
    opened = live(tmp_path, spark)
    foreign(Path(place(tmp_path)), rows(7))
    at(monkeypatch, "before-commit-copy", lambda: commit_rows(place(tmp_path), APP, 1, rows(0, 1, 2), kind="copy"))
    assert copied(opened, spark) == (3, False)
    assert column_values(place(tmp_path)) == [0, 1, 2, 7]


def test_a_copys_commit_that_is_not_in_the_log_is_no_success(
    tmp_path: Path, spark: SparkHandle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a local disk Delta may tell two writers that they won the same version (docs/design.md, P4)."""
    opened = live(tmp_path, spark)
    foreign(Path(place(tmp_path)), rows(7))
    lost = Path(place(tmp_path)) / "_delta_log" / f"{1:020}.json"
    at(monkeypatch, "after-commit-copy", lost.unlink)
    with pytest.raises(RegionError, match="not in the table's log") as error:
        copied(opened, spark)
    assert error.value.code == "E_NO_COMMIT"


@pytest.mark.parametrize(("point", "there"), [("before-commit-columns", False), ("after-commit-columns", True)])
def test_killed_around_a_column_added_in_place_the_rollout_reaches_its_gate_with_that_column_once(
    tmp_path: Path, spark: SparkHandle, session: Any, point: str, there: bool
) -> None:
    lake = tmp_path / "lake"
    opened, note = live(lake, spark), Column(name="note", type="string")
    wider = state("landing", (*COLUMNS, note), kind="landing", managed=True)
    step, release = (
        AddColumns("landing", (note,)),
        Release(id="r2", pipeline="web", digest="d2", tables=(wider,), feeds=()),
    )
    plan = bare_plan(desired="d2", live="r1", steps=(step, Promote()), release=release)
    opened.releases.propose(release, "web-2", "ada", "laptop")
    steps = ((step.id, 0), ("promote", 0))
    opened.recorder.accept(
        "web-2", plan, Accepted(release="r2", was="r1", plan="", by="ada", host="laptop", steps=steps)
    )
    another.dies(session, tmp_path / "armed", point, lake, "carry")
    landing = str(lake / "landing")
    assert (columns(landing) == ["n", "day", "note"]) is there
    again = another.line(lake, spark)
    assert again.recorder.status.state == "preparing", "it died in the middle of the step"
    assert another.carried(again) == "awaiting-confirmation"
    again.halt()
    assert columns(landing) == ["n", "day", "note"]
    notes = [log.commit(landing, version).note for version in range(log.latest_version(landing) + 1)]
    assert notes.count({"kind": "add columns"}) == 1
    assert column_values(landing) == [0, 1, 2, 3]


@pytest.mark.parametrize(("point", "written"), [("before-quarantine", 0), ("after-quarantine", 1)])
def test_killed_around_what_a_batch_set_aside_it_is_written_once_and_the_batch_is_not_carried_again(
    tmp_path: Path, spark: SparkHandle, session: Any, point: str, written: int
) -> None:
    lake = tmp_path / "lake"
    opened, sql = live(lake, spark), "SELECT CAST(IF(n = 3, 'none', n) AS BIGINT) AS n, day FROM landing"
    release = Release(
        id="r2",
        pipeline="web",
        digest="d2",
        tables=(LANDING, state("parsed")),
        feeds=(Feed(materialization="parse", source="landing", target="parsed", sql=sql),),
    )
    history = Backfill(
        materialization="parse",
        source="landing",
        target="parsed",
        route="replay",
        sql=sql,
        time="",
        rows=4,
        bytes=1,
        days=1,
        batches=1,
        fragile=Fragile("n = 3", ("n",)),
    )
    steps = (CreateTable("parsed"), history, Promote())
    plan = bare_plan(desired="d2", live="r1", steps=steps, release=release, quarantine_rows=1)
    opened.releases.propose(release, "web-2", "ada", "laptop")
    opened.recorder.accept(
        "web-2",
        plan,
        Accepted(release="r2", was="r1", plan="", by="ada", host="laptop", steps=tuple((s.id, 0) for s in steps)),
    )
    another.dies(session, tmp_path / "armed", point, lake, "carry")
    quarantine = Quarantine(lake / "_console" / "web")
    assert len(quarantine.rows("web-2")) == written
    again = another.line(lake, spark)
    assert another.carried(again) == "awaiting-confirmation"
    again.halt()
    assert [row["key"] for row in quarantine.rows("web-2")] == ["n=3"]
    assert column_values(str(lake / "parsed")) == [0, 1, 2]
    assert [done.quarantined for done in again.recorder.events(BatchDone)] == [1]


def columns(table: str) -> list[str]:
    return [field["name"] for field in json.loads(DeltaTable(table).schema().to_json())["fields"]]
