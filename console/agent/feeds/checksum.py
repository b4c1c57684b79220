"""Order-independent checksums of a table per day, for comparison and receipts alike (docs/design.md, rule 12)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from console.agent.store import days
from console.model.schema import quoted

_LOW_BITS = 4294967295


@dataclass(frozen=True, slots=True)
class Sum:
    """Number of rows, and the sums of the low and the high halves of their hashes. Sums of disjoint rows add up."""

    rows: int = 0
    low: int = 0
    high: int = 0

    def __add__(self, other: "Sum") -> "Sum":
        return Sum(self.rows + other.rows, self.low + other.low, self.high + other.high)

    def __sub__(self, other: "Sum") -> "Sum":
        return Sum(self.rows - other.rows, self.low - other.low, self.high - other.high)

    @property
    def text(self) -> str:
        return f"{self.low:x}-{self.high:x}" if self.rows else ""

    @classmethod
    def of(cls, rows: int, text: str) -> "Sum":
        """The sum with this number of rows and this `text`."""
        low, _, high = text.partition("-")
        return cls(rows, int(low or "0", 16), int(high or "0", 16))


def sums_per_day(rows: Any, time: str, columns: Sequence[tuple[str, str]], counted: Sequence[str] = ()) -> Any:
    """One row per day: `day`, `rows`, and for every column its count and the two partial sums of its hash.

    rows     DataFrame
    time     column that determines the day (UTC); "" puts all rows under one NULL day
    columns  (column, Spark type to cast to before hashing): both sides must hash the same type
    counted  columns whose values are only counted
    returns  DataFrame: day by its name, rows bigint, and per column i `n<i>`, `lo<i>`, `hi<i>`; `lo` and `hi` without a
             number are of the whole row, with NULL flags interleaved; `c<i>` for those only counted

    With XOR duplicates would cancel out, sum(xxhash64) overflows, and a plain row hash skips NULLs.
    """
    from pyspark.sql.functions import col, count, xxhash64

    values = hashables(columns)
    sums = [count(col(quoted(name))).alias(f"c{i}") for i, name in enumerate(counted)]
    for i, value in enumerate(values):
        sums += [count(value).alias(f"n{i}"), *_partial_sums(xxhash64(value), str(i))]
    return _grouped(rows, time, [*sums, *_row_hash_sums(values)])


def row_sums_per_day(rows: Any, time: str, columns: Sequence[tuple[str, str]]) -> dict[str, Sum]:
    """Day (by its name, "" for NULL) → sum over whole rows; one hash per row."""
    groups = _grouped(rows, time, _row_hash_sums(hashables(columns))).collect()
    return {str(row["day"] or ""): Sum(row["rows"], *((row["lo"], row["hi"]) if columns else ())) for row in groups}


def can_hash(kind: str) -> bool:
    """Whether values of a type can be hashed: Spark cannot hash maps, and only an outermost map is converted here."""
    inner = kind.removeprefix("map<")
    return not any(word in inner for word in ("map<", "variant", "interval", "void"))


def _grouped(rows: Any, time: str, sums: Sequence[Any]) -> Any:
    from pyspark.sql.functions import col, count, lit

    day = days.clamped_day(col(quoted(time))) if time else lit(None).cast("date")
    grouped = rows.groupBy(day.alias("day")).agg(count("*").alias("rows"), *sums)
    return grouped.withColumn("day", days.named_day(col("day")))


def hashables(columns: Sequence[tuple[str, str]]) -> list[Any]:
    """Columns, each cast to a type and converted to a hashable form."""
    from pyspark.sql.functions import col

    return [_hashable(col(quoted(name)).cast(kind), kind) for name, kind in columns]


def _row_hash_sums(values: Sequence[Any]) -> list[Any]:
    from pyspark.sql.functions import xxhash64

    return (
        _partial_sums(xxhash64(*(part for value in values for part in (value.isNull(), value))), "") if values else []
    )


def _partial_sums(hashed: Any, name: str) -> list[Any]:
    from pyspark.sql.functions import lit, shiftrightunsigned
    from pyspark.sql.functions import sum as total

    low, high = total(hashed.bitwiseAND(lit(_LOW_BITS))), total(shiftrightunsigned(hashed, 32))
    return [low.alias(f"lo{name}"), high.alias(f"hi{name}")]


def _hashable(value: Any, kind: str) -> Any:
    """The value in a hashable form: a map as its sorted entries."""
    from pyspark.sql.functions import array_sort, map_entries

    return array_sort(map_entries(value)) if kind.startswith("map<") else value
