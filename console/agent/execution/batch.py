"""One batch of a backfill: on the region's Spark or on its second one, recorded either way."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from console.agent.execution.expectations import not_as_expected
from console.agent.execution.linked_history import link_history
from console.agent.expectations import guard
from console.agent.feeds import backfill, commit, planted_bugs
from console.agent.feeds.live_feed import join_versions
from console.agent.resilience import quarantine
from console.agent.rollout.context import RolloutContext
from console.agent.second_spark.messages import BatchOrder
from console.agent.second_spark.process import SecondSpark
from console.agent.spark_jobs import RunningJob
from console.model.event import BatchDone, BatchStarted, Progress
from console.model.slices import Slice
from console.model.step import Backfill

PROGRESS_SECONDS = 0.5
JOB_SECONDS = 2.0  # between two polls of Spark's tasks


@contextmanager
def second_spark_for(context: RolloutContext, step: Backfill) -> Iterator[SecondSpark | None]:
    """Context with the second Spark of a build that was planned for it, ended with the build; None for any other build."""
    if not step.second_spark or context.newest_days is not None:
        yield None
        return
    if context.second_spark is None:
        why = "this agent was started without one: its batches run on the first (console follow --stop, then start it again)"
        context.recorder.log(f"{step.target}: planned for the second Spark, and {why}", "warning")
        yield None
        return
    second = context.second_spark()
    try:
        yield second
    finally:
        second.end()


def carry(
    context: RolloutContext,
    history: backfill.History,
    run: Sequence[Slice],
    session: Any,
    second: SecondSpark | None,
    *,
    retried: bool = False,
) -> backfill.BatchResult:
    """Run one batch, and record its begin, progress and end.

    session  of the first Spark
    second   the Spark that writes its files; None for the first one
    retried  a try of it has failed
    raises   RegionError with the failing rows where they are not as expected; what the batch raises
    """
    step, name, of = history.step.id, backfill.label(run), len(history.slices)
    estimate = sum(piece.rows for piece in run)
    context.recorder.store(
        BatchStarted(step=step, label=name, first=run[0].index, last=run[-1].index, of=of, rows=estimate)
    )
    finished = threading.Event()

    def watch(job: RunningJob) -> None:
        context.job = job
        threading.Thread(
            target=_poll, args=(context, job, step, name, estimate, finished), name="progress", daemon=True
        ).start()

    try:
        result = _run(context, history, planted_bugs.skip_day(run), session, second, watch, retried=retried)
    except Exception as error:
        if guard.refused(error):
            raise not_as_expected(context, history, run, session) from None
        raise
    finally:
        finished.set()
        context.job = None
    for line in result.warnings:
        context.recorder.log(f"{history.step.target}: {name}: {line}", "warning")
    planted_bugs.double_batch(session, history, run)
    if history.quarantined:
        quarantine.of_pipeline(context).record(context, session, history, run)
    context.recorder.store(_batch_done(history, run, result))
    return result


def _run(
    context: RolloutContext,
    history: backfill.History,
    run: Sequence[Slice],
    session: Any,
    second: SecondSpark | None,
    watch: Callable[[RunningJob], None],
    *,
    retried: bool,
) -> backfill.BatchResult:
    if second is None:
        return backfill.run_batch(context.spark, session, history, run, watch, retried=retried)
    return _run_on_second(second, history, run, watch)


def _run_on_second(
    second: SecondSpark, history: backfill.History, run: Sequence[Slice], watch: Callable[[RunningJob], None]
) -> backfill.BatchResult:
    """As `backfill.run_batch`: the second Spark writes the files, and the commit that names them is made here."""
    started = time.monotonic()
    joined = join_versions(history.joins)
    written = second.write(_order(history, run, joined), watch)
    note = {**backfill.note(history, run, joined), "second_spark": True}
    done = commit.append_files(history.writer, written.files, run[-1].index, note)
    return backfill.BatchResult(written.rows, done, time.monotonic() - started, written.warnings)


def _order(history: backfill.History, run: Sequence[Slice], joined: Mapping[str, int]) -> BatchOrder:
    return BatchOrder(
        step=history.step,
        source=history.source,
        source_path=history.source_path,
        target=history.target,
        target_path=history.target_path,
        fence=history.fence,
        run=tuple(run),
        joins=history.joins,
        joined=dict(joined),
        quarantined=history.quarantined,
    )


def _batch_done(history: backfill.History, run: Sequence[Slice], result: backfill.BatchResult) -> BatchDone:
    return BatchDone(
        step=history.step.id,
        label=backfill.label(run),
        position=run[-1].index,
        of=len(history.slices),
        rows_in=result.rows_in,
        rows_out=result.written.rows,
        bytes=result.written.bytes,
        seconds=result.seconds,
        version=result.written.version,
        quarantined=history.quarantined,
    )


def link(context: RolloutContext, history: backfill.History) -> None:
    """Link a whole history, recorded as one batch without duration."""
    step, name, of = history.step.id, backfill.label(history.slices), len(history.slices)
    rows = sum(piece.rows for piece in history.slices)
    context.recorder.store(BatchStarted(step=step, label=name, first=1, last=of, of=of, rows=rows))
    done = link_history(history)
    context.recorder.store(
        BatchDone(step=step, label=name, position=of, of=of, rows_in=rows, rows_out=done.rows, bytes=done.bytes,
                  seconds=0.0, version=done.version)
    )  # fmt: skip


def _poll(
    context: RolloutContext, group: RunningJob, step: str, batch: str, rows: int, finished: threading.Event
) -> None:
    looked = 0.0  # monotonic
    while not finished.wait(PROGRESS_SECONDS):
        try:
            job = None
            if time.monotonic() - looked >= JOB_SECONDS:
                with suppress(Exception):  # the API that it uses differs between versions of Spark
                    job = group.job()
                looked = time.monotonic()
            done = int(rows * min(group.fraction(), 1.0))
            context.recorder.publish(Progress(step=step, rows=done, batch=batch, job=job))
        except Exception:  # the JVM is gone; the batch itself reports it
            return
