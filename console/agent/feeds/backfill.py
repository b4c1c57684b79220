"""History of one new version: fenced, cut into slices, carried batch by batch (P1)."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.agent.feeds import commit
from console.agent.feeds.live_feed import logical, pinned, register
from console.agent.rows.snapshot import stored_at
from console.agent.spark_session import JobGroup, SparkHandle
from console.agent.store import days
from console.model.live import TableState
from console.model.schema import quoted
from console.model.slices import MICROS_A_DAY, Slice, moment
from console.model.step import Backfill


@dataclass(slots=True)
class History:
    """One backfill under way: where from, as of when, into what, how far."""

    step: Backfill
    source: TableState  # whose stored rows are read
    source_path: str
    target: TableState
    target_path: str
    fence: int
    slices: tuple[Slice, ...]
    writer: commit.FeedWriter
    joins: tuple[tuple[TableState, str], ...] = ()
    aside: int = 0  # rows of the batch at hand that do not convert, and are left out

    @property
    def done(self) -> bool:
        return self.writer.position >= len(self.slices)


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What one batch did."""

    rows_in: int
    written: commit.CommitResult
    seconds: float


def carry(
    spark: SparkHandle, session: Any, history: History, run: Sequence[Slice], watch: Callable[[JobGroup], None]
) -> BatchResult:
    """Copy a run of slices of the pinned source into the target, exactly once.

    Rows committed to the source after the fence are the follower's, never ours, so the two together leave no gap
    and no duplicate. Rows and position enter in one commit: a batch run again writes nothing.

    watch    told the job group before the write starts, to show its progress
    raises   FeedStopped if another writer is ahead; what Spark raises
    """
    from pyspark.sql import Observation

    started = time.monotonic()
    counted = Observation()
    joined = pinned(history.joins)
    out = rows_of(session, history, run, counted, joined)
    if spark.slots:
        out = out.coalesce(max(1, spark.slots - 1))  # a slot stays free for live (rule 10)
    out = clustered(out, history.target)
    note = {
        "kind": "history",
        "feed": history.writer.app_id,
        "step": history.step.id,
        "slices": [run[0].index, run[-1].index],
        **({"quarantined": history.aside} if history.aside else {}),
        **({"joins": joined} if joined else {}),
    }
    with spark.job(session, f"{history.target_path}#{run[-1].index}") as group:
        watch(group)
        written = commit.append(session, out, history.writer, run[-1].index, note)
    return BatchResult(int(counted.get["rows"]), written, time.monotonic() - started)


def rows_of(
    session: Any,
    history: History,
    run: Sequence[Slice],
    counted: Any = None,
    joined: Mapping[str, int] | None = None,
) -> Any:
    """The target's rows for a run of slices; `counted` observes how many source rows went in, `joined` is as `pinned` gave it."""
    from pyspark.sql.functions import count, lit

    rows = part(session, history, run)
    if counted is not None:
        rows = rows.observe(counted, count(lit(1)).alias("rows"))
    if history.aside and history.step.fragile:
        rows = rows.where(f"NOT coalesce({history.step.fragile.predicate}, false)")
    register(session, history.joins, pinned(history.joins) if joined is None else joined)
    rows.createOrReplaceTempView(history.step.source)
    return session.sql(history.step.sql).selectExpr(*days.stored(history.target))


def clustered(rows: Any, target: TableState) -> Any:
    """The rows of each task in the order in which a table's files keep them."""
    held = {column.name for column in target.version.columns}
    order = [name for name in target.table.cluster_by if name in held]
    if not order:
        return rows
    # the writer would sort by the partitions alone, and undo ours
    return rows.sortWithinPartitions(*map(quoted, (*target.version.partition_by, *order)))


def count_rows(session: Any, history: History, run: Sequence[Slice]) -> int:
    """Source rows in a run of slices, as of the fence."""
    return int(part(session, history, run).count())


def count_half(session: Any, step: Backfill, source: TableState, place: tuple[str, int], run: Sequence[Slice]) -> int:
    """Rows of a source, given as its path and the fence, in one half of a hybrid."""
    stored = stored_at(session, *place)
    return int(within(logical(session, source, stored), step.time, run).count())


def count_days(session: Any, source: TableState, path: str, fence: int, time: str) -> list[tuple[str, int]]:
    """Day (by its name, "" for NULL) and rows of a source as of a version; reads one column."""
    from pyspark.sql.functions import col

    stored = stored_at(session, path, fence)
    counted = logical(session, source, stored).groupBy(days.clamped(col(time)).alias("day")).count()
    found = counted.select(days.named(col("day")).alias("day"), "count").collect()
    return sorted((row["day"] or "", int(row["count"])) for row in found)


def part(session: Any, history: History, run: Sequence[Slice]) -> Any:
    """The source's rows of a run of slices as of the fence, as its release shows them."""
    stored = stored_at(session, history.source_path, history.fence)
    rows = stored if history.step.stored else logical(session, history.source, stored)
    return within(rows, history.step.time, run)


def within(rows: Any, column: str, run: Sequence[Slice]) -> Any:
    """The rows of a run of consecutive slices: one half-open range, with the NULL rows if the run ends with them."""
    from pyspark.sql.functions import col

    if not column:
        return rows
    ranged = [piece for piece in run if not piece.null]
    condition = None
    if ranged:
        day = rows.select(col(column).alias("time")).schema["time"].dataType.typeName() == "date"
        condition = col(column).isNotNull()
        if first := ranged[-1].first:
            condition = condition & (col(column) >= _bound(first, day))
        if end := ranged[0].end:
            condition = condition & (col(column) < _bound(end, day))
    if len(ranged) < len(run):
        empty = col(column).isNull()
        condition = empty if condition is None else condition | empty
    return rows.where(condition)


def _bound(text: str, day: bool) -> Any:
    """A slice's end as a literal of the column's own kind: a day cast to a time would not hold every day that Spark knows."""
    from pyspark.sql.functions import date_from_unix_date, lit, timestamp_micros

    at = moment(text)
    return date_from_unix_date(lit(at // MICROS_A_DAY)) if day else timestamp_micros(lit(at))


def label(run: Sequence[Slice]) -> str:
    """`2026-11-07 … 2026-11-05`"""
    named = [piece.label for piece in run if not piece.null] or [run[-1].label]
    return named[0] if len(named) == 1 else f"{named[0]} … {named[-1]}"
