"""Executes an accepted plan step by step up to its gate, never past it. Every step may be repeated."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import assert_never

from console import crash
from console.agent import failure
from console.agent.clock import span
from console.agent.execution import backfill_step
from console.agent.execution.empty_commits import append_nothing
from console.agent.execution.validation import validate
from console.agent.feeds import commit, planted_bugs
from console.agent.feeds.live_feed import LiveFeed
from console.agent.receipts import step_receipts
from console.agent.resilience import retry
from console.agent.resilience.throttle import Brake
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.store import log
from console.errors import ConsoleError, RegionError
from console.model.event import BatchDone, DriverLost, Entered, Failed, Progress, Resumed, State, StepDone, StepStarted
from console.model.incident import SparkBack
from console.model.rehearsal import turns
from console.model.step import AddColumns, Backfill, CatchUp, CreateTable, Promote, Step, Validate
from console.text import redacted

CAUGHT_UP_COMMITS = 3
DRIVER_TRIES = 3
UNSTORED_SECONDS = 2.0
CANCEL_SECONDS = 1.0
# A cancelled job fails within seconds, and a commit after it takes a few more: a Spark that has not stopped by then
# does not stop. Less than a console waits for its response.
UNRESPONSIVE_SECONDS = 90.0
SPARE_HOURS = 24 * 7  # the longest rollout, on top of the rollback window


class PlanExecutor(threading.Thread):
    """The thread of one rollout. It ends at the gate, at a failure that is stored, or when it is stopped."""

    def __init__(self, context: RolloutContext, refollow: Callable[[], None]) -> None:
        super().__init__(name=f"rollout {context.recorder.rollout}", daemon=True)
        self.context = context
        self.brake = Brake(context=context)
        self._refollow = refollow  # makes the follower keep the new release current as well
        self._last_response = 0.0  # monotonic: when Spark last responded

    def run(self) -> None:
        step = ""
        try:
            for turn in turns(self.context.plan.steps):
                step = turn.step.id
                self.context.check_halt()
                if turn.rehearsal and isinstance(turn.step, Backfill):
                    self._rehearse(turn.step)
                else:
                    self._run_step(turn.step)
        except RolloutStopped:
            return
        except Exception as error:
            self._handle_failure(step, error)

    def _handle_failure(self, step: str, error: Exception) -> None:
        """Store the failure; for a lost JVM only the loss, since the agent restarts and continues the step.

        An agent that ends because its JVM is lost stops this thread as well; the loss is recorded anyway.
        """
        if self._driver_lost(error):
            with suppress(Exception):  # a full disk: the agent restarts anyway
                self.context.recorder.store(DriverLost(step, self.context.spark.ended))
            if len(self._losses(step)) < DRIVER_TRIES:
                return
            error = self._lost_too_often(step)
        elif self.context.halt.is_set():
            return  # paused, cancelled or ended: it was interrupted
        if isinstance(error, ConsoleError):
            reason, hint = str(error), error.hint
        else:
            reason, hint = f"{type(error).__name__}: {failure.cause(error)}", "console retry"
        self._store_failure(Failed(step, redacted(reason), hint))

    def _store_failure(self, failed: Failed) -> None:
        """Store the failure, retrying while the disk is full."""
        while True:
            try:
                self.context.recorder.store(failed)
                return
            except Exception as error:
                self.context.recorder.log(
                    f"{failed.step} failed ({failed.why}), which cannot be stored: {error}", "error"
                )
            if self.context.halt.wait(UNSTORED_SECONDS):
                return

    def _driver_lost(self, error: Exception) -> bool:
        return retry.driver_lost(self.context, error)

    def _losses(self, step: str) -> list[DriverLost]:
        """The losses of the JVM in a step since it last made progress."""
        losses: list[DriverLost] = []
        for event in self.context.recorder.progress():
            match event:
                case DriverLost(name) if name == step:
                    losses.append(event)
                case BatchDone() | StepDone() | Resumed():
                    losses = []
        return losses

    def _lost_too_often(self, step: str) -> RegionError:
        at = next((f" at {s.batch}" for s in self.context.recorder.status.steps if s.id == step and s.batch), "")
        why = "; ".join(dict.fromkeys(loss.why for loss in self._losses(step) if loss.why))
        return RegionError(
            f"the driver was lost {DRIVER_TRIES} times in {step}{at}" + (f": {why}" if why else ""),
            hint="give it more memory (spark.conf: spark.driver.memory) or lower limits.rows; then console retry",
            code="E_DRIVER",
        )

    def stop(self) -> None:
        """Stop the thread and wait for it. Running Spark jobs are cancelled; the next run takes the feed over first.

        A Spark that does not respond, or does not end a cancelled job, is killed, which ends calls into it.
        """
        self._last_response = time.monotonic()
        self.context.halt.set()
        threading.Thread(target=self._cancel, name=f"cancel {self.name}", daemon=True).start()
        while self.is_alive() and time.monotonic() - self._last_response < UNRESPONSIVE_SECONDS:
            self.join(CANCEL_SECONDS)
        if self.is_alive():
            why = f"it did not stop its running job within {UNRESPONSIVE_SECONDS:.0f} s"
            self.context.recorder.log(f"Spark is killed: {why}", "error")
            self.context.spark.kill(why)
            self.join()

    def _cancel(self) -> None:
        """Cancel jobs until the thread ends; in a thread of its own, since a call into an unresponsive JVM blocks."""
        while self.is_alive():
            job = self.context.job
            with suppress(Exception):  # a JVM that is gone has nothing to cancel
                if job is None:
                    self.context.spark.look()
                else:
                    job.cancel()
            if job is None or job is not self.context.job:  # there is no job to end
                self._last_response = time.monotonic()
            self.join(CANCEL_SECONDS)  # a call of several jobs may have been between two of them

    def _run_step(self, step: Step) -> None:
        match step:
            case CreateTable():
                self._run_once(step, lambda: self._create(step), "preparing")
            case AddColumns():
                self._run_once(step, lambda: self._add_columns(step), "preparing")
            case Backfill():
                self._run_once(step, lambda: backfill_step.build(self.context, step, self.brake), "backfilling")
            case CatchUp():
                self._run_once(step, lambda: self._catch_up(step), "catching-up")
            case Validate():
                self._refollow()
                self._run_once(step, lambda: validate(self.context, step), "validating")
            case Promote():
                self._refollow()
                self._enter("awaiting-confirmation")
            case _:
                assert_never(step)

    def _enter(self, state: State) -> None:
        if self.context.recorder.status.state != state:
            self.context.recorder.store(Entered(state))

    def _run_once(self, step: Step, do: Callable[[], None], state: State) -> None:
        if any(s.id == step.id and s.state == "done" for s in self.context.recorder.status.steps):
            return
        self._start(step, state)
        self._run_with_retries(step, do)
        self._finish(step)

    def _rehearse(self, step: Backfill) -> None:
        """Run the first batch of a backfill that has none. A sandbox holds only the newest days: there is nothing to rehearse."""
        begun = any(
            s.id == step.id and (s.slices_done or s.state == "done") for s in self.context.recorder.status.steps
        )
        if begun or self.context.newest_days is not None:
            return
        self._start(step, "backfilling")
        self._run_with_retries(step, lambda: backfill_step.build(self.context, step, self.brake, batches=1))
        if any(s.id == step.id and 0 < s.slices <= s.slices_done for s in self.context.recorder.status.steps):
            self._finish(step)

    def _start(self, step: Step, state: State) -> None:
        self._enter(state)
        if losses := self._losses(step.id):
            if len(losses) >= DRIVER_TRIES:
                raise self._lost_too_often(step.id)  # a full disk kept the failure from being stored
            why = f"the driver was lost in {step.id}" + (f" ({losses[-1].why})" if losses[-1].why else "")
            retry.pause(self.context, self.brake.clock, len(losses), f"{why}; try {len(losses) + 1} of {DRIVER_TRIES}")
        self.context.recorder.store(StepStarted(step.id, self.context.recorder.away_since()))

    def _finish(self, step: Step) -> None:
        if self.context.newest_days is None:  # else its history is incomplete, and its receipts follow later
            # before the step's end: after a death in between, the next agent writes them again
            step_receipts.store(self.context, step)
        self.context.recorder.store(StepDone(step.id))

    def _run_with_retries(self, step: Step, do: Callable[[], None]) -> None:
        """Run a step, and repeat it as a whole after a transient error. Batches within it have their own retries."""
        for failed in range(1, retry.TRIES + 1):
            try:
                self._await_spark(step)
                do()
            except Exception as error:
                dying = self.context.spark.lost or (failure.call_broke(error) and self._driver_lost(error))
                if dying or failed == retry.TRIES or failure.kind(error) != "passing":
                    raise
                why = f"{step.id}: {failure.cause(error)}; try {failed + 1} of {retry.TRIES}"
                retry.pause(self.context, self.brake.clock, failed, why)
            else:
                return

    def _await_spark(self, step: Step) -> None:
        """After a loss of Spark, start it again and record how long it was gone."""
        recorder = self.context.recorder
        if since := recorder.status.spark_lost:
            self.context.spark.session()
            seconds = max(0.0, self.brake.clock.now() - since)
            recorder.report(f"Spark is back after {span(seconds)}", SparkBack(step=step.id, seconds=seconds))

    def _create(self, step: CreateTable) -> None:
        state = self.context.state(step.table)
        path = self.context.path(state.version.path)
        commit.create(self.context.spark.session(), state, path, self.context.keep_hours + SPARE_HOURS)

    def _add_columns(self, step: AddColumns) -> None:
        path = self.context.path(self._version_to_extend(step.table))
        known = {column.name for column in self.context.stats(step.table, path).columns}
        new = [column for column in step.columns if column.name not in known]
        if new:
            crash.point("before-commit-columns")
            append_nothing(self.context.spark.session(), path, '{"kind": "add columns"}', new)
            crash.point("after-commit-columns")

    def _version_to_extend(self, table: str) -> str:
        """The version of a landing table that lacks columns: the live one, beside which a new one is created with them."""
        relays = self.context.plan.release.relays
        older = next((relay.older for relay in relays if relay.table == table), "")
        return older or self.context.state(table).version.path

    def _catch_up(self, step: CatchUp) -> None:
        """Move a new live feed close to the end of its source; the follower continues from there."""
        context = self.context
        live_feed = context.live_feed(step.target, step.materialization)
        if step.start == "log":
            live_feed.start = 0
        try:
            moved = self._move_to_end(step, live_feed)
        except Exception:
            live_feed.writer = None  # its last commit may be in the log: the next attempt takes the feed over first
            raise
        context.recorder.publish(Progress(step=step.id, rows=moved, left=0))

    def _move_to_end(self, step: CatchUp, live_feed: LiveFeed) -> int:
        """Returns the rows moved: all rows of a history that is read from a log, since its receipts count them."""
        context, session = self.context, self.context.spark.session()
        live_feed.open(session)
        moved, history = 0, log.latest_version(live_feed.source_path) if step.start == "log" else -1
        while not planted_bugs.early():
            context.check_halt()
            end = log.latest_version(live_feed.source_path)
            commits, rows, _ = live_feed.pending(end)
            if commits <= CAUGHT_UP_COMMITS and not live_feed.pending(history)[0]:
                break
            context.recorder.publish(Progress(step=step.id, rows=moved, left=rows))
            moved += max(live_feed.step(session, end), 0)
        return moved
