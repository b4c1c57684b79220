"""Fourteen days in two versions of a table, with three defects in the newer one; and their comparison, recorded."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import write_deltalake

from console.agent.compared.comparison import compare
from console.agent.compared.records import ComparisonRecords
from console.agent.compared.round import ComparisonRound, portions
from console.agent.recount.pinned_tables import Pinned
from console.agent.store import log
from console.agent.store.table_stats import table_stats
from console.model.event import Checked
from console.model.schema import Column
from console.model.slices import Slice
from console.model.step import Comparison, Pair
from tests.faults.rules.tables import state

DAYS, A_DAY = 14, 60
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
COLUMNS = (
    Column(name="id", type="string"),
    Column(name="ts", type="timestamp"),
    Column(name="day", type="date"),
    Column(name="bytes", type="bigint"),
    Column(name="cost", type="double"),
)
OLD = (*COLUMNS[:4], Column(name="cost", type="string"))
PLAN = Comparison(
    table="copy",
    pairs=tuple(Pair(name, name) for name in ("id", "ts", "day", "bytes")),
    left_out=(("cost", "its type changes"),),
    time="ts",
    changed=(Pair("cost", "cost", exact=False),),
)
BAD_CAST, LOST, TWICE = "2026-11-05", "2026-11-08", "2026-11-11"


def rows(cost: pa.DataType) -> pa.Table:
    """Fourteen days of requests; `cost` as text or as a number."""
    at = [FIRST + timedelta(days=n // A_DAY, minutes=n % A_DAY) for n in range(DAYS * A_DAY)]
    numbers = [n / 4 for n in range(len(at))]
    return pa.table(
        {
            "id": [f"e{n}" for n in range(len(at))],
            "ts": pa.array(at, pa.timestamp("us", "UTC")),
            "day": [moment.date() for moment in at],
            "bytes": pa.array(range(len(at)), pa.int64()),
            "cost": pa.array([str(n) if cost == pa.string() else n for n in numbers], cost),
        }
    )


def with_defects(correct: pa.Table) -> pa.Table:
    """A wrong cast on one day, a row lost on another and one duplicated on a third."""
    made: pa.Table = duckdb.sql(
        f"""
        SELECT id, ts, day, CAST(CASE WHEN day = '{BAD_CAST}' THEN bytes % 256 ELSE bytes END AS BIGINT) AS bytes, cost
        FROM correct WHERE NOT (day = '{LOST}' AND id = 'e425')
        UNION ALL SELECT * FROM correct WHERE day = '{TWICE}' AND id = 'e601'
        """
    ).to_arrow_table()
    return made.cast(correct.schema)


def written(place: Path, table: pa.Table) -> None:
    write_deltalake(str(place), table, partition_by=["day"])


def sides(tmp_path: Path, new: pa.Table) -> tuple[Pinned, Pinned]:
    written(tmp_path / "old", rows(pa.string()))
    written(tmp_path / "new", new)
    return as_stored(tmp_path)


def as_stored(tmp_path: Path) -> tuple[Pinned, Pinned]:
    paths = str(tmp_path / "old"), str(tmp_path / "new")
    states = state("copy", OLD), state("copy", COLUMNS)
    old, new_side = (Pinned(s, path, log.latest_version(path)) for s, path in zip(states, paths, strict=True))
    return old, new_side


def in_portions(side: Pinned) -> tuple[tuple[Slice, ...], ...]:
    """In batches of thirty rows, of which eight are a portion: four days each."""
    result = table_stats("copy", side.path, "day")
    assert result is not None
    return portions(result.days, rows_limit=A_DAY // 2)


def compare_recorded(session: Any, tmp_path: Path) -> list[Checked]:
    """As an agent does it: what is recorded is not compared again, and each portion is stored."""
    old, new = as_stored(tmp_path)
    records = ComparisonRecords(tmp_path / "console")
    course = ComparisonRound(
        portions=in_portions(new),
        done=records.newest("web-1", "copy"),
        store=lambda result: records.append("web-1", result),
    )
    return list(compare(session, PLAN, old, new, (), course))
