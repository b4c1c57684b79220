"""The checks of a promoted release that ask Spark: each is run again after a multiple of what it last took."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from console.agent.compared.by_day import day_records
from console.agent.compared.checks import columns_check, compared_days, rows_check
from console.agent.compared.quarantined import affected_tables
from console.agent.compared.resumed import stored_time
from console.agent.compared.round import ComparisonRound
from console.agent.execution import expectations
from console.agent.execution.endpoint_calls import call_checks
from console.agent.execution.validation import but_for_quarantine, rebuilt_feeds, side_of, version_path
from console.agent.expectations.at_gate import check_title
from console.agent.failure import cause
from console.agent.feeds.live_feed import logical_rows, stalled_targets
from console.agent.recount import live
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.errors import ConsoleError
from console.model.event import Checked
from console.model.expectation import DayCheck, Fresh, RowsOfDayBefore
from console.model.slices import cut
from console.model.step import Comparison, Validate
from console.text import redacted, safe_text

EVERY_SECONDS = 15.0  # between two runs of a check, at least
SHARE = 10.0  # it is run again after so many times what it last took
MOST_SECONDS = 120.0  # after which a run is cancelled
NEWEST_SLICES = 2  # of a table that are compared by their values
QUERY = ("policy", "watch_query")  # table and check of the policy's query

Pins = Mapping[str, int]
Checks = Callable[[RolloutContext, Pins], Iterator[Checked]]


@dataclass(slots=True, kw_only=True)
class SparkCheck:
    """One kind of check. due: monotonic; name, for a run that was not completed"""

    name: str
    run: Checks
    due: float = 0.0

    def results(self, context: RolloutContext, pins: Pins) -> Iterator[Checked]:
        """Its results if it is due; inconclusive if it cannot be run.

        raises  RolloutStopped
        """
        began = time.monotonic()
        if began < self.due:
            return
        late = threading.Event()
        try:
            with _limited(context, late):
                yield from self.run(context, pins)
            yield Checked(table="watch", check=self.name, ok=True, detail="it was completed")
        except RolloutStopped:
            raise
        except Exception as error:
            context.check_halt()
            why = f"no result within {MOST_SECONDS:.0f} s" if late.is_set() else cause(error)
            yield Checked(table="watch", check=self.name, ok=None, detail=safe_text(redacted(why), 300))
        finally:
            ended = time.monotonic()
            self.due = ended + max(EVERY_SECONDS, SHARE * (ended - began))


def spark_checks() -> tuple[SparkCheck, ...]:
    """All kinds, the cheapest first."""
    kinds: tuple[tuple[str, Checks], ...] = (
        ("policy's query", policy_query),
        ("newest rows", newest_rows),
        ("live rows", live_rows),
        ("expectations", table_expectations),
        ("recorded calls", recorded_calls),
    )
    return tuple(SparkCheck(name=name, run=run) for name, run in kinds)


def policy_query(context: RolloutContext, _: Pins) -> Iterator[Checked]:
    """`policy.watch_query` over the live release as it is now: fails if it answers false, and only then."""
    rules = context.plan.gate
    if not rules.watch_query:
        return
    table, check = QUERY
    try:
        answer = asked(context, rules.watch_query, rules.watch_tables)
    except Exception as error:
        context.check_halt()
        detail = f"it cannot be run: {safe_text(redacted(cause(error)), 300)}"
        yield Checked(table=table, check=check, ok=None, detail=detail)
        return
    shown = "NULL" if answer is None else str(answer).lower() if isinstance(answer, bool) else "no truth value"
    yield Checked(
        table=table, check=check, ok=answer if isinstance(answer, bool) else None, detail=f"it answers {shown}"
    )


def asked(context: RolloutContext, query: str, tables: tuple[str, ...]) -> Any:
    """The one value of a compiled query over the plan's release.

    raises  ConsoleError if it is not one row; what Spark raises
    """
    session, release = context.spark.session(), context.plan.release
    with context.jobs(session, "watch query"):
        for name in tables:
            state = release.table(name)
            if state is None:
                raise ConsoleError(f"release {release.id} has no table {name}")
            stored = session.read.format("delta").load(context.path(state.version.path))
            logical_rows(session, state, stored).createOrReplaceTempView(name)
        rows = session.sql(query).limit(2).collect()
    if len(rows) != 1:
        raise ConsoleError("it gives no row" if not rows else "it gives more than one row")
    return rows[0][0]


def newest_rows(context: RolloutContext, pins: Pins) -> Iterator[Checked]:
    """The unchanged columns of the newest slices of each rebuilt table, in the version before and in the new one."""
    if context.before is None:
        return
    stalled = stalled_targets(context.follower.feeds(context.plan.pipeline))
    lacking = affected_tables(context)
    for step in context.plan.steps:
        for plan in step.comparisons if isinstance(step, Validate) else ():
            paths = [version_path(context, plan.table, side) for side in (context.before, context.plan.release)]
            known = all(path in pins and path not in stalled for path in paths)
            sent = (
                context.state(plan.table).table.kind == "landing"
            )  # what is sent to it is relayed to the version before
            if (
                known
                and not sent
                and plan.table not in lacking
                and plan.time
                and not (plan.keys or plan.joins or plan.other_rows)
            ):
                yield from _newest_of(context, plan, pins)


def _newest_of(context: RolloutContext, compared_table: Comparison, pins: Pins) -> Iterator[Checked]:
    assert context.before is not None
    plan = replace(compared_table, changed=())
    old = side_of(context, plan.table, context.before, dict(pins))
    new = side_of(context, plan.table, context.plan.release, dict(pins))
    column = stored_time(new.state, plan.time)
    days = context.stats(plan.table, new.path, column, new.version).days if column else ()
    slices = cut(days)[:NEWEST_SLICES]
    if not slices or not all(day.exact for day in days):
        return  # a day would be read from files of all days
    session = context.spark.session()
    with context.jobs(session, f"newest rows of {plan.table}"):
        portion = ComparisonRound(portions=(tuple(slices),))
        records = [record for each in day_records(session, plan, old, new, portion) for record in each]
    compared = compared_days(records)
    for check in (rows_check(plan, compared, records), columns_check(plan, compared, records)):
        context.check_halt()
        yield replace(check, check=f"{check.check}, newest days", summaries=())


def live_rows(context: RolloutContext, pins: Pins) -> Iterator[Checked]:
    """Live commits of each rebuilt table, computed again by code that shares nothing with the feeds."""
    session = context.spark.session()
    for feed in rebuilt_feeds(context):
        if feed.target_path not in pins or feed.source_path not in pins:
            continue
        seed = f"{context.recorder.rollout}/{feed.spec.materialization}/{int(time.time() // EVERY_SECONDS)}"
        with context.jobs(session, f"live rows of {feed.spec.target}"):
            result = live.recount(session, live.pinned_feed(feed, pins), seed)
        context.check_halt()
        if result is None:
            continue  # without traffic there is nothing to compute
        check = Checked(
            table=feed.spec.target,
            check=f"feed {feed.spec.materialization}: live rows",
            ok=result.ok,
            detail=result.detail,
            commits=result.commits,
            rows=result.rows,
        )
        yield but_for_quarantine(context, check)


def table_expectations(context: RolloutContext, pins: Pins) -> Iterator[Checked]:
    """Expectations of the rebuilt tables, over all rows of the live version. Those of traffic, such as freshness, say nothing
    about the release if they fail.
    """
    of_traffic = {
        (state.table.name, check_title(check))
        for state in context.plan.release.tables
        for check in state.checks
        if isinstance(check, DayCheck) and isinstance(check.rule, Fresh | RowsOfDayBefore)
    }
    for check in expectations.checks(context, context.spark.session(), pins):
        traffic = check.ok is False and (check.table, check.check) in of_traffic
        yield replace(check, ok=None, detail=f"of the traffic: {check.detail}") if traffic else check


def recorded_calls(context: RolloutContext, pins: Pins) -> Iterator[Checked]:
    """Recorded calls of endpoints, between the release before and the new one. They are run so often during a watch that one
    slow minute of the host must not count: what fails has to fail again at once.
    """
    if context.before is None:
        return
    for step in context.plan.steps:
        if not isinstance(step, Validate):
            continue
        checks = list(call_checks(context, step, pins))
        again = list(call_checks(context, step, pins)) if any(check.ok is False for check in checks) else checks
        confirmed = {(check.table, check.check) for check in again if check.ok is False}
        for check in checks:
            stands = check.ok is not False or (check.table, check.check) in confirmed
            passing = replace(check, ok=None, detail=f"failed once, and not again: {check.detail}")
            yield but_for_quarantine(context, check if stands else passing)


@contextmanager
def _limited(context: RolloutContext, late: threading.Event) -> Iterator[None]:
    """Context of a run, whose Spark job is cancelled once it takes too long."""

    def cancel() -> None:
        late.set()
        if (job := context.job) is not None:
            job.cancel()

    timer = threading.Timer(MOST_SECONDS, cancel)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
