"""The receipts of one finished step: rows of its source at the fence and of its target, day by day.

Both sides are read back from the tables, independently of the batches' own counts; so a receipt can be made at any time
after the step's last commit, and after an agent's death the next one simply reads again. Each table is read back once
(`receipts/measured_before`).
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from console import paths
from console.agent.feeds import app_ids
from console.agent.feeds.checksum import Sum, can_hash, row_sums_per_day
from console.agent.receipts.measured_before import measured_before
from console.agent.rollout.context import RolloutContext
from console.agent.rows import appended, log_excerpt
from console.agent.store import log, open_tables
from console.agent.store.ops import Ops, receipts_of
from console.agent.store.shape import layout_of
from console.agent.store.table_stats import simple_type
from console.errors import ConsoleError, RegionError
from console.model.event import Fenced
from console.model.live import TableState
from console.model.receipt import Measured, Place, Receipt
from console.model.step import Backfill, CatchUp, Step


def ops_of(warehouse: Path, pipeline: str) -> Ops:
    return Ops(warehouse / "_console" / pipeline)


def store(context: RolloutContext, step: Step) -> None:
    """Store the receipts of a step, once, if it is of a kind that has any."""
    if not has_receipts(step):
        return
    ops, rollout = ops_of(context.warehouse, context.plan.pipeline), context.recorder.rollout
    if ops.has(rollout, step.id):
        return
    session = context.spark.build_session()
    with context.spark.job(session, f"receipts of {step.id}") as group:
        context.job = group
        try:
            ops.store_receipts(step_receipts(session, context, step))
        finally:
            context.job = None


def has_receipts(step: Step) -> bool:
    """Whether a step copies rows from a source as of one version: a backfill, or a log read from its beginning.

    Linked files are recorded in the two logs instead (`receipts/linked`).
    """
    if isinstance(step, Backfill):
        return not step.linked
    return isinstance(step, CatchUp) and step.start == "log"


def step_receipts(session: Any, context: RolloutContext, step: Step) -> tuple[Receipt, ...]:
    """One receipt for each day of either side, newest first; at least one, so that an empty source is recorded, too."""
    assert isinstance(step, Backfill | CatchUp)
    how, position = _places(context, step)
    source, target = _source_sums(session, context, how.source), sums_by_day(session, context.warehouse, how.target)
    source = {day: total for day, total in source.items() if in_half(how, day)}
    days = sorted({*source, *target}, reverse=True) or [""]
    receipts = []
    for day in days:
        read, written = source.get(day, Sum()), target.get(day, Sum())
        receipts.append(
            Receipt(
                rollout=context.recorder.rollout,
                step=step.id,
                target=step.target,
                source=step.source,
                day=day,
                fence=how.source.version,
                position=position,
                version=how.target.version,
                rows_in=read.rows,
                checksum_in=read.text,
                rows_out=written.rows,
                checksum_out=written.text,
                days=len(days),
                how=how,
            )
        )
    return tuple(receipts)


def _source_sums(session: Any, context: RolloutContext, place: Place) -> dict[str, Sum]:
    """Day → its sum in a source. What an earlier step has measured as its target is not read again."""
    path = paths.version_path(context.warehouse, place.path)
    stored = ops_of(context.warehouse, context.plan.pipeline).rows(context.recorder.rollout)
    try:
        before = measured_before(receipts_of(stored), place, path)
    except ConsoleError:  # a receipt was changed, or the log cut off: `verify` says so
        before = None
    if before is None:
        return sums_by_day(session, context.warehouse, place)
    later = _sums_of_files(session, path, place, before.files)
    return {day: before.sums.get(day, Sum()) + later.get(day, Sum()) for day in {*before.sums, *later}}


def sums_by_day(session: Any, warehouse: Path, place: Place, version: int | None = None) -> dict[str, Sum]:
    """Day → its sum, as of the place's own version or of another one.

    Sums add up: the rows added after `before` are the difference of two sums, whichever files contain them by now. Rows that
    other feeds committed meanwhile are subtracted; they are in the table as of the place's own version alone.
    """
    path = paths.version_path(warehouse, place.path)

    def at(pinned: int) -> dict[str, Sum]:
        stored = session.read.format("delta").option("versionAsOf", pinned).load(path)
        return row_sums_per_day(stored, place.time, place.columns)

    now = at(place.version if version is None else version)
    base = at(place.before) if place.before >= 0 else {}
    others = _sums_of_files(session, path, place, files_of_others(path, place))
    grown = {day: now.get(day, Sum()) - base.get(day, Sum()) - others.get(day, Sum()) for day in {*now, *base, *others}}
    return {day: total for day, total in grown.items() if total != Sum()}


def _sums_of_files(session: Any, path: str, place: Place, files: Sequence[log.AddedFile]) -> dict[str, Sum]:
    """The sums of the rows in files of some commits."""
    if not files:
        return {}
    with log_excerpt.place(path) as scratch:
        rows = appended.rows(session, path, layout_of(path, place.version), files, scratch)
        return row_sums_per_day(rows, place.time, place.columns)


def files_of_others(path: str, place: Place) -> tuple[log.AddedFile, ...]:
    """The files that other feeds committed between `place.before` and `place.version`; () if all rows count.

    raises  RegionError if its log no longer has these commits
    """
    if not place.feed:
        return ()
    commits = log.commits(path, place.before + 1, place.version)
    return tuple(
        file for each in commits if each.kind == "append" and place.feed not in each.txn for file in each.added
    )


def in_half(how: Measured, day: str) -> bool:
    """Whether a day of the source belongs to this half of a hybrid; rows without a time belong to the older half."""
    if how.since:
        return bool(day) and day >= how.since
    return not how.until or day < how.until


def _places(context: RolloutContext, step: Backfill | CatchUp) -> tuple[Measured, int]:
    """The source and the target of a step, and the position that it reached."""
    target = context.state(step.target)
    path = context.path(target.version.path)
    if isinstance(step, CatchUp):
        source = context.state(step.source)
        app_id = app_ids.live_id(path, context.live_feed(step.target, step.materialization).spec)
        written, position = _written(context, target, path, app_id)
        return Measured(_place(context, source, position, source.table.time), written), position
    source = context.live_state(step.source) if step.route == "forward" else context.state(step.source)
    fence = next(fenced.version for fenced in context.recorder.events(Fenced) if fenced.step == step.id)
    app_id = app_ids.history_id(path, step.materialization or "forward", fence)
    written, position = _written(context, target, path, app_id)
    read = _place(context, source, fence, step.time, columns=step.columns)
    return Measured(read, written, step.since, step.until), position


def _written(context: RolloutContext, target: TableState, path: str, app_id: str) -> tuple[Place, int]:
    """The rows of a feed, from the version before its first commit (-1: without rows) to its last, and the position in that."""
    commits = [(c.version, c.txn[app_id]) for c in log.commits(path, 0, log.latest_version(path)) if app_id in c.txn]
    if not commits:
        raise RegionError(f"{path}: nothing was committed under {app_id}", hint="console retry", code="E_NO_POSITION")
    first, (last, number) = commits[0][0] - 1, commits[-1]
    empty = not any(commit.added for commit in log.commits(path, 0, first))
    place = _place(context, target, last, target.table.time, before=-1 if empty else first)
    own = replace(place, feed=app_id)
    return own if files_of_others(path, own) else place, app_ids.split(number)[1]


def _place(
    context: RolloutContext,
    state: TableState,
    version: int,
    time: str,
    *,
    columns: tuple[str, ...] = (),
    before: int = -1,
) -> Place:
    path = state.version.path
    absolute = context.path(path)
    day, covered = sum_definition(state, absolute, version, time, columns)
    return Place(
        path=path,
        id=open_tables.table_id(absolute),
        version=version,
        before=before,
        time=day,
        columns=covered,
    )


def sum_definition(
    state: TableState, path: str, version: int, time: str, columns: tuple[str, ...] = ()
) -> tuple[str, tuple[tuple[str, str], ...]]:
    """How the rows of a version are summed: the stored column of their day, and the columns with the types that are hashed.

    path     absolute
    columns  () for all stored ones
    """
    fields = json.loads(open_tables.schema_json(path, version))["fields"]
    kinds = {str(field["name"]): simple_type(field["type"]) for field in fields}
    if not columns or not set(columns) <= set(kinds):  # renamed, or stored as states: then all stored columns
        columns = tuple(kinds)
    days = [
        name
        for name in (state.stored_in(time)[0], *state.version.partition_by)
        if kinds.get(name, "").startswith(("timestamp", "date"))
    ]
    return days[0] if days else "", tuple((name, kinds[name]) for name in columns if can_hash(kinds[name]))
