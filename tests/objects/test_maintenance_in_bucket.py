"""Maintenance of a table in a bucket by the agent's own commits: nothing but what no version needs is deleted, and no row moves. No Java."""

import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.errors import LeaseLost
from console.agent.maintenance.bucket_tables import delete_older, vacuum
from console.agent.maintenance.compaction import crowded
from console.agent.maintenance.replaced_files import partition_files, replace_files
from console.agent.object_store.object_path import ObjectPath, place
from console.agent.store import commits, log, log_files
from console.agent.store.file_action import FileAction
from console.errors import RegionError
from tests.objects.holders import agent
from tests.objects.proxy import Proxy

pytestmark = pytest.mark.s3

KEEP = datetime.date(2026, 11, 2)
SCHEMA = pa.schema([("day", pa.date32()), ("page", pa.string()), ("n", pa.int64())])
ODD = "a b/%é"  # in the name of a folder, and once more in the log's


class Killed(Exception):
    """The agent dies here."""


def rows(*numbers: int, day: int = 1, page: str = ODD) -> pa.Table:
    days = pa.array([datetime.date(2026, 11, day)] * len(numbers), pa.date32())
    return pa.table({"day": days, "page": [page] * len(numbers), "n": list(numbers)}, schema=SCHEMA)


@pytest.fixture
def table(warehouse: ObjectPath, proxy: Proxy) -> str:
    """Removed files are needed by nobody, from the first moment on."""
    return made(warehouse, proxy, hours=0)


def made(warehouse: ObjectPath, proxy: Proxy, hours: int) -> str:
    """A table with four files of one partition, one of another day, one of another page. hours: that removed files are kept"""
    agent(warehouse, proxy)
    path = str(warehouse / "requests" / "abc-1")
    settings = {"delta.deletedFileRetentionDuration": f"interval {hours} hours"}
    commits.create(path, SCHEMA, ["day", "page"], settings, "")
    for each in (*(rows(n) for n in range(4)), rows(8, day=3), rows(9, page="p")):
        append(path, each)
    return path


def append(path: str, data: pa.Table) -> None:
    commits.commit(path, lambda table, own: write_deltalake(table, data, mode="append", commit_properties=own))


def numbers(path: str) -> list[int]:
    return sorted(DeltaTable(path).to_pyarrow_table()["n"].to_pylist())


def on_store(path: str) -> set[str]:
    folder = log_files.root_of(path)
    assert isinstance(folder, ObjectPath)
    return {entry.key for entry in folder.listed() if "_delta_log" not in entry.key}


def rewritten(path: str, name: str = "compacted.parquet") -> tuple[list[Any], list[FileAction], Any]:
    """What Spark does: the rows of the crowded partition in one file beside the others. Returns (gone, files, values)."""
    (crowd,) = crowded(path, many=3)
    gone = partition_files(path, log.latest_version(path), crowd.values)
    kept = rows(*range(4)).select(["n"])
    folder = Path(gone[0].name).parent
    file = Path(name)
    sink = pa.BufferOutputStream()
    pq.write_table(kept, sink)
    data = sink.getvalue().to_pybytes()
    place(f"{path}/{folder}/{file}").write_bytes(data)
    stats = json.dumps({"numRecords": 4})
    action = FileAction(name=f"{folder}/{file}", bytes=len(data), values=crowd.values, modified=1, stats=stats)
    return list(gone), [action], crowd.values


def test_a_partition_is_compacted_in_one_commit_that_no_feed_reads(table: str) -> None:
    gone, files, values = rewritten(table)
    assert len(gone) == 4
    append(table, rows(4))  # while Spark was writing
    version = replace_files(table, gone, files, values, {"kind": "compact"})
    assert version == log.latest_version(table)
    commit = log.commit(table, version)
    assert (commit.kind, commit.added, commit.removed) == ("quiet", (), 0)
    assert numbers(table) == [0, 1, 2, 3, 4, 8, 9]
    assert len(DeltaTable(table).file_uris()) == 4
    assert crowded(table, many=3) == ()


def test_a_file_that_went_meanwhile_makes_the_compaction_change_nothing(table: str) -> None:
    gone, files, values = rewritten(table)
    delete_older(table, "day", KEEP, or_null=False, note={"kind": log.RETENTION})
    before = log.latest_version(table)
    with pytest.raises(RegionError, match="4 files were removed while they were compacted") as error:
        replace_files(table, gone, files, values, {"kind": "compact"})
    assert error.value.code == "E_BUSY"
    assert (log.latest_version(table), numbers(table)) == (before, [8])


@pytest.mark.parametrize("point", ["before-commit-compact", "after-commit-compact"])
def test_killed_around_a_compaction_every_row_is_there_once_and_the_next_one_ends_it(
    table: str, warehouse: ObjectPath, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    gone, files, values = rewritten(table)
    with monkeypatch.context() as armed:
        armed.setattr("console.crash.point", lambda name: dies(name, point))
        with pytest.raises(Killed):
            replace_files(table, gone, files, values, {"kind": "compact"})
    agent(warehouse, proxy)
    assert numbers(table) == [0, 1, 2, 3, 8, 9]
    if crowded(table, many=3):
        replace_files(table, *rewritten(table, "again.parquet"), {"kind": "compact"})
    vacuum(table)
    assert numbers(table) == [0, 1, 2, 3, 8, 9]
    assert on_store(table) == {key_of(uri) for uri in DeltaTable(table).file_uris()}, "no file is left over"


@pytest.mark.parametrize(("point", "left"), [("before-commit-retention", 7), ("after-commit-retention", 2)])
def test_killed_around_a_retention_delete_whole_days_are_gone_once(
    table: str, warehouse: ObjectPath, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, point: str, left: int
) -> None:
    append(table, pa.table({"day": pa.array([None], pa.date32()), "page": ["p"], "n": [7]}, schema=SCHEMA))
    with monkeypatch.context() as armed:
        armed.setattr("console.crash.point", lambda name: dies(name, point))
        with pytest.raises(Killed):
            delete_older(table, "day", KEEP, or_null=False, note={"kind": log.RETENTION})
    agent(warehouse, proxy)
    assert len(numbers(table)) == left
    if left > 2:
        delete_older(table, "day", KEEP, or_null=False, note={"kind": log.RETENTION})
    assert numbers(table) == [7, 8], "a row without a time never expires"
    removed = [log.commit(table, version) for version in range(log.latest_version(table) + 1)]
    assert sum(commit.is_retention for commit in removed) == 1


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("us"), "timestamp without zone"),
        (pa.date32(), "date"),
    ],
)
def test_rows_expire_by_the_first_moment_of_a_day_whatever_type_their_time_has(
    warehouse: ObjectPath, proxy: Proxy, kind: pa.DataType, text: str
) -> None:
    agent(warehouse, proxy)
    path, schema = str(warehouse / "requests" / "abc-1"), pa.schema([('a "time"', kind), ("n", pa.int64())])
    commits.create(path, schema, [], {}, "")
    moments = [datetime.datetime(2026, 11, 1, 23, 59, 59, 999999), datetime.datetime(2026, 11, 2), None]
    times = [each.date() if each and kind == pa.date32() else each for each in moments]
    append(path, pa.table({'a "time"': pa.array(times, kind), "n": [1, 2, 3]}, schema=schema))
    delete_older(path, 'a "time"', KEEP, or_null=False, note={"kind": log.RETENTION})
    assert numbers(path) == [2, 3]
    delete_older(path, 'a "time"', datetime.date(2026, 11, 2), or_null=True, note={"kind": log.RETENTION})
    assert numbers(path) == [2], text


def test_what_no_version_needs_is_deleted_with_the_files_of_dead_jobs(table: str) -> None:
    orphan = place(f"{table}/day=2026-11-01/page=x%20y/late-task.parquet")
    orphan.write_bytes(b"of a job that died")
    delete_older(table, "day", KEEP, or_null=False, note={"kind": log.RETENTION})
    assert vacuum(table) == 6
    assert numbers(table) == [8]
    assert on_store(table) == {key_of(uri) for uri in DeltaTable(table).file_uris()}
    latest = log.latest_version(table)
    assert vacuum(table) == 0
    assert log.latest_version(table) == latest, "nothing to delete, nothing to commit"


def test_what_is_younger_than_the_tables_retention_stays(warehouse: ObjectPath, proxy: Proxy) -> None:
    table = made(warehouse, proxy, hours=1)
    place(f"{table}/day=2026-11-01/page=p/of-a-running-job.parquet").write_bytes(b"not committed yet")
    delete_older(table, "day", KEEP, or_null=False, note={"kind": log.RETENTION})
    kept = on_store(table)
    assert vacuum(table) == 0
    assert on_store(table) == kept


@pytest.mark.parametrize("point", ["before-commit-vacuum", "after-commit-vacuum"])
def test_killed_around_a_vacuum_the_next_one_deletes_the_rest(
    table: str, warehouse: ObjectPath, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    delete_older(table, "day", KEEP, or_null=False, note={"kind": log.RETENTION})
    before = on_store(table)
    with monkeypatch.context() as armed:
        armed.setattr("console.crash.point", lambda name: dies(name, point))
        with pytest.raises(Killed):
            vacuum(table)
    assert on_store(table) == before
    agent(warehouse, proxy)
    assert vacuum(table) == 5
    assert numbers(table) == [8]


def test_a_former_holder_neither_compacts_nor_deletes(table: str, warehouse: ObjectPath, proxy: Proxy) -> None:
    former = agent(warehouse, proxy)
    gone, files, values = rewritten(table)
    successor = agent(warehouse, proxy)
    commits.own(table)
    place(f"{table}/late-task.parquet").write_bytes(b"of a job that died")
    before = log.latest_version(table), on_store(table)
    former.acts()
    for work in (
        lambda: replace_files(table, gone, files, values, {"kind": "compact"}),
        lambda: delete_older(table, "day", KEEP, or_null=False, note={"kind": log.RETENTION}),
        lambda: vacuum(table),
    ):
        with pytest.raises(LeaseLost):
            work()
    successor.acts()
    assert (log.latest_version(table), on_store(table)) == before


def dies(name: str, point: str) -> None:
    if name == point:
        raise Killed


def key_of(uri: str) -> str:
    path = place(uri)
    assert isinstance(path, ObjectPath)
    return path.key
