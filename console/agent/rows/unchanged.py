"""Reads that show a table's stored columns as they are: a live step takes the stored rows for the logical ones."""

from collections.abc import Iterable

from console.model.live import TableState
from console.model.schema import quoted


def plain_read(columns: Iterable[str]) -> str:
    """The read of columns that are stored under their own names, as the planner writes it."""
    return f"SELECT {', '.join(map(quoted, columns))} FROM stored"


def shown_unchanged(state: TableState) -> tuple[str, ...]:
    """The columns of such a read, in its order; () if the table's read renames or computes any."""
    names = tuple(column.name for column in state.version.columns)
    return names if state.read == plain_read(names) else ()
