"""Order-free checksums of one table, per day: one module for comparison and receipts (DESIGN §4.1 rule 12)."""

from collections.abc import Sequence
from typing import Any

_LOW = 4294967295


def per_day(rows: Any, time: str, columns: Sequence[tuple[str, str]]) -> Any:
    """One row a day: `day`, `rows`, then of every column its count and two partial sums of its hash.

    rows     a DataFrame
    time     the column that tells the day (UTC); "" puts all rows under one NULL day
    columns  (column, Spark type to cast to before hashing): both sides must hash the same type
    returns  a DataFrame: day date, rows bigint, and per column i `n<i>`, `lo<i>`, `hi<i>`; `lo`/`hi` without a
             number are of the whole row, NULL flags interleaved

    XOR would let duplicates cancel, sum(xxhash64) overflows, and a plain row hash skips NULLs.
    """
    from pyspark.sql.functions import col, count, lit, shiftrightunsigned, to_date, xxhash64
    from pyspark.sql.functions import sum as total

    hashable = [_hashable(col(_quoted(name)).cast(kind), kind) for name, kind in columns]
    day = to_date(col(_quoted(time))) if time else lit(None).cast("date")
    sums = [count(lit(1)).alias("rows")]
    for i, value in enumerate(hashable):
        h = xxhash64(value)
        sums += [
            count(value).alias(f"n{i}"),
            total(h.bitwiseAND(lit(_LOW))).alias(f"lo{i}"),
            total(shiftrightunsigned(h, 32)).alias(f"hi{i}"),
        ]
    whole = xxhash64(*(part for value in hashable for part in (value.isNull(), value)))
    if hashable:
        sums += [total(whole.bitwiseAND(lit(_LOW))).alias("lo"), total(shiftrightunsigned(whole, 32)).alias("hi")]
    return rows.groupBy(day.alias("day")).agg(*sums)


def _hashable(value: Any, kind: str) -> Any:
    """Spark refuses to hash maps, whose entries have no order."""
    from pyspark.sql.functions import array_sort, map_entries

    return array_sort(map_entries(value)) if kind.startswith("map<") else value


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
