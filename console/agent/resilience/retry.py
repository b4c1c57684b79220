"""Retries of a batch: the failures that are retried, the pauses, and the messages of permanent failures."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from console.agent.clock import Clock, WallClock
from console.agent.failure import Kind, call_broke, cause, kind
from console.agent.feeds import backfill
from console.agent.resilience import quarantine
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.errors import RegionError
from console.model.event import Waiting
from console.model.incident import TryFailed
from console.model.slices import Slice
from console.model.step import Backfill

TRIES = 3  # attempts of one batch before the rollout fails
# between tries, shortened at random by up to a half: regions that failed together are not retried together
FIRST_SECONDS, GROWTH, LAST_SECONDS = 4.0, 4.0, 60.0
# time for a JVM to exit: after any failure, and after a broken call
DYING_SECONDS, BROKEN_SECONDS = 2.0, 10.0
SHRINK = 4  # a batch that did not fit into memory is retried with this fraction of its rows


@dataclass(slots=True, kw_only=True)
class Tries:
    """The tries of the current batch; one object per backfill.

    chance  a random number in 0 … 1, for the length of pauses
    most    limit of rows in a batch after one did not fit into memory; None for no such limit
    """

    context: RolloutContext
    step: Backfill
    clock: Clock = field(default_factory=WallClock)
    chance: Callable[[], float] = random.random
    most: float | None = None
    failed: int = 0
    _run: Sequence[Slice] = ()
    _began: float = 0.0  # monotonic: the current try
    _history: backfill.History | None = None
    _session: Any = None
    _reached: int = -1
    _skip_reason: str = ""  # why failing rows are left out; "" if they are not
    _skip_kind: Kind = "value"  # the kind of that failure

    def begin(self, run: Sequence[Slice], history: backfill.History | None = None, session: Any = None) -> None:
        """Begin a try of a run of slices; without rows that do not convert, once a batch has failed for such rows.

        raises  RegionError C301 if there are more of them than the budget allows
        """
        self._run, self._history, self._session, self._began = run, history, session, self.clock.elapsed()
        if history is not None and history.writer.position > self._reached:
            # the last batch is committed, even if its response was lost: the failing one is the next
            self.failed, self._reached = 0, history.writer.position
        if self._skip_reason and history is not None:
            failing = quarantine.count_failing(self.context, session, history, run)
            if failing.rows > quarantine.budget_left(self.context):
                raise quarantine.over_budget(
                    self.context, history, run, failing, cause=self._skip_reason, what=self._skip_kind
                )
            history.quarantined = failing.rows

    def skip_failing(self, error: Exception) -> bool:
        """Whether the batch may be tried again without its rows that do not convert.

        raises  RegionError C301 with their number and keys if there are more than the budget allows
        """
        what = kind(error)
        if what not in ("value", "day") or self._history is None or self._skip_reason:
            return False
        failing = quarantine.count_failing(self.context, self._session, self._history, self._run)
        if not failing.rows:
            return False
        why = cause(error)
        if failing.rows > quarantine.budget_left(self.context):
            raise quarantine.over_budget(
                self.context, self._history, self._run, failing, cause=why, what=what
            ) from error
        self._skip_reason, self._skip_kind = why, what
        line = f"{self.step.target}: {failing.rows} rows do not convert and go to quarantine"
        self.context.recorder.report(line, self._failed_try(error, what), "warning")
        return True

    def done(self) -> None:
        self.failed = 0

    def limit(self, rows: float) -> float:
        return rows if self.most is None else min(rows, self.most)

    def back_off(self, error: Exception) -> None:
        """Wait until the next try.

        raises  RegionError with the cause if a retry cannot help, or the tries are used up; the error itself if the JVM
                is gone, which the agent restarts; RolloutStopped
        """
        if call_broke(error) and driver_lost(self.context, error):
            raise error  # before a halt: the agent may be ending because of it
        self.context.check_halt()
        what = kind(error)
        alone = what == "memory" and len(self._run) == 1
        if what == "memory" and not alone:
            self.most = max(1.0, sum(piece.rows for piece in self._run) / SHRINK)
        failed_try = self._failed_try(error, what)
        self.failed += not alone
        if alone or what not in ("memory", "passing") or self.failed >= TRIES:
            last = self._explain(error, what)
            self.context.recorder.report(str(last), failed_try, "warning")
            raise last from error
        fewer = f", with at most {self.most:,.0f} rows" if what == "memory" else ""
        why = f"{cause(error)}; try {self.failed + 1} of {TRIES}{fewer}"
        try:
            pause(self.context, self.clock, self.failed, why, self.chance, failed_try)
        except RolloutStopped:
            if not self.context.spark.lost:
                raise
        if self.context.spark.lost:
            raise error  # the JVM did not survive the failure

    def _failed_try(self, error: Exception, what: Kind) -> TryFailed | None:
        """The current try, which has failed; None if no batch had begun."""
        if not self._run:
            return None
        return TryFailed(
            step=self.step.id,
            label=backfill.label(self._run),
            first=self._run[0].index,
            last=self._run[-1].index,
            cause=what,
            why=cause(error),
            number=self.failed + 1,
            of=TRIES,
            rows=sum(piece.rows for piece in self._run),
            rows_next=round(self.most or 0) if what == "memory" and len(self._run) > 1 else 0,
            seconds=round(self.clock.elapsed() - self._began, 3),
        )

    def _explain(self, error: Exception, what: Kind) -> Exception:
        fence = None if self._history is None else self._history.fence
        return explain(error, self.step, self._run, what, self.failed, fence)


def driver_lost(context: RolloutContext, error: BaseException) -> bool:
    """Whether the JVM is gone; a dying one gets a moment to exit, a longer one if the call into it broke."""
    seconds = BROKEN_SECONDS if call_broke(error) else DYING_SECONDS
    for _ in range(round(seconds * 10)):
        if context.spark.lost:
            return True
        if context.halt.wait(0.1):
            break
    return context.spark.lost


def pause(
    context: RolloutContext,
    clock: Clock,
    failed: int,
    why: str,
    chance: Callable[[], float] = random.random,
    failed_try: TryFailed | None = None,
) -> None:
    """Wait before the next try, and report why.

    failed      tries so far
    failed_try  the failed try of a batch, which is stored; None if something else failed
    raises  RolloutStopped
    """
    seconds = min(FIRST_SECONDS * GROWTH ** (failed - 1), LAST_SECONDS) * (1 - chance() / 2)
    context.recorder.report(f"{why}, in {seconds:.0f} s", failed_try, "warning")
    context.recorder.publish(Waiting(why))
    until = clock.elapsed() + seconds
    while (left := until - clock.elapsed()) > 0:
        context.check_halt()
        clock.wait(context.halt, left)
    context.check_halt()
    context.recorder.publish(Waiting(""))


def explain(
    error: Exception, step: Backfill, run: Sequence[Slice], what: Kind, failed: int = 1, fence: int | None = None
) -> Exception:
    """A batch's failure with a hint for the operator; the product's own errors are returned unchanged.

    run    the slices of the batch
    what   the kind of the failure
    fence  the version of the source that is read
    """
    if what == "final":
        return error
    where, why = f"{step.target}: batch {backfill.label(run) if run else step.id}", cause(error)
    match what:
        case "value":
            hint = f"use try_cast with a default in {step.query_name}, or correct the rows; then console retry"
            if step.stored:
                hint = f"sum a wider type in {step.query_name}, or keep its groups; console discard, then plan again"
            return RegionError(
                f"{step.target}: a value of {backfill.label(run)} does not convert: {why}", hint=hint, code="C301"
            )
        case "day":
            hint = f"leave such rows out in {step.query_name}, or correct them; then console retry"
            return RegionError(
                f"{step.target}: a row of {backfill.label(run)} has no day: {why}", hint=hint, code="C301"
            )
        case "gone":
            hint = "something deleted them (VACUUM, log clean-up); console discard, then plan again"
            of = "" if fence is None else f" of version {fence} of {step.source}"
            return RegionError(f"{where}: files{of} that it reads are gone: {why}", hint=hint, code="E_FILES_GONE")
        case "drift":
            hint = "console plan shows what has changed there; console discard, then apply again"
            return RegionError(f"{where}: a table is no longer as it was planned: {why}", hint=hint, code="E_DRIFT")
        case "memory":
            alone = " alone" if len(run) == 1 else ""
            whose = "backfill_spark" if step.second_spark else "spark"
            hint = f"more memory ({whose}.conf: spark.driver.memory), or a lower limits.rows, which cuts days into hours; then console retry"
            return RegionError(f"{where} does not fit into memory{alone}: {why}", hint=hint, code="E_MEMORY")
        case _:
            return RegionError(f"{where} failed {failed} times: {why}", hint="console retry", code="E_BATCH")
