"""Batches of many days whose rows the agent writes itself: the rows of Spark's own write, exactly once, or Spark writes them."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from console.agent.errors import WriteSkipped
from console.agent.expectations import guard
from console.agent.feeds import backfill, commit, exact_appends
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log, write_lock
from console.model.expectation import RowCheck
from console.model.live import TableState
from console.model.schema import Column
from console.model.slices import Slice
from tests.faults.rules.tables import state

pytestmark = [pytest.mark.faults, pytest.mark.spark]

BEGIN, DAYS, EACH = date(2026, 11, 1), 20, 3
TYPES = {
    "n": "bigint", "at": "timestamp", "city": "string", "x": "double", "d": "decimal(20,4)", "raw": "binary", "tags": "array<string>",
    "of": "struct<a:int,b:array<date>>", "by": "map<string,bigint>", "f": "float", "yes": "boolean",
}  # fmt: skip
# of row n: each value once in a while NULL, blank, not a number, zero with a sign, of other letters, or at an end of its type
ROWS = f"""SELECT id AS n, timestamp_micros(unix_micros(TIMESTAMP'2026-11-01 00:00:00') + id * {86_400_000_000 // EACH} + id) AS at,
  element_at(array('', 'Zürich', NULL, '__HIVE_DEFAULT_PARTITION__', ' a=b/c%41'), CAST(id % 5 + 1 AS INT)) AS city,
  element_at(array(DOUBLE('NaN'), -0D, DOUBLE('-Infinity'), 1e-300D, NULL), CAST(id % 5 + 1 AS INT)) AS x,
  CAST((id - 7) / 8 AS DECIMAL(20, 4)) AS d, IF(id % 4 = 0, NULL, CAST(chr(id) AS BINARY)) AS raw,
  IF(id % 3 = 0, array(), array(CAST(id AS STRING), NULL)) AS tags,
  named_struct('a', CAST(NULLIF(id % 7, 0) AS INT), 'b', array(DATE'1582-10-04', DATE'9999-12-31')) AS of,
  map('k', id, CAST(id AS STRING), NULL) AS by, CAST(id / 3 AS FLOAT) AS f, id % 2 = 0 AS yes FROM range({DAYS * EACH})"""
COLUMNS = tuple(Column(name=name, type=kind) for name, kind in TYPES.items())
COPIED = f"SELECT CAST(at AS DATE) AS day, {', '.join(TYPES)} FROM landing"
SPARK: Any = SimpleNamespace(build_tasks=1, fit=lambda _: None, on_cluster=False, job=SparkHandle(Settings(), -1).job)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A landing table of twenty days, and versions of a table that is partitioned by `partition_by`."""

    place: Path
    session: Any
    partition_by: tuple[str, ...] = ("day",)

    def target(self) -> TableState:
        columns = (Column(name="day", type="date"), *COLUMNS)
        return state("copy", columns, partition_by=self.partition_by, cluster_by=("n",))

    def history(self, name: str, target: TableState | None = None) -> backfill.History:
        made, path, source = target or self.target(), str(self.place / name), str(self.place / "landing")
        commit.create(self.session, made, path, 240)
        step: Any = SimpleNamespace(
            id="backfill/copy", source="landing", target="copy", sql=COPIED, time="at", stored=False, fragile=None
        )
        return backfill.History(
            step=step,
            source=state("landing", COLUMNS, partition_by=(), kind="landing"),
            source_path=source,
            target=made,
            target_path=path,
            fence=log.latest_version(source),
            slices=tuple(newest_first()),
            writer=commit.open_feed(self.session, "history/x", path, 0),
        )

    def carry(self, history: backfill.History, **more: Any) -> backfill.BatchResult:
        return backfill.run_batch(SPARK, self.session, history, history.slices, lambda _: None, **more)


def newest_first() -> Iterator[Slice]:
    for at in range(DAYS):
        day = BEGIN + timedelta(days=DAYS - 1 - at)
        first, end = (f"{each}T00:00:00" for each in (day, day + timedelta(days=1)))
        yield Slice(index=at + 1, label=str(day), first=first, end=end, rows=EACH, bytes=100)


@pytest.fixture
def world(tmp_path: Path, session: Any) -> World:
    session.sql(ROWS).write.format("delta").save(str(tmp_path / "landing"))
    return World(place=tmp_path, session=session)


def by_spark(history: backfill.History) -> list[bool]:
    """Of each commit of rows, whether Spark made it."""
    entries = DeltaTable(history.target_path).history()
    return [
        "Spark" in str(entry.get("engineInfo", ""))
        for entry in entries
        if '"kind": "history"' in str(entry.get("userMetadata", ""))
    ]


def shown(world: World, history: backfill.History) -> Counter[str]:
    """The rows as Spark's text of them, with the folder's value of the partition."""
    rows = world.session.read.format("delta").load(history.target_path)
    return Counter(
        str(row)
        for row in rows.selectExpr(
            "to_json(struct(*), map('ignoreNullFields', 'false'))", "hex(raw)", "CAST(x AS STRING)"
        ).collect()
    )


def in_files(history: backfill.History) -> list[list[int]]:
    """The numbers in each data file, in its order."""
    files = Path(history.target_path).rglob("*.parquet")
    return sorted(pq.ParquetFile(file).read(["n"]).column("n").to_pylist() for file in files)


@pytest.mark.parametrize("partition_by", [pytest.param(("day",), marks=pytest.mark.soak), ("city",), ("yes", "day")])
def test_the_agent_writes_the_rows_that_spark_writes(
    tmp_path: Path, session: Any, partition_by: tuple[str, ...]
) -> None:
    session.sql(ROWS).write.format("delta").save(str(tmp_path / "landing"))
    world = World(place=tmp_path, session=session, partition_by=partition_by)
    ours, sparks = world.history("ours"), world.history("sparks")
    done, other = world.carry(ours), world.carry(sparks, retried=True)
    assert (by_spark(ours), by_spark(sparks)) == ([False], [True])
    assert (done.rows_in, done.written.rows) == (other.rows_in, other.written.rows) == (DAYS * EACH, DAYS * EACH)
    assert shown(world, ours) == shown(world, sparks)
    parts = [
        Counter(str(sorted(part.items())) for part in DeltaTable(h.target_path).partitions()) for h in (ours, sparks)
    ]
    assert parts[0] == parts[1]
    if partition_by != ("city",):  # Spark makes a file of its own for each text that is stored as NULL
        assert in_files(ours) == in_files(sparks)
        assert all(numbers == sorted(numbers) for numbers in in_files(ours)), "not as the table is clustered"


def test_a_batch_is_there_once_though_another_writer_has_it_already(world: World) -> None:
    late = world.history("copy")
    first = replace(late, writer=commit.open_feed(world.session, "history/x", late.target_path, 0))
    assert world.carry(first).written.rows == DAYS * EACH
    with pytest.raises(WriteSkipped):
        world.carry(late)
    again = commit.open_feed(world.session, "history/x", late.target_path, 0)
    assert again.position == DAYS
    assert DeltaTable(late.target_path).count() == DAYS * EACH


def test_while_spark_writes_the_table_spark_writes_the_batch_too(world: World) -> None:
    history = world.history("copy")
    with write_lock.shared(history.target_path):
        done = world.carry(history)
    assert (done.rows_in, done.written.rows, by_spark(history)) == (DAYS * EACH, DAYS * EACH, [True])


def test_what_deltalake_would_write_otherwise_is_left_to_spark(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    history = world.history("copy")
    monkeypatch.setattr(exact_appends, "supports_small_appends", lambda _: False)
    assert world.carry(history).written.rows == DAYS * EACH
    assert by_spark(history) == [True]


def test_a_row_that_is_not_as_expected_stops_it_before_anything_is_written(world: World) -> None:
    history = world.history(
        "copy", replace(world.target(), checks=(RowCheck(name="n", severity="stop", failing="n > 50"),))
    )
    with pytest.raises(Exception, match=guard.UNEXPECTED) as error:
        world.carry(history)
    assert guard.refused(error.value)
    assert DeltaTable(history.target_path).count() == 0
