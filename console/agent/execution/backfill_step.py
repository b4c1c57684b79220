"""A backfill step: fence, slices, and batches that grow towards the target duration."""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from deltalake import DeltaTable

from console.agent.execution import batch
from console.agent.execution.batch import second_spark_for
from console.agent.feeds import app_ids, backfill, commit, planted_bugs
from console.agent.resilience import drift, quarantine
from console.agent.resilience.retry import SHRINK, Tries
from console.agent.resilience.throttle import Brake
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.rows import nanoseconds
from console.agent.second_spark.process import SecondSpark
from console.agent.store import log
from console.errors import RegionError
from console.model.event import BatchDone, BatchStarted, DriverLost, Fenced, Paused, Resumed, StepStarted
from console.model.landing import RELAY
from console.model.live import Day, TableState, TableStats
from console.model.policy import kept_hours
from console.model.sandbox_plan import carried_slices
from console.model.slices import EARLY, LATE, Slice, by_day, cut, half
from console.model.small_batch import next_run
from console.model.step import Backfill

FIRST_ROWS = 400_000  # of the first batch at most, which measures the rate
GROWTH = 4.0
# A Spark's first batch is taken for twice as fast as it was: meanwhile its classes are loaded and interpreted. By its own rate the
# second one would be smaller than it, in a Spark that is several times as fast by then.
COLD = 2.0
INEXACT_SHARE = 0.2  # limit of rows in files that span days; above it, the rows of each day are counted before slicing


def build(context: RolloutContext, step: Backfill, brake: Brake, *, batches: int | None = None) -> None:
    """Run one backfill from its current position to its last slice.

    brake    holds each batch back while the region's throttle applies
    batches  end after this many; None for all
    raises  RolloutStopped when paused, between batches or in a cancelled job; RegionError when a batch failed for good
    """
    unfinished = _unfinished(context, step)
    tries = Tries(
        context=context, step=step, clock=brake.clock, most=None if unfinished is None else max(1.0, unfinished / 2)
    )
    with second_spark_for(context, step) as second:
        while True:
            try:
                _attempt(context, step, brake, tries, batches, second)
                return
            except RolloutStopped:
                raise
            except Exception as error:
                if not tries.skip_failing(error):
                    tries.back_off(error)


def _attempt(
    context: RolloutContext,
    step: Backfill,
    brake: Brake,
    tries: Tries,
    batches: int | None,
    second: SecondSpark | None,
) -> None:
    """Take the feed over, record what an earlier attempt committed, then run batch after batch.

    second  the Spark that writes the batches' files; None for the first one
    """
    session = context.spark.build_session()
    history = open_history(context, step, session)
    _open_live(context, step, history.fence, session)
    _reconcile(context, history, session)
    if step.linked:
        if not history.done:
            batch.link(context, history)
        return
    rows = _first_budget(context, step)
    if (unfinished := _unfinished(context, step)) is not None:
        rows = min(rows, max(1.0, unfinished / SHRINK))
    slices = history.slices if context.newest_days is None else carried_slices(history.slices, context.newest_days)
    left = len(slices) if batches is None else batches
    while left and history.writer.position < len(slices):
        left -= 1
        brake.hold(step.id)
        drift.check(history)
        most = tries.limit(_limited(context, rows))  # it may have been changed in the meantime
        run = next_run(slices, history.writer.position, most, context.limits.bytes)
        tries.begin(run, history, session)
        result = batch.carry(context, history, run, session, second, retried=tries.failed > 0)
        tries.done()
        rows = _budget(context, rows, result)
        if planted_bugs.early():
            break


def _unfinished(context: RolloutContext, step: Backfill) -> int | None:
    """Rows of the batch that was running when the agent or its JVM died, or that failed last: it may have been too
    large. None if the last batch that began is done.
    """
    rows = None
    for event in context.recorder.progress():
        match event:
            case BatchStarted(step=id) if id == step.id:
                rows = event.rows
            case BatchDone(step=id) if id == step.id:
                rows = None
            case Paused() | Resumed():
                rows = None
    return rows


def open_history(context: RolloutContext, step: Backfill, session: Any) -> backfill.History:
    """The backfill at its current position. Its fence is in the rollout's events, or is taken now and stored first."""
    target = context.state(step.target)
    source = context.live_state(step.source) if step.route == "forward" else context.state(step.source)
    source_path, target_path = context.path(source.version.path), context.path(target.version.path)
    fenced = next((f for f in context.recorder.events(Fenced) if f.step == step.id), None)
    fence = fenced.version if fenced else _fence(context, step, source_path)
    if fenced is None and source.table.kind == "landing" and not source.table.managed:
        check_nanoseconds(source, source_path, fence)
    stats = context.stats(step.source, source_path, _stored_time(source, step.time), fence)
    slices: tuple[Slice, ...] = (Slice(index=1, label="all", first="", end="", rows=stats.rows, bytes=stats.bytes),)
    if step.time:
        with context.jobs(session, f"days of {step.id}"):
            days = _days(session, step, source, source_path, stats.days, fence=fence)
        slices = _slices(context, step, source, days, fenced.slices if fenced else None)
    if fenced is not None:
        _refuse_other_slices(fenced, len(slices))
    else:
        rows = _rows_at_fence(context, session, step, source, (source_path, fence), slices=slices, stats=stats)
        until = _readable_until(context, stats, target_path)
        cut_at = Fenced(step=step.id, source=step.source, version=fence, slices=len(slices), rows=rows, until=until)
        context.recorder.store(replace(cut_at, days=by_day(slices)))
    app_id = app_ids.history_id(target_path, step.materialization or "forward", fence)
    writer = commit.open_feed(session, app_id, target_path, 0)
    return backfill.History(
        step=step,
        source=source,
        source_path=source_path,
        target=target,
        target_path=target_path,
        fence=fence,
        slices=slices,
        writer=writer,
        joins=context.live_feed(step.target, step.materialization).joins if step.materialization else (),
    )


def _rows_at_fence(
    context: RolloutContext,
    session: Any,
    step: Backfill,
    source: TableState,
    pinned: tuple[str, int],
    *,
    slices: Sequence[Slice],
    stats: TableStats,
) -> int:
    """Rows of history: from file statistics; counted for a half, for a source whose rows are merged at read, and if
    statistics are incomplete.

    pinned  the source's path and the fence
    """
    if step.since or step.until:
        _check_oldest_day(step, stats.days)
    if step.since or step.until or stats.uncounted or (source.newest is not None and not step.stored):
        with context.jobs(session, f"rows of {step.id}"):
            return backfill.count_half(session, step, source, pinned, slices)
    return stats.rows


def _refuse_other_slices(fenced: Fenced, slices: int) -> None:
    if fenced.slices != slices:
        raise RegionError(
            f"{fenced.step}: the source at version {fenced.version} is cut into {slices} slices, not into"
            f" {fenced.slices} as before",
            hint="its log was rewritten; `console discard`, then plan again",
            code="E_SLICES",
        )


def check_nanoseconds(source: TableState, path: str, fence: int) -> None:
    """raises FeedStopped E_NANOSECONDS if a foreign file holds times that Spark would truncate"""
    table = DeltaTable(path, version=fence)
    columns = nanoseconds.time_columns(table.schema().to_json(), [column.name for column in source.version.columns])
    nanoseconds.refuse(path, nanoseconds.files(table, path), columns)


def _readable_until(context: RolloutContext, stats: TableStats, target_path: str) -> float:
    """The earliest time at which files that a backfill, or feeds downstream of its target, still read may be deleted.

    Counted from now instead of the fence's commit: a file's retention begins with its removal.
    """
    ends = [fenced.until for fenced in context.recorder.events(Fenced) if fenced.until]
    kept = min(kept_hours(s.properties) for s in (stats, context.stats(stats.name, target_path)))
    return min([time.time() + kept * 3600, *ends])


def _fence(context: RolloutContext, step: Backfill, source_path: str) -> int:
    """The end of history: now, or, for a replay beside a forward, the position of the forward's fence."""
    if not step.since and not step.states:
        return log.latest_version(source_path)
    backfills = (other for other in context.plan.steps if isinstance(other, Backfill))
    forward = {other.id for other in backfills if other.target == step.target and not other.materialization}
    older = next((fenced for fenced in context.recorder.events(Fenced) if fenced.step in forward), None)
    if older is None:
        raise RegionError(
            f"{step.id}: the half that is copied beside it has no fence", hint="console retry", code="E_FENCE"
        )
    return context.position_at(step.target, step.materialization, older.version)


def _check_oldest_day(step: Backfill, days: tuple[Day, ...]) -> None:
    """Refuse a replay whose first day may be incomplete: retention deletes the oldest days first, so the source must
    still hold rows of an older one.

    raises  RegionError E_HISTORY_GONE
    """
    if step.since and not any(day.day and day.day < step.since and day.rows for day in days):
        raise RegionError(
            f"{step.source} has lost days since the plan was made: {step.since} may no longer be whole",
            hint="console discard, then plan again",
            code="E_HISTORY_GONE",
        )


def _days(
    session: Any, step: Backfill, source: TableState, path: str, days: tuple[Day, ...], *, fence: int
) -> tuple[Day, ...]:
    """Rows of each day as of the fence: from file statistics, or counted if too many files span days or if times may
    lie outside the days that a partition can have.

    The same at every resume, since the fence does not move.
    """
    inexact = sum(day.rows for day in days if not day.exact)
    total = sum(day.rows for day in days)
    outside = any(day.day in (EARLY, LATE) and not day.exact for day in days)
    if inexact <= total * INEXACT_SHARE and not outside:
        return days
    per_row = sum(day.bytes for day in days) / max(total, 1)
    counted = backfill.count_days(session, step, source, path, fence)
    return tuple(Day(name, rows, int(rows * per_row)) for name, rows in counted)


def _slices(
    context: RolloutContext, step: Backfill, source: TableState, days: Sequence[Day], fenced: int | None = None
) -> tuple[Slice, ...]:
    """The days of a step, heavy ones in hours.

    fenced  number of slices at a fence: an earlier version cut no day by the rate, and before that none by its bytes
    """
    date_only = any(c.name == step.time and c.type == "date" for c in source.table.columns)
    plan, slices = context.plan, tuple[Slice, ...]()
    for most_rows, size in (
        (plan.heavy_rows, plan.bytes_limit),
        (plan.rows_limit, plan.bytes_limit),
        (plan.rows_limit, None),
    ):
        slices = cut(days, most_rows, hours=not date_only, bytes_limit=size)
        slices = half(slices, step.since, step.until) if step.since or step.until else slices
        if fenced is None or len(slices) == fenced:
            break
    return slices


def _stored_time(source: TableState, time_column: str) -> str:
    """The stored column whose file statistics determine the days; "" if the time is computed from others."""
    stored = {column.name for column in source.version.columns}
    name = source.stored_in(time_column)[0]
    return name if name in stored else ""


def _open_live(context: RolloutContext, step: Backfill, fence: int, session: Any) -> None:
    """Open the live feeds of the target, which fixes where they begin, before the first row of history is written."""
    for feed in context.plan.release.feeds_into(step.target):
        if step.materialization in ("", feed.materialization):
            live_feed = context.live_feed(step.target, feed.materialization)
            live_feed.start = (
                fence if step.route == "replay" else context.position_at(step.target, feed.materialization, fence)
            )
            live_feed.open(session)
    for live_feed in context.live_feeds_in_order():
        if live_feed.spec.materialization == RELAY and live_feed.spec.target == step.target:
            live_feed.start = fence
            live_feed.open(session)


def _reconcile(context: RolloutContext, history: backfill.History, session: Any) -> None:
    """Store the `BatchDone` of batches that were committed before the agent died and could record them."""
    recorded = {done.position for done in context.recorder.events(BatchDone) if done.step == history.step.id}
    for stored in log.commits(history.target_path, 1, log.latest_version(history.target_path)):
        first_last = stored.note.get("slices")
        if stored.note.get("feed") != history.writer.app_id or not first_last or first_last[1] in recorded:
            continue
        run = history.slices[first_last[0] - 1 : first_last[1]]
        with context.jobs(session, f"rows of {history.step.id}"):
            rows_in = backfill.count_rows(session, history, run)
        quarantined = int(stored.note.get("quarantined", 0))
        if quarantined:
            quarantine.of_pipeline(context).record(context, session, history, run)
        rows, size = sum(f.rows for f in stored.added), sum(f.bytes for f in stored.added)
        done = BatchDone(
            step=history.step.id,
            label=backfill.label(run),
            position=run[-1].index,
            of=len(history.slices),
            rows_in=rows_in,
            rows_out=rows,
            bytes=size,
            seconds=0.0,
            version=stored.version,
            quarantined=quarantined,
        )
        context.recorder.store(done)


def _first_budget(context: RolloutContext, step: Backfill) -> float:
    """Rows of the first batch of a turn: by the rate measured so far and the target duration, or `FIRST_ROWS` to measure it.

    A table that has batches is judged by these, since its rows may be wider than those of the others.
    """
    timed = _timed(context)
    if own := [(event, seconds) for event, seconds in timed if event.step == step.id]:
        return _limited(
            context, min(_aim(context, own), GROWTH * max(FIRST_ROWS, *(event.rows_in for event, _ in own)))
        )
    return _limited(context, _aim(context, timed) if timed else FIRST_ROWS)


def _aim(context: RolloutContext, timed: Sequence[tuple[BatchDone, float]]) -> float:
    """Rows in the target duration at the rate of these batches."""
    rows, seconds = sum(event.rows_in for event, _ in timed), sum(seconds for _, seconds in timed)
    return rows / seconds * context.limits.target_seconds


def _timed(context: RolloutContext) -> list[tuple[BatchDone, float]]:
    """The rollout's batches with their seconds, as of a Spark that is warm."""
    timed, cold = list[tuple[BatchDone, float]](), True
    for event in context.recorder.progress():
        match event:
            case DriverLost():
                cold = True
            case StepStarted(away_since=away) if away:  # another agent's
                cold = True
            case BatchDone(rows_in=rows, seconds=seconds) if rows and seconds > 0:
                timed.append((event, seconds / COLD if cold else seconds))
                cold = False
    return timed


def _budget(context: RolloutContext, rows: float, result: backfill.BatchResult) -> float:
    """Rows of the next batch: towards the target duration, at most `GROWTH` times as many, within the limit."""
    if not result.rows_in or result.seconds <= 0:
        return rows
    timed = _timed(context)
    seconds = timed[-1][1] if timed else result.seconds
    aim = result.rows_in / seconds * context.limits.target_seconds
    return _limited(context, min(aim, GROWTH * max(float(result.rows_in), rows)))


def _limited(context: RolloutContext, rows: float) -> float:
    limit = context.limits.rows
    return rows if limit is None else min(rows, limit)
