"""Throttles of a backfill: conditions for the next batch to begin. Waiting is never an error."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from console import paths
from console.agent.clock import Clock, WallClock, span
from console.agent.feeds.live_feed import logical_rows
from console.agent.object_store.object_path import ObjectPath
from console.agent.resilience.waits import Waits
from console.agent.rollout.context import RolloutContext
from console.errors import ConsoleError
from console.model.event import Waiting
from console.model.policy import opens_in
from console.text import redacted, safe_text

LAG_SECONDS = 60.0  # a lag above this delays a backfill if the plan sets no limit …
DEFAULT_WAIT_SECONDS = 30.0  # … but only for this long: the backfill itself may cause it
POLL_SECONDS = 1.0
PAUSE_CHARACTERS = 200  # that are shown of a pause file
QUERY_SECONDS = 15.0  # between two runs of throttle.query; its result is reused until then


def _run_query(context: RolloutContext) -> Any:
    """Run the throttle's query over the live release; its one value.

    raises  ConsoleError if it is not one row
    """
    throttle, release = context.limits.throttle, context.live()
    session = context.spark.session()
    for name in throttle.tables:
        state = release.table(name)
        if state is None:
            raise ConsoleError(f"release {release.id} has no table {name}")
        stored = session.read.format("delta").load(context.path(state.version.path))
        logical_rows(session, state, stored).createOrReplaceTempView(name)
    rows = session.sql(throttle.query).limit(2).collect()
    if len(rows) != 1:
        raise ConsoleError("it gives no row" if not rows else "it gives more than one row")
    return rows[0][0]


def _paused(path: Path) -> str | None:
    """As `paths.paused`, of a file in a bucket as well."""
    if not isinstance(path, ObjectPath):
        return paths.paused(path)
    try:
        return " ".join(path.read_text(errors="replace")[:PAUSE_CHARACTERS].split())
    except FileNotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class _Reason:
    """Why the next batch may not begin. cause: as in `WaitBegan`"""

    cause: str
    why: str


@dataclass(slots=True, kw_only=True)
class Brake:
    """Delays the batches of one rollout, and reports why.

    ask   runs the throttle's query; raises what Spark raises
    poll  seconds between two checks
    """

    context: RolloutContext
    clock: Clock = field(default_factory=WallClock)
    ask: Callable[[RolloutContext], Any] = field(default=_run_query)
    poll: float = POLL_SECONDS
    _asked: float = -QUERY_SECONDS
    _asked_query: str = ""
    _query_reason: str = ""

    def hold(self, step: str = "") -> None:
        """Wait until the next batch of a step may begin.

        raises  RolloutStopped if the rollout is paused or cancelled meanwhile
        """
        since, recorder = self.clock.elapsed(), self.context.recorder
        waits = Waits(recorder=recorder, clock=self.clock, step=step, what="the backfill")
        while reasons := list(self._reasons(self.clock.elapsed() - since)):
            self.context.check_halt()
            why = "; ".join(reason.why for reason in reasons)
            waits.go_on(reasons[0].cause, why)
            recorder.publish(Waiting(why))
            self.clock.wait(self.context.halt, self.poll)
        self.context.check_halt()
        waits.end()

    def _reasons(self, waited: float) -> Iterator[_Reason]:
        """The reasons to wait now; the first one becomes the cause of the wait."""
        throttle = self.context.limits.throttle
        standing = [*self._pauses(), *self._hours(throttle.hours, throttle.zone), *self._lag(waited)]
        yield from standing
        if throttle.query and not standing and (why := self._query(throttle.query)):
            yield _Reason("query", why)

    def _pauses(self) -> Iterator[_Reason]:
        region = self.context.warehouse / "_console" / "pause"
        for path, what in ((region, "this region is paused by"), (paths.pause_file(), "all regions are paused by")):
            if (reason := _paused(path)) is not None:
                yield _Reason("pause", f"{what} {path}{f': {safe_text(redacted(reason))}' if reason else ''}")

    def _hours(self, hours: str, zone: str) -> Iterator[_Reason]:
        if hours:
            at = datetime.fromtimestamp(self.clock.now(), _zone(zone))
            if left := opens_in(hours, at.hour * 60 + at.minute):
                opens = hours.partition("-")[0]
                yield _Reason("hours", f"outside of {hours} {zone}; continues at {opens}, in {span(left * 60)}")

    def _lag(self, waited: float) -> Iterator[_Reason]:
        limit, lag = self.context.limits.throttle.lag_seconds, self.context.follower.lag(self.context.plan.pipeline)
        if limit is None:
            if lag.seconds > LAG_SECONDS and waited < DEFAULT_WAIT_SECONDS:
                yield _Reason("lag", f"live rows are more than {LAG_SECONDS:.0f} s behind, and go first")
        elif lag.seconds > limit:
            yield _Reason("lag", f"live rows are {lag.seconds:.0f} s behind, the limit is {limit:.0f} s")

    def _query(self, query: str) -> str:
        now = self.clock.elapsed()
        if now - self._asked >= QUERY_SECONDS or query != self._asked_query:
            self._asked, self._asked_query = now, query
            try:
                answer = self.ask(self.context)
                self._query_reason = "" if answer is True else f"throttle.query answers {_as_text(answer)}, not true"
            except Exception as error:  # a query that fails is a reason to wait, not to fail
                lines = str(error).strip().splitlines() or [type(error).__name__]
                self._query_reason = f"throttle.query fails: {safe_text(redacted(lines[0]))[:300]}"
        return self._query_reason


def _as_text(answer: Any) -> str:
    match answer:
        case None:
            return "NULL"
        case False:
            return "false"
    return safe_text(str(answer))[:60]


def _zone(name: str) -> tzinfo:
    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # a host without time zone data
        return UTC
