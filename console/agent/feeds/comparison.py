"""Comparison of the old and the new version of a table at the same landing position. A difference stops the promotion."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from console.agent.feeds.checksum import sums_per_day
from console.agent.recount import sums
from console.agent.recount.doubles import differ
from console.agent.recount.moments import SUFFIX, merged, moments_differ
from console.agent.recount.pinned_tables import Pinned, PinnedSource
from console.agent.store.days import clamped_day, named_day
from console.model.event import Checked, ComparedDay
from console.model.schema import types
from console.model.step import Comparison, Pair

# Sketches are estimates: the same rows merged in two ways differ by the sketch's error (HLL with lgK 12: 1.6 %, KLL with
# k 200: 1.3 % of rank). Allowed are five standard errors of HLL, plus two units for small counts.
TOLERANCE = 0.08
SLACK = 2.0
EXAMPLES = 3
NOTED_DAYS = 400
QUANTILES = "__kll"  # suffix of a quantile's state, as the planner names it
SKETCHES = (QUANTILES, "__hll")
_Sums = Mapping[Any, dict[str, Any]]  # day → rows, and checksums of the columns


def compare(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, sources: Sequence[PinnedSource] = ()
) -> Iterator[Checked]:
    """Compare two versions of a table.

    sources  tables read by the new version's feeds, as of the same landing position, to decide about sums of doubles
    returns  one `Checked` for the rows and one for the columns; differences name the first days or keys
    """
    if plan.keys:
        for check in _by_key(session, plan, old, new, sources):
            yield _with_ties(plan, _joined_as_now(plan, check))
        return
    kinds = types(new.state.table.columns)
    exact = [pair for pair in plan.pairs if pair.exact]
    left = sums_per_day(old.rows(session), _old_name(plan, plan.time), [(pair.old, kinds[pair.new]) for pair in exact])
    right = sums_per_day(new.rows(session), plan.time, [(pair.new, kinds[pair.new]) for pair in exact])
    was = {row["day"]: row.asDict() for row in left.collect()}
    now = {row["day"]: row.asDict() for row in right.collect()}
    days = sorted({*was, *now}, key=str)
    unequal = [d for d in days if was.get(d, {}).get("rows", 0) != now.get(d, {}).get("rows", 0)]
    total = sum(row["rows"] for row in now.values())
    some = ", ".join(
        f"{d}: {was.get(d, {}).get('rows', 0):,} → {now.get(d, {}).get('rows', 0):,}" for d in unequal[:EXAMPLES]
    )
    wanted = "other rows are wanted: " if plan.other_rows else ""
    differing = {pair.new: [d for d in days if not _same(was.get(d), now.get(d), i)] for i, pair in enumerate(exact)}
    rows = Checked(
        table=plan.table,
        check="rows per day",
        ok=(None if plan.other_rows else False) if unequal else True,
        detail=f"{wanted}{some}" if unequal else f"{total:,} rows in {len(days)} days are equal",
        days=_noted(_days(days, was, now, differing)),
    )
    yield _joined_as_now(plan, rows)
    columns = _columns(plan, exact, {name: days for name, days in differing.items() if days})
    yield _joined_as_now(plan, columns) if unequal else columns


def _with_ties(plan: Comparison, check: Checked) -> Checked:
    """Other values are inconclusive where rows of one key and order are now told apart by other columns."""
    if check.ok is not False or not plan.ties or check.check != "values":
        return check
    return replace(check, ok=None, detail=f"of rows with one order another may be the newest: {check.detail}")


def _joined_as_now(plan: Comparison, check: Checked) -> Checked:
    """A difference is inconclusive where history was joined with tables that may have changed since."""
    if check.ok is not False or not plan.joins:
        return check
    return replace(check, ok=None, detail=f"joined with {', '.join(plan.joins)} as of now: {check.detail}")


def _days(days: Sequence[Any], was: _Sums, now: _Sums, differing: Mapping[str, list[Any]]) -> list[ComparedDay]:
    columns_of: dict[Any, list[str]] = {}
    for name, own_days in differing.items():
        for day in own_days:
            columns_of.setdefault(day, []).append(name)
    return [
        ComparedDay(
            day="" if day is None else str(day),
            old=was.get(day, {}).get("rows", 0),
            new=now.get(day, {}).get("rows", 0),
            columns=tuple(columns_of.get(day, ())),
        )
        for day in days
    ]


def _noted(days: list[ComparedDay]) -> tuple[ComparedDay, ...]:
    """What is stored of them: those that differ, and the newest others, each up to `NOTED_DAYS`."""
    differ = [day for day in days if not day.equal][:NOTED_DAYS]
    equal = [day for day in days if day.equal][-NOTED_DAYS:]
    return tuple(sorted((*differ, *equal), key=lambda day: day.day))


def _columns(plan: Comparison, exact: list[Pair], differing: dict[str, list[Any]]) -> Checked:
    left_out = "".join(f"; left out: {name} ({why})" for name, why in plan.left_out)
    if differing:
        some = "; ".join(f"{name} on {', '.join(map(str, days[:EXAMPLES]))}" for name, days in differing.items())
        return Checked(table=plan.table, check="unchanged columns", ok=False, detail=f"differ: {some}{left_out}")
    names = ", ".join(pair.new for pair in exact[:6]) + (f" and {len(exact) - 6} more" if len(exact) > 6 else "")
    return Checked(
        table=plan.table,
        check="unchanged columns",
        ok=True,
        detail=f"{len(exact)} equal by checksum: {names}{left_out}",
    )


def _same(was: dict[str, Any] | None, now: dict[str, Any] | None, i: int) -> bool:
    return all((was or {}).get(f"{part}{i}") == (now or {}).get(f"{part}{i}") for part in ("n", "lo", "hi"))


def _old_name(plan: Comparison, column: str) -> str:
    return next((pair.old for pair in plan.pairs if pair.new == column), column)


def _by_key(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, sources: Sequence[PinnedSource]
) -> Iterator[Checked]:
    """Aggregates: the merged values, key by key; sums of doubles by their stored states."""
    sum_states = sums.sum_states(plan.pairs, old, new)
    quantiles = [pair for pair in plan.pairs if _stored_as_quantiles(pair, old, new)]
    estimates = [pair for pair in plan.pairs if pair not in quantiles and _uses_sketch(pair, old, new)]
    moments = [pair for pair in plan.pairs if _moments_of(pair, old, new)]
    others = {*plan.keys, *(pair.new for pair in (*quantiles, *moments)), *(each.pair.new for each in sum_states)}
    values = [pair for pair in plan.pairs if pair.new not in others or pair in estimates]
    per_day = _joined(session, plan, old, new, values, estimates)
    counts = Counter[str]()
    for day_counts in per_day.values():
        counts.update(day_counts)
    ok = not counts["gone"] and not counts["extra"]
    missing = f"{counts['gone']:,} groups only in the old version, {counts['extra']:,} only in the new"
    yield Checked(
        table=plan.table,
        check="groups",
        ok=ok,
        detail=f"{counts['keys']:,} groups are equal" if ok else missing,
        days=_noted(_group_days(plan, values, per_day)) if plan.time in plan.keys else (),
    )
    yield _values(plan, values, estimates, counts)
    if sum_states:
        yield sums.compare(session, plan, old, new, sum_states, sources)
    for pair in quantiles:
        yield _quantile_counts(session, plan, pair, old, new)
    for pair in moments:
        yield _moments(session, plan, pair, old, new)


def _group_days(plan: Comparison, values: Sequence[Pair], per_day: Mapping[str, dict[str, int]]) -> list[ComparedDay]:
    """The groups of each day; where other groups stand in for missing ones, the keys differ."""
    return [
        ComparedDay(
            day=day,
            old=counts["keys"] - counts["extra"],
            new=counts["keys"] - counts["gone"],
            columns=(
                *(plan.keys if counts["gone"] and counts["extra"] else ()),
                *(pair.new for i, pair in enumerate(values) if counts[f"d{i}"]),
            ),
        )
        for day, counts in sorted(per_day.items())
    ]


def _joined(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, values: Sequence[Pair], estimates: Sequence[Pair]
) -> dict[str, dict[str, int]]:
    """Day ("" without one) → numbers of groups: only in the old version `gone`, only in the new `extra`, all `keys`, and
    with value i differing `d<i>`."""
    from pyspark.sql.functions import coalesce, col, count_if, lit
    from pyspark.sql.functions import hll_sketch_estimate as estimate

    kinds = types(new.state.table.columns)
    sketches = {pair.new for pair in estimates if kinds[pair.new] == "binary"}
    kinds |= dict.fromkeys(sketches, "bigint")
    old_keys = [_old_name(plan, key) for key in plan.keys]

    def value(pair: Pair, name: str) -> Any:
        return estimate(col(name)) if pair.new in sketches else col(name)

    left = old.rows(session).select(
        *(col(k).cast(kinds[n]).alias(f"k{i}") for i, (k, n) in enumerate(zip(old_keys, plan.keys, strict=True))),
        *(value(pair, pair.old).cast(kinds[pair.new]).alias(f"a{i}") for i, pair in enumerate(values)),
        lit(1).alias("in_old"),
    )
    right = new.rows(session).select(
        *(col(key).alias(f"l{i}") for i, key in enumerate(plan.keys)),
        *(value(pair, pair.new).alias(f"b{i}") for i, pair in enumerate(values)),
        lit(1).alias("in_new"),
    )
    on = [col(f"k{i}").eqNullSafe(col(f"l{i}")) for i in range(len(plan.keys))]
    both = left.join(right, on, "full_outer")
    counts = [count_if(col("in_new").isNull()).alias("gone"), count_if(col("in_old").isNull()).alias("extra")]
    for i, pair in enumerate(values):
        differs = _differs(pair, pair in estimates, kinds[pair.new], col(f"a{i}"), col(f"b{i}"))
        counts.append(count_if(differs & col("in_old").isNotNull() & col("in_new").isNotNull()).alias(f"d{i}"))
    counts.append(count_if(lit(True)).alias("keys"))
    day = lit(None).cast("date")
    if plan.time in plan.keys:
        at = plan.keys.index(plan.time)
        day = clamped_day(coalesce(col(f"l{at}"), col(f"k{at}")))
    by_day = both.groupBy(day.alias("day")).agg(*counts).withColumn("day", named_day(col("day")))
    return {str(row["day"] or ""): {name: row[name] for name in by_day.columns[1:]} for row in by_day.collect()}


def _values(plan: Comparison, values: Sequence[Pair], estimates: Sequence[Pair], counts: Mapping[str, int]) -> Checked:
    off = [(pair, counts[f"d{i}"]) for i, pair in enumerate(values) if counts[f"d{i}"]]
    left_out = "".join(f"; left out: {name} ({why})" for name, why in plan.left_out)
    same = f"{len(values) - len(estimates)} equal" + (
        f", {len(estimates)} estimates within {TOLERANCE:.0%}" if estimates else ""
    )
    detail = f"differ: {'; '.join(f'{pair.new}: {groups:,} groups' for pair, groups in off)}" if off else same
    return Checked(table=plan.table, check="values", ok=not off, detail=detail + left_out)


def _differs(pair: Pair, estimate: bool, kind: str, a: Any, b: Any) -> Any:
    """Column: values differ. Estimates differ where only one is NULL, or by more than the tolerance."""
    from pyspark.sql.functions import abs as magnitude
    from pyspark.sql.functions import coalesce, greatest, lit

    if estimate and kind not in ("string", "binary", "boolean", "date", "timestamp"):
        far = magnitude(a - b) > greatest(magnitude(a), magnitude(b)) * lit(TOLERANCE) + lit(SLACK)
        return ~a.isNull().eqNullSafe(b.isNull()) | coalesce(far, lit(False))
    return differ(a, b) if not pair.exact and kind in ("double", "float") else ~a.eqNullSafe(b)


def _stored_as_quantiles(pair: Pair, old: Pinned, new: Pinned) -> bool:
    stored = [{column.name for column in side.state.version.columns} for side in (old, new)]
    return pair.old + QUANTILES in stored[0] and pair.new + QUANTILES in stored[1]


def _uses_sketch(pair: Pair, old: Pinned, new: Pinned) -> bool:
    """Whether a column's value is computed from a sketch. One of several states carries a number: `share__2__hll`."""
    names = ((pair.old, old), (pair.new, new))
    return not pair.exact and any(
        stored.name.startswith(f"{name}__") and stored.name.endswith(SKETCHES)
        for name, side in names
        for stored in side.state.version.columns
    )


def _quantile_counts(session: Any, plan: Comparison, pair: Pair, old: Pinned, new: Pinned) -> Checked:
    """Compare how many values the quantile sketches have seen: two correct sketches may differ in value, not in number."""
    from pyspark.sql.functions import col

    was, now = _sketch_sizes(session, plan, pair.old, old, "was"), _sketch_sizes(session, plan, pair.new, new, "now")
    on = [col(f"was{i}").eqNullSafe(col(f"now{i}")) for i in range(len(plan.keys))]
    off = was.join(now, on, "full_outer").where("NOT was <=> now").count()
    name = f"values behind {pair.new}"
    return Checked(
        table=plan.table,
        check=name,
        ok=not off,
        detail=f"{off:,} groups differ in their number" if off else "as many in every group",
    )


def _sketch_sizes(session: Any, plan: Comparison, column: str, side: Pinned, name: str) -> Any:
    """Keys as `<name>0`, `<name>1` …, and the number of values in the merged sketch of each group as `<name>`."""
    from pyspark.sql.functions import coalesce, col, lit
    from pyspark.sql.functions import kll_merge_agg_double as merged
    from pyspark.sql.functions import kll_sketch_get_n_double as size

    stored = side.stored(session)
    keys = [_old_name(plan, key) if name == "was" else key for key in plan.keys]
    groups = stored.groupBy(*(col(key).alias(f"{name}{i}") for i, key in enumerate(keys)))
    return groups.agg(coalesce(size(merged(col(column + QUANTILES))), lit(0)).alias(name))


def _moments_of(pair: Pair, old: Pinned, new: Pinned) -> list[tuple[str, str, str]]:
    """(old name, new name, type) of the states of variances and correlations behind a column of both versions."""
    was = types(old.state.version.columns)
    now = {name: kind for name, kind in types(new.state.version.columns).items() if name.endswith(SUFFIX)}
    return [
        (other, name, kind)
        for name, kind in now.items()
        if name.startswith(f"{pair.new}__") and was.get(other := pair.old + name.removeprefix(pair.new)) == kind
    ]


def _moments(session: Any, plan: Comparison, pair: Pair, old: Pinned, new: Pinned) -> Checked:
    """Compare what variances and correlations are computed from, by what rounding can do to it."""
    from pyspark.sql.functions import col, lit

    states = _moments_of(pair, old, new)
    was = _united(
        session, [_old_name(plan, key) for key in plan.keys], old, [(a, kind) for a, _, kind in states], "was"
    )
    now = _united(session, plan.keys, new, [(b, kind) for _, b, kind in states], "now")
    on = [col(f"was{i}").eqNullSafe(col(f"now{i}")) for i in range(len(plan.keys))]
    off = lit(False)
    for i, (_, _, kind) in enumerate(states):
        off = off | moments_differ(col(f"was_state{i}"), col(f"now_state{i}"), kind)
    groups = was.join(now, on, "inner").where(off).count()
    name = f"moments of {pair.new}"
    detail = f"{groups:,} groups differ by more than rounding" if groups else "the same in every group, up to rounding"
    return Checked(table=plan.table, check=name, ok=not groups, detail=detail)


def _united(session: Any, keys: Sequence[str], side: Pinned, states: Sequence[tuple[str, str]], name: str) -> Any:
    """Keys as `<name>0` …, and each state of a group as `<name>_state0` …"""
    from pyspark.sql.functions import col

    groups = side.stored(session).groupBy(*(col(key).alias(f"{name}{i}") for i, key in enumerate(keys)))
    return groups.agg(*(merged(col(of), kind).alias(f"{name}_state{i}") for i, (of, kind) in enumerate(states)))
