"""Rows per day of both versions of a table, as their logs count them: no data is read and no Spark is asked."""

from datetime import UTC, datetime

from console.agent.compared.checks import EXAMPLES, noted
from console.agent.compared.resumed import stored_time
from console.agent.maintenance.retention import cutoff
from console.agent.recount.pinned_tables import Pinned
from console.agent.store.table_stats import table_stats
from console.model.event import Checked, ComparedDay
from console.model.slices import EARLY
from console.model.step import Comparison

CHECK = "rows per day, by the logs"


def check(plan: Comparison, old: Pinned, new: Pinned, now: float) -> Checked | None:
    """Whether each day has as many rows in both versions; None if their logs do not say, or other rows are wanted.

    now     seconds since 1970, UTC
    raises  Unreachable if a log cannot be read
    """
    if plan.keys or plan.other_rows or any(side.state.newest is not None for side in (old, new)):
        return None
    sides = [_rows(old, plan.old_name(plan.time)), _rows(new, plan.time)]
    before, after = sides
    if before is None or after is None:
        return None
    kept = _kept_from(old, new, now)
    days = [
        ComparedDay(day=day, old=before.get(day) or 0, new=after.get(day) or 0)
        for day in sorted({*before, *after})
        # a day is not counted where a file holds several, or where one side may have expired already
        if before.get(day, 0) is not None and after.get(day, 0) is not None and (not day or day >= kept)
    ]
    if not days:
        return None
    unequal = [day for day in days if not day.equal]
    if not unequal:
        total = sum(day.new for day in days)
        return Checked(table=plan.table, check=CHECK, ok=True, detail=f"{total:,} rows in {len(days)} days are equal")
    some = ", ".join(f"{day.day or 'no day'}: {day.old:,} → {day.new:,}" for day in unequal[:EXAMPLES])
    some += f" and {len(unequal) - EXAMPLES} more days" if len(unequal) > EXAMPLES else ""
    joined = f"joined with {', '.join(plan.joins)} as of now: " if plan.joins else ""
    return Checked(
        table=plan.table, check=CHECK, ok=None if plan.joins else False, detail=joined + some, days=noted(unequal)
    )


def _rows(side: Pinned, time_column: str) -> dict[str, int | None] | None:
    """Day → rows, None for a day whose rows a file shares with others; None without days or statistics."""
    stored = stored_time(side.state, time_column) if time_column else ""
    stats = table_stats(side.state.table.name, side.path, stored, side.version) if stored else None
    if stats is None or stats.uncounted:
        return None
    return {day.day: day.rows if day.exact else None for day in stats.days}


def _kept_from(old: Pinned, new: Pinned, now: float) -> str:
    """The first day that no retention may have deleted in either version."""
    today = datetime.fromtimestamp(now, UTC).date()
    cutoffs = [day for side in (old, new) if (day := cutoff(side.state, today)) is not None]
    return max(cutoffs).isoformat() if cutoffs else EARLY
