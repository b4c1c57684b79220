"""Rows that fail expectations: counted by day in one pass over them, and named by their keys."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from console.agent.rows.key_texts import key_texts
from console.agent.store.days import clamped_day, named_day
from console.errors import FeedStopped, RegionError
from console.model.expectation import RowCheck
from console.model.schema import quoted

CODE = "E_EXPECTATION"
DAYS = 3  # named in a line
KEYS_LENGTH = 240  # characters for keys in a line: the gate truncates texts beyond some 400


@dataclass(frozen=True, slots=True)
class Unexpected:
    """Rows that fail one expectation. days: day → their number, "" for rows without a day; keys: of the first of them"""

    name: str
    days: Mapping[str, int]
    keys: tuple[str, ...] = ()

    def __str__(self) -> str:
        """`3 rows fail (2026-11-05: 1, 2026-11-07: 2), at id=e17; id=e18`"""
        rows = sum(self.days.values())
        named = [f"{day or 'no day'}: {number:,}" for day, number in sorted(self.days.items())]
        more = f" and {len(named) - DAYS} more days" if len(named) > DAYS else ""
        keys = [key for key in self.keys if key]
        while len("; ".join(keys)) > KEYS_LENGTH and len(keys) > 1:
            keys.pop()
        first = "the first " if rows > len(keys) else ""
        at = f", at {first}{'; '.join(keys)}" if keys else ""
        return f"{rows:,} {'row fails' if rows == 1 else 'rows fail'} ({', '.join(named[:DAYS])}{more}){at}"


def by_day(rows: Any, time: str, aggregates: Sequence[Any]) -> list[dict[str, Any]]:
    """Aggregates of each day, in one pass: the day's name under `day`, "" for rows without one.

    time  the column that determines the day; "" puts all rows under no day
    """
    from pyspark.sql.functions import col, lit

    day = clamped_day(col(quoted(time))) if time else lit(None).cast("date")
    days = rows.groupBy(day.alias("day")).agg(*aggregates).withColumn("day", named_day(col("day")))
    return [{**row.asDict(), "day": row["day"] or ""} for row in days.collect()]


def failing_rows(rows: Any, checks: Sequence[RowCheck], time: str) -> Iterator[Unexpected]:
    """The expectations that some rows fail, with days and first keys."""
    from pyspark.sql.functions import expr

    counts = [expr(f"count_if({check.failing})").alias(f"n{i}") for i, check in enumerate(checks)]
    days = by_day(rows, time, counts)
    for i, check in enumerate(checks):
        if failing := {str(day["day"]): int(day[f"n{i}"]) for day in days if day[f"n{i}"]}:
            yield Unexpected(check.name, failing, key_texts(rows.where(check.failing), check.keys))


def stopped_batch(target: str, batch: str, failing: Sequence[Unexpected]) -> RegionError:
    """A batch of history that was not committed. batch: its days"""
    return RegionError(_why(target, f"batch {batch} was not committed", failing), hint=_remedy(target), code=CODE)


def stopped_feed(target: str, commits: str, failing: Sequence[Unexpected]) -> FeedStopped:
    """Live rows of a version that is being built, which were not committed. commits: versions of the source"""
    return FeedStopped(
        _why(target, f"live rows of {commits} were not committed", failing), hint=_remedy(target), code=CODE
    )


def _why(target: str, what: str, failing: Sequence[Unexpected]) -> str:
    text = "; ".join(f"`{one.name}`: {one}" for one in failing)
    return f"{target}: {what}, since rows fail expectations: {text or 'none of them in a second pass'}"


def _remedy(target: str) -> str:
    return (
        f"correct or leave out such rows in the query that feeds {target}, or give the expectation `severity: warn`;"
        " then console discard, and apply again"
    )
