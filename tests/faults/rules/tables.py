"""Small tables as the agent and as strangers make them."""

import json
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from console.agent.feeds import app_ids
from console.agent.feeds.live_feed import LiveFeed
from console.agent.rows.unchanged import plain_read
from console.model.live import Feed, TableState, Version
from console.model.schema import Column, OnRewrite, Table

COLUMNS = (Column(name="n", type="bigint"), Column(name="day", type="date"))
SCHEMA = pa.schema([("n", pa.int64()), ("day", pa.date32())])


def state(name: str, columns: Sequence[Column] = COLUMNS, **more: Any) -> TableState:
    """A table that is stored as it reads, partitioned by day where it has one."""
    partition = tuple(more.pop("partition_by", ("day",)))
    kind = more.pop("kind", "append")
    table = Table(name=name, kind=kind, columns=tuple(columns), partition_by=partition, **more)
    return TableState(
        table=table,
        version=Version(content="c0", path=name, columns=tuple(columns), partition_by=partition),
        read=plain_read(column.name for column in columns),
        rows="",
        values={},
    )


def rows(*numbers: int, day: int | None = 1) -> pa.Table:
    """One row a number, all of one day of November 2026; None for rows without a day."""
    when = None if day is None else date(2026, 11, day)
    return pa.table({"n": numbers, "day": pa.array([when] * len(numbers), pa.date32())}, SCHEMA)


def foreign(place: Path, *commits: pa.Table, partition_by: Sequence[str] = ("day",)) -> str:
    """A landing table by a stranger's hand: one append a commit."""
    for rows in commits:
        write_deltalake(str(place), rows, mode="append", partition_by=list(partition_by))
    return str(place)


def commit_rows(table: str, app_id: str, number: int, data: pa.Table, **note: Any) -> int:
    """Append under a feed's id, as another process of ours did; returns the version."""
    properties = CommitProperties(
        custom_metadata={"userMetadata": json.dumps(note or {"kind": "live"})},
        app_transactions=[Transaction(app_id, number)],
    )
    write_deltalake(table, data, mode="append", commit_properties=properties)
    return int(DeltaTable(table).version())


def number(epoch: int, position: int) -> int:
    return epoch << app_ids.EPOCH_BITS | position


def column_values(table: str, column: str = "n") -> list[Any]:
    """A column's values, sorted: with duplicates, by a reader that knows nothing of feeds."""
    values = Counter(DeltaTable(table).to_pyarrow_table().column(column).to_pylist())
    return sorted(values.elements())


def copying_feed(source: str, target: str, *, on_rewrite: OnRewrite = "stop", start: int = 0) -> LiveFeed:
    """A feed that carries every row as it is."""
    feed = Feed(materialization="every", source="landing", target="copy", sql="SELECT n, day FROM landing")
    landing = state("landing", kind="landing", on_rewrite=on_rewrite)
    return LiveFeed(
        spec=feed, source=landing, target=state("copy"), joins=(), source_path=source, target_path=target, start=start
    )
