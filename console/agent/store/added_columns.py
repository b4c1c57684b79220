"""Rows of a managed landing table as of a version that lacks columns which its release has."""

from typing import Any

from console.model.live import TableState


def with_added(state: TableState, stored: Any) -> Any:
    """The stored rows with the missing columns as NULL, as Delta reads every row written before a column was added.

    A preview reads the table before the columns are added, and a rollout that continues from it as of a fence before that. No
    other program adds or removes columns of a managed table; of a foreign one a missing column is an error.
    """
    from pyspark.sql.functions import lit

    table = state.table
    if table.kind != "landing" or not table.managed:
        return stored
    known = set(stored.columns)
    missing = {column.name: column.type for column in state.version.columns if column.name not in known}
    return stored.withColumns({name: lit(None).cast(kind) for name, kind in missing.items()}) if missing else stored
