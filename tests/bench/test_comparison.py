"""The comparison of all columns of three million rows beside the backfill that it checks: a ratio of processor seconds."""

import statistics
from pathlib import Path

import duckdb
import pytest
from deltalake import write_deltalake

from console import planning, project
from console.agent.compared.comparison import compare
from console.agent.compared.records import ComparisonRecords
from console.agent.compared.round import ComparisonRound
from console.agent.feeds import app_ids, backfill, commit
from console.agent.recount.pinned_tables import Pinned
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.model.live import Live
from console.model.plan import numbered
from console.model.slices import cut
from console.model.step import Backfill, Comparison, Pair
from tests.bench import report
from tests.bench.processor_time import spent

ROWS, DAYS = 3_000_000, 14
ROUNDS = 3
MOST = 0.25
ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.bench


def landing(path: str) -> None:
    """Requests of fourteen days, as the demo's producer writes them."""
    step = DAYS * 86_400_000_000 // ROWS
    rows = duckdb.sql(
        f"""
        SELECT 'e' || i AS id, 'us' AS region, TIMESTAMPTZ '2026-11-01 00:00:00+00' + to_microseconds(i * {step}) AS ts,
               json_object('tenant', 't' || i % 9, 'ip', '192.0.2.' || i % 250, 'method', 'GET', 'path', '/a/' || i % 1000 || '?q=1',
                 'protocol', 'HTTP/1.1', 'status', CASE WHEN i % 50 = 0 THEN 500 ELSE 200 END, 'bytes', i % 9999, 'duration_ms',
                 (i % 777) / 7.0, 'referrer', 'http://example.org/x', 'user_agent', 'Mozilla/5.0 (X11; Linux) Firefox/99.0') AS payload
        FROM range({ROWS}) r(i)
        """
    ).to_arrow_table()
    write_deltalake(path, rows)


def test_a_comparison_of_all_columns_costs_a_part_of_the_backfill(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Figures of each round are printed as they come, so that a run which is cut off has told some."""
    source = str(tmp_path / "landing")
    landing(source)
    loaded = project.load(ROOT)
    region = loaded.region("us")
    live = Live(region="us", pipeline="web", release=None)
    plan = numbered(planning.plan(loaded.pipeline("web", region), live, region, "bench"), 1)
    step = next(step for step in plan.steps if isinstance(step, Backfill))
    state, target = plan.release.table("landing"), plan.release.table("requests")
    assert state is not None
    assert target is not None
    spark = SparkHandle(Settings(region="bench"), -1)
    session, slices, fence = spark.session(), cut([], None), log.latest_version(source)
    names = [column.name for column in target.table.columns]
    compared = Comparison(table="requests", pairs=tuple(Pair(name, name) for name in names), time=target.table.time)
    records = ComparisonRecords(tmp_path / "console")

    def build(name: str) -> Pinned:
        path = str(tmp_path / name)
        commit.create(session, target, path, 24)
        writer = commit.open_feed(session, app_ids.history_id(path, step.materialization, fence), path, 0)
        history = backfill.History(
            step=step, source=state, source_path=source, target=target, target_path=path, fence=fence, slices=slices,
            writer=writer,
        )  # fmt: skip
        assert backfill.run_batch(spark, session, history, slices, lambda _: None).written.rows == ROWS
        return Pinned(target, path, log.latest_version(path))

    def check(old: Pinned, new: Pinned) -> None:
        course = ComparisonRound(store=lambda result: records.append("web-1", result))
        checks = list(compare(session, compared, old, new, (), course))
        assert [check.ok for check in checks] == [True, True], checks

    try:
        old = build("old")
        check(old, old)  # warm
        jvm, pairs = session.sparkContext._gateway.proc.pid, []
        for number in range(ROUNDS):
            started = spent(jvm)
            new = build(f"new{number}")
            built = spent(jvm)
            check(old, new)
            pairs.append((spent(jvm) - built, built - started))
            with capsys.disabled():
                print(f"\ncomparison ÷ backfill, round {number + 1}: {pairs[-1][0]:.1f}/{pairs[-1][1]:.1f} s")
    finally:
        spark.stop()
    ratio = statistics.median(a / b for a, b in pairs)
    compared_s, built_s = (statistics.median(figures) for figures in zip(*pairs, strict=True))
    with capsys.disabled():
        report.check(
            report.Measurement(
                what=f"comparison of all {len(names)} columns of {ROWS:,} rows, warm, beside their backfill",
                figure=ratio,
                limit=MOST,
                text=f"{ratio:.2f} times ({compared_s:.1f}/{built_s:.1f} processor seconds)",
            )
        )
