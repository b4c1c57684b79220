"""Comparison of stored and recomputed rows as multisets, commit by commit; sums of doubles by `nearly_equal`, sketches by
their estimates.
"""

from dataclasses import dataclass, field
from typing import Any

from console.agent.recount.doubles import differ
from console.agent.recount.files import COMMIT, Unreadable
from console.agent.recount.moments import moments_differ
from console.agent.recount.sums import python_key
from console.model.schema import quoted

ESTIMATE = 0.08  # five standard errors of a sketch of distinct values with 2^12 registers
SLACK = 2.0
SUMS = 1000  # of one state that may be decided by their addends


SumPair = tuple[tuple[Any, ...], str, float | None, float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetShape:
    """How the columns of a target are compared.

    exact     (name, Spark type);  sums  states that are sums of doubles;  sketches  states that are sketches
    left_out  columns that a second computation may not reproduce
    keys      an aggregate's group columns, among the exact ones
    moments   (name, Spark type) of states of variances and correlations
    """

    exact: tuple[tuple[str, str], ...]
    sums: tuple[str, ...] = ()
    sketches: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    moments: tuple[tuple[str, str], ...] = ()

    @property
    def inexact(self) -> tuple[str, ...]:
        """Sums, sketches and moments, in this order."""
        return (*self.sums, *self.sketches, *(name for name, _ in self.moments))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDifference:
    """The differences of one commit.

    number     of the commit in the sample
    missing    recomputed rows that are not stored;  extra  stored rows that were not recomputed
    estimates  rows with differing sketches or moments
    columns    that differ
    sums       differing sums: (keys as by `python_key`, state, stored value, recomputed value)
    """

    number: int
    missing: int = 0
    extra: int = 0
    estimates: int = 0
    columns: tuple[str, ...] = ()
    sums: tuple[SumPair, ...] = field(default=())


def differences(stored: Any, recomputed: Any, shape: TargetShape, tasks: int = 1) -> tuple[RowDifference, ...]:
    """Differences between stored and recomputed rows, by commit. tasks: number of Spark tasks

    raises  Unreadable if more than `SUMS` sums of a state differ
    """
    groups = _groups(stored, recomputed, shape, tasks)
    condition = "missing > 0 OR extra > 0 OR estimates > 0 OR sums > 0"
    differing = groups.groupBy(COMMIT).agg(*_counts(shape)).where(condition).collect()
    result: list[RowDifference] = []
    for row in sorted(differing, key=lambda each: int(each[COMMIT])):
        number = int(row[COMMIT])
        columns = (
            _differing(stored, recomputed, shape, number) if not result and (row["missing"] or row["extra"]) else ()
        )
        sums = _sums(groups, shape, number) if row["sums"] else ()
        result.append(
            RowDifference(
                number=number,
                missing=row["missing"],
                extra=row["extra"],
                estimates=row["estimates"],
                columns=columns,
                sums=sums,
            )
        )
    return tuple(result)


def comparable(column: Any, kind: str) -> Any:
    """The value in a form that Spark can group by: maps as sorted entries."""
    from pyspark.sql.functions import array_sort, map_entries, to_json

    inner = kind.removeprefix("map<")
    if "variant" in kind:
        return to_json(column) if kind == "variant" else column.cast("string")
    if "map<" in inner:
        return column.cast("string")
    return array_sort(map_entries(column)) if kind.startswith("map<") else column


def _groups(stored: Any, recomputed: Any, shape: TargetShape, tasks: int) -> Any:
    """One row per distinct exact columns of either side, with the number stored minus the number recomputed as `n`."""
    from pyspark.sql.functions import col, count_if, lit, when
    from pyspark.sql.functions import max as most
    from pyspark.sql.functions import sum as total

    def side(rows: Any, sign: int) -> Any:
        return rows.select(
            COMMIT,
            *(comparable(col(quoted(name)), kind).alias(f"c{i}") for i, (name, kind) in enumerate(shape.exact)),
            *(col(quoted(name)).alias(f"s{i}") for i, name in enumerate(shape.inexact)),
            lit(sign).alias("sign"),
        )

    both = side(stored, 1).union(side(recomputed, -1)).coalesce(tasks)
    sums = [total("sign").alias("n"), count_if(col("sign") > 0).alias("held")]
    for i in range(len(shape.inexact)):
        sums.append(most(when(col("sign") > 0, col(f"s{i}"))).alias(f"a{i}"))
        sums.append(most(when(col("sign") < 0, col(f"s{i}"))).alias(f"b{i}"))
    return both.groupBy(COMMIT, *(f"c{i}" for i in range(len(shape.exact)))).agg(*sums)


def _counts(shape: TargetShape) -> list[Any]:
    from pyspark.sql.functions import col, count_if, greatest, lit
    from pyspark.sql.functions import sum as total

    paired = (col("n") == 0) & (col("held") == 1)
    sums_differ = lit(False)
    for i in range(len(shape.sums)):
        sums_differ = sums_differ | differ(col(f"a{i}"), col(f"b{i}"))
    sketches_differ = lit(False)
    for i, name in enumerate(shape.sketches, len(shape.sums)):
        sketches_differ = sketches_differ | _sketches_differ(name, col(f"a{i}"), col(f"b{i}"))
    for i, (_, kind) in enumerate(shape.moments, len(shape.sums) + len(shape.sketches)):
        sketches_differ = sketches_differ | moments_differ(col(f"a{i}"), col(f"b{i}"), kind)
    return [
        total(greatest(-col("n"), lit(0))).alias("missing"),
        total(greatest(col("n"), lit(0))).alias("extra"),
        count_if(paired & sketches_differ).alias("estimates"),
        count_if(paired & sums_differ).alias("sums"),
    ]


def _sketches_differ(name: str, a: Any, b: Any) -> Any:
    """Column: two sketches cannot come from the same values. Quantile sketches by their number of values, HLL by its estimate."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, greatest, hll_sketch_estimate, lit

    if name.endswith("__kll"):
        from pyspark.sql.functions import kll_sketch_get_n_double  # Spark before 4.1 has none

        return ~kll_sketch_get_n_double(a).eqNullSafe(kll_sketch_get_n_double(b))
    was, now = hll_sketch_estimate(a), hll_sketch_estimate(b)
    far = magnitude(was - now) > greatest(was, now) * lit(ESTIMATE) + lit(SLACK)
    return ~a.isNull().eqNullSafe(b.isNull()) | coalesce(far, lit(False))


def _sums(groups: Any, shape: TargetShape, number: int) -> tuple[SumPair, ...]:
    from pyspark.sql.functions import col

    paired = groups.where((col(COMMIT) == number) & (col("n") == 0) & (col("held") == 1))
    names = [name for name, _ in shape.exact]
    places = [f"c{names.index(key)}" for key in shape.keys]
    keys = [python_key(col(place), groups.schema[place].dataType) for place in places]
    pairs: list[SumPair] = []
    for i, name in enumerate(shape.sums):
        sides = (col(f"a{i}"), col(f"b{i}"))
        differing = paired.where(differ(*sides)).select(*keys, *sides).limit(SUMS + 1).collect()
        if len(differing) > SUMS:
            raise Unreadable(f"{name} of more than {SUMS:,} groups is further apart than a billionth")
        pairs += [(tuple(row)[:-2], name, row[-2], row[-1]) for row in differing]
    return tuple(pairs)


def _differing(stored: Any, recomputed: Any, shape: TargetShape, number: int) -> tuple[str, ...]:
    """The columns in which a commit's rows differ, each compared on its own."""
    from pyspark.sql.functions import col, lit
    from pyspark.sql.functions import sum as total

    def side(rows: Any, name: str, kind: str, sign: int) -> Any:
        return rows.where(col(COMMIT) == number).select(
            comparable(col(quoted(name)), kind).alias("c"), lit(sign).alias("n")
        )

    differing = None
    for name, kind in shape.exact[:40]:
        both = (
            side(stored, name, kind, 1).union(side(recomputed, name, kind, -1)).groupBy("c").agg(total("n").alias("n"))
        )
        column = both.where("n <> 0").limit(1).select(lit(name).alias("name"))
        differing = column if differing is None else differing.union(column)
    return tuple(row["name"] for row in differing.collect()) if differing is not None else ()
