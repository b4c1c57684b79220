"""Far days without Spark: the survey's, the profile's and compaction's reading of a log. Truth is integers."""

import json
import random
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.maintenance.compaction import crowded
from console.agent.recount.files import VersionFiles
from console.agent.recount.pinned_tables import Pinned
from console.agent.store.profile import Budget, profile
from console.agent.store.table_stats import table_stats
from console.errors import Unreachable
from console.model.live import Day, TableState, Version
from console.model.schema import Column, Table
from console.model.slices import EARLY, LATE, day_name
from tests.days import draw

pytestmark = pytest.mark.slow

WRITTEN = {"ts": pa.timestamp("us", "UTC"), "day": pa.date32()}


def land(place: Path, times: list[int | None], column: str = "ts", partition_by: list[str] | None = None) -> str:
    """One file of rows of these times (or days of these times)."""
    kind = WRITTEN[column]
    numbers = [None if time is None else time // (draw.A_DAY if column == "day" else 1) for time in times]
    stored = pa.array(numbers, pa.int32() if column == "day" else pa.int64()).cast(kind)
    texts = pa.array([json.dumps({"key": 1})] * len(times), pa.string())
    data = pa.table({"payload": texts, column: stored})
    write_deltalake(str(place), data, mode="append", partition_by=partition_by)
    return str(place)


def rows_by_day(place: str, column: str) -> dict[str, tuple[int, bool]]:
    stats = table_stats("landing", place, column)
    assert stats is not None
    return {day.day: (day.rows, day.exact) for day in stats.days}


@pytest.mark.parametrize("seed", range(draw.SEED, draw.SEED + 5))
def test_a_date_of_any_year_is_told_by_name_and_exactly_where_each_file_holds_one(tmp_path: Path, seed: int) -> None:
    times = [
        time for time in draw.times(random.Random(seed), 40) if time is None or abs(time) < 90_000 * 366 * draw.A_DAY
    ]
    truth: dict[str, tuple[int, bool]] = {}
    for time in times:
        land(tmp_path / "t", [time], "day")
        name = "" if time is None else draw.name(time) or day_name(time // draw.A_DAY)
        truth[name] = (truth.get(name, (0, True))[0] + 1, True)
    assert rows_by_day(str(tmp_path / "t"), "day") == truth


def test_a_time_in_five_digits_is_known_to_lie_outside_though_no_log_is_read_that_says_so(tmp_path: Path) -> None:
    late, early = draw.NAMED["milliseconds for seconds"], draw.NAMED["the year -1"]
    usual = day_name(draw.USUAL // draw.A_DAY)
    assert rows_by_day(land(tmp_path / "late", [draw.USUAL, late]), "ts") == {usual: (1, False), LATE: (1, False)}
    assert rows_by_day(land(tmp_path / "early", [draw.USUAL, early]), "ts") == {usual: (1, False), EARLY: (1, False)}
    assert rows_by_day(land(tmp_path / "both", [early, late]), "ts") == {EARLY: (1, False), LATE: (1, False)}
    assert rows_by_day(land(tmp_path / "only", [late, None]), "ts") == {
        "": (1, True),
        EARLY: (1, False),
        LATE: (0, False),
    }
    assert rows_by_day(land(tmp_path / "usual", [draw.USUAL, None]), "ts") == {"": (1, True), usual: (1, True)}
    assert rows_by_day(land(tmp_path / "none", [None]), "ts") == {"": (1, True)}


def test_a_table_whose_log_tells_nothing_of_its_times_has_rows_without_a_day(tmp_path: Path) -> None:
    place = land(tmp_path / "t", [draw.USUAL, draw.USUAL])
    for file in (tmp_path / "t/_delta_log").glob("*.json"):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for line in lines:
            if "add" in line:
                line["add"]["stats"] = json.dumps({"numRecords": 2})
        file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert rows_by_day(place, "ts") == {"": (2, True)}


def test_a_partition_that_nobody_can_read_is_refused_by_the_tables_name(tmp_path: Path) -> None:
    place = land(tmp_path / "t", [draw.USUAL], "day", ["day"])
    for file in (tmp_path / "t/_delta_log").glob("*.json"):
        file.write_text(file.read_text().replace('"day":"2026-11-01"', '"day":"+294247-01-10"'))
    with pytest.raises(Unreachable, match=r"^landing: .*294247"):
        table_stats("landing", place, "day")


def test_far_partitions_are_told_and_passed_by_compaction(tmp_path: Path) -> None:
    """As an older console let them in."""
    place = str(tmp_path / "t")
    times = [
        draw.USUAL,
        draw.NAMED["milliseconds for seconds"],
        draw.NAMED["the first"],
        draw.NAMED["the year -1"],
        None,
    ]
    for _ in range(3):
        land(tmp_path / "t", times, "day", ["day"])
    assert rows_by_day(place, "day") == {
        "": (3, True), EARLY: (3, True), "0001-01-01": (3, True), "2026-11-01": (3, True), LATE: (3, True),
    }  # fmt: skip
    assert {crowd.label for crowd in crowded(place, many=3)} == {"day=2026-11-01", "day=0001-01-01", "day=NULL"}
    land(tmp_path / "ts", [time for time in draw.NAMED.values() if abs(time) < draw.FARTHEST])
    assert [crowd.rows for crowd in crowded(str(tmp_path / "ts"), many=1)] == [len(draw.NAMED)]


@pytest.mark.parametrize("column", ["ts", "day"])
def test_a_profile_knows_far_days_by_name(tmp_path: Path, column: str) -> None:
    times = [draw.USUAL, draw.NAMED["milliseconds for seconds"], draw.NAMED["the year -1"], draw.NAMED["the first"]]
    for time in [*times, None]:
        land(tmp_path / "t", [time], column)
    result = profile(str(tmp_path / "t"), "payload", column, Budget(bytes=10**9, seconds=60.0))
    assert [(key["key"], key["first_seen"], key["sure"]) for key in result["keys"]] == [("key", EARLY, True)]
    assert result["rows"] == 5


def test_days_without_a_name_share_what_the_log_says_of_them(tmp_path: Path) -> None:
    for year in (20_000, 30_000, 40_000):
        land(tmp_path / "t", [year * 366 * draw.A_DAY], "day")
    stats = table_stats("landing", str(tmp_path / "t"), "day")
    assert stats is not None
    size = sum(DeltaTable(str(tmp_path / "t")).get_add_actions(flatten=True).column("size_bytes").to_pylist())
    assert stats.days == (Day(LATE, 3, size),)


@pytest.mark.parametrize("column", ["ts", "day"])
def test_files_of_far_days_are_told_to_whoever_computes_live_commits_again(tmp_path: Path, column: str) -> None:
    times = [draw.USUAL, draw.NAMED["milliseconds for seconds"], draw.NAMED["before the first"], None]
    place = str(tmp_path / "t")
    for time in times:
        place = land(tmp_path / "t", [time], column, ["day"] if column == "day" else None)
    kind = "date" if column == "day" else "timestamp"
    table = Table(
        name="landing",
        kind="landing",
        columns=(Column(name="payload", type="string"), Column(name=column, type=kind)),
        time=column,
    )
    stored = VersionFiles.of(
        Pinned(
            TableState(
                table=table,
                version=Version(content="c", path=place, columns=table.columns),
                read="",
                rows="",
                values={},
            ),
            place,
            3,
        ),
        3,
    )
    if column == "day":
        assert {file.part for file in stored.files.values()} == {(time and time // draw.A_DAY,) for time in times}
    else:
        cut = draw.NAMED["before the first"] // 1000 * 1000  # statistics are in milliseconds
        assert {(file.low, file.high) for file in stored.files.values()} == {
            (draw.USUAL, draw.USUAL), (cut, cut), (None, None),
        }  # fmt: skip
