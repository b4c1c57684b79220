"""Rows that a Spark behind Spark Connect writes as files of a table in a bucket: the agent commits them, and nobody else."""

import datetime
import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema

from console.agent.connect.sessions import open_session
from console.agent.errors import WriteSkipped
from console.agent.feeds import app_ids, commit
from console.agent.object_store.object_path import ObjectPath
from console.agent.rows import appended, log_excerpt
from console.agent.store import attempt_table, commits, copy_commit, log, log_files, open_tables, spark_files
from console.agent.store.shape import layout_of
from console.errors import RegionError
from tests.cluster.connect_server import ConnectServer
from tests.objects.holders import agent
from tests.objects.proxy import Proxy

pytestmark = [pytest.mark.cluster, pytest.mark.s3]

# the last one is a line's end to Unicode, and none to JSON
ODD = "CASE id % 7 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN 'a b' WHEN 3 THEN 'a/b' WHEN 4 THEN '50%' WHEN 5 THEN 'ü+' ELSE 'a\u2028b' END"
COLUMNS = (
    "id",
    "timestamp_micros(1700000000000000 + id * 86400000000) AS at",
    "CAST(id AS DECIMAL(20,3)) AS cost",
    "array(named_struct('a', CAST(id AS INT))) AS list",
    "DATE'2026-11-01' + CAST(id % 2 AS INT) AS day",
    f"{ODD} AS part",
)
ROWS = 12


def written(session: Any, rows: int = ROWS) -> Any:
    return session.range(rows).selectExpr(*COLUMNS).coalesce(1)


@pytest.fixture
def table(session: Any, warehouse: ObjectPath, proxy: Proxy) -> str:
    agent(warehouse, proxy)
    path = str(warehouse / "odd" / "c0-1")
    schema = Schema.from_json(written(session).schema.json())
    commits.create(path, schema, ["day", "part"], {"delta.dataSkippingNumIndexedCols": "2"}, "")
    return path


def names(warehouse: ObjectPath, table: str) -> list[str]:
    return [entry.key.partition("/odd/c0-1/")[2] for entry in warehouse.listed() if "/odd/c0-1/" in entry.key]


def test_rows_are_committed_once_with_their_position_and_are_what_delta_and_deltalake_read(
    session: Any, table: str, warehouse: ObjectPath
) -> None:
    writer = commit.open_feed(session, "history/odd", table, 0)
    late = commit.FeedWriter(app_id=writer.app_id, target=table, epoch=writer.epoch, position=0)
    result = commit.append(session, written(session), writer, 3, {"kind": "history"})
    assert result.rows == ROWS
    with pytest.raises(WriteSkipped):  # as a zombie's, whose job ended behind its successor's
        commit.append(session, written(session, 2), late, 2, {"kind": "history"})
    assert open_tables.position(table, writer.app_id) == writer.epoch << app_ids.EPOCH_BITS | 3
    wanted = [
        tuple(row)
        for row in written(session).selectExpr("*", "nullif(part, '') AS p").drop("part").orderBy("id").collect()
    ]
    stored = session.read.format("delta").load(table).selectExpr("id", "at", "cost", "list", "day", "part AS p")
    assert [tuple(row) for row in stored.orderBy("id").collect()] == wanted
    by_deltalake = DeltaTable(table).to_pyarrow_table().sort_by("id")
    assert by_deltalake.column("part").to_pylist() == [row[-1] for row in wanted]
    assert pa.types.is_timestamp(by_deltalake.column("at").type)


def test_a_file_is_in_its_final_place_with_statistics_as_its_table_wants_them_and_the_attempts_log_is_gone(
    session: Any, table: str, warehouse: ObjectPath, tmp_path: Any
) -> None:
    before = set(names(warehouse, table))
    files = spark_files.write(session, written(session, 4).coalesce(1), table)
    assert set(names(warehouse, table)) - before == {file.name for file in files}
    assert {dict(file.values)["part"] for file in files} == {None, "a b", "a/b"}
    assert all(file.name.startswith(attempt_table.PREFIX) for file in files)
    stats = json.loads(files[0].stats)
    assert set(stats["minValues"]) == {"id", "at"}  # of two columns, as the table's own setting says
    local = tmp_path / "one.parquet"
    local.write_bytes((log_files.root_of(table) / files[0].name).read_bytes())
    assert pq.ParquetFile(local).schema.column(1).physical_type == "INT64"  # INT96 has no statistics
    # named by no commit: the rows of nobody, and files that a VACUUM finds
    assert DeltaTable(table).to_pyarrow_table().num_rows == 0
    spare = DeltaTable(table).vacuum(0, dry_run=True, enforce_retention_duration=False, full=True)
    assert {file.name for file in files} <= set(spare)


def test_rows_in_other_columns_are_refused_before_anything_is_written(
    session: Any, table: str, warehouse: ObjectPath
) -> None:
    before = names(warehouse, table)
    with pytest.raises(RegionError) as refused:
        spark_files.write(session, written(session).selectExpr("CAST(id AS INT) AS id", "day", "part"), table)
    assert (refused.value.code, names(warehouse, table)) == ("E_COLUMNS", before)


def test_what_a_server_switches_on_for_new_tables_is_in_no_file(session: Any, table: str) -> None:
    defaults = "spark.databricks.delta.properties.defaults."
    for name, value in (
        ("columnMapping.mode", "name"),
        ("enableDeletionVectors", "true"),
        ("enableRowTracking", "true"),
    ):
        session.conf.set(defaults + name, value)
    writer = commit.open_feed(session, "history/odd", table, 0)
    commit.append(session, written(session, 6), writer, 1, {"kind": "history"})
    assert sorted(DeltaTable(table).to_pyarrow_table().column("id").to_pylist()) == list(range(6))


def test_a_copy_replaces_rows_and_columns_in_one_commit_and_a_repeated_run_is_refused(
    session: Any, warehouse: ObjectPath, proxy: Proxy
) -> None:
    agent(warehouse, proxy)
    path = str(warehouse / "odd" / "copy")

    def run(rows: Any, name: str, *, replaces: bool) -> None:
        copy_commit.run(session, rows, path, replaces=replaces, app_id=f"copy/{name}", note={"kind": "copy"})

    run(session.range(3).selectExpr("id", "array(id) AS list"), "1", replaces=False)
    run(session.range(3, 5).selectExpr("id", "array(id) AS list"), "2", replaces=False)
    assert DeltaTable(path).to_pyarrow_table().sort_by("id").to_pylist() == [{"id": n, "list": [n]} for n in range(5)]
    with pytest.raises(RegionError, match="committed already"):
        run(session.range(9).selectExpr("id", "array(id) AS list"), "2", replaces=False)
    run(session.sql("SELECT DATE'2026-11-01' AS day, 'x' AS name"), "3", replaces=True)
    rows = DeltaTable(path).to_pyarrow_table().to_pylist()
    assert rows == [{"day": datetime.date(2026, 11, 1), "name": "x"}]
    assert not any("/attempt-" in entry.key and "_delta_log" in entry.key for entry in warehouse.listed())


def test_rows_that_only_delta_can_read_flow_by_an_excerpt_in_the_bucket(
    session: Any, connect: ConnectServer, table: str, warehouse: ObjectPath
) -> None:
    """A landing table of somebody's with deletion vectors, and with folders whose names a URI escapes."""
    landing = str(warehouse / "landing")
    foreign = open_session(connect.url, {"spark.databricks.delta.properties.defaults.enableDeletionVectors": "true"})
    foreign.conf.set("spark.sql.runSQLOnFiles", "true")
    written(foreign, 24).coalesce(1).write.format("delta").partitionBy("part").save(landing)
    foreign.sql(f"DELETE FROM delta.`{landing}` WHERE id >= 12")
    foreign.stop()
    newest = log.latest_version(landing)
    files = tuple(file for file in log.commit(landing, newest).added if file.vector)
    assert {"%" in file.path or " " in file.path for file in files} == {True, False}
    with log_excerpt.place(table) as scratch:
        read = appended.rows(session, landing, layout_of(landing, newest), files, scratch)
        assert sorted(row["id"] for row in read.collect()) == list(range(12))
        assert any("/_excerpts/" in entry.key for entry in warehouse.listed())
    assert not any("/_excerpts/" in entry.key for entry in warehouse.listed())
