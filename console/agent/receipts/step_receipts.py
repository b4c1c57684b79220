"""The receipts of one finished step: what its source held at the fence, and what stands in its target, day by day.

Both sides are read back from the tables, not taken from what the batches said; so a receipt can be made at any time
after the step's last commit, and a death before it was stored costs nothing but the reading.
"""

import json
from pathlib import Path
from typing import Any

from console.agent.feeds import commit
from console.agent.feeds.checksum import Sum, can_hash, row_sums_per_day
from console.agent.receipts.ops import Ops
from console.agent.rollout.context import RolloutContext
from console.agent.store import log
from console.agent.store.survey import resolve, simple_type
from console.errors import RegionError
from console.model.event import Fenced
from console.model.live import TableState
from console.model.receipt import Measured, Place, Receipt
from console.model.step import Backfill, CatchUp, Step


def ops_of(warehouse: Path, pipeline: str) -> Ops:
    return Ops(warehouse / "_console" / pipeline)


def keep(work: RolloutContext, step: Step) -> None:
    """Write the receipts of a step that carried history, once; of all others nothing."""
    if not carries(step):
        return
    ops, rollout = ops_of(work.warehouse, work.plan.pipeline), work.recorder.rollout
    if ops.has(rollout, step.id):
        return
    session = work.spark.session(spark__sql__files__maxPartitionNum=str(max(1, work.spark.slots - 1)))
    with work.spark.job(session, f"receipts of {step.id}") as group:
        work.job = group
        try:
            ops.keep(receipts(session, work, step))
        finally:
            work.job = None


def carries(step: Step) -> bool:
    """Whether a step fills a table from a source as of one version: a backfill, or a log read from its beginning."""
    return isinstance(step, Backfill) or (isinstance(step, CatchUp) and step.start == "log")


def receipts(session: Any, work: RolloutContext, step: Step) -> tuple[Receipt, ...]:
    """One a day that either side knows, newest first; at least one, since "nothing was there" is said as well."""
    assert isinstance(step, Backfill | CatchUp)
    how, position = _places(work, step)
    came, went = summed(session, work.warehouse, how.source), summed(session, work.warehouse, how.target)
    came = {day: found for day, found in came.items() if within(how, day)}
    days = sorted({*came, *went}, reverse=True) or [""]
    made = []
    for day in days:
        read, written = came.get(day, Sum()), went.get(day, Sum())
        made.append(
            Receipt(
                work.recorder.rollout,
                step.id,
                step.target,
                step.source,
                day,
                how.source.version,
                position,
                how.target.version,
                read.rows,
                read.text,
                written.rows,
                written.text,
                len(days),
                how=how,
            )
        )
    return tuple(made)


def summed(session: Any, warehouse: Path, place: Place, version: int | None = None) -> dict[str, Sum]:
    """Day → its sum; as of the place's own version, or of another one.

    Sums add up: what was added after `before` is the difference of two, whichever files the rows lie in by now.
    """
    path = resolve(warehouse, place.path)

    def at(pinned: int) -> dict[str, Sum]:
        stored = session.read.format("delta").option("versionAsOf", pinned).load(path)
        return row_sums_per_day(stored, place.time, place.columns)

    now = at(place.version if version is None else version)
    was = at(place.before) if place.before >= 0 else {}
    grown = {day: now.get(day, Sum()) - was.get(day, Sum()) for day in {*now, *was}}
    return {day: found for day, found in grown.items() if found != Sum()}


def within(how: Measured, day: str) -> bool:
    """Whether a day of the source belongs to this half of a hybrid; rows without a time are in the older one."""
    if how.since:
        return bool(day) and day >= how.since
    return not how.until or day < how.until


def _places(work: RolloutContext, step: Backfill | CatchUp) -> tuple[Measured, int]:
    """Where a step read and wrote, and the position that it reached."""
    target = work.state(step.target)
    path = work.path(target.version.path)
    if isinstance(step, CatchUp):
        source = work.state(step.source)
        before, version, position = _reached(
            path, commit.live_id(path, work.live_feed(step.target, step.materialization).spec)
        )
        read = _place(work, source, position, source.table.time)
        return Measured(read, _place(work, target, version, target.table.time, before=before)), position
    source = work.live_state(step.source) if step.route == "forward" else work.state(step.source)
    fence = next(fenced.version for fenced in work.recorder.events(Fenced) if fenced.step == step.id)
    app_id = commit.history_id(path, step.materialization or "forward", fence)
    before, version, position = _reached(path, app_id)
    read = _place(work, source, fence, step.time, columns=step.columns)
    written = _place(work, target, version, target.table.time, before=before)
    return Measured(read, written, step.since, step.until), position


def _reached(path: str, app_id: str) -> tuple[int, int, int]:
    """What stood before a feed's first commit (-1: no rows), its last commit, and the position in it."""
    found = [(c.version, c.txn[app_id]) for c in log.commits(path, 0, log.latest_version(path)) if app_id in c.txn]
    if not found:
        raise RegionError(f"{path}: nothing was committed under {app_id}", hint="console retry", code="E_NO_POSITION")
    first, (last, number) = found[0][0] - 1, found[-1]
    empty = not any(commit.added for commit in log.commits(path, 0, first))
    return (-1 if empty else first), last, commit.split(number)[1]


def _place(
    work: RolloutContext, state: TableState, version: int, time: str, *, columns: tuple[str, ...] = (), before: int = -1
) -> Place:
    path = state.version.path
    whole = work.path(path)
    fields = json.loads(log.schema_json(whole, version))["fields"]
    kinds = {str(field["name"]): simple_type(field["type"]) for field in fields}
    if not columns or not set(columns) <= set(kinds):  # renamed, or kept as states: then all that is stored
        columns = tuple(kinds)
    days = [
        name for name in (time, *state.version.partition_by) if kinds.get(name, "").startswith(("timestamp", "date"))
    ]
    covered = tuple((name, kinds[name]) for name in columns if can_hash(kinds[name]))
    return Place(path, log.table_id(whole), version, before, days[0] if days else "", covered)
