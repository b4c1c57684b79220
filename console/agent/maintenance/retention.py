"""Deletion of rows older than a table's declared retention, by whole days (docs/design.md, rule 4)."""

import json
from datetime import date, timedelta
from typing import Any

from console import crash
from console.agent.maintenance.bucket_tables import delete_older
from console.agent.object_store.object_path import in_bucket
from console.agent.store import log, write_lock
from console.model.live import TableState
from console.model.schema import quoted


def cutoff(state: TableState, today: date) -> date | None:
    """The first day that is kept; None if nothing expires: no retention, one longer than the calendar, or no stored
    time column."""
    stored = {column.name for column in state.version.columns}
    if state.table.retention_days is None or state.stored_time not in stored:
        return None
    try:
        return today - timedelta(days=state.table.retention_days)
    except OverflowError:  # longer than the calendar
        return None


def expired(session: Any, table: str, state: TableState, keep: date) -> int:
    """The number of rows older than the first kept day. Rows without a time never expire."""
    return int(session.read.format("delta").load(table).where(_older(state, keep)).count())


def expire(session: Any, table: str, state: TableState, keep: date) -> int:
    """Delete the expired rows in one commit, whose note makes all downstream feeds skip it.

    session  a session of its own, since the note of a maintenance statement is a session setting
    returns  rows deleted
    """
    from delta.tables import DeltaTable

    rows = expired(session, table, state, keep)
    if rows and in_bucket(table):
        delete_older(table, state.stored_time, keep, or_null=bool(state.table.order_by), note=_note(keep, rows))
    elif rows:
        session.conf.set("spark.databricks.delta.commitInfo.userMetadata", json.dumps(_note(keep, rows)))
        with write_lock.shared(table):
            crash.point("before-commit-retention")
            DeltaTable.forPath(session, table).delete(_older(state, keep))
            crash.point("after-commit-retention")
    return rows


def _note(keep: date, rows: int) -> dict[str, Any]:
    return {"kind": log.RETENTION, "keep": keep.isoformat(), "rows": rows}


def _older(state: TableState, keep: date) -> Any:
    """A range on the raw column, which prunes files (rule 11). Spark compares a day as its first moment, in the session's UTC."""
    from pyspark.sql.functions import col, lit

    older = col(quoted(state.stored_time)) < lit(keep)
    # of the newest row of a key, NULL is the oldest time: such a row would be shown again once a newer one has expired
    return older | col(quoted(state.stored_time)).isNull() if state.table.order_by else older
