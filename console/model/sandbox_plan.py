"""The plan of a sandbox: a rollout's plan, ended early; and the rollout that continues from it. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from console.model.created import TableSettings
from console.model.event import Event
from console.model.live import Release, Version
from console.model.plan import Plan, named
from console.model.sandbox import Sandbox, SandboxOrder, SandboxState
from console.model.slices import EARLY, LATE, Slice
from console.model.status import Status
from console.model.step import AddColumns, Backfill, CatchUp, CreateTable, Step
from console.record import dataclass


@dataclass(frozen=True, slots=True)
class ContinuedPlan:
    """A rollout's plan with a sandbox's versions. events: to be stored with its acceptance, so that it continues from
    these versions"""

    plan: Plan
    events: tuple[Event, ...] = ()


def cannot_preview(plan: Plan) -> str:
    """Why the plan cannot be previewed, only applied; "" if it can."""
    landing = {state.table.name for state in plan.release.tables if state.table.kind == "landing"}
    if not plan.live and (empty := sorted(landing & set(created(plan)))):
        return f"the landing table {', '.join(empty)} does not exist yet, so there are no rows to build it from"
    relayed = {relay.table for relay in plan.release.relays}
    altered = dict.fromkeys(step.table for step in plan.steps if isinstance(step, AddColumns) and step.table in relayed)
    if altered:
        return f"its new version of the landing table {', '.join(altered)} needs columns in the one to which live rows are written"
    return ""


def sandboxed(plan: Plan, name: str, mark: str, settings: TableSettings) -> Plan:
    """The plan of a sandbox: own versions, and only the building steps; it ends before the validation. Columns are not added to
    a landing table: they read as NULL, as in every row that live rows have left there.

    mark  part of its versions' names, unique among sandboxes and rollouts
    """
    built = named(plan, name, mark, settings)
    return replace(built, steps=tuple(step for step in built.steps if _builds(step)))


def _builds(step: Step) -> bool:
    match step:
        case CreateTable() | Backfill():
            return True
        case CatchUp(start=start):
            return start == "log"  # history of a table below a rebuilt one; live rows wait in its log
        case _:
            return False


def created(plan: Plan) -> tuple[str, ...]:
    """Tables that get a new version."""
    return tuple(step.table for step in plan.steps if isinstance(step, CreateTable))


def carried_slices(slices: Sequence[Slice], days: int) -> tuple[Slice, ...]:
    """The first slices of a backfill: the newest days, with everything newer. A table without days is copied whole.

    slices  newest first, as `slices.cut` made them
    """
    seen: list[str] = []
    for number, piece in enumerate(slices):
        day = piece.label.partition("T")[0]
        counts = not piece.null and day not in (LATE, EARLY)
        if counts and day not in seen:
            if len(seen) == days:
                return tuple(slices[:number])
            seen.append(day)
        elif seen and not counts and len(seen) == days:
            return tuple(slices[:number])
    return tuple(slices)


def continuable(sandbox: Plan, plan: Plan) -> tuple[str, ...]:
    """Tables for which the plan's rollout can continue with the sandbox's version, since it would build the same one.

    Excluded are tables that join a rebuilt one, of which the sandbox had only a part of the rows, and tables fed from a
    version with which the rollout does not continue.
    """
    if (sandbox.live, sandbox.desired) != (plan.live, plan.desired):
        return ()
    if (sandbox.rows_limit, sandbox.bytes_limit) != (plan.rows_limit, plan.bytes_limit):  # heavy days are cut by both
        return ()
    rebuilt = set(created(plan))
    same = {name for name in rebuilt & set(created(sandbox)) if _same_build(sandbox, plan, name, rebuilt)}
    while rebased := {name for name in same if _sources(plan.release, name) & rebuilt - same}:
        same -= rebased
    return tuple(name for name in created(plan) if name in same)


def _sources(release: Release, table: str) -> set[str]:
    return {feed.source for feed in release.feeds_into(table)}


def _same_build(sandbox: Plan, plan: Plan, table: str, rebuilt: set[str]) -> bool:
    ours, theirs = sandbox.release.table(table), plan.release.table(table)
    feeds = plan.release.feeds_into(table)
    if ours is None or theirs is None or any(set(feed.joins) & rebuilt for feed in feeds):
        return False
    if (
        _stored(ours.version) != _stored(theirs.version)
        or ours.newest != theirs.newest
        or sandbox.release.feeds_into(table) != feeds
    ):
        return False
    return _history(sandbox.steps, table) == _history(plan.steps, table)


def _stored(version: Version) -> Version:
    """Contents and layout of a version, regardless of its path. The declarations are equal, by `Plan.desired`."""
    return replace(version, path="", settings=())


def _history(steps: Iterable[Step], table: str) -> tuple[Step, ...]:
    """The steps that fill a table, without their estimates, which move with every row."""
    return tuple(
        replace(step, rows=0, bytes=0, days=0, batches=0) if isinstance(step, Backfill) else step
        for step in steps
        if isinstance(step, Backfill | CatchUp) and step.target == table and _builds(step)
    )


def continued(sandbox: Plan, plan: Plan, tables: Iterable[str]) -> Plan:
    """The plan with the sandbox's versions of these tables; days are cut as for the sandbox, whatever the rate is by now."""
    versions = {name: state.version for name in tables if (state := sandbox.release.table(name)) is not None}
    states = tuple(
        replace(state, version=versions.get(state.table.name, state.version)) for state in plan.release.tables
    )
    return replace(plan, release=replace(plan.release, tables=states), day_rows=sandbox.day_rows)


def own_paths(plan: Plan) -> frozenset[str]:
    """Paths of the versions that were made for a sandbox."""
    built = set(created(plan))
    return frozenset(state.version.path for state in plan.release.tables if state.table.name in built)


def described(order: SandboxOrder, plan: Plan, status: Status, taken: frozenset[str]) -> Sandbox:
    """The sandbox as shown by the faces.

    taken  paths of versions that a release of the region names
    """
    done = bool(status.steps) and all(step.state == "done" for step in status.steps)
    state: SandboxState = "failed" if status.held == "failed" else "ready" if done or not plan.steps else "building"
    if own_paths(plan) & taken:
        state = "adopted"
    return Sandbox(
        name=order.name,
        state=state,
        live=plan.live,
        digest=plan.desired,
        days=order.days,
        at=order.at,
        expires=order.expires,
        by=order.by,
        slices=sum(step.slices_done for step in status.steps),
        of=sum(step.slices for step in status.steps),
        rows=status.rows_done,
        bytes=sum(step.bytes for step in status.steps),
        tables=created(plan),
        why=status.why if state == "failed" else "",
        hint=f"correct it, then console preview; or console preview --drop {order.name}" if state == "failed" else "",
        follows=order.follows,
    )
