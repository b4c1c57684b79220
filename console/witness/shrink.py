"""Shrinking a database: fewer rows, then simpler values, as long as the results still differ."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from console.witness.spark_types import SparkType
from console.witness.values import ValuePool

Database = Mapping[str, tuple[tuple[Any, ...], ...]]  # table → rows
StillDiffers = Callable[[Database], bool]
_PLAIN_VALUES = 4  # of a type that are tried, simplest first


def shrink(
    found: Database, kinds: Mapping[str, Sequence[tuple[str, SparkType]]], pool: ValuePool, still: StillDiffers
) -> Database:
    """A local minimum: no single row can be left out, and values are as simple as the difference allows."""
    small = _fewer(found, still)
    for table, columns in kinds.items():
        rows = range(len(small[table]))
        for at, (name, of) in enumerate(columns):
            simple = pool.simple(of, name)[:_PLAIN_VALUES]
            for together in ([*rows], *([row] for row in rows)):  # a key must change in all its rows together
                small = _plainer(small, table, together, at, simple, still)
    return small


def _fewer(database: Database, still: StillDiffers) -> Database:
    for table in database:
        row = 0
        while row < len(database[table]):
            rows = database[table]
            candidate = {**database, table: rows[:row] + rows[row + 1 :]}
            if still(candidate):
                database = candidate
            else:
                row += 1
    return database


def _plainer(
    database: Database, table: str, chosen: Sequence[int], at: int, simple: Sequence[Any], still: StillDiffers
) -> Database:
    rows = database[table]
    now = {repr(rows[row][at]) for row in chosen}
    for value in simple if len(now) == 1 else ():
        if repr(value) in now:
            break
        changed = [(*row[:at], value, *row[at + 1 :]) if i in chosen else row for i, row in enumerate(rows)]
        candidate = {**database, table: tuple(changed)}
        if still(candidate):
            return candidate
    return database
