"""History of one new version: fenced, cut into slices, copied batch by batch (P1)."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.agent.expectations.guard import Warnings, guarded, row_checks
from console.agent.feeds import commit, exact_appends
from console.agent.feeds.file_layout import clustered, in_few_files
from console.agent.feeds.live_feed import join_versions, joined_paths, joined_rows, logical_rows
from console.agent.feeds.newest import stored_rows
from console.agent.query_over import query_over
from console.agent.rows.snapshot import stored_at
from console.agent.spark_jobs import RunningJob
from console.agent.spark_session import SparkHandle
from console.agent.store import days
from console.model import small_batch
from console.model.live import TableState
from console.model.slices import MICROS_A_DAY, Slice, moment
from console.model.step import Backfill


@dataclass(slots=True, kw_only=True)
class History:
    """A backfill in progress: source, fence, target, and the position of its writer.

    source       table whose stored rows are read
    quarantined  rows of the current batch that do not convert and are left out
    """

    step: Backfill
    source: TableState
    source_path: str
    target: TableState
    target_path: str
    fence: int
    slices: tuple[Slice, ...]
    writer: commit.FeedWriter
    joins: tuple[tuple[TableState, str], ...] = ()
    quarantined: int = 0

    @property
    def done(self) -> bool:
        return self.writer.position >= len(self.slices)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """Source rows, commit and duration of one batch. warnings: expectations that some rows fail, a line each"""

    rows_in: int
    written: commit.CommitResult
    seconds: float
    warnings: tuple[str, ...] = ()


def run_batch(
    spark: SparkHandle,
    session: Any,
    history: History,
    run: Sequence[Slice],
    watch: Callable[[RunningJob], None],
    *,
    retried: bool = False,
) -> BatchResult:
    """Copy a run of slices of the pinned source into the target, exactly once.

    Rows committed to the source after the fence belong to the follower, so backfill and follower together leave no gap
    and no duplicate. Rows and position are one commit: a repeated batch writes nothing.

    watch    called with the job group before the write starts, to show its progress
    retried  a try of it has failed: its rows are not collected, which may have been the reason
    raises   FeedStopped if another writer is ahead; errors of Spark, `guard.refused` if a row fails an expectation
    """
    started = time.monotonic()
    joined = join_versions(history.joins)
    batch = compute(spark, session, history, run, joined)
    with spark.job(session, job_name(history, run)) as group:
        watch(group)
        written = None
        noted = note(history, run, joined)
        if not retried and small_batch.is_small(run) and exact_appends.supports_small_appends(history.target_path):
            written = commit.append_small(batch.rows, history.writer, run[-1].index, noted)
        if written is None:
            written = commit.append(session, batch.rows, history.writer, run[-1].index, noted)
    rows_in = batch.count_source(spark, session)
    return BatchResult(rows_in, written, time.monotonic() - started, batch.warnings.lines())


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputedBatch:
    """The rows of a batch as they are to be written, and what the job that writes them counts.

    rows     DataFrame with the target's stored columns
    counted  Observation that receives the number of source rows
    """

    history: History
    run: Sequence[Slice]
    rows: Any
    counted: Any
    warnings: Warnings

    def count_source(self, spark: SparkHandle, session: Any) -> int:
        """Source rows of the batch, once it is written.

        What a lost executor had counted is counted again where its stage is (SPARK-58183): there they are read once more.
        """
        return count_rows(session, self.history, self.run) if spark.on_cluster else int(self.counted.get["rows"])


def compute(
    spark: SparkHandle, session: Any, history: History, run: Sequence[Slice], joined: Mapping[str, int]
) -> ComputedBatch:
    """The rows of a batch, which nothing has read yet. joined: table → version, from `join_versions`"""
    from pyspark.sql import Observation

    counted = Observation()
    spark.fit(session)
    checks = row_checks(history.target)
    warnings = Warnings(checks)
    tasks = spark.build_tasks
    out = warnings.observed(guarded(target_rows(session, history, run, counted, joined, tasks), checks))
    # a slot stays free for live (rule 10)
    rows = clustered(in_few_files(out, run, history.target, tasks), history.target)
    return ComputedBatch(history=history, run=run, rows=rows, counted=counted, warnings=warnings)


def job_name(history: History, run: Sequence[Slice]) -> str:
    return f"{history.target_path}#{run[-1].index}"


def note(history: History, run: Sequence[Slice], joined: Mapping[str, int]) -> dict[str, Any]:
    """The note of a batch's commit. joined: as of `compute`"""
    return {
        "kind": "history",
        "feed": history.writer.app_id,
        "step": history.step.id,
        "slices": [run[0].index, run[-1].index],
        **({"quarantined": history.quarantined} if history.quarantined else {}),
        **({"joins": joined, "joined": joined_paths(history.joins)} if joined else {}),
    }


def target_rows(
    session: Any,
    history: History,
    run: Sequence[Slice],
    counted: Any = None,
    joined: Mapping[str, int] | None = None,
    tasks: int = 1,
) -> Any:
    """The target's rows for a run of slices.

    counted  Observation that receives the number of source rows
    joined   table → version, from `join_versions`; None for the latest
    tasks    that read the source, at most, if more than one
    """
    from pyspark.sql.functions import count, lit

    rows = source_rows(session, history, run)
    if tasks > 1:  # Spark's own limit is a goal: where files do not fit evenly, it takes more tasks (rule 10)
        rows = rows.coalesce(tasks)
    if counted is not None:
        rows = rows.observe(counted, count(lit(1)).alias("rows"))
    if history.quarantined and history.step.fragile:
        rows = rows.where(f"NOT coalesce({history.step.fragile.predicate}, false)")
    versions = join_versions(history.joins) if joined is None else joined
    frames = {**joined_rows(session, history.joins, versions), history.step.source: rows}
    return stored_rows(session, history.target, query_over(session, history.step.sql, frames))


def count_rows(session: Any, history: History, run: Sequence[Slice]) -> int:
    """Source rows in a run of slices, as of the fence."""
    return int(source_rows(session, history, run).count())


def count_half(session: Any, step: Backfill, source: TableState, pinned: tuple[str, int], run: Sequence[Slice]) -> int:
    """Rows of a source in one half of a hybrid. pinned: its path and the fence"""
    return int(in_slices(_read_rows(session, step, source, *pinned), step.time, run).count())


def count_days(session: Any, step: Backfill, source: TableState, path: str, fence: int) -> list[tuple[str, int]]:
    """(day, rows) of a source as of a version; day is a name of `model/slices`, "" for NULL. Reads one column."""
    from pyspark.sql.functions import col

    rows = _read_rows(session, step, source, path, fence)
    counted = rows.groupBy(days.clamped_day(col(step.time)).alias("day")).count()
    counts = counted.select(days.named_day(col("day")).alias("day"), "count").collect()
    return sorted((row["day"] or "", int(row["count"])) for row in counts)


def source_rows(session: Any, history: History, run: Sequence[Slice]) -> Any:
    """The source's rows in a run of slices as of the fence, as its release presents them."""
    rows = _read_rows(session, history.step, history.source, history.source_path, history.fence)
    return in_slices(rows, history.step.time, run)


def _read_rows(session: Any, step: Backfill, source: TableState, path: str, fence: int) -> Any:
    """The rows that a backfill reads: as its release presents them, or an aggregate's stored ones."""
    stored = stored_at(session, path, fence)
    return stored if step.stored else logical_rows(session, source, stored)


def in_slices(rows: Any, column: str, run: Sequence[Slice]) -> Any:
    """Rows in consecutive slices: one half-open range of the column, and the NULL rows if the run ends with them."""
    from pyspark.sql.functions import col

    if not column:
        return rows
    bounded = [piece for piece in run if not piece.null]
    condition = None
    if bounded:
        is_date = rows.select(col(column).alias("time")).schema["time"].dataType.typeName() == "date"
        condition = col(column).isNotNull()
        if first := bounded[-1].first:
            condition = condition & (col(column) >= _bound(first, is_date))
        if end := bounded[0].end:
            condition = condition & (col(column) < _bound(end, is_date))
    if len(bounded) < len(run):
        nulls = col(column).isNull()
        condition = nulls if condition is None else condition | nulls
    return rows.where(condition)


def _bound(text: str, is_date: bool) -> Any:
    """A slice's bound as a literal of the column's own type: a timestamp's range is smaller than a date's."""
    from pyspark.sql.functions import date_from_unix_date, lit, timestamp_micros

    at = moment(text)
    return date_from_unix_date(lit(at // MICROS_A_DAY)) if is_date else timestamp_micros(lit(at))


def label(run: Sequence[Slice]) -> str:
    """`2026-11-07 … 2026-11-05`"""
    labels = [piece.label for piece in run if not piece.null] or [run[-1].label]
    return labels[0] if len(labels) == 1 else f"{labels[0]} … {labels[-1]}"
