"""The checks for the gate, from the records of a comparison: a tally, the first days that differ, and summaries."""

from collections.abc import Iterable, Sequence

from console.agent.compared.pairing import exact_pairs
from console.model.compared import ROWS, TOGETHER, ColumnSummary, ComparedColumn, DayTally
from console.model.event import Checked, ComparedDay
from console.model.share import percent_text
from console.model.step import Comparison, Pair

EXAMPLES = 3  # days named in a line
DIFFERING_DAYS, EQUAL_DAYS = 20, 40  # days stored in an event; the records have all of them
LISTED_COLUMNS = 12  # of a day
CHANGED = "columns that change"


def rows_check(plan: Comparison, days: Sequence[ComparedDay], records: Sequence[ComparedColumn]) -> Checked:
    """Whether each day has as many rows as before. Differing days from which history left rows out are inconclusive."""
    unequal = [day for day in days if day.old != day.new]
    tally = day_tally(days, records)
    verdict = None if plan.other_rows else _verdict(unequal, records)
    some = ", ".join(f"{_day(day.day)}: {day.old:,} → {day.new:,}" for day in unequal[:EXAMPLES])
    some += f" and {len(unequal) - EXAMPLES} more days" if len(unequal) > EXAMPLES else ""
    wanted = "other rows are wanted: " if plan.other_rows else ""
    total = sum(day.new for day in days)
    return Checked(
        table=plan.table,
        check="rows per day",
        ok=verdict if unequal else True,
        detail=(f"{wanted}{some}" if unequal else f"{total:,} rows in {len(days)} days are equal") + _left_out(tally),
        days=noted(days),
        tally=tally,
    )


def columns_check(plan: Comparison, days: Sequence[ComparedDay], records: Sequence[ComparedColumn]) -> Checked:
    """Whether the columns that must not change are equal on each day."""
    left_out = left_out_text(plan)
    differing: dict[str, list[str]] = {}
    for day in days:
        for name in day.columns:
            differing.setdefault(name, []).append(_day(day.day))
    if differing:
        listed = list(differing.items())[:LISTED_COLUMNS]
        some = "; ".join(f"{_named(name)} on {_first(on)}" for name, on in listed)
        some += f"; and {len(differing) - len(listed)} more columns" if len(differing) > len(listed) else ""
        verdict = _verdict([day for day in days if day.columns], records)
        return Checked(table=plan.table, check="unchanged columns", ok=verdict, detail=f"differ: {some}{left_out}")
    exact = exact_pairs(plan)
    names = ", ".join(pair.new for pair in exact[:6]) + (f" and {len(exact) - 6} more" if len(exact) > 6 else "")
    detail = f"{len(exact)} equal by checksum: {names}{left_out}"
    return Checked(table=plan.table, check="unchanged columns", ok=True, detail=detail)


def left_out_text(plan: Comparison) -> str:
    """`; left out: agent, is_bot (new); x (the expression of x changed)`: each reason once; "" where all are compared."""
    by_reason: dict[str, list[str]] = {}
    for name, why in plan.left_out:
        by_reason.setdefault(why.removeprefix(f"{name} is "), []).append(name)
    parts = [f"{', '.join(names)} ({why})" for why, names in by_reason.items()]
    return f"; left out: {'; '.join(parts)}" if parts else ""


def changed_check(plan: Comparison, records: Sequence[ComparedColumn]) -> Checked | None:
    """Summary of the columns that are meant to change; inconclusive if one of them has lost all its values."""
    summaries = tuple(_summary(pair, records) for pair in plan.changed)
    if not summaries:
        return None
    emptied = [each for each in summaries if each.nulls_old < each.rows_old and each.nulls_new == each.rows_new > 0]
    return Checked(
        table=plan.table,
        check=CHANGED,
        ok=None if emptied else True,
        detail=("every value became NULL: " if emptied else "") + "; ".join(map(_summary_text, emptied or summaries)),
        summaries=summaries,
    )


def compared_days(records: Iterable[ComparedColumn]) -> list[ComparedDay]:
    """One entry per day, oldest first, with every column that differs."""
    rows: dict[str, ComparedColumn] = {}
    columns: dict[str, list[str]] = {}
    for record in records:
        if record.column == ROWS:
            rows[record.day] = record
        elif record.equal is False:
            columns.setdefault(record.day, []).append(record.column)
    return [
        ComparedDay(day=day, old=record.old, new=record.new, columns=tuple(columns.get(day, ())))
        for day, record in sorted(rows.items())
    ]


def day_tally(days: Sequence[ComparedDay], records: Iterable[ComparedColumn]) -> DayTally:
    quarantined = sum(record.quarantined for record in records)
    return DayTally(days=len(days), differing=sum(not day.equal for day in days), quarantined=quarantined)


def _verdict(differing: Sequence[ComparedDay], records: Iterable[ComparedColumn]) -> bool | None:
    """None if only days with rows in quarantine differ, since those may or may not explain it; else False."""
    lacking = {record.day for record in records if record.quarantined}
    return False if any(day.day not in lacking for day in differing) else None


def noted(days: Sequence[ComparedDay]) -> tuple[ComparedDay, ...]:
    """The days to store in an event: the first ones that differ, and the newest others."""
    differ = [_cut(day) for day in days if not day.equal][:DIFFERING_DAYS]
    equal = [day for day in days if day.equal][-EQUAL_DAYS:]
    return tuple(sorted((*differ, *equal), key=lambda day: day.day))


def _cut(day: ComparedDay) -> ComparedDay:
    listed = day.columns[:LISTED_COLUMNS]
    return ComparedDay(day=day.day, old=day.old, new=day.new, columns=listed, more=len(day.columns) - len(listed))


def _summary(pair: Pair, records: Iterable[ComparedColumn]) -> ColumnSummary:
    rows = [record for record in records if record.column == ROWS]
    own = [record for record in records if record.column == pair.new]
    before, after = sum(record.old for record in rows), sum(record.new for record in rows)
    return ColumnSummary(
        column=pair.new,
        rows_old=before,
        rows_new=after,
        nulls_old=before - sum(record.old for record in own),
        nulls_new=after - sum(record.new for record in own),
        changed=sum(record.changed for record in own),
        of=sum(record.of for record in own),
    )


def _summary_text(summary: ColumnSummary) -> str:
    nulls = f"NULL in {summary.nulls_old:,} → {summary.nulls_new:,} rows"
    if not summary.of:
        return f"{summary.column}: {nulls}"
    looked = "" if summary.of == summary.rows_new else f" of {summary.of:,} rows looked at"
    return f"{summary.column}: {percent_text(summary.changed, summary.of)} changed{looked}, {nulls}"


def _left_out(tally: DayTally) -> str:
    return f"; {tally.quarantined:,} rows in quarantine are not counted" if tally.quarantined else ""


def _day(name: str) -> str:
    return name or "no day"


def _named(column: str) -> str:
    return "rows of equal columns" if column == TOGETHER else column


def _first(days: Sequence[str]) -> str:
    more = f" and {len(days) - EXAMPLES} more days" if len(days) > EXAMPLES else ""
    return ", ".join(days[:EXAMPLES]) + more
