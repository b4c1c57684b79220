"""Rows of two versions of a table, day by day: their number, a checksum per column, and one of all columns together."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from console.agent.compared.pairing import Sums, exact_pairs, paired, sliced
from console.agent.compared.round import ComparisonRound
from console.agent.feeds.checksum import sums_per_day
from console.agent.recount.pinned_tables import Pinned
from console.model.compared import ROWS, TOGETHER, ComparedColumn
from console.model.schema import types
from console.model.slices import Slice
from console.model.step import Comparison


def day_records(
    session: Any, plan: Comparison, old: Pinned, new: Pinned, comparison: ComparisonRound
) -> Iterator[tuple[ComparedColumn, ...]]:
    """The records of each portion, in order. A portion that is already recorded is not compared again."""
    for number, part in enumerate(comparison.portions, 1):
        recorded = _in_order(plan, comparison.recorded(number))
        if not recorded:
            recorded = _compared(session, plan, old, new, part, comparison.left_out, portion=number)
            comparison.store(recorded)
        yield recorded


def _in_order(plan: Comparison, records: Sequence[ComparedColumn]) -> tuple[ComparedColumn, ...]:
    """Records in canonical order: by day, then by the plan's order of columns."""
    order = {name: at for at, name in enumerate((ROWS, *(pair.new for pair in exact_pairs(plan)), TOGETHER))}
    return tuple(sorted(records, key=lambda record: (record.day, order.get(record.column, len(order)))))


def _compared(
    session: Any,
    plan: Comparison,
    old: Pinned,
    new: Pinned,
    part: Sequence[Slice],
    left_out: Any,
    *,
    portion: int,
) -> tuple[ComparedColumn, ...]:
    time = plan.old_name(plan.time)
    before, counted = _columns(plan, new, old=True)
    was = _sums(old.rows(session), time, part, before, counted)
    gone = {} if left_out is None else _sums(left_out, time, part, before, counted)
    now = _sums(new.rows(session), plan.time, part, *_columns(plan, new, old=False))
    pairs = paired(session, plan, old, new, part, sum(day["rows"] for day in now.values()))
    records: list[ComparedColumn] = []
    for day in sorted({*was, *now}):
        kept = _without(was.get(day, {}), gone.get(day, {}))
        records += _of_day(plan, day, kept, now.get(day, {}), left_out=gone.get(day, {}).get("rows", 0))
        records += _meant_to_change(plan, day, kept, now.get(day, {}), pairs.get(day, {}))
    return tuple(
        replace(record, portion=portion, old_version=old.version, new_version=new.version) for record in records
    )


def _columns(plan: Comparison, new: Pinned, *, old: bool) -> tuple[list[tuple[str, str]], list[str]]:
    """Columns of one version with the type for their comparison, and columns whose values are only counted."""
    kinds = types(new.state.table.columns)
    hashed = [(pair.old if old else pair.new, kinds[pair.new]) for pair in exact_pairs(plan)]
    # the old version has no values of a new column
    return hashed, [name for pair in plan.changed if (name := pair.old if old else pair.new)]


def _sums(
    rows: Any, time: str, part: Sequence[Slice], columns: Sequence[tuple[str, str]], counted: Sequence[str]
) -> dict[str, Sums]:
    """Day, "" without one, → its sums."""
    days = sums_per_day(sliced(rows, time, part), time, columns, counted).collect()
    return {str(row["day"] or ""): {name: row[name] for name in row.asDict() if name != "day"} for row in days}


def _without(sums: Sums, others: Sums) -> Sums:
    """Sums without those of some of the rows: sums of disjoint rows add up. A sum over no rows is NULL in Spark."""
    return {name: (total or 0) - (others.get(name) or 0) for name, total in sums.items()}


def _of_day(plan: Comparison, day: str, was: Sums, now: Sums, *, left_out: int) -> Iterator[ComparedColumn]:
    pairs = exact_pairs(plan)
    rows = (was.get("rows", 0), now.get("rows", 0))
    yield ComparedColumn(
        table=plan.table,
        day=day,
        column=ROWS,
        old=rows[0],
        new=rows[1],
        equal=None if plan.other_rows else rows[0] == rows[1],
        quarantined=left_out,
    )
    alike = rows[0] == rows[1]
    for i, pair in enumerate(pairs):
        equal = _same(was, now, [f"{part}{i}" for part in ("n", "lo", "hi")])
        values = (was.get(f"n{i}", 0), now.get(f"n{i}", 0))
        yield ComparedColumn(table=plan.table, day=day, column=pair.new, old=values[0], new=values[1], equal=equal)
        alike = alike and equal
    if alike and not _same(was, now, ["lo", "hi"]):
        yield ComparedColumn(table=plan.table, day=day, column=TOGETHER, old=rows[0], new=rows[1], equal=False)


def _meant_to_change(plan: Comparison, day: str, was: Sums, now: Sums, paired: Sums) -> Iterator[ComparedColumn]:
    older = iter(range(len(plan.changed)))
    for i, pair in enumerate(plan.changed):
        values = was.get(f"c{next(older)}", 0) if pair.old else 0
        yield ComparedColumn(
            table=plan.table,
            day=day,
            column=pair.new,
            old=values,
            new=now.get(f"c{i}", 0),
            equal=None,
            changed=paired.get(f"d{i}", 0),
            of=paired.get("of", 0) if pair.old else 0,
        )


def _same(was: Sums, now: Sums, names: Sequence[str]) -> bool:
    return all((was.get(name) or 0) == (now.get(name) or 0) for name in names)
