"""Rules 7 and 8 from the log alone: which files may be deleted, and which partitions are worth a compaction. No Java."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from console.agent.maintenance import vacuum
from console.agent.maintenance.compaction import MANY, MOST_BYTES, SMALL_BYTES, Crowd, crowded
from console.agent.maintenance.vacuum import Need, blocking_need, kept_hours
from console.agent.store import log
from console.errors import RegionError
from tests.faults.rules.tables import SCHEMA, foreign, rows

pytestmark = pytest.mark.slow

NOW = 1_800_000_000.0
HOUR_MS = 3_600_000
KEPT = "delta.deletedFileRetentionDuration"


def by_hand(table: str, *actions: dict[str, Any]) -> int:
    """One more commit, as anyone may write it."""
    version = log.latest_version(table) + 1
    path = Path(table) / "_delta_log" / f"{version:020}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))
    return version


def removed(hours: float | None, name: str = "f") -> dict[str, Any]:
    """A file that was removed so long before NOW; None: nobody says when."""
    stamp = {} if hours is None else {"deletionTimestamp": int(NOW * 1000 - hours * HOUR_MS)}
    return {"remove": {"path": f"day=2026-11-01/{name}.parquet", "dataChange": True, **stamp}}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """It keeps removed files for ten days; versions 0 and 1 are appends. The clock stands."""
    monkeypatch.setattr(vacuum.time, "time", lambda: NOW)
    path = foreign(tmp_path / "copy", rows(1), rows(2))
    by_hand(path, {"metaData": {**_metadata(path), "configuration": {KEPT: "interval 10 days"}}})
    return path


def _metadata(table: str) -> dict[str, Any]:
    lines = (json.loads(line) for line in log.action_lines(table, 0))
    metadata: dict[str, Any] = next(line["metaData"] for line in lines if "metaData" in line)
    return metadata


def test_a_file_is_missed_by_who_reads_a_version_before_its_removal_once_its_time_is_over(table: str) -> None:
    by_hand(table, removed(238.9))
    by_hand(table, removed(239, "g"), removed(1, "h"))  # an hour is left for the time between stamp and commit
    assert blocking_need(table, [Need(version, "") for version in range(6)]) is None
    late = by_hand(table, removed(1), removed(239.0001, "g"))
    needs = [Need(version, f"version {version}") for version in (late, 4, 0)]
    assert blocking_need(table, needs) == needs[2], "the oldest first"
    assert blocking_need(table, needs[:2]) == needs[1]
    assert blocking_need(table, [Need(late - 1, "")]) is not None
    assert blocking_need(table, [Need(late, "")]) is None
    assert blocking_need(table, []) is None


def test_each_of_those_who_need_a_version_is_asked_until_one_would_miss_a_file(table: str) -> None:
    old = by_hand(table, removed(1000))
    newer, older = Need(old, "read it all"), Need(old - 1, "has it before itself")
    assert blocking_need(table, [newer]) is None
    assert blocking_need(table, [newer, older]) == older


def test_a_removal_that_nobody_dates_is_old(table: str) -> None:
    by_hand(table, removed(None))
    assert blocking_need(table, [Need(0, "")]) is not None


def test_what_only_speaks_of_removing_removes_nothing(table: str) -> None:
    by_hand(table, {"commitInfo": {"operation": "WRITE", "operationParameters": {"remove": "1"}}})
    assert blocking_need(table, [Need(0, "")]) is None


def test_where_the_log_no_longer_tells_nothing_may_be_deleted(table: str) -> None:
    DeltaTable(table).create_checkpoint()
    (Path(table) / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(RegionError) as refused:
        blocking_need(table, [Need(0, "")])
    assert refused.value.code == "E_LOG_GONE"
    assert blocking_need(table, [Need(1, "")]) is None


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("", 168),
        ("interval 10 days", 240),
        ("interval 1 week", 168),
        ("interval 2 weeks 1 day 3 hours", 363),
        ("INTERVAL 90 minutes", 1.5),
        ("30 seconds", 1 / 120),
        ("interval 1.5 days", 36),
    ],
)
def test_a_table_says_how_long_it_keeps_what_was_removed(table: str, text: str, hours: float) -> None:
    by_hand(table, {"metaData": {**_metadata(table), "configuration": {KEPT: text} if text else {}}})
    assert kept_hours(table) == pytest.approx(hours, rel=1e-12)


@pytest.mark.parametrize("text", ["interval many days", "interval 3 fortnights", "interval 3", "interval 3 days 4"])
def test_a_length_that_nobody_understands_is_no_length(table: str, text: str) -> None:
    by_hand(table, {"metaData": {**_metadata(table), "configuration": {KEPT: text}}})
    with pytest.raises(RegionError) as refused:
        kept_hours(table)
    assert refused.value.code == "E_RETENTION"


# -- what is crowded


def added(name: str, size: int, day: str | None = "2026-11-01", count: int | None = 3) -> dict[str, Any]:
    stats = {} if count is None else {"stats": json.dumps({"numRecords": count})}
    file = {"path": f"{name}.parquet", "partitionValues": {"day": day}, "size": size, "modificationTime": 0}
    return {"add": {**file, "dataChange": True, **stats}}


def empty(place: Path, schema: pa.Schema = SCHEMA, by: str = "day") -> str:
    DeltaTable.create(str(place), schema=schema, partition_by=[by] if by else [])
    return str(place)


def test_only_files_below_the_size_count_and_as_many_as_were_asked_for_are_enough(tmp_path: Path) -> None:
    table = empty(tmp_path / "copy")
    by_hand(table, added("a", SMALL_BYTES - 1), added("b", 10, count=None), added("c", SMALL_BYTES))
    assert crowded(table, many=3) == ()
    assert crowded(table, many=2) == (Crowd((("day", "2026-11-01"),), 3, 6, 2 * SMALL_BYTES + 9),)


def test_a_partition_that_would_hold_the_table_for_too_long_is_left(tmp_path: Path) -> None:
    table = empty(tmp_path / "copy")
    by_hand(table, added("a", 1), added("b", MOST_BYTES - 1))
    assert len(crowded(table, many=1)) == 1
    by_hand(table, added("c", 1))
    assert crowded(table, many=1) == ()


def test_the_most_crowded_partition_comes_first_and_one_without_a_value_is_one(tmp_path: Path) -> None:
    table = empty(tmp_path / "copy")
    counts = {"2026-11-01": 2, None: 4, "2026-11-03": 3}
    by_hand(table, *(added(f"{day}{i}", 1, day) for day, count in counts.items() for i in range(count)))
    result = crowded(table, many=1)
    assert [(crowd.label, crowd.files, crowd.rows) for crowd in result] == [
        ("day=NULL", 4, 12),
        ("day=2026-11-03", 3, 9),
        ("day=2026-11-01", 2, 6),
    ]


@pytest.mark.parametrize(("kind", "value"), [(pa.string(), "x"), (pa.int32(), "7")])
def test_a_partition_is_told_by_its_value_as_text_and_by_null_where_it_has_none(
    tmp_path: Path, kind: pa.DataType, value: str
) -> None:
    table = empty(tmp_path / "copy", pa.schema([("n", pa.int64()), ("day", kind)]))
    by_hand(table, *(added(f"{day}{n}", 1, day) for day, count in ((value, 3), (None, 2)) for n in range(count)))
    assert [(crowd.values, crowd.files) for crowd in crowded(table, many=2)] == [
        ((("day", value),), 3),
        ((("day", None),), 2),
    ]


def test_without_partitions_the_table_is_one_and_a_hundred_files_are_a_crowd(tmp_path: Path) -> None:
    table = empty(tmp_path / "copy", by="")
    small = [added(f"f{i}", 1) for i in range(100)]
    for action in small:
        action["add"]["partitionValues"] = {}
    by_hand(table, *small[1:])
    assert crowded(table) == ()
    by_hand(table, small[0])
    assert [(crowd.label, crowd.files) for crowd in crowded(table)] == [("all rows", MANY)]


@pytest.mark.parametrize(
    ("kind", "value", "left"),
    [
        (pa.string(), "x", False),
        (pa.int32(), "7", False),
        (pa.timestamp("us", "UTC"), "2026-11-01 00:00:00", True),
        (pa.float64(), "1.5", True),
        (pa.decimal128(5, 1), "1.5", True),
    ],
)
def test_partitions_whose_values_are_spelled_in_many_ways_are_left(
    tmp_path: Path, kind: pa.DataType, value: str, left: bool
) -> None:
    table = empty(tmp_path / "copy", pa.schema([("n", pa.int64()), ("day", kind)]))
    by_hand(table, added("a", 1, value), added("b", 1, value))
    assert (crowded(table, many=2) == ()) is left
