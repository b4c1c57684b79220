"""Shrinking a database: fewer rows, then simpler values, as long as the results still differ."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from console.model.spark_type import SparkType
from console.witness.values import ValuePool

Database = Mapping[str, tuple[tuple[Any, ...], ...]]  # table → rows
StillDiffers = Callable[[Database], bool]
_PLAIN_VALUES = 4  # of a type that are tried, simplest first


def shrink(
    database: Database,
    types: Mapping[str, Sequence[tuple[str, SparkType]]],
    pool: ValuePool,
    still_differs: StillDiffers,
) -> Database:
    """A local minimum: no single row can be left out, and values are as simple as the difference allows."""
    smallest = _drop_rows(database, still_differs)
    for table, columns in types.items():
        rows = range(len(smallest[table]))
        for at, (name, of) in enumerate(columns):
            simple = pool.simple(of, name)[:_PLAIN_VALUES]
            for together in ([*rows], *([row] for row in rows)):  # a key must change in all its rows together
                smallest = _simplify(smallest, table, together, at, simple, still_differs)
    return smallest


def _drop_rows(database: Database, still_differs: StillDiffers) -> Database:
    for table in database:
        row = 0
        while row < len(database[table]):
            rows = database[table]
            candidate = {**database, table: rows[:row] + rows[row + 1 :]}
            if still_differs(candidate):
                database = candidate
            else:
                row += 1
    return database


def _simplify(
    database: Database, table: str, chosen: Sequence[int], at: int, simple: Sequence[Any], still_differs: StillDiffers
) -> Database:
    rows = database[table]
    now = {repr(rows[row][at]) for row in chosen}
    for value in simple if len(now) == 1 else ():
        if repr(value) in now:
            break
        changed = [(*row[:at], value, *row[at + 1 :]) if i in chosen else row for i, row in enumerate(rows)]
        candidate = {**database, table: tuple(changed)}
        if still_differs(candidate):
            return candidate
    return database
