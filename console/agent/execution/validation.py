"""Validation: the new release is compared with the live one at the same landing position before it may be promoted."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from console.agent.compared.comparison import compare
from console.agent.compared.quarantined import affected_tables
from console.agent.compared.resumed import begin
from console.agent.errors import AgentEnding
from console.agent.execution import expectations
from console.agent.execution.empty_commits import append_nothing
from console.agent.execution.endpoint_calls import call_checks
from console.agent.feeds import planted_bugs
from console.agent.feeds.live_feed import LiveFeed, stalled_targets
from console.agent.recount import liveness
from console.agent.recount.pinned_tables import Pinned, PinnedSource
from console.agent.resilience.waits import Waits
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.store import log
from console.errors import RegionError
from console.model.event import BatchDone, Checked, Fenced, Waiting
from console.model.landing import RELAY
from console.model.live import Release
from console.model.step import Backfill, Comparison, CreateTable, Validate
from console.model.step_id import VALIDATE

HEARTBEAT = '{"kind": "heartbeat"}'


def validate(context: RolloutContext, step: Validate) -> None:
    """Store one `Checked` per check; the gate reads them. A difference is a failed check, not an exception.

    raises  RegionError if a feed of the new release is stopped; RolloutStopped
    """
    if planted_bugs.early():
        return
    session = context.spark.session()
    pins = aligned(context)
    live_feeds = rebuilt_feeds(context)
    heartbeats = _heartbeats(context, live_feeds, session)
    if heartbeats:
        pins = aligned(context)
    for live_feed in live_feeds:
        with context.jobs(session, f"live rows of {live_feed.spec.target}"):
            seed = f"{context.recorder.rollout}/{live_feed.spec.materialization}"
            heartbeat = heartbeats.get(live_feed.source_path)
            check = liveness.check_feed(session, live_feed, pins, seed, heartbeat, live_feed.dry_run)
            context.check_halt()  # an interrupted check is not evidence about the rows
        context.recorder.store(planted_bugs.blind(but_for_quarantine(context, check)))
    stalled = stalled_targets(context.follower.feeds(context.plan.pipeline))
    for comparison in step.comparisons:
        sides = (version_path(context, comparison.table, release) for release in (context.live(), context.plan.release))
        if reason := next((stalled[path] for path in sides if path in stalled), None):
            context.recorder.store(
                Checked(
                    table=comparison.table, check="rows", ok=None, detail=f"not compared: a feed has stopped: {reason}"
                )
            )
            continue
        with context.jobs(session, f"comparison of {comparison.table}"):
            for check in _compared(context, session, comparison, pins):
                context.check_halt()
                context.recorder.store(planted_bugs.blind(check))
    for check in expectations.checks(context, session, pins):
        context.recorder.store(planted_bugs.blind(check))
    for check in call_checks(context, step, pins):
        context.recorder.store(planted_bugs.blind(but_for_quarantine(context, check)))
    for check in _complete(context):
        context.recorder.store(planted_bugs.blind(check))


def _compared(context: RolloutContext, session: Any, comparison: Comparison, pins: dict[str, int]) -> Iterator[Checked]:
    """The checks of one table; its records are stored portion by portion (`compared/records`)."""
    old = side_of(context, comparison.table, context.live(), pins)
    new = side_of(context, comparison.table, context.plan.release, pins)
    course, old, new = begin(context, session, comparison, old, new)
    if comparison.keys and course.done:
        return  # groups are recorded once all of their checks are stored
    # with left-out rows subtracted, the comparison itself knows the days that may lack rows
    lacking = course.left_out is None and comparison.table in affected_tables(context)
    for check in compare(session, comparison, old, new, sources_of(context, comparison.table, pins), course):
        yield but_for_quarantine(context, check) if lacking else check


def rebuilt_feeds(context: RolloutContext) -> list[LiveFeed]:
    """The live feeds of rebuilt tables: the follower's own objects if it has them, as after a restart. A new landing version is
    fed by its relay until its promotion, and by senders from then on.
    """
    tables = {step.table for step in context.plan.steps if isinstance(step, CreateTable)}
    followed = {live_feed.key: live_feed for live_feed in context.follower.feeds(context.plan.pipeline)}
    ours = [live_feed for live_feed in context.live_feeds_in_order() if live_feed.spec.target in tables]
    if context.before is not None:
        ours = [live_feed for live_feed in ours if live_feed.spec.materialization != RELAY]
    return [followed.get(live_feed.key, live_feed) for live_feed in ours]


def _heartbeats(context: RolloutContext, live_feeds: list[LiveFeed], session: Any) -> dict[str, int]:
    """Append an empty, marked commit to every managed landing table without traffic; returns path → its version."""
    quiet = {
        e.source_path
        for e in live_feeds
        if e.source.table.kind == "landing" and e.source.table.managed and not e.rows_moved
    }
    return {path: append_nothing(session, path, HEARTBEAT) for path in quiet}


def aligned(context: RolloutContext) -> dict[str, int]:
    """Table path → Delta version, at one common landing position of every followed feed.

    Tables whose rows end early because of a stopped feed are left out, if the new release lacks that feed or lets it continue.

    raises  RegionError if a feed of the new release is stopped; RolloutStopped if the agent ends
    """
    alignment = context.follower.align(context.plan.pipeline)
    waits = Waits(recorder=context.recorder, step=str(VALIDATE), what="the comparison")
    published = 0.0  # monotonic
    while not alignment.done():
        context.check_halt()
        _check_feeds(context)
        if time.monotonic() - published > 1:
            errors = [
                live_feed.health.last_error
                for live_feed in context.follower.feeds(context.plan.pipeline)
                if live_feed.health.last_error
            ]
            why = "".join(f"; {text}" for text in errors[:1])
            why = f"bringing old and new to the same landing position{why}"
            waits.go_on("alignment", why)
            context.recorder.publish(Waiting(why))
            published = time.monotonic()
        time.sleep(0.05)
    waits.end()
    try:
        pins = alignment.result()
    except AgentEnding:  # not a failure of the rollout: the next agent continues here
        raise RolloutStopped from None
    _check_feeds(context)
    return pins


def _check_feeds(context: RolloutContext) -> None:
    """raises RegionError if a feed of the new release is stopped, unless by a definition that only the live one has"""
    ours = {live_feed.key: live_feed for live_feed in context.live_feeds_in_order()}
    for live_feed in context.follower.feeds(context.plan.pipeline):
        new, why = ours.get(live_feed.key), live_feed.health.standing
        if new is not None and why is not None and not live_feed.differs(new):
            raise RegionError(f"a feed has stopped: {why}", hint=why.hint, code=why.code)


def version_path(context: RolloutContext, table: str, release: Release) -> str:
    state = release.table(table)
    return context.path(state.version.path) if state else ""


def side_of(context: RolloutContext, table: str, release: Release, pins: dict[str, int]) -> Pinned:
    state = release.table(table)
    if state is None:
        raise RegionError(f"release {release.id} has no table {table}", hint="console plan")
    path = context.path(state.version.path)
    if path not in pins:
        raise RegionError(
            f"{table} of release {release.id} is not followed: it cannot be compared", hint="console retry"
        )
    return Pinned(state, path, pins[path])


def sources_of(context: RolloutContext, table: str, pins: dict[str, int]) -> tuple[PinnedSource, ...]:
    """The sources of the feeds of a table of the new release, at the versions where both sides are pinned."""
    sources = []
    for live_feed in context.live_feeds_in_order():
        if live_feed.spec.target == table:
            joins = tuple(Pinned(state, path, log.latest_version(path)) for state, path in live_feed.joins)
            version = pins.get(live_feed.source_path, log.latest_version(live_feed.source_path))
            sources.append(
                PinnedSource(live_feed.spec, Pinned(live_feed.source, live_feed.source_path, version), joins)
            )
    return tuple(sources)


def but_for_quarantine(context: RolloutContext, check: Checked) -> Checked:
    """A failed check becomes inconclusive if rows are in quarantine: the new version lacks them, as the operator
    allowed, and a person has to see whether anything else differs.
    """
    quarantined = context.recorder.status.quarantined
    if check.ok is not False or not quarantined:
        return check
    return replace(check, ok=None, detail=f"{check.detail}; rows in quarantine: {quarantined:,}")


def _complete(context: RolloutContext) -> Iterator[Checked]:
    """One check per backfill: its batches read as many rows as the source has at the fence."""
    targets = {step.id: step.target for step in context.plan.steps if isinstance(step, Backfill)}
    done = context.recorder.events(BatchDone)
    for fenced in context.recorder.events(Fenced):
        rows = {batch.position: batch.rows_in for batch in done if batch.step == fenced.step}
        read = sum(rows.values())
        detail = f"{read:,} of {fenced.rows:,} rows of {fenced.source} at version {fenced.version} were read"
        yield Checked(table=targets[fenced.step], check="history is complete", ok=read == fenced.rows, detail=detail)
