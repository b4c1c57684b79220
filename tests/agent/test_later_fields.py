"""Fields added after 0.1.0 are stored beside its rows, so that 0.1.0 reads no unknown key."""

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from console.agent.store.ledger import Releases, Rollouts
from console.errors import RegionError
from console.model import beside, codec
from console.model.event import Accepted, Ailing, Checked, Entered, Lagging, Progress
from console.model.fleet import FleetWaves
from console.model.live import Feed, Live, Release, TableStats, Terms
from console.model.status import Status
from console.model.step_status import StepStatus

pytestmark = pytest.mark.slow

WAVES = FleetWaves("f1", (("eu",), ("us", "tr")), (("eu", "d1"),))
ACCEPTED = Accepted(release="r1", was="", plan="p", by="ada", host="laptop", steps=(("promote", 0),), fleet=WAVES)
CHECKED = Checked(table="by_hour", check="live rows", ok=True, detail="the same", commits=3, rows=17)
FEEDS = (
    Feed(materialization="parse", source="landing", target="requests", sql="SELECT 1"),
    Feed(
        materialization="hours",
        source="requests",
        target="by_hour",
        sql="SELECT 2",
        terms=Terms(keys=("day",), sums=("mean__sum",)),
    ),
)
RELEASE = Release(id="r1", pipeline="web", digest="d", tables=(), feeds=FEEDS)
LATER = {"terms", "fleet", "commits", "rows"}


def rows(warehouse: Path, table: str) -> list[dict[str, str]]:
    result: list[dict[str, str]] = (
        DeltaTable(str(warehouse / "_console" / "web" / table)).to_pyarrow_table().to_pylist()
    )
    return result


def keys(data: object) -> set[str]:
    match data:
        case dict():
            return set(data) | {key for value in data.values() for key in keys(value)}
        case list():
            return {key for item in data for key in keys(item)}
    return set()


def test_a_row_has_no_word_that_0_1_0_does_not_know_and_is_read_whole(tmp_path: Path) -> None:
    releases, rollouts = Releases(tmp_path, "web"), Rollouts(tmp_path, "web")
    releases.propose(RELEASE, "web-1", "ada", "laptop")
    for seq, event in enumerate((ACCEPTED, Entered("validating"), CHECKED), 1):
        rollouts.append("web-1", seq, event)
    stored = [json.loads(row["manifest"]) for row in rows(tmp_path, "releases")]
    stored += [json.loads(row["event"]) for row in rows(tmp_path, "rollouts")]
    assert not keys(stored) & LATER
    assert [release.release for release in Releases(tmp_path, "web").all()] == [RELEASE]
    messages = tuple(recorded.event for recorded in Rollouts(tmp_path, "web").events("web-1"))
    assert messages == (ACCEPTED, Entered("validating"), CHECKED)


def test_what_stands_beside_a_row_that_was_never_written_is_no_other_rows(tmp_path: Path) -> None:
    rollouts = Rollouts(tmp_path, "web")
    rollouts.append("web-1", 1, ACCEPTED)
    (row,) = rows(tmp_path, "rollouts")
    beside = tmp_path / "_console" / "web" / "beside"
    (beside / "web-1.1.json").rename(beside / "web-1.2.json")  # as if its writer had died in front of the row
    rollouts.append("web-1", 2, Entered("validating"))
    first, second = rollouts.events("web-1")
    assert row["event"] in {item["event"] for item in rows(tmp_path, "rollouts")}
    assert isinstance(first.event, Accepted)
    assert first.event.fleet is None
    assert second.event == Entered("validating")


def test_a_damaged_file_beside_is_named(tmp_path: Path) -> None:
    rollouts = Rollouts(tmp_path, "web")
    rollouts.append("web-1", 1, CHECKED)
    (tmp_path / "_console" / "web" / "beside" / "web-1.1.json").write_text('{"of": "')
    with pytest.raises(RegionError, match=r"beside/web-1\.1\.json cannot be read") as error:
        rollouts.events("web-1")
    assert error.value.code == "E_LOG_DAMAGED"


def test_a_release_that_is_dropped_leaves_nothing_beside(tmp_path: Path) -> None:
    releases = Releases(tmp_path, "web")
    releases.propose(RELEASE, "web-1", "ada", "laptop")
    releases.drop("r1")
    assert list((tmp_path / "_console" / "web" / "beside").iterdir()) == []


def test_a_console_that_has_not_said_that_it_knows_them_is_told_no_later_words() -> None:
    lagging = Lagging(
        commits=1,
        rows=2,
        seconds=3.0,
        ailing=(Ailing(feed="parse", target="requests", path="requests/1", tries=3, standing=True, why="x"),),
    )
    status = Status(
        rollout="web-1",
        steps=(StepStatus(id="backfill/requests/parse", planned=7),),
        fleet=WAVES,
        ailing=lagging.ailing,
    )
    progress = Progress(step="backfill/requests/parse", rows=3, left=4, batch="2026-11-07")
    stats = TableStats(
        name="landing",
        path="landing",
        version=1,
        rows=2,
        bytes=3,
        files=1,
        columns=(),
        reader=("variantType",),
        uncounted=1,
        finer=("ts",),
    )
    for value, later in (
        (
            Live(region="eu", pipeline="web", release=RELEASE, releases=(), stats=(stats,)),
            {"reader", "uncounted", "finer", "terms"},
        ),
        (progress, {"batch"}),
        (lagging, {"ailing"}),
        ([status], {"ailing", "planned", "fleet"}),
    ):
        assert keys(codec.encode(value)) >= later
        assert not keys(beside.split(value)[0]) & later
