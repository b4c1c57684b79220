"""The records of a comparison of two versions of a table: days, columns and counts, never values.

The records are rows of `_console/<pipeline>/comparison` in the region (`agent/compared/records`), readable as
`_console.comparison`, by `Driver.compared` in pages, and by `console show ID --days`.
"""

from typing import Any

from console.record import dataclass

ROWS = ""  # instead of a column: the rows themselves, or the groups of an aggregate
TOGETHER = "*"  # instead of a column: each column is equal by itself, but the rows differ
EXAMPLES = 10
PAGE = 4_000  # records: less than a frame of 1 MiB


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedColumn:
    """One column of one day of a table, in the old and in the new version.

    day          UTC; "" for rows without a time, and for a table compared as a whole
    column       its name in the new version, `ROWS` or `TOGETHER`
    old, new     rows; for a column, its values that are not NULL
    equal        None for a column that is meant to change
    changed, of  rows with another value, and the rows examined; 0 of 0 if rows are not paired
    quarantined  rows of the old version that are not in `old`, since history left them out of the new one
    portion      the part of the table that was compared at once, from 1
    old_version, new_version  Delta versions of the two tables
    at           when it was recorded, seconds since 1970, UTC
    """

    table: str
    day: str
    column: str
    old: int
    new: int
    equal: bool | None
    changed: int = 0
    of: int = 0
    quarantined: int = 0
    portion: int = 1
    old_version: int = -1
    new_version: int = -1
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class ComparedPage:
    """Some records of a rollout's newest comparison, by table, day and column. after: start of the next page, 0 for none"""

    records: tuple[ComparedColumn, ...]
    after: int = 0


NO_PAGE = ComparedPage(())


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTally:
    """Numbers of compared and of differing days of a table; `quarantined`: rows that history left out."""

    days: int
    differing: int
    quarantined: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnSummary:
    """A column that is meant to change, over all days.

    rows_old, rows_new    of the table
    nulls_old, nulls_new  rows without a value; for a new column, all rows of the old version
    changed, of           as in `ComparedColumn`
    """

    column: str
    rows_old: int
    rows_new: int
    nulls_old: int
    nulls_new: int
    changed: int = 0
    of: int = 0


@dataclass(frozen=True, slots=True)
class ExampleRows:
    """Rows of one day that only one of the two versions holds, `EXAMPLES` of each at most.

    columns   (name in the new version, Spark type)
    old, new  rows of JSON values
    """

    columns: tuple[tuple[str, str], ...] = ()
    old: tuple[tuple[Any, ...], ...] = ()
    new: tuple[tuple[Any, ...], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnRange:
    """Least and greatest value of a column in each version, as JSON values; None without any."""

    column: str
    old_least: Any
    old_greatest: Any
    new_least: Any
    new_greatest: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class DayExamples:
    """Examples of one day's differences, fetched from both versions on request. They contain values, so they are never stored.

    differing  by the columns that must be equal;  changed  by all columns, if some are meant to change
    ranges     of the columns that are meant to change
    old_version, new_version  Delta versions that were read: the recorded ones of the comparison, if any
    """

    table: str
    day: str
    old_version: int
    new_version: int
    differing: ExampleRows
    changed: ExampleRows = ExampleRows()
    ranges: tuple[ColumnRange, ...] = ()
