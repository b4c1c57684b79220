"""Rows of a table that keeps the newest of each key, as they are written: with what places them, and of a batch one for a key."""

from typing import Any

from console.agent.store import days
from console.model.live import TableState
from console.model.newest import Newest


def placed(newest: Newest, rows: Any) -> Any:
    """Computed rows with the columns that decide which one of a key is read."""
    return rows.selectExpr("*", *newest.added_values)


def reduced(session: Any, newest: Newest, rows: Any) -> Any:
    """Placed rows without those that another of them replaces. Whatever is left out here would never be read."""
    rows.createOrReplaceTempView("stored")
    return session.sql(newest.merged)


def stored_rows(session: Any, target: TableState, computed: Any) -> Any:
    """A batch's rows in the target's stored columns. computed: by the target's query"""
    if target.newest is not None:
        computed = reduced(session, target.newest, placed(target.newest, computed))
    return computed.selectExpr(*days.stored_columns(target))
