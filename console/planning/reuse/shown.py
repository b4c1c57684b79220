"""The columns that a live table shows: the declared ones, and older ones that feeds still read."""

from functools import lru_cache

import sqlglot
from sqlglot import exp

from console.model.live import TableState
from console.model.schema import types
from console.planning.sql.relation import Relation, mix, physical
from console.planning.sql.tree import DIALECT


def as_source(state: TableState) -> tuple[dict[str, str], Relation]:
    """A live table as the source of a query: column types, and the meaning of its rows and values."""
    columns = types(state.table.columns)
    columns |= {name: columns.get(same, "") for name, same in _older_of(state)}
    return columns, physical(state.table.name, state.rows, shown_values(state), types=columns)


def shown_values(state: TableState) -> dict[str, str]:
    """Column → value fingerprint, for all columns shown."""
    own = {name: f"{mix('older', state.table.name, name.lower())}:" for name, _ in _older_of(state)}
    same = {name: state.values[like] for name, like in _older_of(state) if like in state.values}
    return {**state.values, **own, **same}


def _older_of(state: TableState) -> tuple[tuple[str, str], ...]:
    names = tuple(column.name for column in state.table.columns)
    # a read with fewer commas than columns shows only those, and need not be parsed
    return _older(state.read, names) if state.read.count(",") >= len(names) else ()


@lru_cache(maxsize=4096)
def _older(read: str, declared: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Undeclared columns of a read, each with the declared one that has the same expression, "" for none."""
    tree = sqlglot.parse_one(read, read=DIALECT)
    if not isinstance(tree, exp.Select) or len(tree.expressions) <= len(declared):
        return ()
    readings = {part.alias_or_name: part.unalias() for part in tree.expressions}
    known = {name.lower() for name in declared}
    return tuple(
        (name, next((column for column in declared if readings.get(column) == reading), ""))
        for name, reading in readings.items()
        if name.lower() not in known
    )
