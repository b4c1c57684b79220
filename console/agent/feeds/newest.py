"""Rows of a table that keeps the newest of each key, as written: with the ordering columns, and one per key and batch."""

from typing import Any

from console.agent.query_over import query_over
from console.agent.store import days
from console.model.live import TableState
from console.model.newest import Newest


def placed(newest: Newest, rows: Any) -> Any:
    """Computed rows with the columns that decide which row of a key is read."""
    return rows.selectExpr("*", *newest.added_values)


def reduced(session: Any, newest: Newest, rows: Any) -> Any:
    """Placed rows without those that another of them replaces, which would never be read."""
    return query_over(session, newest.merged, {"stored": rows})


def stored_rows(session: Any, target: TableState, computed: Any) -> Any:
    """A batch's rows in the target's stored columns. computed: rows of the target's query"""
    if target.newest is not None:
        computed = reduced(session, target.newest, placed(target.newest, computed))
    return computed.selectExpr(*days.stored_columns(target))
