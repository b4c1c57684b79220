"""Two sets of rows as multisets of whole rows, commit by commit; doubles that were added up by `near`, sketches by what they tell."""

from dataclasses import dataclass, field
from typing import Any

from console.agent.recount.doubles import apart
from console.agent.recount.files import COMMIT, Unreadable
from console.agent.recount.sums import carried
from console.model.schema import quoted

ESTIMATE = 0.08  # five standard errors of a sketch of distinct values with 2^12 registers
SLACK = 2.0
SUMS = 1000  # of one state that are settled by what they add up


Apart = tuple[tuple[Any, ...], str, float | None, float | None]


@dataclass(frozen=True, slots=True)
class TargetShape:
    """How the columns of a target are compared.

    exact     (name, Spark type);  sums  states that are sums of doubles;  sketches  states that are sketches
    left_out  columns that two computations may not repeat
    keys      of the exact ones those by which an aggregate groups
    """

    exact: tuple[tuple[str, str], ...]
    sums: tuple[str, ...] = ()
    sketches: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RowDifference:
    """Of one commit. missing: rows computed again that it lacks; extra: rows it has besides; estimates: sketches apart;
    sums: groups whose sums are apart, as (keys as `carried`, sum, stored, computed again)."""

    number: int
    missing: int = 0
    extra: int = 0
    estimates: int = 0
    columns: tuple[str, ...] = ()
    sums: tuple[Apart, ...] = field(default=())


def differences(stored: Any, again: Any, shape: TargetShape, tasks: int = 1) -> tuple[RowDifference, ...]:
    """What differs between rows as a target holds them and as they are computed again, by commit. tasks: in how many

    raises  Unreadable where more sums are apart than may be settled
    """
    groups = _groups(stored, again, shape, tasks)
    off = "missing > 0 OR extra > 0 OR estimates > 0 OR sums > 0"
    found = groups.groupBy(COMMIT).agg(*_counts(shape)).where(off).collect()
    made: list[RowDifference] = []
    for row in sorted(found, key=lambda each: int(each[COMMIT])):
        number = int(row[COMMIT])
        columns = _differing(stored, again, shape, number) if not made and (row["missing"] or row["extra"]) else ()
        sums = _sums(groups, shape, number) if row["sums"] else ()
        made.append(RowDifference(number, row["missing"], row["extra"], row["estimates"], columns, sums))
    return tuple(made)


def comparable(column: Any, kind: str) -> Any:
    """A value that rows can be grouped by: Spark groups by no map, whose entries have no order."""
    from pyspark.sql.functions import array_sort, map_entries, to_json

    inner = kind.removeprefix("map<")
    if "variant" in kind:
        return to_json(column) if kind == "variant" else column.cast("string")
    if "map<" in inner:
        return column.cast("string")
    return array_sort(map_entries(column)) if kind.startswith("map<") else column


def _groups(stored: Any, again: Any, shape: TargetShape, tasks: int) -> Any:
    """One row for each exact part of rows that either side has, with how many more of them are stored."""
    from pyspark.sql.functions import col, count_if, lit, when
    from pyspark.sql.functions import max as most
    from pyspark.sql.functions import sum as total

    def side(rows: Any, sign: int) -> Any:
        return rows.select(
            COMMIT,
            *(comparable(col(quoted(name)), kind).alias(f"c{i}") for i, (name, kind) in enumerate(shape.exact)),
            *(col(quoted(name)).alias(f"s{i}") for i, name in enumerate((*shape.sums, *shape.sketches))),
            lit(sign).alias("sign"),
        )

    both = side(stored, 1).union(side(again, -1)).coalesce(tasks)
    sums = [total("sign").alias("n"), count_if(col("sign") > 0).alias("held")]
    for i in range(len(shape.sums) + len(shape.sketches)):
        sums.append(most(when(col("sign") > 0, col(f"s{i}"))).alias(f"a{i}"))
        sums.append(most(when(col("sign") < 0, col(f"s{i}"))).alias(f"b{i}"))
    return both.groupBy(COMMIT, *(f"c{i}" for i in range(len(shape.exact)))).agg(*sums)


def _counts(shape: TargetShape) -> list[Any]:
    from pyspark.sql.functions import col, count_if, greatest, lit
    from pyspark.sql.functions import sum as total

    paired = (col("n") == 0) & (col("held") == 1)
    off = lit(False)
    for i in range(len(shape.sums)):
        off = off | apart(col(f"a{i}"), col(f"b{i}"))
    far = lit(False)
    for i, name in enumerate(shape.sketches, len(shape.sums)):
        far = far | _told_apart(name, col(f"a{i}"), col(f"b{i}"))
    return [
        total(greatest(-col("n"), lit(0))).alias("missing"),
        total(greatest(col("n"), lit(0))).alias("extra"),
        count_if(paired & far).alias("estimates"),
        count_if(paired & off).alias("sums"),
    ]


def _told_apart(name: str, a: Any, b: Any) -> Any:
    """Whether two sketches cannot be of the same values: quantiles by how many went in, distinct values by the estimate."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, greatest, hll_sketch_estimate, kll_sketch_get_n_double, lit

    if name.endswith("__kll"):
        return ~kll_sketch_get_n_double(a).eqNullSafe(kll_sketch_get_n_double(b))
    was, now = hll_sketch_estimate(a), hll_sketch_estimate(b)
    far = magnitude(was - now) > greatest(was, now) * lit(ESTIMATE) + lit(SLACK)
    return ~a.isNull().eqNullSafe(b.isNull()) | coalesce(far, lit(False))


def _sums(groups: Any, shape: TargetShape, number: int) -> tuple[Apart, ...]:
    from pyspark.sql.functions import col

    paired = groups.where((col(COMMIT) == number) & (col("n") == 0) & (col("held") == 1))
    names = [name for name, _ in shape.exact]
    places = [f"c{names.index(key)}" for key in shape.keys]
    keys = [carried(col(place), groups.schema[place].dataType) for place in places]
    found: list[Apart] = []
    for i, name in enumerate(shape.sums):
        sides = (col(f"a{i}"), col(f"b{i}"))
        off = paired.where(apart(*sides)).select(*keys, *sides).limit(SUMS + 1).collect()
        if len(off) > SUMS:
            raise Unreadable(f"{name} of more than {SUMS:,} groups is further apart than a billionth")
        found += [(tuple(row)[:-2], name, row[-2], row[-1]) for row in off]
    return tuple(found)


def _differing(stored: Any, again: Any, shape: TargetShape, number: int) -> tuple[str, ...]:
    """The columns by which a commit's rows differ, each looked at for itself."""
    from pyspark.sql.functions import col, lit
    from pyspark.sql.functions import sum as total

    def side(rows: Any, name: str, kind: str, sign: int) -> Any:
        return rows.where(col(COMMIT) == number).select(
            comparable(col(quoted(name)), kind).alias("c"), lit(sign).alias("n")
        )

    found = None
    for name, kind in shape.exact[:40]:
        both = side(stored, name, kind, 1).union(side(again, name, kind, -1)).groupBy("c").agg(total("n").alias("n"))
        off = both.where("n <> 0").limit(1).select(lit(name).alias("name"))
        found = off if found is None else found.union(off)
    return tuple(row["name"] for row in found.collect()) if found is not None else ()
