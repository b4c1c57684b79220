"""Rows that history left out of a new version because a value does not convert, as they are in the old version.

Quarantine stores keys alone. The plan's predicate over the pinned source selects the same rows again at any time, and
the live release's own query turns them into the old version's rows. Sums of disjoint rows add up, so theirs can be
subtracted in a comparison.
"""

from collections.abc import Sequence
from typing import Any

from console.agent.failure import from_spark
from console.agent.feeds.backfill import in_slices
from console.agent.feeds.live_feed import join_versions, joined_rows, logical_rows
from console.agent.query_over import query_over
from console.agent.recount.pinned_tables import shown
from console.agent.rollout.context import RolloutContext
from console.agent.rows.snapshot import stored_at
from console.model.event import BatchDone, Fenced
from console.model.live import Feed, Release, TableState
from console.model.slices import cut, half
from console.model.step import Backfill


def affected_tables(context: RolloutContext) -> frozenset[str]:
    """Tables of the new release that lack rows in quarantine, and all tables downstream of them."""
    tables = {step.target for step in _steps(context)}
    while below := {feed.target for feed in context.plan.release.feeds if feed.source in tables} - tables:
        tables |= below
    return frozenset(tables)


def left_out_rows(context: RolloutContext, session: Any, table: str) -> Any:
    """The rows of the old version of a table that are in quarantine, as a DataFrame.

    returns  None if there are none, or if they cannot be recomputed: a difference is then inconclusive
    """
    steps = [step for step in _steps(context) if step.target == table]
    state = context.live().table(table)
    if not steps or state is None or state.table.kind == "aggregate" or state.newest is not None:
        return None
    try:
        parts = [_of_step(context, session, step, state) for step in steps]
    except Exception as error:
        if not from_spark(error):
            raise
        return None
    if any(part is None for part in parts):
        return None
    rows = parts[0]
    for part in parts[1:]:
        rows = rows.unionByName(part)
    return rows


def _steps(context: RolloutContext) -> Sequence[Backfill]:
    done = {batch.step for batch in context.recorder.events(BatchDone) if batch.quarantined}
    return [step for step in context.plan.steps if isinstance(step, Backfill) and step.id in done]


def _of_step(context: RolloutContext, session: Any, step: Backfill, target: TableState) -> Any:
    """The old version's rows for the source rows that one backfill left out; None without a query for them."""
    assert step.fragile is not None
    live = context.live()
    source = live.table(step.source)
    fence = next((fenced.version for fenced in context.recorder.events(Fenced) if fenced.step == step.id), None)
    feed = None if step.route == "forward" else _same_feed(live, step)
    if source is None or fence is None or (step.route == "replay" and feed is None) or step.stored:
        return None
    slices = half(cut(()), step.since, step.until) if step.since or step.until else cut(())
    rows = logical_rows(session, source, stored_at(session, context.path(source.version.path), fence))
    bad = in_slices(rows, step.time, slices).where(step.fragile.predicate)
    if feed is None:
        return bad
    joins = [(state, context.path(state.version.path)) for name in feed.joins if (state := live.table(name))]
    frames = {**joined_rows(session, joins, join_versions(joins)), step.source: bad}
    return shown(session, target, query_over(session, feed.sql, frames))


def _same_feed(live: Release, step: Backfill) -> Feed | None:
    """The live feed that wrote the old version's rows from the same source."""
    feeds = [feed for feed in live.feeds_into(step.target) if feed.source == step.source]
    same = next((feed for feed in feeds if feed.materialization == step.materialization), None)
    return same or (feeds[0] if len(feeds) == 1 else None)
