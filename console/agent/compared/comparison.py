"""Comparison of the old and the new version of a table at the same landing position. A difference stops the promotion."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from console.agent.compared.by_day import day_records
from console.agent.compared.checks import (
    changed_check,
    columns_check,
    compared_days,
    day_tally,
    left_out_text,
    noted,
    rows_check,
)
from console.agent.compared.pairing import earlier
from console.agent.compared.round import WHOLE_TABLE, ComparisonRound
from console.agent.recount import sums
from console.agent.recount.doubles import differ
from console.agent.recount.moments import SUFFIX, merged, moments_differ
from console.agent.recount.pinned_tables import Pinned, PinnedSource
from console.agent.store.days import clamped_day, named_day
from console.model.compared import ROWS, ComparedColumn
from console.model.event import Checked
from console.model.schema import types
from console.model.step import Comparison, Pair

# Sketches are estimates: the same rows merged in two ways differ by the sketch's error (HLL with lgK 12: 1.6 %, KLL with
# k 200: 1.3 % of rank). Allowed are five standard errors of HLL, plus two units for small counts.
TOLERANCE = 0.08
SLACK = 2.0
QUANTILES = "__kll"  # suffix of a quantile's state, as the planner names it
SKETCHES = (QUANTILES, "__hll")


def compare(
    session: Any,
    plan: Comparison,
    old: Pinned,
    new: Pinned,
    sources: Sequence[PinnedSource] = (),
    comparison: ComparisonRound = WHOLE_TABLE,
) -> Iterator[Checked]:
    """Compare two versions of a table.

    sources     tables read by the new version's feeds, as of the same landing position, to judge sums of doubles
    comparison  its portions and records; nothing is recorded by default
    returns     `Checked` for the rows, for the columns, and for those that are meant to change; differences name the
                first days or keys
    """
    if plan.keys:
        for check in _by_key(session, plan, old, new, sources, comparison):
            yield _with_ties(plan, _joined_as_now(plan, check))
        return
    records: list[ComparedColumn] = []
    for portion in day_records(session, plan, old, new, comparison):
        records += portion
    days = compared_days(records)
    rows, columns = rows_check(plan, days, records), columns_check(plan, days, records)
    yield _joined_as_now(plan, rows)
    yield columns if rows.ok else _joined_as_now(plan, columns)
    if (changed := changed_check(plan, records)) is not None:
        yield changed


def _with_ties(plan: Comparison, check: Checked) -> Checked:
    """A difference in values is inconclusive if ties of a key are now broken by other columns."""
    if check.ok is not False or not plan.ties or check.check != "values":
        return check
    return replace(
        check, ok=None, detail=f"among rows that tie in the order, another one may be the newest: {check.detail}"
    )


def _joined_as_now(plan: Comparison, check: Checked) -> Checked:
    """A difference is inconclusive if history was joined with tables that may have changed since."""
    if check.ok is not False or not plan.joins:
        return check
    return replace(check, ok=None, detail=f"joined with {', '.join(plan.joins)} as of now: {check.detail}")


def _by_key(
    session: Any,
    plan: Comparison,
    old: Pinned,
    new: Pinned,
    sources: Sequence[PinnedSource],
    comparison: ComparisonRound,
) -> Iterator[Checked]:
    """Aggregates: the merged values, key by key; sums of doubles by their stored states. Recorded once, at the end."""
    sum_states = sums.sum_states(plan.pairs, old, new)
    quantiles = [pair for pair in plan.pairs if _stored_as_quantiles(pair, old, new)]
    estimates = [pair for pair in plan.pairs if pair not in quantiles and _uses_sketch(pair, old, new)]
    moments = [pair for pair in plan.pairs if _moments_of(pair, old, new)]
    others = {*plan.keys, *(pair.new for pair in (*quantiles, *moments)), *(each.pair.new for each in sum_states)}
    values = [pair for pair in plan.pairs if pair.new not in others or pair in estimates]
    per_day = _joined(session, plan, old, new, values, estimates)
    records = [record for day, each in sorted(per_day.items()) for record in _group_records(plan, values, day, each)]
    counts = Counter[str]()
    for day_counts in per_day.values():
        counts.update(day_counts)
    yield _groups(plan, records, counts)
    yield _values(plan, values, estimates, counts)
    if sum_states:
        yield sums.compare(session, plan, old, new, sum_states, sources)
    for pair in quantiles:
        yield _quantile_counts(session, plan, pair, old, new)
    for pair in moments:
        yield _moments(session, plan, pair, old, new)
    if (changed := changed_check(plan, records)) is not None:
        yield changed
    comparison.store([replace(record, old_version=old.version, new_version=new.version) for record in records])


def _groups(plan: Comparison, records: Sequence[ComparedColumn], counts: Mapping[str, int]) -> Checked:
    ok = not counts["gone"] and not counts["extra"]
    missing = f"{counts['gone']:,} groups only in the old version, {counts['extra']:,} only in the new"
    days = compared_days(records) if plan.time in plan.keys else []
    return Checked(
        table=plan.table,
        check="groups",
        ok=ok,
        detail=f"{counts['keys']:,} groups are equal" if ok else missing,
        days=noted(days),
        tally=day_tally(days, records) if days else None,
    )


def _group_records(
    plan: Comparison, values: Sequence[Pair], day: str, counts: Mapping[str, int]
) -> Iterator[ComparedColumn]:
    """The records of a day's groups and of each of their columns; the keys differ if groups are both missing and added."""
    old, new = counts["keys"] - counts["extra"], counts["keys"] - counts["gone"]
    both = old + new - counts["keys"]
    equal = not counts["gone"] and not counts["extra"]
    yield ComparedColumn(table=plan.table, day=day, column=ROWS, old=old, new=new, equal=equal)
    for key in plan.keys:
        stands_in = bool(counts["gone"] and counts["extra"])
        yield ComparedColumn(table=plan.table, day=day, column=key, old=old, new=new, equal=not stands_in)
    for i, pair in enumerate((*values, *plan.changed)):
        yield ComparedColumn(
            table=plan.table,
            day=day,
            column=pair.new,
            old=counts[f"was{i}"],
            new=counts[f"now{i}"],
            equal=None if pair in plan.changed else not counts[f"d{i}"],
            changed=counts[f"d{i}"],
            of=both if pair.old else 0,
        )


def _joined(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, values: Sequence[Pair], estimates: Sequence[Pair]
) -> dict[str, dict[str, int]]:
    """Day ("" without one) → numbers of groups: only in the old version `gone`, only in the new `extra`, all `keys`;
    for column i of the values and of those meant to change: differing `d<i>`, not NULL before and now `was<i>`,
    `now<i>`.
    """
    from pyspark.sql.functions import col, count_if, lit
    from pyspark.sql.functions import hll_sketch_estimate as estimate

    kinds = types(new.state.table.columns)
    sketches = {pair.new for pair in estimates if kinds[pair.new] == "binary"}
    kinds |= dict.fromkeys(sketches, "bigint")
    old_keys = [plan.old_name(key) for key in plan.keys]

    def value(pair: Pair, name: str) -> Any:
        return estimate(col(name)) if pair.new in sketches else col(name)

    left = old.rows(session).select(
        *(col(k).cast(kinds[n]).alias(f"k{i}") for i, (k, n) in enumerate(zip(old_keys, plan.keys, strict=True))),
        *(value(pair, pair.old).cast(kinds[pair.new]).alias(f"a{i}") for i, pair in enumerate(values)),
        *(earlier(pair, old, kinds[pair.new]).alias(f"a{i}") for i, pair in enumerate(plan.changed, len(values))),
        lit(1).alias("in_old"),
    )
    right = new.rows(session).select(
        *(col(key).alias(f"l{i}") for i, key in enumerate(plan.keys)),
        *(value(pair, pair.new).alias(f"b{i}") for i, pair in enumerate((*values, *plan.changed))),
        lit(1).alias("in_new"),
    )
    on = [col(f"k{i}").eqNullSafe(col(f"l{i}")) for i in range(len(plan.keys))]
    both = left.join(right, on, "full_outer")
    counts = [count_if(col("in_new").isNull()).alias("gone"), count_if(col("in_old").isNull()).alias("extra")]
    counts.append(count_if(lit(True)).alias("keys"))
    for i, pair in enumerate((*values, *plan.changed)):
        of_maps = pair in plan.changed and "map<" in kinds[pair.new]  # which Spark does not compare
        differs = _differs(pair, pair in estimates, kinds[pair.new], col(f"a{i}"), col(f"b{i}"))
        counts += _pair_counts(lit(False) if of_maps else differs, i)
    by_day = both.groupBy(_joined_day(plan).alias("day")).agg(*counts).withColumn("day", named_day(col("day")))
    return {str(row["day"] or ""): {name: row[name] for name in by_day.columns[1:]} for row in by_day.collect()}


def _joined_day(plan: Comparison) -> Any:
    """The day of a joined group; NULL if the time is not one of the keys."""
    from pyspark.sql.functions import coalesce, col, lit

    if plan.time not in plan.keys:
        return lit(None).cast("date")
    at = plan.keys.index(plan.time)
    return clamped_day(coalesce(col(f"l{at}"), col(f"k{at}")))


def _pair_counts(differs: Any, i: int) -> list[Any]:
    """Of column i: groups of both versions in which it differs, and groups in which it is not NULL."""
    from pyspark.sql.functions import col, count, count_if

    both = col("in_old").isNotNull() & col("in_new").isNotNull()
    return [
        count_if(differs & both).alias(f"d{i}"),
        count(col(f"a{i}")).alias(f"was{i}"),
        count(col(f"b{i}")).alias(f"now{i}"),
    ]


def _values(plan: Comparison, values: Sequence[Pair], estimates: Sequence[Pair], counts: Mapping[str, int]) -> Checked:
    off = [(pair, counts[f"d{i}"]) for i, pair in enumerate(values) if counts[f"d{i}"]]
    same = f"{len(values) - len(estimates)} equal" + (
        f", {len(estimates)} estimates within {TOLERANCE:.0%}" if estimates else ""
    )
    detail = f"differ: {'; '.join(f'{pair.new}: {groups:,} groups' for pair, groups in off)}" if off else same
    return Checked(table=plan.table, check="values", ok=not off, detail=detail + left_out_text(plan))


def _differs(pair: Pair, estimate: bool, kind: str, a: Any, b: Any) -> Any:
    """Column: values differ. Estimates differ if only one is NULL, or by more than the tolerance."""
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
    """Whether a column's value is computed from a sketch. One of several states is numbered: `share__2__hll`."""
    names = ((pair.old, old), (pair.new, new))
    return not pair.exact and any(
        stored.name.startswith(f"{name}__") and stored.name.endswith(SKETCHES)
        for name, side in names
        for stored in side.state.version.columns
    )


def _quantile_counts(session: Any, plan: Comparison, pair: Pair, old: Pinned, new: Pinned) -> Checked:
    """Compare the numbers of values in quantile sketches: two correct sketches may differ in their quantiles, not in number."""
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
    keys = [plan.old_name(key) if name == "was" else key for key in plan.keys]
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
    """Compare the states of variances and correlations, within the bound of rounding errors."""
    from pyspark.sql.functions import col, lit

    states = _moments_of(pair, old, new)
    was = _united(session, [plan.old_name(key) for key in plan.keys], old, [(a, kind) for a, _, kind in states], "was")
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
