"""Runs recorded calls against two releases at one position, alternating between them, and measures them."""

import statistics
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from console.agent.calls.cost import read_cost
from console.agent.calls.difference import CallAnswer, difference
from console.agent.calls.verdict import judge_answers, judge_cost
from console.agent.feeds.live_feed import logical_rows
from console.agent.recount.pinned_tables import reason
from console.agent.rollout.context import RolloutContext
from console.agent.rows.arguments import arguments
from console.agent.store import log
from console.errors import ConsoleError
from console.model.live import Release
from console.model.recorded_call import CallCost, CallQuery, PlannedCall, ReplayedCall

RUNS = 5  # per side; the first run, which compiles and fills caches, is dropped
MOST_ROWS = 10_000  # of an answer
RUN_SECONDS = 30.0  # after which a run is cancelled
CALL_SECONDS = 20.0  # after which no further runs of a call begin
CANCEL_SECONDS = 0.5  # between two cancellations: a cancelled query may still start jobs


class NotReplayed(Exception):
    """A side of a call cannot be run; the text is the reason, without values."""


@dataclass(slots=True, kw_only=True)
class CalledRelease:
    """One release at the common position, its tables registered on demand in a session of its own.

    pins  version path → Delta version
    """

    session: Any
    release: Release
    context: RolloutContext
    pins: Mapping[str, int]
    _views: set[str] = field(default_factory=set)

    def register(self, tables: Sequence[str]) -> None:
        """raises  NotReplayed if a table has no rows at that position"""
        for name in tables:
            if name not in self._views:
                self._view(name)
                self._views.add(name)

    def _view(self, name: str) -> None:
        state = self.release.table(name)
        if state is None:
            raise NotReplayed(f"{name} is not a table of release {self.release.id or 'the new one'}")
        path = self.context.path(state.version.path)
        version = self.pins.get(path)
        if version is None and self.release.feeds_into(name):
            raise NotReplayed(f"a feed of {name} has stopped")
        if version is None:
            version = log.latest_version(path)
        stored = self.session.read.format("delta").option("versionAsOf", version).load(path)
        logical_rows(self.session, state, stored).createOrReplaceTempView(name)


@dataclass(slots=True, kw_only=True)
class _Runs:
    """The runs of one side.

    steady   all of them had the same answer
    seconds  of the counted runs
    read     files and bytes, of the last run of which Spark could tell
    """

    called: CalledRelease
    query: CallQuery
    answer: CallAnswer | None = None
    steady: bool = True
    first: float = 0.0
    seconds: list[float] = field(default_factory=list)
    read: tuple[int, int] | None = None

    @property
    def counted(self) -> tuple[float, ...]:
        """The seconds by which it is judged: the first run's alone if it took so long that none followed."""
        return tuple(self.seconds) or ((self.first,) if self.answer is not None else ())

    @property
    def cost(self) -> CallCost | None:
        if self.answer is None or self.read is None:
            return None
        return CallCost(round(statistics.median(self.counted), 4), *self.read)


def replay(context: RolloutContext, call: PlannedCall, live: CalledRelease, new: CalledRelease) -> ReplayedCall:
    """Run one call on both sides in turns, and judge answers and cost.

    raises  RolloutStopped
    """
    after = _Runs(called=new, query=call.new)
    before = _Runs(called=live, query=call.live) if call.live is not None else None
    sides = [side for side in (before, after) if side is not None]
    began = time.monotonic()
    for number in range(RUNS):
        for side in sides:
            try:
                _run(context, call, side, number)
            except NotReplayed as why:
                return _failed(call, before, after, side is after, str(why))
        if time.monotonic() - began > CALL_SECONDS:
            break
    return _judged(call, before, after)


def _run(context: RolloutContext, call: PlannedCall, side: _Runs, number: int) -> None:
    """One run. raises NotReplayed if it fails or takes too long; RolloutStopped"""
    # unique: under a reused name, an earlier run's reads would be counted as this one's
    what = f"call {call.endpoint} {call.name} {number + 1} {uuid4().hex}"
    session, late, ended = side.called.session, threading.Event(), threading.Event()
    with context.jobs(session, what):
        watch = threading.Thread(target=_watch, args=(context, late, ended), name="call", daemon=True)
        watch.start()
        try:
            side.called.register(side.query.tables)
            began = time.monotonic()
            args = arguments({name: (value, kind) for name, value, kind in side.query.args})
            frame = context.spark.ask(session, side.query.sql, args).limit(MOST_ROWS + 1)
            rows = tuple(tuple(row) for row in frame.collect())
            seconds = time.monotonic() - began
            side.read = read_cost(session, frame, f"{context.recorder.rollout} {what}") or side.read
        except NotReplayed:
            raise
        except Exception as error:
            context.check_halt()
            if late.is_set():
                raise NotReplayed(f"no answer within {RUN_SECONDS:.0f} s") from None
            if isinstance(error, (ValueError, OverflowError, ConsoleError)):
                raise NotReplayed(
                    "a value cannot be read: a parameter of another type, or a time before year 1"
                ) from None
            raise NotReplayed(f"fails: {reason(error)}") from None
        finally:
            ended.set()
            watch.join()
    context.check_halt()
    _note(side, CallAnswer(tuple(frame.dtypes), rows[:MOST_ROWS], len(rows) > MOST_ROWS), call, seconds)


def _watch(context: RolloutContext, late: threading.Event, ended: threading.Event) -> None:
    """Cancel the run's jobs once its time is over, until the run has ended."""
    if ended.wait(RUN_SECONDS):
        return
    late.set()
    while not ended.wait(CANCEL_SECONDS):
        with suppress(Exception):  # the JVM is gone; the run itself reports it
            if (job := context.job) is not None:
                job.cancel()


def _note(side: _Runs, answer: CallAnswer, call: PlannedCall, seconds: float) -> None:
    if side.answer is None:
        side.answer, side.first = answer, seconds
        return
    side.seconds.append(seconds)
    side.steady = side.steady and difference(side.answer, answer, call.form).equal


def _judged(call: PlannedCall, before: _Runs | None, after: _Runs) -> ReplayedCall:
    assert after.answer is not None
    live = before.answer if before is not None else None
    was, cost = before.cost if before is not None else None, after.cost
    same_cost, why_cost = _costs(call, before, after)
    same, why, only = _answers(call, before, after)
    return ReplayedCall(
        endpoint=call.endpoint,
        name=call.name,
        same=same,
        same_cost=same_cost,
        rows_live=len(live.rows) if live is not None else 0,
        rows_new=len(after.answer.rows),
        only_live=only[0],
        only_new=only[1],
        live=was,
        new=cost,
        runs=len(after.seconds),
        why=why,
        why_cost=why_cost,
    )


def _costs(call: PlannedCall, before: _Runs | None, after: _Runs) -> tuple[bool | None, str]:
    """Whether the new release answers as cheaply, and the increases."""
    cost, was = after.cost, before.cost if before is not None else None
    if cost is None or (before is not None and was is None):
        return None, "not measured: Spark has forgotten, or through Spark Connect does not tell, what a run has read"
    return judge_cost(was, cost, call.budget, (before.counted if before else (), after.counted))


def _answers(call: PlannedCall, before: _Runs | None, after: _Runs) -> tuple[bool | None, str, tuple[int, int]]:
    """Whether the answers are the same, why not, and the numbers of rows that only one side has."""
    assert after.answer is not None
    if before is None or before.answer is None:
        return True, "", (0, 0)  # there was no answer before
    if before.answer.cut or after.answer.cut:
        return None, f"more than {MOST_ROWS:,} rows: not compared", (0, 0)
    differs = difference(before.answer, after.answer, call.form)
    only = (differs.only_live, differs.only_new)
    same, why = judge_answers(call, differs, (len(before.answer.rows), len(after.answer.rows)))
    if not differs.equal and not (before.steady and after.steady):
        which = "live" if not before.steady else "the new release"
        return None, f"{which} gives different answers from one run to the next", only
    return same, why, only


def _failed(call: PlannedCall, before: _Runs | None, after: _Runs, of_new: bool, why: str) -> ReplayedCall:
    """The result if a side has no answer: a fault of the new release if live has one."""
    worked = before is not None and before.answer is not None
    return ReplayedCall(
        endpoint=call.endpoint,
        name=call.name,
        same=False if of_new and (worked or before is None) else None,
        same_cost=None,
        live=before.cost if before is not None else None,
        new=after.cost,
        why=f"{'the new release' if of_new else 'live'}: {why}",
        why_cost="not measured: a side gave no answer",
    )
