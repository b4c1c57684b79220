"""Reading an aggregate of 1,000 partial commits beside the same one compacted, in processor seconds of one run.

The table has a state for each of its keys in every commit. Between two passes of maintenance a partition holds what a pass has
merged and the commits since; it is read when it holds most of them before the next pass takes them, and once never maintained.
"""

import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import commit
from console.agent.feeds.live_feed import logical_rows
from console.agent.maintenance.compaction import MANY, crowded
from console.agent.maintenance.merge import Merge, merge
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.model.live import TableState, Version
from console.model.schema import Table
from tests.bench.processor_time import spent
from tests.bench.report import Measurement, check
from tests.bench.size import sized
from tests.planning.test_aggregates import split
from tests.planning.world import columns

pytestmark = pytest.mark.bench

COMMITS, KEYS = sized(200, 1000), 50
ROUNDS = 3
LIMIT = 2.0
SINCE = MANY - 2  # commits since the last pass: with the merged file one fewer than the next pass would take
QUERY = """SELECT k, day, count(*) AS hits, sum(d) AS paid, avg(i) AS mean, max(l) AS high, approx_count_distinct(s) AS about
FROM t GROUP BY k, day"""
TYPES = {
    "k": "string", "day": "date", "hits": "bigint", "paid": "decimal(38,2)", "mean": "double", "high": "bigint", "about": "bigint",
}  # fmt: skip


def aggregate() -> TableState:
    code = split(QUERY, **TYPES)
    assert code.split is not None
    table = Table(name="agg", kind="aggregate", columns=columns(**TYPES), partition_by=("day",), time="day")
    version = Version(content="c", path="agg", columns=code.stored, partition_by=("day",))
    return TableState(table=table, version=version, read=code.read, rows="", values={}, merging=code.split.merging)


STATE = aggregate()


def states_by_commit(session: Any) -> list[Any]:
    """The partial states of each commit, as an Arrow table, computed by the feed's own query."""
    session.sql(
        f"""SELECT c, concat('key ', k) AS k, DATE '2026-11-01' AS day, CAST(k AS INT) AS i, c * k AS l,
        CAST(c / 4 AS DECIMAL(10,2)) AS d, CAST(NULL AS DOUBLE) AS f, concat(c, '/', n, '/', k) AS s
        FROM (SELECT id AS c FROM range({COMMITS})) CROSS JOIN (SELECT id AS k FROM range({KEYS})) CROSS JOIN (SELECT id AS n FROM range(3))"""
    ).createOrReplaceTempView("t")
    partial = split(QUERY, **TYPES).feed.sql.replace("SELECT ", "SELECT c, ", 1).replace("GROUP BY ", "GROUP BY c, ", 1)
    every = session.sql(partial).toArrow().sort_by("c")
    return [every.slice(n * KEYS, KEYS).drop_columns(["c"]) for n in range(COMMITS)]


def append(path: str, commits: list[Any]) -> None:
    table = DeltaTable(path)
    for states in commits:
        write_deltalake(table, states, mode="append")


def pass_of_maintenance(session: Any, path: str, many: int = MANY) -> None:
    assert STATE.merging is not None
    for crowd in crowded(path, many):
        wanted = Merge(
            table=path, crowd=crowd, state=STATE, merging=STATE.merging, passed=log.latest_version(path), tasks=1
        )
        assert merge(session, wanted) is not None


def test_reading_an_aggregate_of_a_thousand_commits_costs_less_than_twice_the_compacted_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spark = SparkHandle(Settings(region="bench", master="local[2]"), -1)
    session = spark.session()
    jvm = session.sparkContext._gateway.proc.pid
    kept, never, whole = (str(tmp_path / name) for name in ("kept", "never", "whole"))

    def read(path: str) -> float:
        before = spent(jvm)
        rows = logical_rows(session, STATE, session.read.format("delta").load(path)).collect()
        assert (len(rows), sum(row["hits"] for row in rows)) == (KEYS, 3 * COMMITS * KEYS)
        return spent(jvm) - before

    try:
        commit.create(session, STATE, never, 24)
        states, maintained = states_by_commit(session), COMMITS - SINCE
        append(never, states[:maintained])
        shutil.copytree(never, kept)
        before = spent(jvm)
        pass_of_maintenance(session, kept)
        pass_seconds = spent(jvm) - before
        for path in (never, kept):
            append(path, states[maintained:])
        assert crowded(kept) == (), "the next pass would take no more of it"
        shutil.copytree(kept, whole)
        pass_of_maintenance(session, whole, many=2)
        figures = rounds(read, (kept, whole, never))
    finally:
        spark.stop()
    base = figures[whole]
    others = f"never maintained {figures[never] / base:.1f} times"
    text = f"{figures[kept] / base:.2f} times ({figures[kept]:.2f}/{base:.2f} processor seconds); {others}; a pass {pass_seconds:.1f} s"
    what = f"reading an aggregate of {COMMITS:,} commits of {KEYS} keys, {SINCE} since the last pass, beside the merged one"
    with capsys.disabled():
        check(Measurement(what=what, figure=figures[kept] / base, limit=LIMIT, text=text))


def rounds(read: Callable[[str], float], tables: tuple[str, ...]) -> dict[str, float]:
    """Table → median of warm reads, in turn."""
    for path in tables:
        read(path)
    taken = [{path: read(path) for path in tables} for _ in range(ROUNDS)]
    return {path: statistics.median(each[path] for each in taken) for path in tables}
