"""A batch whose query DuckDB computes and deltalake commits, beside Spark's, and where both would not mean the same (decision 32).

The rows of both are compared whole before a figure counts.
"""

import statistics
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from console import planning, project
from console.agent.feeds import app_ids, backfill, commit
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.agent.survey import survey
from console.model.plan import numbered
from console.model.slices import cut
from console.model.step import Backfill
from tests.bench import demo_rows
from tests.bench.native import batch
from tests.bench.native.engines import by_duckdb, by_spark, differing
from tests.bench.native.functions import PAIRS, Pair
from tests.bench.other_tools.rows import differences
from tests.bench.processor_time import of_tree
from tests.bench.report import Measurement, check
from tests.bench.size import rows, sized

pytestmark = pytest.mark.bench
ROWS, DAYS = rows(300_000), 10
ROUNDS = sized(2, 3)
TASKS = 2
WANTED = 3.0  # times Spark's batch, or it is not worth two engines


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkHandle]:
    handle = SparkHandle(Settings(region="bench"), -1)
    yield handle
    handle.stop()


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: str(pair.name))
def test_whether_both_engines_mean_the_same(pair: Pair, spark: SparkHandle) -> None:
    session = spark.session()
    found = differing(pair, by_spark(session, pair), by_duckdb(pair))
    assert pair.differs in ([value for value, _, _ in found] or [""]), f"{pair.name} differs on {found}"


class Batches:
    """The demo's requests as one batch, by either engine, each into a table of its own."""

    def __init__(self, root: Path, spark: SparkHandle) -> None:
        self.root, self.spark, self.session = root, spark, spark.session()
        self.landing = root / "w" / "landing"
        demo_rows.land(self.landing, ROWS, DAYS)
        demo_rows.put(root, demo_rows.files())
        (root / "regions").mkdir()
        (root / "regions" / "us.yaml").write_text("name: us\nwarehouse: w\n")
        loaded = project.load(root)
        region = loaded.region("us")
        live = survey(root / "w", "us", "web", ["landing"])
        plan = numbered(planning.plan(loaded.pipeline("web", region), live, region, "bench"), 1)
        self.step = next(step for step in plan.steps if isinstance(step, Backfill))
        source, target = plan.release.table("landing"), plan.release.table("requests")
        assert source is not None
        assert target is not None
        self.source, self.target = source, target

    def made(self, name: str) -> str:
        path = str(self.root / name)
        commit.create(self.session, self.target, path, 24)
        return path

    def by_spark(self, path: str) -> None:
        fence, slices = log.latest_version(str(self.landing)), cut([], None)
        writer = commit.open_feed(self.session, app_ids.history_id(path, self.step.materialization, fence), path, 0)
        history = backfill.History(
            step=self.step, source=self.source, source_path=str(self.landing), target=self.target, target_path=path, fence=fence,
            slices=slices, writer=writer,
        )  # fmt: skip
        done = backfill.run_batch(self.spark, self.session, history, slices, lambda _: None)
        assert (done.rows_in, done.written.rows) == (ROWS, ROWS)

    def by_duckdb(self, path: str) -> None:
        assert batch.carry(self.landing, path, TASKS) == ROWS

    def cost(self, name: str, work: Any) -> float:
        path = self.made(name)
        began = of_tree()
        work(path)
        return of_tree() - began


def test_a_batch_by_duckdb_beside_one_by_spark(
    tmp_path: Path, spark: SparkHandle, capsys: pytest.CaptureFixture[str]
) -> None:
    batches = Batches(tmp_path, spark)
    pairs = []
    for number in range(ROUNDS + 1):
        works = [
            partial(batches.cost, f"spark{number}", batches.by_spark),
            partial(batches.cost, f"duckdb{number}", batches.by_duckdb),
        ]
        costs = [work() for work in (works[::-1] if number % 2 else works)]
        pairs.append(tuple(costs[::-1] if number % 2 else costs))
    names = [column.name for column in batches.target.table.columns]
    days = [demo_rows.BEGIN + timedelta(days=day) for day in range(DAYS)]
    assert differences(str(tmp_path / "spark1"), str(tmp_path / "duckdb1"), names, days) == 0
    ratio = statistics.median(one / other for one, other in pairs[1:])  # the first ones warm both up
    one, other = (statistics.median(costs) for costs in zip(*pairs[1:], strict=True))
    with capsys.disabled():
        check(
            Measurement(
                what=f"a batch of {ROWS:,} rows by Spark, beside the same by DuckDB and deltalake",
                figure=ratio, limit=WANTED, at_least=True,
                text=f"{ratio:.1f} × its processor time ({one:.1f}/{other:.1f} s), the same rows",
            )
        )  # fmt: skip
