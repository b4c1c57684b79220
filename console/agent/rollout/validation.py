"""Is the new release right? Compared with the live one at the same landing position, before anyone may promote it."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from console.agent.feeds import commit, planted_bugs
from console.agent.feeds.comparison import compare
from console.agent.feeds.follower import ENDING
from console.agent.feeds.live_feed import LiveFeed, standing
from console.agent.recount import liveness
from console.agent.recount.pinned_tables import Pinned, PinnedSource
from console.agent.rollout.context import RolloutContext, RolloutStopped
from console.agent.store import log, write_lock
from console.errors import CheckFailed, RegionError
from console.model.event import BatchDone, Checked, Fenced, Waiting
from console.model.live import Release
from console.model.step import CreateTable, Validate

HEARTBEAT = '{"kind": "heartbeat"}'


def validate(work: RolloutContext, step: Validate) -> None:
    """Store one `Checked` for each check; the gate reads them. A difference is a finding, not an exception."""
    if planted_bugs.early():
        return
    session = work.spark.session()
    pins = aligned(work)
    edges = _rebuilt(work)
    beats = _heartbeats(work, edges, session)
    if beats:
        pins = aligned(work)
    for edge in edges:
        with work.jobs(session, f"live rows of {edge.feed.target}"):
            seed, beat = f"{work.recorder.rollout}/{edge.feed.materialization}", beats.get(edge.source_path)
            check = liveness.alive(session, edge, pins, seed, beat, edge.dry)
            work.check_halt()  # what a halt broke off tells nothing of the rows
        work.recorder.store(planted_bugs.blind(_but_for_quarantine(work, check)))
    late = standing(work.follower.edges(work.plan.pipeline))
    for comparison in step.comparisons:
        sides = (_path(work, comparison.table, release) for release in (work.live(), work.plan.release))
        if why := next((late[path] for path in sides if path in late), None):
            work.recorder.store(Checked(comparison.table, "rows", None, f"not compared: a feed stands still: {why}"))
            continue
        old = _side(work, comparison.table, work.live(), pins)
        new = _side(work, comparison.table, work.plan.release, pins)
        with work.jobs(session, f"comparison of {comparison.table}"):
            for check in compare(session, comparison, old, new, _sources(work, comparison.table, pins)):
                work.check_halt()
                work.recorder.store(planted_bugs.blind(_but_for_quarantine(work, check)))
    for check in _complete(work):
        work.recorder.store(planted_bugs.blind(check))


def _rebuilt(work: RolloutContext) -> list[LiveFeed]:
    """The feeds of rebuilt tables, as the follower moves them: after a restart these are of its own making."""
    tables = {step.table for step in work.plan.steps if isinstance(step, CreateTable)}
    followed = {edge.key: edge for edge in work.follower.edges(work.plan.pipeline)}
    ours = [edge for edge in work.edges_in_order() if edge.feed.target in tables]
    return [followed.get(edge.key, edge) for edge in ours]


def _heartbeats(work: RolloutContext, edges: list[LiveFeed], session: Any) -> dict[str, int]:
    """An empty marked append into every managed landing table without traffic; path → its version."""
    quiet = {
        e.source_path for e in edges if e.source.table.kind == "landing" and e.source.table.managed and not e.rows_moved
    }
    versions = {}
    for path in quiet:
        nothing = commit.nothing(session, path).write.format("delta").mode("append")
        with write_lock.spark(path):
            nothing.option("userMetadata", HEARTBEAT).save(path)
            versions[path] = log.latest_version(path)
    return versions


def aligned(work: RolloutContext) -> dict[str, int]:
    """Table path → Delta version, at one common landing position of every followed feed.

    Tables are left out that end too early by a feed which the new release does not have, or lets go on.

    raises  RegionError if a feed of the new release stands still; Stopped if the agent ends
    """
    wish = work.follower.aligned(work.plan.pipeline)
    told = 0.0
    while not wish.done():
        work.check_halt()
        _see_moving(work)
        if time.monotonic() - told > 1:
            trouble = [edge.health.trouble for edge in work.follower.edges(work.plan.pipeline) if edge.health.trouble]
            why = "".join(f"; {text}" for text in trouble[:1])
            work.recorder.tell(Waiting(f"bringing old and new to the same landing position{why}"))
            told = time.monotonic()
        time.sleep(0.05)
    try:
        pins = wish.result()
    except CheckFailed as error:
        if error.code == ENDING:  # no failure of the rollout: the next agent goes on here
            raise RolloutStopped from None
        raise
    _see_moving(work)
    return pins


def _see_moving(work: RolloutContext) -> None:
    """raises RegionError if a feed of the new release stands still, and not by what only the live one says"""
    ours = {edge.key: edge for edge in work.edges_in_order()}
    for edge in work.follower.edges(work.plan.pipeline):
        new, why = ours.get(edge.key), edge.health.standing
        if new is not None and why is not None and not edge.differs(new):
            raise RegionError(f"a feed stands still: {why}", hint=why.hint, code=why.code)


def _path(work: RolloutContext, table: str, release: Release) -> str:
    state = release.table(table)
    return work.path(state.version.path) if state else ""


def _side(work: RolloutContext, table: str, release: Release, pins: dict[str, int]) -> Pinned:
    state = release.table(table)
    if state is None:
        raise RegionError(f"release {release.id} has no table {table}", hint="console plan")
    path = work.path(state.version.path)
    if path not in pins:
        raise RegionError(
            f"{table} of release {release.id} is not followed: it cannot be compared", hint="console retry"
        )
    return Pinned(state, path, pins[path])


def _sources(work: RolloutContext, table: str, pins: dict[str, int]) -> tuple[PinnedSource, ...]:
    """What the feeds of a table of the new release read, where both sides are pinned."""
    found = []
    for edge in work.edges_in_order():
        if edge.feed.target == table:
            joins = tuple(Pinned(state, path, log.latest_version(path)) for state, path in edge.joins)
            version = pins.get(edge.source_path, log.latest_version(edge.source_path))
            found.append(PinnedSource(edge.feed, Pinned(edge.source, edge.source_path, version), joins))
    return tuple(found)


def _but_for_quarantine(work: RolloutContext, check: Checked) -> Checked:
    """Rows that were set aside are missing from the new version as the operator allowed: whether that is all that
    differs, a person has to see.
    """
    aside = work.recorder.status.quarantined
    if check.ok is not False or not aside:
        return check
    return replace(check, ok=None, detail=f"{check.detail}; rows in quarantine: {aside:,}")


def _complete(work: RolloutContext) -> Iterator[Checked]:
    """Rows read by all batches of a backfill = rows of the source at its fence."""
    done = work.recorder.events(BatchDone)
    for fenced in work.recorder.events(Fenced):
        rows = {batch.position: batch.rows_in for batch in done if batch.step == fenced.step}
        read = sum(rows.values())
        what = f"{read:,} of {fenced.rows:,} rows of {fenced.source} at version {fenced.version} were read"
        yield Checked(fenced.step.split("/")[1], "history is complete", read == fenced.rows, what)
