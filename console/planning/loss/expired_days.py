"""Days of a table that are no longer complete in its source.

A source's oldest day proves little if rows arrive late: a single late row makes a day look complete whose other rows
have expired. So rows are counted as well, wherever a source row yields at most one row of the table.
"""

from collections.abc import Iterable

import sqlglot
from sqlglot import exp

from console.model.live import Day, Feed, TableStats
from console.planning.cache.planner_cache import PlannerCache
from console.planning.sql.tree import DIALECT

_MULTIPLIES = (exp.Join, exp.Lateral, exp.Explode, exp.Posexplode, exp.Inline, exp.Stack, exp.UDTF, exp.SetOperation)


def first_day(days: Iterable[Day]) -> str:
    return min((day.day for day in days if day.day), default="")


def expired_days(target: TableStats, source: TableStats, feeds: Iterable[Feed], cache: PlannerCache) -> tuple[str, ...]:
    """Days of a table that lack rows in its source, oldest first.

    feeds  those that filled the table
    """
    start = first_day(source.days)
    incomplete = {day.day for day in target.days if start and day.day and day.day < start and day.rows}
    if at_most_one(feeds, cache) and all(day.exact for day in source.days):
        source_rows = {day.day: day.rows for day in source.days}
        incomplete |= {
            day.day for day in target.days if day.day and day.exact and day.rows > source_rows.get(day.day, 0)
        }
    return tuple(sorted(incomplete))


def missing_rows(target: TableStats, source: TableStats, feeds: Iterable[Feed], cache: PlannerCache) -> int:
    """The number of rows that the source must have lost, of any day."""
    return max(0, target.rows - source.rows) if at_most_one(feeds, cache) else 0


def at_most_one(feeds: Iterable[Feed], cache: PlannerCache) -> bool:
    """Whether a source row yields at most one row of the table."""
    feeds = tuple(feeds)
    return len(feeds) == 1 and not cache.by_value(_multiplies, feeds[0].sql)


def _multiplies(sql: str) -> bool:
    return sqlglot.parse_one(sql, read=DIALECT).find(*_MULTIPLIES) is not None
