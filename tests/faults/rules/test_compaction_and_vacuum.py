"""Rules 7 and 8 on real Spark: compaction loses no row, VACUUM deletes no file that a reader still needs."""

import json
import os
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import commit, ranges
from console.agent.maintenance.compaction import compact, crowded
from console.agent.maintenance.retention import cutoff, expire, expired
from console.agent.maintenance.vacuum import Need, blocking_need, kept_hours, vacuum
from console.agent.store import log
from console.errors import RegionError
from console.model.schema import Column
from tests.faults.rules.tables import column_values, copying_feed, foreign, rows, state

pytestmark = [pytest.mark.faults, pytest.mark.spark]
DAY = 86_400


def aged(table: str, days: float) -> None:
    """Make everything the table holds so old, as far as anyone can tell: files, commits, and what they removed."""
    then = time.time() - days * DAY
    for path in Path(table).rglob("*"):
        if path.suffix == ".json":
            lines = [json.loads(line) for line in path.read_text().splitlines()]
            for action in lines:
                for name, key in (("remove", "deletionTimestamp"), ("commitInfo", "timestamp")):
                    if action.get(name, {}).get(key):
                        action[name][key] = int(then * 1000)
            path.write_text("".join(json.dumps(action) + "\n" for action in lines))
        os.utime(path, (then, then))


# -- rule 8


def test_compaction_loses_no_row_that_is_appended_meanwhile_and_moves_none_for_a_reader(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row is appended at the worst moment: after the rows to be rewritten were named, before the write begins."""
    table = foreign(tmp_path / "copy", *(rows(n) for n in range(6)), rows(50, 51, day=None), rows(60, day=2))
    assert [crowd.label for crowd in crowded(table, many=3)] == ["day=2026-11-01"]
    (crowd,) = crowded(table, many=3)
    before = log.latest_version(table)

    def late(point: str) -> None:
        if point == "before-commit-compact":
            write_deltalake(table, rows(99), mode="append", partition_by=["day"])

    monkeypatch.setattr("console.crash.point", late)
    made = compact(session, table, crowd)
    assert column_values(table) == [*range(6), 50, 51, 60, 99]
    assert made.files == 1
    assert log.commit(table, made.version).kind == "quiet"
    part = ranges.next_range(table, before, made.version, 10**9)
    assert part is not None
    assert part.rows == 1, "a feed carries the late row, and the rewritten ones no second time"
    assert crowded(table, many=2) == ()


def test_compaction_stores_rows_in_the_order_by_which_their_table_is_clustered(tmp_path: Path, session: Any) -> None:
    table = foreign(tmp_path / "copy", *(rows(n) for n in (3, 1, 2, 0)))
    (crowd,) = crowded(table, many=3)
    made = compact(session, table, crowd, 1, state("copy", cluster_by=("n",)))
    assert made.files == 1
    (file,) = DeltaTable(table).file_uris()
    assert pq.read_table(file).column("n").to_pylist() == [0, 1, 2, 3]


def test_rows_without_a_day_and_tables_without_partitions_are_compacted_as_well(tmp_path: Path, session: Any) -> None:
    nulls = foreign(tmp_path / "nulls", rows(1, day=None), rows(2, day=None), rows(3))
    (crowd,) = crowded(nulls, many=2)
    assert compact(session, nulls, crowd).files == 1
    assert column_values(nulls) == [1, 2, 3]
    whole = foreign(tmp_path / "whole", rows(1), rows(2, day=2), rows(3, day=None), partition_by=())
    (crowd,) = crowded(whole, many=3)
    assert (crowd.label, compact(session, whole, crowd).files) == ("all rows", 1)
    assert column_values(whole) == [1, 2, 3]


class Pinned:
    """A session whose unpinned reads are pinned: the bug against which rule 8 was made."""

    def __init__(self, session: Any, version: int) -> None:
        self._session = session
        self._version = version
        self.read = self

    def format(self, name: str) -> Any:
        pinned = self._session.read.format(name).option("versionAsOf", self._version)
        return SimpleNamespace(load=pinned.load, option=self._session.read.format(name).option)


def test_a_compaction_that_lost_a_row_is_found(tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = foreign(tmp_path / "copy", rows(1), rows(2), rows(3))
    (crowd,) = crowded(table, many=3)

    def late(point: str) -> None:
        if point == "before-commit-compact":
            write_deltalake(table, rows(99), mode="append", partition_by=["day"])

    monkeypatch.setattr("console.crash.point", late)
    with pytest.raises(RegionError) as refused:
        compact(Pinned(session, 2), table, crowd)
    assert refused.value.code == "E_COMPACTION"
    assert 99 not in column_values(table)


# -- rule 7


def test_vacuum_leaves_a_table_alone_while_a_feed_has_not_read_what_optimize_replaced(
    tmp_path: Path, session: Any
) -> None:
    """The files of unread appends are no longer the table's own, and older than its retention."""
    table = foreign(tmp_path / "landing", *(rows(n) for n in range(5)))
    DeltaTable(table).optimize.compact()
    aged(table, 30)
    write_deltalake(table, rows(5), mode="append", partition_by=["day"])
    behind, ahead = Need(2, "a feed that has read up to version 2"), Need(6, "one that has read it all")
    assert blocking_need(table, [ahead, behind]) == behind
    part = ranges.next_range(table, 2, 4, 10**9)
    assert part is not None
    assert sorted(row["n"] for row in ranges.read(session, table, part, tmp_path).collect()) == [3, 4]

    begun = ranges.read(session, table, part, tmp_path)
    assert blocking_need(table, [ahead]) is None
    vacuum(session, table)
    gone = [file.path for version in range(5) for file in log.commit(table, version).added]
    assert [path for path in gone if Path(path).exists()] == []
    assert column_values(table) == [0, 1, 2, 3, 4, 5]
    # who reads on all the same is told: a file that is missing is never passed over
    with pytest.raises(Exception, match=r"(?i)not.exist"):
        begun.collect()


def test_a_file_that_is_damaged_is_never_passed_over(tmp_path: Path, session: Any) -> None:
    """Its rows would be missing live and in history, and the position behind them."""
    source, target = foreign(tmp_path / "landing", rows(0), rows(1, 2)), str(tmp_path / "copy")
    commit.create(session, state("copy"), target, 72)
    damaged = Path(log.commit(source, 1).added[0].path)
    whole = damaged.read_bytes()
    damaged.write_bytes(bytes(len(whole)))
    with pytest.raises(Exception, match=r"(?i)parquet"):
        copying_feed(source, target).step(session, 1)
    with pytest.raises(Exception, match=r"(?i)parquet"):
        session.read.format("delta").load(source).collect()
    damaged.write_bytes(whole)
    assert copying_feed(source, target).step(session, 1) == 2
    assert column_values(target) == [1, 2]


def test_what_was_removed_within_the_tables_own_retention_is_in_nobodys_way(tmp_path: Path) -> None:
    table = foreign(tmp_path / "landing", *(rows(n) for n in range(3)))
    DeltaTable(table).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 40 days"})
    DeltaTable(table).optimize.compact()
    aged(table, 30)
    assert kept_hours(table) == 40 * 24
    assert blocking_need(table, [Need(0, "")]) is None  # VACUUM spares it by itself


def test_nothing_is_deleted_where_the_log_no_longer_tells_who_needs_it(tmp_path: Path) -> None:
    table = foreign(tmp_path / "landing", rows(1), rows(2), rows(3))
    DeltaTable(table).create_checkpoint()
    for version in (0, 1):
        (Path(table) / "_delta_log" / f"{version:020}.json").unlink()
    with pytest.raises(RegionError) as gone:
        blocking_need(table, [Need(0, "")])
    assert gone.value.code == "E_LOG_GONE"


def test_a_fence_older_than_the_file_retention_can_still_be_read(tmp_path: Path, session: Any) -> None:
    """Delta refuses time travel past `deletedFileRetentionDuration` even where nothing was vacuumed."""
    table = foreign(tmp_path / "landing", rows(1), rows(2))
    aged(table, 30)
    write_deltalake(table, rows(3), mode="append", partition_by=["day"])
    assert session.read.format("delta").option("versionAsOf", 0).load(table).count() == 1


def test_our_tables_keep_files_and_log_for_the_rollback_window_and_the_longest_rollout(
    tmp_path: Path, session: Any
) -> None:
    path = str(tmp_path / "copy")
    commit.create(session, state("copy"), path, 72 + 24 * 7)
    kept = DeltaTable(path).metadata().configuration
    assert kept["delta.deletedFileRetentionDuration"] == "interval 240 hours"
    assert kept["delta.logRetentionDuration"] == "interval 480 hours"
    assert kept_hours(path) == 240


# -- rule 4: retention


def test_retention_deletes_whole_days_and_no_feed_below_notices(tmp_path: Path, session: Any) -> None:
    table, copy = (
        foreign(tmp_path / "landing", rows(0, 1, day=1), rows(2, day=3), rows(3, day=None)),
        str(tmp_path / "c"),
    )
    DeltaTable.create(copy, schema=pa.schema([("n", pa.int64()), ("day", pa.date32())]))
    feed = copying_feed(table, copy)
    feed.step(session, 2)
    short = state("landing", retention_days=10, time="day")
    keep = cutoff(short, date(2026, 11, 12))
    assert keep == date(2026, 11, 2)
    assert expire(session, table, short, keep) == 2
    assert column_values(table) == [2, 3]
    write_deltalake(table, rows(4, day=4), mode="append", partition_by=["day"])
    while feed.step(session, log.latest_version(table)) >= 0:
        pass
    assert column_values(copy) == [2, 3, 4]


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamp_ntz"])
def test_the_first_kept_day_is_kept_from_its_first_moment(tmp_path: Path, session: Any, kind: str) -> None:
    """`9` is in the year 58851, `8` in the year 0000, and no retention is longer than the calendar."""
    table, keep, day = str(tmp_path / "t"), date(2026, 11, 2), 86_400 * 10**6
    start = 20_759 * day
    times = {
        1: start - day,
        2: start - 1,
        3: start,
        4: start + 1,
        5: start + day,
        9: 20_775_000 * day,
        8: -719_400 * day,
    }
    whole = pa.array([*times.values(), None], pa.int64())
    when = (
        pa.array([None if at.as_py() is None else at.as_py() // day for at in whole], pa.int32()).cast(pa.date32())
        if kind == "date"
        else whole.cast(pa.timestamp("us", "UTC" if kind == "timestamp" else None))
    )
    write_deltalake(table, pa.table({"n": pa.array([*times, 7], pa.int64()), "at": when}))
    short = state(
        "t",
        (Column(name="n", type="bigint"), Column(name="at", type=kind)),
        retention_days=10,
        time="at",
        partition_by=(),
    )
    assert cutoff(short, date(2026, 11, 12)) == keep
    assert expired(session, table, short, keep) == 3
    assert expire(session, table, short, keep) == 3
    left = session.read.format("delta").load(table).select("n").collect()
    assert sorted(row["n"] for row in left) == [3, 4, 5, 7, 9]
    assert cutoff(state("t", time="day", retention_days=10**6), date(2026, 11, 12)) is None


def test_a_table_without_retention_or_without_a_stored_time_expires_nothing() -> None:
    today = datetime.now(UTC).date()
    assert cutoff(state("t", time="day"), today) is None
    assert cutoff(state("t", time="at", retention_days=1), today) is None
    assert cutoff(state("t", time="day", retention_days=1), today) == today - timedelta(days=1)
