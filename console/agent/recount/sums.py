"""Sums of doubles in an aggregate's groups, of its live and its new version: one sum in two orders, or two different sums.

The stored states are compared; averages and everything else computed from sums follow from them. Two sums that differ by
more than `NEAR` are decided by their addends, read again from the source.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from console.agent.recount.doubles import Addends, addends_by_group, differ
from console.agent.recount.pinned_tables import Pinned, PinnedSource, first, reason
from console.model.event import Checked
from console.model.schema import quoted
from console.model.step import Comparison, Pair

GROUPS = 5000  # that are decided by their source at most, the largest differences first
Verdict = Literal["same", "differ", "unknown"]


@dataclass(frozen=True, slots=True)
class SumState:
    """One state that is a sum of doubles. old, new: its stored names in both versions"""

    pair: Pair
    old: str
    new: str


def sum_states(pairs: Sequence[Pair], old: Pinned, new: Pinned) -> tuple[SumState, ...]:
    """The sums of doubles among the states stored for these columns in both versions."""
    was, now = ({column.name: column.type for column in side.state.version.columns} for side in (old, new))
    states = []
    for pair in pairs:
        for name, kind in now.items():
            suffix = name.removeprefix(pair.new)
            own = name.startswith(pair.new) and (not suffix or suffix.startswith("__"))
            if own and not pair.exact and kind == was.get(pair.old + suffix) == "double":
                states.append(SumState(pair, pair.old + suffix, name))
    return tuple(states)


def compare(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, sums: Sequence[SumState], sources: Sequence[PinnedSource]
) -> Checked:
    """Check all sums of doubles of a table.

    sources  of the new version's feeds, at the position at which both versions are pinned
    """
    both = _paired_groups(session, plan, old, new, sums)
    columns = range(len(sums))
    differing = both.where(" OR ".join(f"off{i}" for i in columns)).orderBy(*_by_distance(columns))
    groups = [row.asDict() for row in differing.limit(GROUPS + 1).collect()]
    check = f"{len(sums)} sums of doubles are within 1e-9 in every group"
    if not groups:
        return Checked(table=plan.table, check="sums", ok=True, detail=check)
    verdicts = _verdicts(session, plan, groups[:GROUPS], sums, sources)
    if isinstance(verdicts, str):
        return Checked(
            table=plan.table,
            check="sums",
            ok=None,
            detail=f"further apart than 1e-9: {_count(len(groups))}; {verdicts}",
        )
    return _checked(plan, groups, sums, verdicts)


def _checked(
    plan: Comparison,
    groups: Sequence[dict[str, Any]],
    sums: Sequence[SumState],
    verdicts: dict[tuple[int, int], Verdict],
) -> Checked:
    counts = Counter(verdicts.values())
    checks: tuple[tuple[Verdict, bool | None], ...] = (("differ", False), ("unknown", None))
    for verdict, ok in checks:
        groups_sums = [at for at, each in verdicts.items() if each == verdict]
        if groups_sums:
            examples = first([f"{sums[i].pair.new} of {_group_label(plan, groups[at])}" for at, i in groups_sums])
            why = (
                "differ: " if ok is False else "do not equal the sums of their source, which may have lost rows since: "
            )
            return Checked(table=plan.table, check="sums", ok=ok, detail=f"{counts[verdict]:,} {why}{examples}")
    if len(groups) > GROUPS:
        detail = f"more than {GROUPS:,} groups are further apart than 1e-9; the {GROUPS:,} furthest apart are right"
        return Checked(table=plan.table, check="sums", ok=None, detail=detail)
    detail = f"further apart than 1e-9, but sums of their source in another order: {_count(len(groups))}"
    return Checked(table=plan.table, check="sums", ok=True, detail=detail)


def _paired_groups(session: Any, plan: Comparison, old: Pinned, new: Pinned, sums: Sequence[SumState]) -> Any:
    """A row per group of both versions: keys `k<i>` (as by `python_key`) and `t<i>` (as text), and for each sum both values
    `a<i>`, `b<i>` and whether they differ, `off<i>`."""
    from pyspark.sql.functions import col

    renamed = {pair.new: pair.old for pair in plan.pairs}
    sides = []
    for side, keys, names, mark in (
        (old, [renamed.get(key, key) for key in plan.keys], [each.old for each in sums], "a"),
        (new, plan.keys, [each.new for each in sums], "b"),
    ):
        sides.append(_merged(side.stored(session), keys, names, mark))
    on = [col(f"ak{i}").eqNullSafe(col(f"bk{i}")) for i in range(len(plan.keys))]
    joined = sides[0].join(sides[1], on, "inner")
    values = [(col(f"a{i}"), col(f"b{i}")) for i in range(len(sums))]
    return joined.select(
        *(python_key(col(f"bk{i}"), joined.schema[f"bk{i}"].dataType).alias(f"k{i}") for i in range(len(plan.keys))),
        *(col(f"bk{i}").cast("string").alias(f"t{i}") for i in range(len(plan.keys))),
        *(part for i, (a, b) in enumerate(values) for part in (a, b, differ(a, b).alias(f"off{i}"))),
    )


def _merged(stored: Any, keys: Sequence[str], names: Sequence[str], mark: str) -> Any:
    from pyspark.sql.functions import col
    from pyspark.sql.functions import sum as total

    grouped = stored.groupBy(*(col(quoted(key)).alias(f"{mark}k{i}") for i, key in enumerate(keys)))
    return grouped.agg(*(total(col(quoted(name))).alias(f"{mark}{i}") for i, name in enumerate(names)))


def _by_distance(columns: Sequence[int]) -> list[Any]:
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, col, greatest, lit, when

    endless = lit(float("inf"))  # one of the two is NULL
    each = [when(col(f"off{i}"), coalesce(magnitude(col(f"a{i}") - col(f"b{i}")), endless)) for i in columns]
    return [greatest(*each, lit(0.0), lit(0.0)).desc()]


def _verdicts(
    session: Any,
    plan: Comparison,
    groups: Sequence[dict[str, Any]],
    sums: Sequence[SumState],
    sources: Sequence[PinnedSource],
) -> dict[tuple[int, int], Verdict] | str:
    """(group, sum) → verdict by the source, for all that differ; or the reason why the source cannot decide."""
    names = [each.new for each in sums]
    wanted = [[group[f"k{i}"] for i in range(len(plan.keys))] for group in groups]
    addends: dict[tuple[int, str], Addends] = {}
    if not sources:
        return "the summed expression is unknown"
    for source in sources:
        terms = source.feed.terms
        if terms is None or not {*names} <= {*terms.sums}:
            return "the summed expression is unknown: the release was made by an older console"
        if {*names} & {*terms.volatile}:
            return "two computations of their addends may differ"
        try:
            rows = source.run_query(session, source.driving.stored(session), terms.sql)
            again = addends_by_group(of_groups(session, rows, plan.keys, wanted), "g", names)
        except Exception as error:
            message = f"{source.driving.state.table.name} cannot be read as of version {source.driving.version}"
            return f"{message}: {reason(error)}"
        for key, values in again.items():
            addends[key] = addends.get(key, Addends()) + values
    verdicts: dict[tuple[int, int], Verdict] = {}
    for at, group in enumerate(groups):
        for i, name in enumerate(names):
            if group[f"off{i}"]:
                verdicts[(at, i)] = judge(addends.get((at, name), Addends()), group[f"a{i}"], group[f"b{i}"])
    return verdicts


def judge(values: Addends, old: float | None, new: float | None) -> Verdict:
    """The verdict about two differing sums, by their addends."""
    old_fits, new_fits = values.explains(old), values.explains(new)
    if old_fits and new_fits:
        return "same"
    return "differ" if {old_fits, new_fits} == {True, False} else "unknown"


def of_groups(session: Any, rows: Any, keys: Sequence[str], groups: Sequence[Sequence[Any]]) -> Any:
    """The rows of these groups, with the group's number as `g`. groups: values of the keys as by `python_key`"""
    from pyspark.sql.functions import broadcast, col
    from pyspark.sql.types import LongType, StructField, StructType

    kept = [python_key(rows[quoted(key)], rows.schema[key].dataType) for key in keys]
    kinds = rows.select(*(key.alias(f"k{i}") for i, key in enumerate(kept))).schema
    values = [(at, *group) for at, group in enumerate(groups)]
    wanted = session.createDataFrame(
        values, StructType([StructField("g", LongType()), *(StructField(kind.name, kind.dataType) for kind in kinds)])
    )
    on = [col(f"k{i}").eqNullSafe(key) for i, key in enumerate(kept)]
    return rows.join(broadcast(wanted), on, "inner")


def python_key(key: Any, kind: Any) -> Any:
    """A group's key for the way through Python and back: days and times as numbers, since Python's calendar ends before
    Spark's (model/slices)."""
    from pyspark.sql.functions import unix_date, unix_micros

    match kind.typeName():
        case "date":
            return unix_date(key)
        case "timestamp":
            return unix_micros(key)
        case "timestamp_ntz":
            return unix_micros(key.cast("timestamp"))
    return key


def _count(groups: int) -> str:
    return f"{groups:,} groups" if groups != 1 else "1 group"


def _group_label(plan: Comparison, group: dict[str, Any]) -> str:
    return ", ".join(f"{key} {group[f't{i}']}" for i, key in enumerate(plan.keys))
