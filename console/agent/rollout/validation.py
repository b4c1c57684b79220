"""Is the new release right? Compared with the live one at the same landing position, before anyone may promote it."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from console.agent.feeds import commit, planted_bugs
from console.agent.feeds.comparison import compare
from console.agent.feeds.follower import ENDING
from console.agent.feeds.live_feed import LiveFeed, stalled_targets
from console.agent.recount import liveness
from console.agent.recount.pinned_tables import Pinned, PinnedSource
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.store import log, write_lock
from console.errors import CheckFailed, RegionError
from console.model.event import BatchDone, Checked, Fenced, Waiting
from console.model.live import Release
from console.model.step import CreateTable, Validate

HEARTBEAT = '{"kind": "heartbeat"}'


def validate(context: RolloutContext, step: Validate) -> None:
    """Store one `Checked` for each check; the gate reads them. A difference is a finding, not an exception."""
    if planted_bugs.early():
        return
    session = context.spark.session()
    pins = aligned(context)
    live_feeds = _rebuilt(context)
    beats = _heartbeats(context, live_feeds, session)
    if beats:
        pins = aligned(context)
    for live_feed in live_feeds:
        with context.jobs(session, f"live rows of {live_feed.spec.target}"):
            seed, beat = (
                f"{context.recorder.rollout}/{live_feed.spec.materialization}",
                beats.get(live_feed.source_path),
            )
            check = liveness.alive(session, live_feed, pins, seed, beat, live_feed.dry_run)
            context.check_halt()  # what a halt broke off tells nothing of the rows
        context.recorder.store(planted_bugs.blind(_but_for_quarantine(context, check)))
    late = stalled_targets(context.follower.feeds(context.plan.pipeline))
    for comparison in step.comparisons:
        sides = (_path(context, comparison.table, release) for release in (context.live(), context.plan.release))
        if why := next((late[path] for path in sides if path in late), None):
            context.recorder.store(Checked(comparison.table, "rows", None, f"not compared: a feed stands still: {why}"))
            continue
        old = _side(context, comparison.table, context.live(), pins)
        new = _side(context, comparison.table, context.plan.release, pins)
        with context.jobs(session, f"comparison of {comparison.table}"):
            for check in compare(session, comparison, old, new, _sources(context, comparison.table, pins)):
                context.check_halt()
                context.recorder.store(planted_bugs.blind(_but_for_quarantine(context, check)))
    for check in _complete(context):
        context.recorder.store(planted_bugs.blind(check))


def _rebuilt(context: RolloutContext) -> list[LiveFeed]:
    """The feeds of rebuilt tables, as the follower moves them: after a restart these are of its own making."""
    tables = {step.table for step in context.plan.steps if isinstance(step, CreateTable)}
    followed = {live_feed.key: live_feed for live_feed in context.follower.feeds(context.plan.pipeline)}
    ours = [live_feed for live_feed in context.live_feeds_in_order() if live_feed.spec.target in tables]
    return [followed.get(live_feed.key, live_feed) for live_feed in ours]


def _heartbeats(context: RolloutContext, live_feeds: list[LiveFeed], session: Any) -> dict[str, int]:
    """An empty marked append into every managed landing table without traffic; path → its version."""
    quiet = {
        e.source_path
        for e in live_feeds
        if e.source.table.kind == "landing" and e.source.table.managed and not e.rows_moved
    }
    versions = {}
    for path in quiet:
        nothing = commit.empty_rows(session, path).write.format("delta").mode("append")
        with write_lock.shared(path):
            nothing.option("userMetadata", HEARTBEAT).save(path)
            versions[path] = log.latest_version(path)
    return versions


def aligned(context: RolloutContext) -> dict[str, int]:
    """Table path → Delta version, at one common landing position of every followed feed.

    Tables are left out that end too early by a feed which the new release does not have, or lets go on.

    raises  RegionError if a feed of the new release stands still; Stopped if the agent ends
    """
    wish = context.follower.align(context.plan.pipeline)
    told = 0.0
    while not wish.done():
        context.check_halt()
        _see_moving(context)
        if time.monotonic() - told > 1:
            trouble = [
                live_feed.health.trouble
                for live_feed in context.follower.feeds(context.plan.pipeline)
                if live_feed.health.trouble
            ]
            why = "".join(f"; {text}" for text in trouble[:1])
            context.recorder.publish(Waiting(f"bringing old and new to the same landing position{why}"))
            told = time.monotonic()
        time.sleep(0.05)
    try:
        pins = wish.result()
    except CheckFailed as error:
        if error.code == ENDING:  # no failure of the rollout: the next agent goes on here
            raise RolloutStopped from None
        raise
    _see_moving(context)
    return pins


def _see_moving(context: RolloutContext) -> None:
    """raises RegionError if a feed of the new release stands still, and not by what only the live one says"""
    ours = {live_feed.key: live_feed for live_feed in context.live_feeds_in_order()}
    for live_feed in context.follower.feeds(context.plan.pipeline):
        new, why = ours.get(live_feed.key), live_feed.health.standing
        if new is not None and why is not None and not live_feed.differs(new):
            raise RegionError(f"a feed stands still: {why}", hint=why.hint, code=why.code)


def _path(context: RolloutContext, table: str, release: Release) -> str:
    state = release.table(table)
    return context.path(state.version.path) if state else ""


def _side(context: RolloutContext, table: str, release: Release, pins: dict[str, int]) -> Pinned:
    state = release.table(table)
    if state is None:
        raise RegionError(f"release {release.id} has no table {table}", hint="console plan")
    path = context.path(state.version.path)
    if path not in pins:
        raise RegionError(
            f"{table} of release {release.id} is not followed: it cannot be compared", hint="console retry"
        )
    return Pinned(state, path, pins[path])


def _sources(context: RolloutContext, table: str, pins: dict[str, int]) -> tuple[PinnedSource, ...]:
    """What the feeds of a table of the new release read, where both sides are pinned."""
    found = []
    for live_feed in context.live_feeds_in_order():
        if live_feed.spec.target == table:
            joins = tuple(Pinned(state, path, log.latest_version(path)) for state, path in live_feed.joins)
            version = pins.get(live_feed.source_path, log.latest_version(live_feed.source_path))
            found.append(PinnedSource(live_feed.spec, Pinned(live_feed.source, live_feed.source_path, version), joins))
    return tuple(found)


def _but_for_quarantine(context: RolloutContext, check: Checked) -> Checked:
    """Rows that were set aside are missing from the new version as the operator allowed: whether that is all that
    differs, a person has to see.
    """
    aside = context.recorder.status.quarantined
    if check.ok is not False or not aside:
        return check
    return replace(check, ok=None, detail=f"{check.detail}; rows in quarantine: {aside:,}")


def _complete(context: RolloutContext) -> Iterator[Checked]:
    """Rows read by all batches of a backfill = rows of the source at its fence."""
    done = context.recorder.events(BatchDone)
    for fenced in context.recorder.events(Fenced):
        rows = {batch.position: batch.rows_in for batch in done if batch.step == fenced.step}
        read = sum(rows.values())
        what = f"{read:,} of {fenced.rows:,} rows of {fenced.source} at version {fenced.version} were read"
        yield Checked(fenced.step.split("/")[1], "history is complete", read == fenced.rows, what)
