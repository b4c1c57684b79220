"""Order-free checksums of one table, per day: one module for comparison and receipts (docs/design.md, rule 12)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from console.agent.store import days
from console.model.schema import quoted

_LOW = 4294967295


@dataclass(frozen=True, slots=True)
class Sum:
    """Rows, and two partial sums of their hashes. Sums of disjoint rows add up."""

    rows: int = 0
    low: int = 0
    high: int = 0

    def __sub__(self, other: "Sum") -> "Sum":
        return Sum(self.rows - other.rows, self.low - other.low, self.high - other.high)

    @property
    def text(self) -> str:
        return f"{self.low:x}-{self.high:x}" if self.rows else ""


def per_day(rows: Any, time: str, columns: Sequence[tuple[str, str]]) -> Any:
    """One row a day: `day`, `rows`, then of every column its count and two partial sums of its hash.

    rows     a DataFrame
    time     the column that tells the day (UTC); "" puts all rows under one NULL day
    columns  (column, Spark type to cast to before hashing): both sides must hash the same type
    returns  a DataFrame: day as its name, rows bigint, and per column i `n<i>`, `lo<i>`, `hi<i>`; `lo`/`hi` without a
             number are of the whole row, NULL flags interleaved

    XOR would let duplicates cancel, sum(xxhash64) overflows, and a plain row hash skips NULLs.
    """
    from pyspark.sql.functions import count, xxhash64

    values = _values(columns)
    sums = []
    for i, value in enumerate(values):
        sums += [count(value).alias(f"n{i}"), *_halves(xxhash64(value), str(i))]
    return _grouped(rows, time, [*sums, *_whole(values)])


def of_days(rows: Any, time: str, columns: Sequence[tuple[str, str]]) -> dict[str, Sum]:
    """The same of whole rows alone, which costs one hash a row: day (ISO, "" for NULL) → its sum."""
    found = _grouped(rows, time, _whole(_values(columns))).collect()
    return {str(row["day"] or ""): Sum(row["rows"], *((row["lo"], row["hi"]) if columns else ())) for row in found}


def can_hash(kind: str) -> bool:
    """Whether values of a type have a checksum: Spark hashes no map, and we sort the entries of an outermost one only."""
    inner = kind.removeprefix("map<")
    return not any(word in inner for word in ("map<", "variant", "interval", "void"))


def _grouped(rows: Any, time: str, sums: Sequence[Any]) -> Any:
    from pyspark.sql.functions import col, count, lit

    day = days.clamped(col(quoted(time))) if time else lit(None).cast("date")
    grouped = rows.groupBy(day.alias("day")).agg(count("*").alias("rows"), *sums)
    return grouped.withColumn("day", days.named(col("day")))


def _values(columns: Sequence[tuple[str, str]]) -> list[Any]:
    from pyspark.sql.functions import col

    return [_hashable(col(quoted(name)).cast(kind), kind) for name, kind in columns]


def _whole(values: Sequence[Any]) -> list[Any]:
    from pyspark.sql.functions import xxhash64

    return _halves(xxhash64(*(part for value in values for part in (value.isNull(), value))), "") if values else []


def _halves(h: Any, name: str) -> list[Any]:
    from pyspark.sql.functions import lit, shiftrightunsigned
    from pyspark.sql.functions import sum as total

    low, high = total(h.bitwiseAND(lit(_LOW))), total(shiftrightunsigned(h, 32))
    return [low.alias(f"lo{name}"), high.alias(f"hi{name}")]


def _hashable(value: Any, kind: str) -> Any:
    """Spark refuses to hash maps, whose entries have no order."""
    from pyspark.sql.functions import array_sort, map_entries

    return array_sort(map_entries(value)) if kind.startswith("map<") else value
