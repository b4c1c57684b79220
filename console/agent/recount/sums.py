"""Sums of doubles of an aggregate's groups, in its live version and in the new one: one sum in two orders, or two sums.

Compared as they are kept, state by state: averages and whatever else is computed from sums follow from them. Two that lie
further apart than `NEAR` are settled by what they add up, read again from the source.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from console.agent.recount.doubles import Added, added_up, apart
from console.agent.recount.pinned_tables import Pinned, PinnedSource, first, reason
from console.model.event import Checked
from console.model.schema import quoted
from console.model.step import Comparison, Pair

GROUPS = 5000  # that are settled by their source at most, the ones furthest apart first
Verdict = Literal["same", "differ", "unknown"]


@dataclass(frozen=True, slots=True)
class Summed:
    """One state that is a sum of doubles, as it is stored in both versions."""

    pair: Pair
    old: str
    new: str


def summed(pairs: Sequence[Pair], old: Pinned, new: Pinned) -> tuple[Summed, ...]:
    """The sums of doubles among what is stored for these columns, in both versions."""
    was, now = ({column.name: column.type for column in side.state.version.columns} for side in (old, new))
    found = []
    for pair in pairs:
        for name, kind in now.items():
            suffix = name.removeprefix(pair.new)
            own = name.startswith(pair.new) and (not suffix or suffix.startswith("__"))
            if own and not pair.exact and kind == was.get(pair.old + suffix) == "double":
                found.append(Summed(pair, pair.old + suffix, name))
    return tuple(found)


def compare(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, sums: Sequence[Summed], sources: Sequence[PinnedSource]
) -> Checked:
    """One check of all sums of doubles of a table.

    sources  of the new version's feeds, at the position at which both sides are pinned
    """
    both = _both(session, plan, old, new, sums)
    columns = range(len(sums))
    off = both.where(" OR ".join(f"off{i}" for i in columns)).orderBy(*_furthest(columns))
    groups = [row.asDict() for row in off.limit(GROUPS + 1).collect()]
    check = f"{len(sums)} sums of doubles are within 1e-9 in every group"
    if not groups:
        return Checked(plan.table, "sums", True, check)
    settled = _settled(session, plan, groups[:GROUPS], sums, sources)
    if isinstance(settled, str):
        return Checked(plan.table, "sums", None, f"further apart than 1e-9: {_count(len(groups))}; {settled}")
    return _told(plan, groups, sums, settled)


def _told(
    plan: Comparison, groups: Sequence[dict[str, Any]], sums: Sequence[Summed], settled: dict[tuple[int, int], Verdict]
) -> Checked:
    found = Counter(settled.values())
    verdicts: tuple[tuple[Verdict, bool | None], ...] = (("differ", False), ("unknown", None))
    for verdict, ok in verdicts:
        which = [at for at, each in settled.items() if each == verdict]
        if which:
            some = first([f"{sums[i].pair.new} of {_named(plan, groups[at])}" for at, i in which])
            why = (
                "differ: " if ok is False else "are not what their source adds up to, which may have lost rows since: "
            )
            return Checked(plan.table, "sums", ok, f"{found[verdict]:,} {why}{some}")
    if len(groups) > GROUPS:
        told = f"more than {GROUPS:,} groups are further apart than 1e-9; the {GROUPS:,} furthest apart are right"
        return Checked(plan.table, "sums", None, told)
    told = f"further apart than 1e-9, but what their source adds up to in another order: {_count(len(groups))}"
    return Checked(plan.table, "sums", True, told)


def _both(session: Any, plan: Comparison, old: Pinned, new: Pinned, sums: Sequence[Summed]) -> Any:
    """A row for each group of both versions: its keys, each as `carried` and as text, and of each sum both values and
    whether they are apart."""
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
        *(carried(col(f"bk{i}"), joined.schema[f"bk{i}"].dataType).alias(f"k{i}") for i in range(len(plan.keys))),
        *(col(f"bk{i}").cast("string").alias(f"t{i}") for i in range(len(plan.keys))),
        *(part for i, (a, b) in enumerate(values) for part in (a, b, apart(a, b).alias(f"off{i}"))),
    )


def _merged(stored: Any, keys: Sequence[str], names: Sequence[str], mark: str) -> Any:
    from pyspark.sql.functions import col
    from pyspark.sql.functions import sum as total

    grouped = stored.groupBy(*(col(quoted(key)).alias(f"{mark}k{i}") for i, key in enumerate(keys)))
    return grouped.agg(*(total(col(quoted(name))).alias(f"{mark}{i}") for i, name in enumerate(names)))


def _furthest(columns: Sequence[int]) -> list[Any]:
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, col, greatest, lit, when

    endless = lit(float("inf"))  # one of the two is NULL
    each = [when(col(f"off{i}"), coalesce(magnitude(col(f"a{i}") - col(f"b{i}")), endless)) for i in columns]
    return [greatest(*each, lit(0.0), lit(0.0)).desc()]


def _settled(
    session: Any,
    plan: Comparison,
    groups: Sequence[dict[str, Any]],
    sums: Sequence[Summed],
    sources: Sequence[PinnedSource],
) -> dict[tuple[int, int], Verdict] | str:
    """(group, sum) → what its source says of every one that is apart; or why nothing can be read again."""
    names = [each.new for each in sums]
    wanted = [[group[f"k{i}"] for i in range(len(plan.keys))] for group in groups]
    found: dict[tuple[int, str], Added] = {}
    if not sources:
        return "nothing tells what they add up"
    for source in sources:
        terms = source.feed.terms
        if terms is None or not {*names} <= {*terms.sums}:
            return "what they add up cannot be told: the release was made by an older console"
        if {*names} & {*terms.volatile}:
            return "two computations of what they add up may differ"
        try:
            made = source.through(session, source.driving.stored(session), terms.sql)
            again = added_up(of_groups(session, made, plan.keys, wanted), "g", names)
        except Exception as error:
            told = f"{source.driving.state.table.name} cannot be read as of version {source.driving.version}"
            return f"{told}: {reason(error)}"
        for key, values in again.items():
            found[key] = found.get(key, Added()) + values
    judged: dict[tuple[int, int], Verdict] = {}
    for at, group in enumerate(groups):
        for i, name in enumerate(names):
            if group[f"off{i}"]:
                judged[(at, i)] = judge(found.get((at, name), Added()), group[f"a{i}"], group[f"b{i}"])
    return judged


def judge(values: Added, old: float | None, new: float | None) -> Verdict:
    """What two sums that are apart are, by the values behind them."""
    was, now = values.explains(old), values.explains(new)
    if was and now:
        return "same"
    return "differ" if {was, now} == {True, False} else "unknown"


def of_groups(session: Any, rows: Any, keys: Sequence[str], groups: Sequence[Sequence[Any]]) -> Any:
    """The rows of these groups, each given by the values of its keys as `carried`, with the group's number as `g`."""
    from pyspark.sql.functions import broadcast, col
    from pyspark.sql.types import LongType, StructField, StructType

    kept = [carried(rows[quoted(key)], rows.schema[key].dataType) for key in keys]
    kinds = rows.select(*(key.alias(f"k{i}") for i, key in enumerate(kept))).schema
    held = [(at, *group) for at, group in enumerate(groups)]
    wanted = session.createDataFrame(
        held, StructType([StructField("g", LongType()), *(StructField(kind.name, kind.dataType) for kind in kinds)])
    )
    on = [col(f"k{i}").eqNullSafe(key) for i, key in enumerate(kept)]
    return rows.join(broadcast(wanted), on, "inner")


def carried(key: Any, kind: Any) -> Any:
    """A group's key as it goes through Python and back: a day or a time as its number, for Python's calendar ends before
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


def _named(plan: Comparison, group: dict[str, Any]) -> str:
    return ", ".join(f"{key} {group[f't{i}']}" for i, key in enumerate(plan.keys))
