"""Pairs rows of two versions of a table by the columns that must be equal, to count changes in the other columns.

A table has no key, so rows are paired by the hash of the columns that must be equal, if each version has one such row
on a day. A large table is sampled by hash, which selects the same rows on both sides.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from console.agent.compared.round import WHOLE
from console.agent.feeds.backfill import in_slices
from console.agent.feeds.checksum import can_hash, hashables
from console.agent.recount.pinned_tables import Pinned
from console.agent.store.days import clamped_day, named_day
from console.model.schema import quoted, types
from console.model.slices import Slice
from console.model.step import Comparison, Pair

SAMPLED_ROWS = 100_000  # of a portion, about
Sums = Mapping[str, int]  # of one day: rows and counts, by their names in the queries


def exact_pairs(plan: Comparison) -> tuple[Pair, ...]:
    """Pairs of columns that are compared by checksum."""
    return tuple(pair for pair in plan.pairs if pair.exact)


def sliced(rows: Any, time: str, part: Sequence[Slice]) -> Any:
    """The rows of a portion."""
    return rows if part is WHOLE else in_slices(rows, time, part)


def paired(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, part: Sequence[Slice], rows: int
) -> dict[str, Sums]:
    """Day, "" without one, → numbers of paired rows `of`, and of those with another value `d<i>` in column i of
    `plan.changed`. {} if no column of both versions is meant to change.

    rows  of the portion
    """
    from pyspark.sql.functions import col, count, count_if, lit

    if not any(_comparable(pair, old, new) for pair in plan.changed):
        return {}
    share = max(1, rows // SAMPLED_ROWS)
    before = _identified(old.rows(session), plan, old, new, part, share, is_old=True)
    after = _identified(new.rows(session), plan, old, new, part, share, is_old=False)
    both = before.join(after, [before["day"].eqNullSafe(after["next_day"]), before["row"] == after["next_row"]])
    counts = [count(lit(1)).alias("of")]
    for i, pair in enumerate(plan.changed):
        if _comparable(pair, old, new):
            counts.append(count_if(~col(f"a{i}").eqNullSafe(col(f"b{i}"))).alias(f"d{i}"))
    days = both.groupBy("day").agg(*counts).withColumn("day", named_day(col("day"))).collect()
    return {str(row["day"] or ""): {name: row[name] for name in row.asDict() if name != "day"} for row in days}


def _comparable(pair: Pair, old: Pinned, new: Pinned) -> bool:
    """Whether values of both versions can be compared: if they have one hashable type, or as texts if both types are simple."""
    was, now = types(old.state.table.columns).get(pair.old, ""), types(new.state.table.columns)[pair.new]
    return bool(was) and can_hash(was) and can_hash(now) and (was == now or not any("<" in kind for kind in (was, now)))


def earlier(pair: Pair, old: Pinned, kind: str) -> Any:
    """The older values of a column that is meant to change, cast to its new type; NULL if a value does not convert."""
    from pyspark.sql.functions import col, lit

    was = types(old.state.table.columns).get(pair.old, "")
    if was == kind:
        return col(quoted(pair.old))
    return (
        col(quoted(pair.old)).try_cast(kind)
        if was and not any("<" in each for each in (was, kind))
        else lit(None).cast(kind)
    )


def _identified(
    rows: Any, plan: Comparison, old: Pinned, new: Pinned, part: Sequence[Slice], share: int, *, is_old: bool
) -> Any:
    """Sampled rows that are unique within their day: the day, a hash `row` of the columns that must be equal, and
    hashes of the others."""
    from pyspark.sql.functions import col, count, lit, pmod, xxhash64
    from pyspark.sql.functions import first as any_of

    time, mark = (plan.old_name(plan.time), "a") if is_old else (plan.time, "b")
    kinds, side = types(new.state.table.columns), old if is_old else new
    same = hashables([(pair.old if is_old else pair.new, kinds[pair.new]) for pair in exact_pairs(plan)])
    hashes = []
    for i, pair in enumerate(plan.changed):
        if _comparable(pair, old, new):
            name, own = (pair.old if is_old else pair.new), types(side.state.table.columns)
            alike = types(old.state.table.columns)[pair.old] == kinds[pair.new]
            value = hashables([(name, own[name] if alike else "string")])[0]
            hashes.append((f"{mark}{i}", xxhash64(value.isNull(), value)))
    day = clamped_day(col(quoted(time))) if time else lit(None).cast("date")
    flagged = [each for value in same for each in (value.isNull(), value)]
    chosen = sliced(rows, time, part).select(
        day.alias("day"), xxhash64(*flagged).alias("row"), *(value.alias(name) for name, value in hashes)
    )
    chosen = chosen.where(pmod(col("row"), lit(share)) == 0)
    groups = chosen.groupBy("day", "row").agg(
        count(lit(1)).alias("times"), *(any_of(col(name)).alias(name) for name, _ in hashes)
    )
    single = groups.where("times = 1").drop("times")
    return single if is_old else single.withColumnsRenamed({"day": "next_day", "row": "next_row"})
