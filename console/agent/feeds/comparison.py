"""Old and new of one table at the same landing position: equal where nothing changed, or the promotion stops."""

from collections.abc import Iterator, Sequence
from typing import Any

from console.agent.feeds.checksum import per_day
from console.agent.recount import sums
from console.agent.recount.doubles import apart
from console.agent.recount.pinned_tables import Pinned, PinnedSource
from console.model.event import Checked
from console.model.schema import types
from console.model.step import Comparison, Pair

# Sketches are estimates: two ways of merging the same rows differ by their error. HLL with lgK 12: 1.6 %, KLL with
# k 200: 1.3 % of rank. Five standard errors of HLL; and two units, since small counts have no room for a percentage.
TOLERANCE = 0.08
SLACK = 2.0
EXAMPLES = 3
QUANTILES = "__kll"  # how the planner names a quantile's state
SKETCHES = (QUANTILES, "__hll")


def compare(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, sources: Sequence[PinnedSource] = ()
) -> Iterator[Checked]:
    """Compare two versions of a table.

    sources  what the feeds of the new version read, as of the same landing position: sums of doubles are settled by it
    returns  one `Checked` for the rows, one for the columns; differences name the first days or keys
    """
    if plan.keys:
        yield from _by_key(session, plan, old, new, sources)
        return
    kinds = types(new.state.table.columns)
    exact = [pair for pair in plan.pairs if pair.exact]
    left = per_day(old.rows(session), _renamed(plan, plan.time), [(pair.old, kinds[pair.new]) for pair in exact])
    right = per_day(new.rows(session), plan.time, [(pair.new, kinds[pair.new]) for pair in exact])
    was = {row["day"]: row.asDict() for row in left.collect()}
    now = {row["day"]: row.asDict() for row in right.collect()}
    days = sorted({*was, *now}, key=str)
    off = [d for d in days if was.get(d, {}).get("rows", 0) != now.get(d, {}).get("rows", 0)]
    total = sum(row["rows"] for row in now.values())
    some = ", ".join(
        f"{d}: {was.get(d, {}).get('rows', 0):,} → {now.get(d, {}).get('rows', 0):,}" for d in off[:EXAMPLES]
    )
    yield Checked(
        plan.table, "rows per day", not off, f"{some}" if off else f"{total:,} rows in {len(days)} days are equal"
    )
    differing = {pair.new: [d for d in days if not _same(was.get(d), now.get(d), i)] for i, pair in enumerate(exact)}
    yield _columns(plan, exact, {name: found for name, found in differing.items() if found})


def _columns(plan: Comparison, exact: list[Pair], differing: dict[str, list[Any]]) -> Checked:
    left_out = "".join(f"; left out: {name} ({why})" for name, why in plan.left_out)
    if differing:
        some = "; ".join(f"{name} on {', '.join(map(str, found[:EXAMPLES]))}" for name, found in differing.items())
        return Checked(plan.table, "unchanged columns", False, f"differ: {some}{left_out}")
    names = ", ".join(pair.new for pair in exact[:6]) + (f" and {len(exact) - 6} more" if len(exact) > 6 else "")
    return Checked(plan.table, "unchanged columns", True, f"{len(exact)} equal by checksum: {names}{left_out}")


def _same(was: dict[str, Any] | None, now: dict[str, Any] | None, i: int) -> bool:
    return all((was or {}).get(f"{part}{i}") == (now or {}).get(f"{part}{i}") for part in ("n", "lo", "hi"))


def _renamed(plan: Comparison, column: str) -> str:
    return next((pair.old for pair in plan.pairs if pair.new == column), column)


def _by_key(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, sources: Sequence[PinnedSource]
) -> Iterator[Checked]:
    """Aggregates: the merged values, key by key; sums of doubles as they are kept."""
    added = sums.summed(plan.pairs, old, new)
    quantiles = [pair for pair in plan.pairs if _kept_as_quantiles(pair, old, new)]
    estimates = [pair for pair in plan.pairs if pair not in quantiles and _sketched_in(pair, old, new)]
    apart_from = {*plan.keys, *(pair.new for pair in quantiles), *(each.pair.new for each in added)}
    values = [pair for pair in plan.pairs if pair.new not in apart_from or pair in estimates]
    found = _joined(session, plan, old, new, values, estimates)
    ok = not found["gone"] and not found["extra"]
    missing = f"{found['gone']:,} groups only in the old version, {found['extra']:,} only in the new"
    yield Checked(plan.table, "groups", ok, f"{found['keys']:,} groups are equal" if ok else missing)
    yield _values(plan, values, estimates, found)
    if added:
        yield sums.compare(session, plan, old, new, added, sources)
    for pair in quantiles:
        yield _counted(session, plan, pair, old, new)


def _joined(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, values: Sequence[Pair], estimates: Sequence[Pair]
) -> dict[str, int]:
    """Groups that one side lacks, `gone` and `extra`; all, `keys`; and of each value how many differ, `d<i>`."""
    from pyspark.sql.functions import col, count_if, lit

    kinds = types(new.state.table.columns)
    old_keys = [_renamed(plan, key) for key in plan.keys]
    left = old.rows(session).select(
        *(col(k).cast(kinds[n]).alias(f"k{i}") for i, (k, n) in enumerate(zip(old_keys, plan.keys, strict=True))),
        *(col(pair.old).cast(kinds[pair.new]).alias(f"a{i}") for i, pair in enumerate(values)),
        lit(1).alias("in_old"),
    )
    right = new.rows(session).select(
        *(col(key).alias(f"l{i}") for i, key in enumerate(plan.keys)),
        *(col(pair.new).alias(f"b{i}") for i, pair in enumerate(values)),
        lit(1).alias("in_new"),
    )
    on = [col(f"k{i}").eqNullSafe(col(f"l{i}")) for i in range(len(plan.keys))]
    both = left.join(right, on, "full_outer")
    counts = [count_if(col("in_new").isNull()).alias("gone"), count_if(col("in_old").isNull()).alias("extra")]
    for i, pair in enumerate(values):
        differs = _differs(pair, pair in estimates, kinds[pair.new], col(f"a{i}"), col(f"b{i}"))
        counts.append(count_if(differs & col("in_old").isNotNull() & col("in_new").isNotNull()).alias(f"d{i}"))
    counts.append(count_if(lit(True)).alias("keys"))
    found: dict[str, int] = both.agg(*counts).head().asDict()
    return found


def _values(plan: Comparison, values: Sequence[Pair], estimates: Sequence[Pair], found: dict[str, int]) -> Checked:
    off = [(pair, found[f"d{i}"]) for i, pair in enumerate(values) if found[f"d{i}"]]
    left_out = "".join(f"; left out: {name} ({why})" for name, why in plan.left_out)
    same = f"{len(values) - len(estimates)} equal" + (
        f", {len(estimates)} estimates within {TOLERANCE:.0%}" if estimates else ""
    )
    told = f"differ: {'; '.join(f'{pair.new}: {groups:,} groups' for pair, groups in off)}" if off else same
    return Checked(plan.table, "values", not off, told + left_out)


def _differs(pair: Pair, estimate: bool, kind: str, a: Any, b: Any) -> Any:
    """Not equal; for an estimate: one is NULL and the other not, or they are further apart than its error allows."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, greatest, lit

    if estimate and kind not in ("string", "binary", "boolean", "date", "timestamp"):
        far = magnitude(a - b) > greatest(magnitude(a), magnitude(b)) * lit(TOLERANCE) + lit(SLACK)
        return ~a.isNull().eqNullSafe(b.isNull()) | coalesce(far, lit(False))
    return apart(a, b) if not pair.exact and kind in ("double", "float") else ~a.eqNullSafe(b)


def _kept_as_quantiles(pair: Pair, old: Pinned, new: Pinned) -> bool:
    stored = [{column.name for column in side.state.version.columns} for side in (old, new)]
    return pair.old + QUANTILES in stored[0] and pair.new + QUANTILES in stored[1]


def _sketched_in(pair: Pair, old: Pinned, new: Pinned) -> bool:
    """Whether a sketch takes part in a column's value; one of several states has a number: `share__2__hll`."""
    names = ((pair.old, old), (pair.new, new))
    return not pair.exact and any(
        stored.name.startswith(f"{name}__") and stored.name.endswith(SKETCHES)
        for name, side in names
        for stored in side.state.version.columns
    )


def _counted(session: Any, plan: Comparison, pair: Pair, old: Pinned, new: Pinned) -> Checked:
    """Quantile sketches err in rank and by chance, so two right ones may differ in value; what went into them may not."""
    from pyspark.sql.functions import col

    was, now = _sketched(session, plan, pair.old, old, "was"), _sketched(session, plan, pair.new, new, "now")
    on = [col(f"was{i}").eqNullSafe(col(f"now{i}")) for i in range(len(plan.keys))]
    off = was.join(now, on, "full_outer").where("NOT was <=> now").count()
    name = f"values behind {pair.new}"
    return Checked(
        plan.table, name, not off, f"{off:,} groups differ in their number" if off else "as many in every group"
    )


def _sketched(session: Any, plan: Comparison, column: str, side: Pinned, name: str) -> Any:
    """Keys as `<name>0`, `<name>1` …, and how many values the merged sketch of each group has seen."""
    from pyspark.sql.functions import coalesce, col, lit
    from pyspark.sql.functions import kll_merge_agg_double as merged
    from pyspark.sql.functions import kll_sketch_get_n_double as size

    stored = side.stored(session)
    keys = [_renamed(plan, key) if name == "was" else key for key in plan.keys]
    groups = stored.groupBy(*(col(key).alias(f"{name}{i}") for i, key in enumerate(keys)))
    return groups.agg(coalesce(size(merged(col(column + QUANTILES))), lit(0)).alias(name))
