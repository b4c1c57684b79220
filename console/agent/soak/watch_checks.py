"""The checks that ask Spark, of a promoted release and of one that waits at its gate."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from console.agent.execution import expectations
from console.agent.execution.endpoint_calls import call_checks
from console.agent.execution.validation import but_for_quarantine, rebuilt_feeds
from console.agent.expectations.at_gate import check_title
from console.agent.failure import cause
from console.agent.feeds.live_feed import logical_rows
from console.agent.recount import live
from console.agent.recount.arrived import recount_arrived
from console.agent.rollout.context import RolloutContext
from console.agent.soak.looking import older_release
from console.agent.soak.newest_days import NewestRows
from console.agent.soak.spark_checks import CheckPace, Checks, Pins, SparkCheck
from console.errors import ConsoleError
from console.model.event import Checked
from console.model.expectation import DayCheck, Fresh, RowsOfDayBefore
from console.model.step import Validate
from console.text import redacted, safe_text

WATCH = CheckPace(every=15.0, share=10.0, most=120.0)
GATE = CheckPace(every=300.0, share=20.0, most=300.0, inconclusive=False)  # the validation has run them without a limit
PART_SECONDS = 60.0  # after which calls of no further endpoint are begun
QUERY = ("policy", "watch_query")  # table and check of the policy's query


def watch_checks() -> tuple[SparkCheck, ...]:
    """All kinds for a promoted release, the cheapest first."""
    kinds: tuple[tuple[str, Checks], ...] = (
        ("policy's query", policy_query),
        ("newest rows", NewestRows()),
        ("live rows", LiveRows()),
        ("expectations", table_expectations),
        ("recorded calls", RecordedCalls()),
    )
    return tuple(SparkCheck(place="watch", name=name, run=run, pace=WATCH) for name, run in kinds)


def gate_checks() -> tuple[SparkCheck, ...]:
    """Those of a release that waits at its gate: the validation has run them all, and rarely is enough."""
    kinds: tuple[tuple[str, Checks], ...] = (
        ("newest rows", NewestRows()),
        ("live rows", LiveRows()),
        ("expectations", row_expectations),
        ("recorded calls", RecordedCalls()),
    )
    return tuple(SparkCheck(place="gate", name=name, run=run, pace=GATE) for name, run in kinds)


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


@dataclass(slots=True)
class LiveRows:
    """Live commits of each rebuilt table since the last look, computed again by code that shares nothing with the feeds.

    looked  app id of a feed → version of its newest live commit then
    """

    looked: dict[str, int] = field(default_factory=dict)

    def __call__(self, context: RolloutContext, pins: Pins) -> Iterator[Checked]:
        session = context.spark.session()
        for feed in rebuilt_feeds(context):
            if feed.target_path not in pins or feed.source_path not in pins:
                continue
            with context.jobs(session, f"live rows of {feed.spec.target}"):
                pinned = live.pinned_feed(feed, pins)
                result = recount_arrived(session, pinned, self.looked.get(feed.app_id, -1))
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
            self.looked[feed.app_id] = result.last


def table_expectations(context: RolloutContext, pins: Pins) -> Iterator[Checked]:
    """Expectations of the rebuilt tables, over all rows of the live version. Those of traffic, such as freshness, say nothing
    about the release if they fail.
    """
    of_traffic = _of_traffic(context)
    for check in expectations.checks(context, context.spark.session(), pins):
        traffic = check.ok is False and (check.table, check.check) in of_traffic
        yield replace(check, ok=None, detail=f"of the traffic: {check.detail}") if traffic else check


def row_expectations(context: RolloutContext, pins: Pins) -> Iterator[Checked]:
    """Expectations of the rebuilt tables, but those of traffic: a night without rows is no reason to keep a gate closed."""
    of_traffic = _of_traffic(context)
    for check in table_expectations(context, pins):
        if (check.table, check.check) not in of_traffic:
            yield check


def _of_traffic(context: RolloutContext) -> set[tuple[str, str]]:
    """Table and check of the expectations that depend on what arrives."""
    return {
        (state.table.name, check_title(check))
        for state in context.plan.release.tables
        for check in state.checks
        if isinstance(check, DayCheck) and isinstance(check.rule, Fresh | RowsOfDayBefore)
    }


@dataclass(slots=True)
class RecordedCalls:
    """Recorded calls of endpoints, between the release before and the new one.

    last  the endpoint whose calls were run last: the next run begins behind it, so that a long list is run part by part
    """

    last: str = ""

    def __call__(self, context: RolloutContext, pins: Pins) -> Iterator[Checked]:
        if older_release(context) is None:
            return
        began = time.monotonic()
        for step, endpoint in self._in_turn(context):
            if time.monotonic() - began > PART_SECONDS:
                return
            self.last = endpoint
            own = replace(step, calls=tuple(call for call in step.calls if call.endpoint == endpoint))
            for check in call_checks(context, own, pins):
                yield but_for_quarantine(context, check)

    def _in_turn(self, context: RolloutContext) -> list[tuple[Validate, str]]:
        """The endpoints with calls, and their steps, from the one after the last on."""
        steps = [step for step in context.plan.steps if isinstance(step, Validate)]
        known = [(step, endpoint) for step in steps for endpoint in dict.fromkeys(call.endpoint for call in step.calls)]
        names = [endpoint for _, endpoint in known]
        first = names.index(self.last) + 1 if self.last in names else 0
        return [*known[first:], *known[:first]]
