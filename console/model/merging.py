"""How the partial states of one key of an aggregate unite into one row, which maintenance stores in their place."""

from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """Names are those of stored columns.

    sql      compiled Spark SQL over a view named `stored`: one row per key, in all stored columns
    columns  all stored columns, in order: a version that has another one is not merged
    keys     rows that are equal in these are united

    States whose united value depends on the order of the rows; every other column is compared exactly:

    sums       sums of doubles
    distinct   sketches of distinct values (HLL)
    quantiles  sketches of quantiles (KLL)
    moments    of variances and correlations
    """

    sql: str
    columns: tuple[str, ...]
    keys: tuple[str, ...]
    sums: tuple[str, ...] = ()
    distinct: tuple[str, ...] = ()
    quantiles: tuple[str, ...] = ()
    moments: tuple[str, ...] = ()
