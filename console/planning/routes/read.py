"""Columns that are functions of stored ones are computed at every read, and no row moves."""

from console.planning.routes import forward
from console.planning.routes.change import Change
from console.planning.routes.reasons import are, computable, last_day, listed
from console.planning.routes.verdict import Verdict
from console.planning.sql.reads import Pick


def verdict(change: Change) -> Verdict | None:
    """Taken if the operator requests it or the rows expire soon, and the table's layout does not use such a column."""
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
    until = last_day(change)
    expiry = f"; the last row stored so far expires on {until}" if until else ""
    return Verdict(
        name=change.name, action="read",
        why=f"{computable(columns, change.name)}; computed at read, no row moves{expiry}",
        wanted=change.wanted, live=change.live, diff=diff, columns=diff.columns, needs=change.feeds.needs,
        picks=tuple(Pick(name=column, computed=sql) for column, sql in change.proof.given.items()),
        older_rows=f"older rows: {listed(columns)} {are(columns)} computed at read", older_until=until,
    )  # fmt: skip
