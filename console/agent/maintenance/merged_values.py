"""Values of an aggregate's keys, united by Spark, and whether two sets of stored rows have the same ones.

Nothing is compared row by row, since a key has many rows on one side and one on the other. Sketches of quantiles alone have
a tolerance: their union is drawn by chance.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from console.agent.query_over import query_over
from console.agent.recount.doubles import differ
from console.agent.recount.moments import moments_differ
from console.agent.recount.rows import comparable
from console.model.merging import Merging
from console.model.schema import quoted

RANK = 0.05  # by which a sketch's median may be off in the other one; one with k = 200 has an error of 0.0133 (docs/decisions/0003)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyDifferences:
    """What became of the keys. columns: state → keys that have another value in it"""

    lost: int = 0
    added: int = 0
    columns: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.lost or self.added or any(self.columns.values()))

    def __str__(self) -> str:
        parts = [
            f"{count:,} keys {what}" for count, what in ((self.lost, "are gone"), (self.added, "are new")) if count
        ]
        parts += [f"{count:,} keys have another {name}" for name, count in self.columns.items() if count]
        return "; ".join(parts) or "every key has its value"


def united(session: Any, merging: Merging, rows: Any) -> Any:
    """One row per key. rows: DataFrame with the stored columns"""
    return query_over(session, merging.sql, {"stored": rows})


def key_differences(session: Any, merging: Merging, before: Any, after: Any) -> KeyDifferences:
    """Keys of either side, paired, and the states in which a pair differs. Both sides are united first, as a reader does.

    before, after  DataFrames with the stored columns
    """
    from pyspark.sql.functions import col, count_if, lit

    kinds = {field.name: field.dataType.simpleString() for field in before.schema.fields}
    states = [name for name in merging.columns if name not in merging.keys]
    sides = [
        _side(united(session, merging, rows), merging, states, mark) for rows, mark in ((before, "a"), (after, "b"))
    ]
    on = [col(f"ak{i}").eqNullSafe(col(f"bk{i}")) for i in range(len(merging.keys))]
    pairs = sides[0].join(sides[1], on, "full_outer")
    paired = col("a").isNotNull() & col("b").isNotNull()
    off = {name: _differs(merging, name, kinds[name], col(f"a{i}"), col(f"b{i}")) for i, name in enumerate(states)}
    counts = [count_if(paired & each).alias(f"off{i}") for i, each in enumerate(off.values())]
    lost, added = count_if(col("b").isNull()).alias("lost"), count_if(col("a").isNull()).alias("added")
    (row,) = pairs.agg(lost, added, *counts, lit(0).alias("none")).collect()
    columns = {name: int(row[f"off{i}"]) for i, name in enumerate(off)}
    return KeyDifferences(lost=int(row["lost"]), added=int(row["added"]), columns=columns)


def _side(rows: Any, merging: Merging, states: list[str], mark: str) -> Any:
    from pyspark.sql.functions import col, lit

    keys = [col(quoted(name)).alias(f"{mark}k{i}") for i, name in enumerate(merging.keys)]
    values = [col(quoted(name)).alias(f"{mark}{i}") for i, name in enumerate(states)]
    return rows.select(*keys, *values, lit(1).alias(mark))


def _differs(merging: Merging, name: str, kind: str, a: Any, b: Any) -> Any:
    """Column: two united values of a state are not of the same rows."""
    from pyspark.sql.functions import coalesce, hll_sketch_estimate, lit

    if name in merging.sums:
        return differ(a, b)
    if name in merging.moments:
        return coalesce(moments_differ(a, b, kind), lit(True))
    if name in merging.distinct:  # the estimate of a union depends on its registers alone
        return ~hll_sketch_estimate(a).eqNullSafe(hll_sketch_estimate(b))
    if name in merging.quantiles:
        return ~_all_same(a, b)
    return ~comparable(a, kind).eqNullSafe(comparable(b, kind))


def _all_same(a: Any, b: Any) -> Any:
    """Column: two sketches of quantiles hold as many values, with one smallest, one largest and about one median."""
    from functools import reduce

    from pyspark.sql.functions import coalesce, kll_sketch_get_n_double, lit, when

    held = kll_sketch_get_n_double(a)
    same = reduce(lambda one, other: one & other, _marks(a, b))
    filled = when(held > lit(0), coalesce(same, lit(False))).otherwise(lit(True))
    return held.eqNullSafe(kll_sketch_get_n_double(b)) & filled


def _marks(a: Any, b: Any) -> Iterator[Any]:
    from pyspark.sql.functions import kll_sketch_get_quantile_double, lit

    def at(sketch: Any, fraction: float) -> Any:
        return kll_sketch_get_quantile_double(sketch, lit(fraction))

    for end in (0.0, 1.0):  # kept exactly
        yield at(a, end).eqNullSafe(at(b, end))
    yield at(b, 0.5).between(at(a, 0.5 - RANK), at(a, 0.5 + RANK))
    yield at(a, 0.5).between(at(b, 0.5 - RANK), at(b, 0.5 + RANK))
