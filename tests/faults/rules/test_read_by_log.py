"""Rule 6: a range is read by the log, as Delta itself reads a table. The same files through Delta's reader are the truth."""

import json
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from console.agent.failure import kind
from console.agent.feeds import ranges
from console.agent.rows.snapshot import stored_at
from console.agent.store import log
from console.agent.store.table_stats import table_stats

pytestmark = [pytest.mark.faults, pytest.mark.spark]
MANY = 10**9
HOSTILE = [
    "Zürich",
    "",
    "a/b",
    "a=b",
    "100%",
    "%41",
    "w[1]",
    "{x}*?",
    " sp ",
    "ja\nnein",
    "'\"\\",
    "日本",
    ".x",
    "_x",
    None,
]


def read(session: Any, table: str, place: Path, after: int = -1) -> Counter[Any]:
    """Rows of all ranges after a version, as a feed reads them."""
    counts: Counter[Any] = Counter()
    while part := ranges.next_range(table, after, log.latest_version(table), MANY):
        if part.files:
            counts.update(map(str, ranges.read(session, table, part, place).collect()))
        after = part.last
    return counts


def truth(session: Any, table: str) -> Counter[Any]:
    return Counter(map(str, session.read.format("delta").load(table).collect()))


def made(session: Any, place: Path, columns: str, properties: str, *more: str) -> str:
    """A table by Spark's SQL; `@` in what follows is its name."""
    writer = session.newSession() if isinstance(session, SparkSession) else session.cloneSession()
    writer.conf.set("spark.sql.runSQLOnFiles", "true")
    defaults = "spark.databricks.delta.properties.defaults."
    for name in (
        "enableDeletionVectors",
        "enableRowTracking",
        "enableTypeWidening",
        "enableInCommitTimestamps",
        "appendOnly",
    ):
        writer.conf.set(defaults + name, "false")
    writer.conf.set(f"{defaults}columnMapping.mode", "none")
    name = f"delta.`{place}`"
    writer.sql(f"CREATE TABLE {name} ({columns}) USING delta {properties}")
    for statement in more:
        writer.sql(statement.replace("@", name))
    return str(place)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_columns_are_found_by_the_names_and_numbers_that_they_have_in_the_files(
    tmp_path: Path, session: Any, mode: str
) -> None:
    table = made(
        session, tmp_path / "t", "n int, s struct<a: int, l: array<struct<b: string>>>, m map<string, struct<c: int>>",
        f"TBLPROPERTIES ('delta.columnMapping.mode'='{mode}')",
        "INSERT INTO @ SELECT 1, named_struct('a', 2, 'l', array(named_struct('b', 'x'))), map('k', named_struct('c', 3))",
        "ALTER TABLE @ RENAME COLUMN n TO `n o.1`", "ALTER TABLE @ ADD COLUMN n string",
        "INSERT INTO @ VALUES (2, null, null, 'new')",
    )  # fmt: skip
    assert set(read(session, table, tmp_path, 2)) <= set(truth(session, table))
    assert read(session, table, tmp_path, 2).total() == 1
    assert [
        r.asDict(recursive=True)
        for r in ranges.read(
            session, table, ranges.Range(first=1, last=1, files=log.commit(table, 1).added), tmp_path
        ).collect()
    ] == [{"n": 1, "s": {"a": 2, "l": [{"b": "x"}]}, "m": {"k": {"c": 3}}}]


@pytest.mark.parametrize("mode", ["name", "id"])
def test_what_is_nowhere_null_in_a_mapped_table_is_read(tmp_path: Path, session: Any, mode: str) -> None:
    table = made(
        session, tmp_path / "t", "n int NOT NULL, s struct<a: int NOT NULL, b: string>",
        f"TBLPROPERTIES ('delta.columnMapping.mode'='{mode}')",
        "INSERT INTO @ SELECT 1, named_struct('a', 2, 'b', 'x')",
    )  # fmt: skip
    assert read(session, table, tmp_path) == truth(session, table)
    assert truth(session, table).total() == 1


def test_values_of_partitions_come_from_the_log_and_an_empty_one_is_null(tmp_path: Path, session: Any) -> None:
    table = str(tmp_path / "t")
    for n, value in enumerate(HOSTILE):
        write_deltalake(
            table, pa.table({"n": [n], "city": pa.array([value], pa.string())}), mode="append", partition_by=["city"]
        )
    assert read(session, table, tmp_path) == Counter(map(str, stored_at(session, table, len(HOSTILE) - 1).collect()))
    one = ranges.Range(first=0, last=0, files=log.commit(table, 0).added)
    assert [tuple(row) for row in ranges.read(session, table, one, tmp_path).collect()] == [(0, "Zürich")]
    two = ranges.Range(first=0, last=1, files=log.commit(table, 0).added + log.commit(table, 1).added, rows=MANY)
    assert Counter(tuple(row) for row in ranges.read(session, table, two, tmp_path).collect()) == {
        (0, "Zürich"): 1,
        (1, None): 1,
    }


def test_a_value_of_a_partition_that_nobody_can_read_is_no_null(tmp_path: Path, session: Any) -> None:
    """deltalake spells -1.25 as `-1.-25`."""
    table, data = str(tmp_path / "t"), {"n": [1], "p": pa.array([Decimal("1.25")], pa.decimal128(10, 2))}
    write_deltalake(table, pa.table(data), partition_by=["p"])
    (file,) = log.commit(table, 0).added
    whole = ranges.Range(first=0, last=0, files=(file,))
    assert [tuple(row) for row in ranges.read(session, table, whole, tmp_path).collect()] == [(1, Decimal("1.25"))]
    odd = ranges.Range(first=0, last=0, files=(replace(file, values=(("p", "-1.-25"),)),))
    with pytest.raises(Exception, match="CAST_INVALID_INPUT") as refused:
        ranges.read(session, table, odd, tmp_path).collect()
    assert kind(refused.value) == "value"


def test_of_many_rows_each_gets_the_value_of_its_own_file(tmp_path: Path, session: Any) -> None:
    table = str(tmp_path / "t")
    rows = pa.table({"n": list(range(30_000)), "city": [f"Zürich {n % 7}" for n in range(30_000)]})
    write_deltalake(table, rows, partition_by=["city"])
    assert read(session, table, tmp_path) == truth(session, table)


@pytest.mark.parametrize("folder", ["w{a}", "w{a,b}", "w*", "w?", "w b", "wü", "w%", "w#", "w[1]"])
def test_a_path_is_no_pattern(tmp_path: Path, session: Any, folder: str) -> None:
    for place in ("a", "w1", "wa"):
        write_deltalake(str(tmp_path / place), pa.table({"n": [99], "p": ["x"]}), partition_by=["p"])
    write_deltalake(str(tmp_path / "own"), pa.table({"n": [1, 2], "p": ["Zürich", "b"]}), partition_by=["p"])
    table = str((tmp_path / "own").rename(tmp_path / folder))
    assert sorted(tuple(row) for row in ranges.read(
        session, table, ranges.Range(first=0, last=0, files=log.commit(table, 0).added), tmp_path
    ).collect()) == [(1, "Zürich"), (2, "b")]  # fmt: skip


def test_what_deletion_vectors_delete_is_neither_read_nor_counted(tmp_path: Path, session: Any) -> None:
    table = made(
        session, tmp_path / "t ü", "n bigint, day date", "PARTITIONED BY (day) TBLPROPERTIES ('delta.enableDeletionVectors'='true')",
        "INSERT INTO @ SELECT id, date'2026-11-01' FROM range(0, 300, 1, 1)", "DELETE FROM @ WHERE n IN (3, 5, 7)",
    )  # fmt: skip
    stats = table_stats("t", table, "day")
    assert stats is not None
    assert (stats.rows, [day.rows for day in stats.days]) == (297, [297])
    assert log.commit(table, 2).added[0].rows == 297
    # as a stranger may write a file: with its vector in the commit that adds it
    added = [line for line in log.action_lines(table, 2) if '"remove"' not in line]
    other = tmp_path / "other"
    (other / "_delta_log").mkdir(parents=True)
    first = [line for line in log.action_lines(table, 0)]
    (other / "_delta_log" / f"{0:020}.json").write_text("\n".join(first) + "\n")
    (other / "_delta_log" / f"{1:020}.json").write_text(
        "\n".join(added).replace('"path":"', f'"path":"{Path(table).as_uri()}/') + "\n"
    )
    for item in Path(table).rglob("*.bin"):
        (other / item.relative_to(table)).parent.mkdir(parents=True, exist_ok=True)
        (other / item.relative_to(table)).write_bytes(item.read_bytes())
    assert log.commit(str(other), 1).kind == "append"
    assert read(session, str(other), tmp_path / "scratch") == truth(session, str(other))
    assert truth(session, str(other)).total() == 297


def test_files_that_spark_hides_are_read(tmp_path: Path, session: Any) -> None:
    table = str(tmp_path / "t")
    write_deltalake(table, pa.table({"n": [1]}))
    (name,) = [Path(file.path).name for file in log.commit(table, 0).added]
    (tmp_path / "t" / name).rename(tmp_path / "t" / f"_{name}")
    commit = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text().replace(name, f"_{name}"))
    assert read(session, table, tmp_path / "scratch") == truth(session, table)
    assert truth(session, table).total() == 1


def test_a_uri_in_the_log_is_one_path_whatever_it_escapes() -> None:
    root = Path("/w{a}/t")
    assert log.absolute_path(root, "p=a%2523b%253F/x.parquet") == "/w{a}/t/p=a%23b%3F/x.parquet"
    assert log.absolute_path(root, "p=a%23b%3F/x.parquet") == "/w{a}/t/p=a#b?/x.parquet"
    assert log.absolute_path(root, "file:///other%20one/x%23.parquet") == "/other one/x#.parquet"
    assert log.absolute_path(root, "file:/other/x.parquet") == "/other/x.parquet"
    assert log.absolute_path(root, "s3://bucket/x.parquet") == "s3://bucket/x.parquet"


def test_rows_that_no_statistics_count_are_reported(tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    write_deltalake(table, pa.table({"n": [1, 2]}))
    commit = tmp_path / "t" / "_delta_log" / f"{0:020}.json"
    lines = [json.loads(line) for line in commit.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    commit.write_text("\n".join(map(json.dumps, lines)) + "\n")
    stats = table_stats("t", table)
    assert stats is not None
    assert (stats.rows, stats.uncounted) == (0, 1)
