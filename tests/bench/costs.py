"""What a live step and a batch of history cost in the tree that Python's path begins with: one JSON object, in processor
seconds of this process and its JVM without its compilers, so that a busy machine tells nearly the same. `against.py` runs it.
"""

import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

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
from tests.bench import test_batch
from tests.bench.processor_time import spent
from tests.faults.rules.tables import copying_feed, foreign, rows, state

# Warm-up: the first steps and batches of a JVM are interpreted.
WARM, STEPS, ROWS = 200, 60, 250
BATCHES, BATCH_ROWS = 14, 200_000


def main() -> None:
    spark = SparkHandle(Settings(region="costs", master="local[2]"), -1)
    session = spark.session()
    jvm = session.sparkContext._gateway.proc.pid
    try:
        with tempfile.TemporaryDirectory(prefix="console-costs-") as folder:
            steps = live_steps(session, jvm, Path(folder))
            batches = history_batches(spark, session, jvm, Path(folder))
    finally:
        spark.stop()
    print(json.dumps({"live_step": statistics.median(steps), "batch": statistics.median(batches)}))


def costs(jvm: int, work: Callable[[], Any]) -> float:
    before = spent(jvm)
    work()
    return spent(jvm) - before


def live_steps(session: Any, jvm: int, folder: Path) -> list[float]:
    """Of warm steps, each over one commit of a landing table of others, into a table partitioned by day."""
    source, target = foreign(folder / "landing", rows(0)), str(folder / "copy")
    commit.create(session, state("copy"), target, 24)
    feed = copying_feed(source, target)
    results = []
    for step in range(WARM + STEPS):
        first = 1 + step * ROWS
        write_deltalake(source, rows(*range(first, first + ROWS)), mode="append", partition_by=["day"])
        results.append(costs(jvm, partial(feed.step, session, log.latest_version(source))))
    assert feed.rows_moved == (WARM + STEPS) * ROWS
    return [sum(results[at : at + 10]) / 10 for at in range(WARM, WARM + STEPS, 10)]


def history_batches(spark: SparkHandle, session: Any, jvm: int, folder: Path) -> list[float]:
    """Of warm batches of the demo's requests, each into a table of its own."""
    test_batch.ROWS = BATCH_ROWS
    source = str(folder / "requests")
    test_batch.landing(source)
    loaded = project.load(test_batch.ROOT)
    region = loaded.region("us")
    plan = numbered(
        planning.plan(loaded.pipeline("web", region), Live(region="us", pipeline="web", release=None), region, "bench"),
        1,
    )
    step = next(step for step in plan.steps if isinstance(step, Backfill))
    read, target = plan.release.table("landing"), plan.release.table("requests")
    assert read is not None
    assert target is not None
    fence, slices = log.latest_version(source), cut([], None)

    def batch(n: int) -> None:
        path = str(folder / f"batch{n}")
        commit.create(session, target, path, 24)
        writer = commit.open_feed(session, app_ids.history_id(path, step.materialization, fence), path, 0)
        history = backfill.History(
            step=step,
            source=read,
            source_path=source,
            target=target,
            target_path=path,
            fence=fence,
            slices=slices,
            writer=writer,
        )
        done = backfill.run_batch(spark, session, history, slices, lambda _: None)
        assert (done.rows_in, done.written.rows) == (BATCH_ROWS, BATCH_ROWS)

    return [costs(jvm, partial(batch, n)) for n in range(BATCHES + 1)][1:]


if __name__ == "__main__":
    sys.exit(main())
