"""Columns that are functions of stored ones are computed at every read, and no row moves."""

from datetime import date, timedelta

from console.model.slices import EARLY, LATE
from console.planning.routes import forward
from console.planning.routes.change import Change
from console.planning.routes.reasons import computable
from console.planning.routes.verdict import Verdict
from console.planning.sql.reads import Pick


def verdict(change: Change) -> Verdict | None:
    """Where the operator asks for it, or the rows expire soon; and the table is not laid out by such a column."""
    table, diff = change.wanted.table, change.diff
    if change.rebuilt_sources or change.readable or forward.is_given(change):
        return None
    if not diff.rows or not diff.layout or change.proof.missing:
        return None
    columns = list(change.proof.given)
    expires_soon = table.retention_days is not None and table.retention_days <= table.read_time_days
    if set(columns) & {*table.partition_by, table.time} or not (table.backfill == "read" or expires_soon):
        return None
    if change.feeds.broken:
        return None
    return Verdict(
        name=change.name, action="read",
        why=f"{computable(columns, change.name)}; computed at read, no row moves{_expiry(change)}",
        wanted=change.wanted, live=change.live, diff=diff, columns=diff.columns, needs=change.feeds.needs,
        picks=tuple(Pick(name=column, computed=sql) for column, sql in change.proof.given.items()),
    )  # fmt: skip


def _expiry(change: Change) -> str:
    """The day on which the last row that is stored today goes."""
    stats, keeps = change.region.table(change.name), change.wanted.table.retention_days
    days = sorted(day.day for day in stats.days if day.day) if stats else []
    if keeps is None or not days or days[-1] in (EARLY, LATE):
        return ""
    try:
        last = date.fromisoformat(days[-1]) + timedelta(keeps)
    except OverflowError:
        return ""
    return f"; the last row stored so far expires on {last.isoformat()}"
