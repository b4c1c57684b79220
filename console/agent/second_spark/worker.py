"""The process of a second Spark: writes the files of one batch after another, until its input ends.

The input ends with the agent, however that dies. Its JVM ends with it, and until both have, they hold the region's lock beside
the agent. Whatever they write after the agent's death is named by no commit.
"""

import os
import queue
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import IO

from console import crash
from console.agent.agent_log import write_log
from console.agent.expectations import guard
from console.agent.failure import Kind, cause, kind
from console.agent.feeds import backfill
from console.agent.feeds.commit import FeedWriter
from console.agent.second_spark.messages import (
    Answer,
    BatchFailed,
    BatchOrder,
    BatchUnderWay,
    BatchWritten,
    Start,
    line,
)
from console.agent.spark_jobs import RunningJob
from console.agent.spark_session import SparkHandle
from console.agent.store import spark_files
from console.errors import ConsoleError
from console.model import codec
from console.process import leave
from console.text import hide, redacted

PROGRESS_SECONDS = 0.5
DYING_SECONDS = 2.0  # time for a JVM to exit after a failure
Say = Callable[[Answer], None]


def serve(warehouse: str) -> None:
    """Answer the orders on standard input. Does not return: the process ends with its input, or with a batch that failed."""
    answers = _own_output()
    start = codec.decode(Start, codec.loads(sys.stdin.readline()))
    hide(start.settings.conf.items())
    spark = SparkHandle(start.settings, start.lock_fd, warehouse)
    orders: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(orders,), name="orders", daemon=True).start()
    speaking = threading.Lock()

    def say(answer: Answer) -> None:
        with speaking:
            answers.write(line(answer))
            answers.flush()

    while True:
        order = codec.decode(BatchOrder, codec.loads(orders.get()))
        try:
            written = write_batch(spark, order, say)
        except Exception as error:
            write_log("spark", "warning", f"the second Spark: {order.target.table.name}: {cause(error)}")
            say(failed(spark, error))
            leave(1)
        say(written)


def _own_output() -> IO[str]:
    """Standard output for answers alone: what the JVM prints there goes to the log, as its errors do."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _read(orders: "queue.SimpleQueue[str]") -> None:
    for text in sys.stdin:
        orders.put(text)
    leave(0)  # in the middle of a batch, too


def write_batch(spark: SparkHandle, order: BatchOrder, say: Say) -> BatchWritten:
    """Write the files of a batch, and commit nothing.

    raises  whatever Spark raises; `guard.refused` if a row fails an expectation
    """
    history = history_of(order)
    session = spark.build_session()
    batch = backfill.compute(spark, session, history, order.run, order.joined)
    done = threading.Event()
    with spark.job(session, backfill.job_name(history, order.run)) as group:
        threading.Thread(target=report, args=(group, say, done), name="progress", daemon=True).start()
        try:
            files = spark_files.write(session, batch.rows, order.target_path)
        finally:
            done.set()
    crash.point("second-spark-wrote")
    return BatchWritten(rows=batch.count_source(spark, session), files=files, warnings=batch.warnings.lines())


def history_of(order: BatchOrder) -> backfill.History:
    """The part of a build that a batch needs. Its writer has taken no feed over, and is given to nothing that commits."""
    return backfill.History(
        step=order.step,
        source=order.source,
        source_path=order.source_path,
        target=order.target,
        target_path=order.target_path,
        fence=order.fence,
        slices=order.run,
        writer=FeedWriter(app_id="", target=order.target_path, epoch=0, position=0),
        joins=order.joins,
        quarantined=order.quarantined,
    )


def report(group: RunningJob, say: Say, done: threading.Event) -> None:
    while not done.wait(PROGRESS_SECONDS):
        try:
            job = None
            with suppress(Exception):  # the API that it uses differs between versions of Spark
                job = group.job()
            say(BatchUnderWay(min(group.fraction(), 1.0), job))
        except Exception:  # the JVM or the agent is gone; the batch itself reports it
            return


def failed(spark: SparkHandle, error: Exception) -> BatchFailed:
    """A failure as the agent is to judge it: the exceptions of a JVM exist in this process alone."""
    until = time.monotonic() + DYING_SECONDS
    while not spark.lost and time.monotonic() < until:
        time.sleep(0.05)
    if spark.lost:
        what: Kind = "memory" if spark.out_of_memory else "passing"
        why = f"the second Spark's JVM was lost: {spark.ended}"
        return BatchFailed(why=why, hint="", code="E_SECOND_SPARK", what=what, unexpected=False)
    if isinstance(error, ConsoleError):
        return BatchFailed(
            why=redacted(str(error)), hint=error.hint, code=error.code, what=kind(error), unexpected=False
        )
    why = f"{type(error).__name__}: {cause(error)}" if kind(error) == "final" else cause(error)
    return BatchFailed(why=why, hint="", code="", what=kind(error), unexpected=guard.refused(error))
