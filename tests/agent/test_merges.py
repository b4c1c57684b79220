"""Today's rows of an aggregate beside a receipt of before its states were merged, by the sums that the merges kept. No Java."""

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from console.agent.feeds.checksum import Sum
from console.agent.receipts.merges import MergedSums, as_written, unmeasured
from console.agent.store import log, log_files, open_tables
from console.model.receipt import Place
from tests.faults.rules.tables import foreign, rows

COLUMNS = (("n", "bigint"), ("day", "date"))
FIRST, SECOND = "2026-11-01", "2026-11-02"


def noted(table: str, note: dict[str, Any]) -> None:
    properties = CommitProperties(custom_metadata={"userMetadata": json.dumps(note)})
    write_deltalake(table, rows(9).slice(0, 0), mode="append", commit_properties=properties)


def merged(old: Sum, new: Sum, day: str = FIRST, columns: tuple[tuple[str, str], ...] = COLUMNS) -> dict[str, Any]:
    sums = MergedSums(time="day", columns=columns, old={day: old}, new={day: new})
    return {"kind": log.MERGE, "sums": sums.noted()}


@pytest.fixture
def table(tmp_path: Path) -> str:
    return foreign(tmp_path / "agg", rows(1), rows(2, day=2))


def place(table: str, version: int = 1) -> Place:
    return Place(path="agg", id=open_tables.table_id(table), version=version, time="day", columns=COLUMNS)


def test_today_s_sums_are_those_of_before_all_merges_since(table: str) -> None:
    own = place(table)
    noted(table, merged(Sum(10, 100, 1 << 63), Sum(4, 7, 5)))
    noted(table, merged(Sum(6, 9, 6), Sum(3, 1, 1)))
    noted(table, {"kind": "compact"})
    assert unmeasured(table, own) == ""
    today = {FIRST: Sum(3, 1, 1), SECOND: Sum(5, 5, 5)}
    # 10 states became 4, 2 arrived, and these 6 became 3
    assert as_written(table, own, log.latest_version(table), today) == {
        FIRST: Sum(12, 102, (1 << 63) + 1),
        SECOND: Sum(5, 5, 5),
    }
    assert as_written(table, own, 2, {FIRST: Sum(4, 7, 5)}) == {FIRST: Sum(10, 100, 1 << 63)}
    assert as_written(table, place(table, 3), 4, today) == today, "merges that the receipt has seen"


def test_a_day_that_has_expired_since_has_no_rows(table: str) -> None:
    noted(table, merged(Sum(10, 100, 100), Sum(4, 7, 5)))
    assert as_written(table, place(table), 2, {SECOND: Sum(1, 1, 1)}) == {SECOND: Sum(1, 1, 1)}


@pytest.mark.parametrize(
    "note",
    [merged(Sum(2, 1, 1), Sum(1, 1, 1), columns=COLUMNS[:1]), {"kind": log.MERGE}, {"kind": log.MERGE, "sums": []}],
)
def test_a_merge_that_measured_something_else_makes_a_comparison_impossible(table: str, note: dict[str, Any]) -> None:
    noted(table, note)
    assert (
        unmeasured(table, place(table))
        == "its partial states were merged since, and the sums of other columns were kept"
    )


def test_where_the_log_no_longer_tells_nothing_is_compared(table: str) -> None:
    for _ in range(3):
        noted(table, {"kind": "compact"})
    DeltaTable(table).create_checkpoint()
    (log_files.root_of(table) / "_delta_log" / f"{2:020}.json").unlink()
    assert unmeasured(table, place(table)) == "its partial states may have been merged since"
    assert unmeasured(table, place(table, 2)) == ""
    today = {FIRST: Sum(3, 1, 1)}
    assert as_written(table, place(table), 4, today) == today
