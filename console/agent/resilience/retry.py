"""Which failures of a batch heal when it is tried again, and how long to wait before; and in words what does not."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from console.agent.feeds import backfill
from console.agent.resilience import quarantine
from console.agent.resilience.failure import Kind, cause, kind
from console.agent.resilience.throttle import Clock, WallClock
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.errors import RegionError
from console.model.event import Waiting
from console.model.slices import Slice
from console.model.step import Backfill

TRIES = 3  # of one batch, one after the other, before the rollout has failed
# between tries, less up to a half: regions that broke together do not come back together
FIRST_SECONDS, GROWTH, LAST_SECONDS = 4.0, 4.0, 60.0
# that a JVM may take to be gone: after any failure, and after a call that broke
DYING_SECONDS, BROKEN_SECONDS = 2.0, 10.0
SHRINK = 4  # a batch that did not fit into memory is tried with so much less


@dataclass(slots=True)
class Tries:
    """How often the batch at hand was tried. One a backfill.

    chance  0 … 1, what the back-off leaves to it
    most    rows that a batch may carry since one did not fit into memory; None: no such limit
    """

    context: RolloutContext
    step: Backfill
    clock: Clock = field(default_factory=WallClock)
    chance: Callable[[], float] = random.random
    most: float | None = None
    failed: int = 0
    _run: Sequence[Slice] = ()
    _history: backfill.History | None = None
    _session: Any = None
    _reached: int = -1
    _aside: str = ""  # why rows are set aside; "" while none are
    _what: Kind = "value"  # what sort of failure that is

    def begin(self, run: Sequence[Slice], history: backfill.History | None = None, session: Any = None) -> None:
        """About to carry a run; without the rows that do not convert, once the operator's budget is being used.

        raises  RegionError C301 if there are more of them than the rollout may still set aside
        """
        self._run, self._history, self._session = run, history, session
        if history is not None and history.writer.position > self._reached:
            # the last batch is in, even where its answer was lost: what fails now is another
            self.failed, self._reached = 0, history.writer.position
        if self._aside and history is not None:
            found = quarantine.count_failing(self.context, session, history, run)
            if found.rows > quarantine.without_failing(self.context):
                raise quarantine.refused(self.context, history, run, found, cause=self._aside, what=self._what)
            history.quarantined = found.rows

    def without(self, error: Exception) -> bool:
        """Whether the batch may be tried again without its rows that do not convert.

        raises  RegionError C301 with their number and keys where there are more than may be set aside
        """
        what = kind(error)
        if what not in ("value", "day") or self._history is None or self._aside:
            return False
        found = quarantine.count_failing(self.context, self._session, self._history, self._run)
        if not found.rows:
            return False
        why = cause(error)
        if found.rows > quarantine.without_failing(self.context):
            raise quarantine.refused(self.context, self._history, self._run, found, cause=why, what=what) from error
        self._aside, self._what = why, what
        self.context.recorder.log(
            f"{self.step.target}: {found.rows} rows do not convert and go to quarantine", "warning"
        )
        return True

    def done(self) -> None:
        self.failed = 0

    def limit(self, rows: float) -> float:
        return rows if self.most is None else min(rows, self.most)

    def again(self, error: Exception) -> None:
        """Return when it is time to try once more.

        raises  RegionError with the cause where trying again does not help, or has not; the error itself where the JVM is
                gone, which is the agent's to start again; Stopped
        """
        if severed(error) and driver_lost(self.context, error):
            raise error  # before any halt: the agent may be ending for just that
        self.context.check_halt()
        what = kind(error)
        if what == "memory":
            if len(self._run) == 1:
                raise self._explained(error, what) from error
            self.most = max(1.0, sum(piece.rows for piece in self._run) / SHRINK)
        self.failed += 1
        if what not in ("memory", "passing") or self.failed >= TRIES:
            raise self._explained(error, what) from error
        fewer = f", with at most {self.most:,.0f} rows" if what == "memory" else ""
        why = f"{cause(error)}; try {self.failed + 1} of {TRIES}{fewer}"
        try:
            pause(self.context, self.clock, self.failed, why, self.chance)
        except RolloutStopped:
            if not self.context.spark.lost:
                raise
        if self.context.spark.lost:
            raise error  # it did not outlive what went wrong in it

    def _explained(self, error: Exception, what: Kind) -> Exception:
        fence = None if self._history is None else self._history.fence
        return explained(error, self.step, self._run, what, self.failed, fence)


def severed(error: BaseException) -> bool:
    """Whether the call to the JVM broke, rather than what was called."""
    from py4j.protocol import Py4JError, Py4JJavaError

    return isinstance(error, Py4JError | ConnectionError) and not isinstance(error, Py4JJavaError)


def driver_lost(context: RolloutContext, error: BaseException) -> bool:
    """Whether the JVM is gone; a dying one is given a moment to be seen dead, and a longer one where the call to it broke."""
    seconds = BROKEN_SECONDS if severed(error) else DYING_SECONDS
    for _ in range(round(seconds * 10)):
        if context.spark.lost:
            return True
        if context.halt.wait(0.1):
            break
    return context.spark.lost


def pause(
    context: RolloutContext, clock: Clock, failed: int, why: str, chance: Callable[[], float] = random.random
) -> None:
    """Wait before the next try, and say why.

    failed  tries so far
    raises  Stopped
    """
    seconds = min(FIRST_SECONDS * GROWTH ** (failed - 1), LAST_SECONDS) * (1 - chance() / 2)
    context.recorder.log(f"{why}, in {seconds:.0f} s", "warning")
    context.recorder.publish(Waiting(why))
    until = clock.elapsed() + seconds
    while (left := until - clock.elapsed()) > 0:
        context.check_halt()
        clock.wait(context.halt, left)
    context.check_halt()
    context.recorder.publish(Waiting(""))


def explained(
    error: Exception, step: Backfill, run: Sequence[Slice], what: Kind, failed: int = 1, fence: int | None = None
) -> Exception:
    """An error in words that the operator can act on; ours pass as they are.

    fence  the version of the source that is read
    """
    if what == "final":
        return error
    where, why = (
        f"{step.target}: batch {backfill.label(run) if run else step.id}",
        cause(error),
    )
    match what:
        case "value":
            hint = f"use try_cast with a default in the query that feeds {step.target}, or correct the rows; then console retry"
            return RegionError(
                f"{step.target}: a value of {backfill.label(run)} does not convert: {why}", hint=hint, code="C301"
            )
        case "day":
            hint = f"leave such rows out in the query that feeds {step.target}, or correct them; then console retry"
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
            hint = "more memory (spark.conf: spark.driver.memory), or a lower limits.rows, which cuts days into hours; then console retry"
            return RegionError(f"{where} does not fit into memory{alone}: {why}", hint=hint, code="E_MEMORY")
        case _:
            return RegionError(f"{where} failed {failed} times: {why}", hint="console retry", code="E_BATCH")
