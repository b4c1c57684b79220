"""Files of a batch on real Spark: few for each day however many tasks build it, each day in one commit, and every row once."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import backfill, commit
from console.agent.feeds.file_layout import FILE_BYTES, SMALL_BYTES, files_a_day
from console.agent.store import log
from console.model.live import TableState
from console.model.slices import Slice
from tests.faults.rules.tables import SCHEMA, column_values, state
from tests.faults.rules.test_batches import history_of, spark_of

pytestmark = [pytest.mark.faults, pytest.mark.spark]

BEGIN, DAYS, COMMITS, EACH, BATCHES = date(2026, 11, 1), 8, 6, 5, 2
MANY_TASKS = {"minPartitionNum": COMMITS, "openCostInBytes": 0}


def day_of(number: int) -> date | None:
    """NULL for one day's rows."""
    return None if number % DAYS == 0 else BEGIN + timedelta(days=number % DAYS)


@pytest.fixture
def landing(tmp_path: Path) -> str:
    """Each of its files has rows of every day, as where events of many days arrive together."""
    for at in range(COMMITS):
        numbers = list(range(at * DAYS * EACH, (at + 1) * DAYS * EACH))
        write_deltalake(
            str(tmp_path / "landing"), pa.table([numbers, list(map(day_of, numbers))], SCHEMA), mode="append"
        )
    return str(tmp_path / "landing")


@pytest.fixture
def many_tasks(session: Any) -> Iterator[Any]:
    for name, value in MANY_TASKS.items():
        session.conf.set(f"spark.sql.files.{name}", str(value))
    yield session
    for name in MANY_TASKS:
        session.conf.unset(f"spark.sql.files.{name}")


def slices(size: int) -> tuple[Slice, ...]:
    """The days, newest first, of so many bytes each."""
    days = [BEGIN + timedelta(days=n) for n in reversed(range(1, DAYS))]
    ends = ["", *(f"{day}T00:00:00" for day in days)]
    pieces = [
        Slice(index=n, label=str(day), first=f"{day}T00:00:00" if day != days[-1] else "", end=end, rows=1, bytes=size)
        for n, (day, end) in enumerate(zip(days, ends, strict=False), 1)
    ]
    return (*pieces, Slice(index=DAYS, label="no day", first="", end="", rows=1, bytes=size, null=True))


def carried(session: Any, landing: str, name: str, tasks: int, size: int) -> str:
    """The path of a table that was built so."""
    target: TableState = state("copy", cluster_by=("n",))
    path = str(Path(landing).with_name(name))
    commit.create(session, target, path, 240)
    history = history_of(landing, target, log.latest_version(landing), "day", slices(size))
    history = replace(history, target_path=path, writer=commit.open_feed(session, "history/x", path, 0))
    for part in range(BATCHES):
        run = history.slices[part * DAYS // BATCHES : (part + 1) * DAYS // BATCHES]
        backfill.run_batch(spark_of(tasks=tasks), session, history, run, lambda _: None)
    return path


def files(path: str) -> Counter[str]:
    """Day → its files, by the log."""
    added = DeltaTable(path).get_add_actions(flatten=True)
    return Counter(map(str, added.column("partition.day").to_pylist()))


@pytest.mark.parametrize(
    ("tasks", "size", "most"),
    [
        pytest.param(2, 1 << 20, 2, marks=pytest.mark.soak),
        (COMMITS, 1 << 20, 1),
        (COMMITS, FILE_BYTES + 1, 2),
        # enough for each task: what it writes is no small file, and nothing is sent from one to another
        pytest.param(COMMITS, COMMITS * SMALL_BYTES, COMMITS, marks=pytest.mark.soak),
    ],
)
def test_a_day_has_few_files_and_every_row_once_however_many_tasks_build_it(
    landing: str, many_tasks: Any, tasks: int, size: int, most: int
) -> None:
    path = carried(many_tasks, landing, "copy", tasks, size)
    written = [
        {file.values for file in each.added}
        for each in log.commits(path, 0, log.latest_version(path))
        if each.note.get("kind") == "history"
    ]
    assert sum(map(len, written)) == len(set[Any]().union(*written)) == DAYS, "each day is in one batch's commit"
    assert len(written) == BATCHES
    assert column_values(path) == list(range(COMMITS * DAYS * EACH))
    found = files(path)
    assert len(found) == DAYS
    assert max(found.values()) == most
    for file in Path(path).rglob("*.parquet"):
        numbers = pq.ParquetFile(file).read(["n"]).column("n").to_pylist()
        assert numbers == sorted(numbers), "as the table is clustered"
        day = file.parent.name.partition("=")[2]
        assert {str(day_of(n)) for n in numbers} == {"None" if day.startswith("__HIVE") else day}


def test_days_are_brought_together_only_where_their_files_would_be_small_and_many() -> None:
    target, run = state("copy"), slices(1 << 20)
    assert [files_a_day(run, target, tasks) for tasks in (1, 2, 3, 64)] == [0, 0, 1, 1]
    assert files_a_day(slices(64 * SMALL_BYTES - 1), target, 64) == 64 * SMALL_BYTES // FILE_BYTES
    assert files_a_day(slices(64 * SMALL_BYTES), target, 64) == 0, "each task's own file is no small one"
    assert files_a_day(slices(0), target, 64) == 0, "nothing is known of a source without statistics"
    assert files_a_day(run, state("copy", partition_by=()), 64) == 0
    hours = [replace(run[0], label=f"2026-11-07T{hour:02}", bytes=SMALL_BYTES) for hour in range(24)]
    assert files_a_day(hours[:8], target, 64) == 2, "hours of a day are one partition"
    heaviest = (replace(run[0], bytes=3 * FILE_BYTES), *run[1:])
    assert files_a_day(heaviest, target, 64) == 3, "the largest day is written by more than one task"
