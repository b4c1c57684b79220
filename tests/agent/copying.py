"""Feeds that copy their rows by the real logs, positions and commits, without Java: Arrow reads what Spark would."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from console.agent.feeds import live_feed, ranges
from console.agent.recount import liveness as gate
from console.model.event import Checked
from tests.faults.rules.tables import SCHEMA


class Rows:
    """What stands in for a DataFrame."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def coalesce(self, _: int) -> "Rows":
        return self

    def toArrow(self) -> pa.Table:
        return self.table


def by_arrow(monkeypatch: pytest.MonkeyPatch, look: Callable[[pa.Table], None] = lambda _: None) -> None:
    """From now on every feed carries its rows as they are; `look` sees them first, and may raise as Spark would."""

    def read(session: Any, source: str, part: ranges.Range, _: Path, **more: Any) -> Rows:
        files = [pq.read_table(file.path, schema=SCHEMA, partitioning="hive") for file in part.files]
        return Rows(pa.concat_tables(files).select(SCHEMA.names).cast(SCHEMA))

    def compute(session: Any, feed: live_feed.LiveFeed, stored: Rows, joined: Any) -> Rows:
        look(stored.table)
        return stored

    def alive(session: Any, feed: live_feed.LiveFeed, *_: Any) -> Checked:
        return Checked(
            table=feed.spec.target,
            check=f"feed {feed.spec.materialization}",
            ok=True,
            detail="not computed again: there is no Spark",
        )

    monkeypatch.setattr(gate, "check_feed", alive)
    monkeypatch.setattr(ranges, "read", read)
    monkeypatch.setattr(live_feed, "compute", compute)
