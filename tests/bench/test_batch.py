"""A batch of a million rows beside the bare `INSERT … SELECT`, raw and warm in the same session: a ratio of processor seconds."""

import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from deltalake import write_deltalake

from console import planning, project
from console.agent.feeds import app_ids, backfill, commit
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.model.live import Live
from console.model.plan import numbered
from console.model.slices import cut
from console.model.step import Backfill
from tests.bench.processor_time import spent
from tests.bench.report import Measurement, check
from tests.bench.size import sized

ROWS = 1_000_000
ROUNDS = sized(1, 3)
MOST = 1.3
ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.bench


def landing(path: str) -> None:
    """A million requests of one day, as the demo's producer writes them."""
    rows = duckdb.sql(
        f"""
        SELECT 'e' || i AS id, 'eu' AS region, TIMESTAMPTZ '2026-11-01 00:00:00+00' + to_microseconds(i * 86000) AS ts,
               json_object('tenant', 't' || i % 9, 'ip', '192.0.2.' || i % 250, 'method', 'GET', 'path', '/a/' || i % 1000 || '?q=1',
                 'protocol', 'HTTP/1.1', 'status', CASE WHEN i % 50 = 0 THEN 500 ELSE 200 END, 'bytes', i % 9999, 'duration_ms',
                 (i % 777) / 7.0, 'referrer', 'http://example.org/x', 'user_agent', 'Mozilla/5.0 (X11; Linux) Firefox/99.0') AS payload
        FROM range({ROWS}) r(i)
        """
    ).to_arrow_table()
    write_deltalake(path, rows)


def test_a_batch_costs_little_more_than_the_bare_insert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = str(tmp_path / "landing")
    landing(source)
    loaded = project.load(ROOT)
    region = loaded.region("us")
    plan = numbered(
        planning.plan(loaded.pipeline("web", region), Live(region="us", pipeline="web", release=None), region, "bench"),
        1,
    )
    step = next(step for step in plan.steps if isinstance(step, Backfill))
    state, target = plan.release.table("landing"), plan.release.table("requests")
    assert state is not None
    assert target is not None

    spark = SparkHandle(Settings(region="bench"), -1)
    session = spark.session()
    slices = cut([], None)
    fence = log.latest_version(source)

    def ours(n: int) -> None:
        path = str(tmp_path / f"ours{n}")
        commit.create(session, target, path, 24)
        writer = commit.open_feed(session, app_ids.history_id(path, step.materialization, fence), path, 0)
        history = backfill.History(
            step=step,
            source=state,
            source_path=source,
            target=target,
            target_path=path,
            fence=fence,
            slices=slices,
            writer=writer,
        )
        done = backfill.run_batch(spark, session, history, slices, lambda _: None)
        assert (done.rows_in, done.written.rows) == (ROWS, ROWS)

    def bare(n: int) -> None:
        path = str(tmp_path / f"bare{n}")
        commit.create(session, target, path, 24)
        session.read.format("delta").load(source).createOrReplaceTempView("landing")
        session.sql(step.sql).write.format("delta").mode("append").save(path)

    try:
        for warm in (bare, ours):
            warm(0)
        jvm = session.sparkContext._gateway.proc.pid
        pairs = [(spending(jvm, ours, n), spending(jvm, bare, n)) for n in range(1, ROUNDS + 1)]
    finally:
        spark.stop()
    ratio = statistics.median(a / b for a, b in pairs)
    figures = ", ".join(f"{a:.1f}/{b:.1f}" for a, b in pairs)
    what = f"one batch of {ROWS:,} rows, its table created and opened, beside the plain INSERT"
    with capsys.disabled():
        check(Measurement(what=what, figure=ratio, limit=MOST, text=f"{ratio:.2f} times ({figures} processor seconds)"))


def spending(jvm: int, run: Callable[[int], Any], n: int) -> float:
    before = spent(jvm)
    run(n)
    return spent(jvm) - before
