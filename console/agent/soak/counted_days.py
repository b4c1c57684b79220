"""Rows per day of both versions of a table, as their logs count them: no data is read and no Spark is asked."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from console.agent.compared.checks import EXAMPLES, noted
from console.agent.compared.resumed import stored_time
from console.agent.maintenance.retention import cutoff
from console.agent.recount.pinned_tables import Pinned
from console.agent.store.table_stats import MAX_SPAN_DAYS, counted_stats
from console.model.event import Checked, ComparedDay
from console.model.live import Day
from console.model.slices import EARLY, LATE
from console.model.step import Comparison

CHECK = "rows per day, by the logs"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedDays:
    """Rows per day of one version.

    low, high  first and last day of its files that hold several days: any day between may have rows in them, and is not counted
    """

    rows: Mapping[str, int]
    low: str
    high: str

    def of(self, day: str) -> int | None:
        """Rows of a day, "" for those without one; None if the log does not tell."""
        return None if day and self.low <= day <= self.high else self.rows.get(day, 0)


def check(plan: Comparison, old: Pinned, new: Pinned, now: float, differed: Collection[str] = ()) -> Checked | None:
    """Whether each day has as many rows in both versions; None if their logs do not say, or other rows are wanted.

    now      seconds since 1970, UTC
    differed  days that differed in an earlier round: while the logs no longer tell of one of these, nothing clears it
    raises   Unreachable if a log cannot be read
    """
    sides = (old, new)
    # an aggregate stores a partial state for each commit and key, and a table of newest rows those that are replaced
    merged = any(side.state.newest is not None or side.state.table.kind == "aggregate" for side in sides)
    if plan.keys or plan.other_rows or merged:
        return None
    before, after = _counted(old, plan.old_name(plan.time)), _counted(new, plan.time)
    if before is None or after is None:
        return None
    kept = _kept_from(old, new, now)
    days = [
        ComparedDay(day=day, old=was, new=now_there)
        for day in sorted({*before.rows, *after.rows})
        if (was := before.of(day)) is not None and (now_there := after.of(day)) is not None
        # one side may have expired already
        if not day or day >= kept
    ]
    if not days:
        return None
    unequal = [day for day in days if not day.equal]
    if not unequal:
        if any(before.of(day) is None or after.of(day) is None for day in differed):
            return None
        total = sum(day.new for day in days)
        return Checked(table=plan.table, check=CHECK, ok=True, detail=f"{total:,} rows in {len(days)} days are equal")
    some = ", ".join(f"{day.day or 'no day'}: {day.old:,} → {day.new:,}" for day in unequal[:EXAMPLES])
    some += f" and {len(unequal) - EXAMPLES} more days" if len(unequal) > EXAMPLES else ""
    joined = f"joined with {', '.join(plan.joins)} as of now: " if plan.joins else ""
    return Checked(
        table=plan.table, check=CHECK, ok=None if plan.joins else False, detail=joined + some, days=noted(unequal)
    )


def _counted(side: Pinned, time_column: str) -> CountedDays | None:
    """None without days or statistics."""
    stored = stored_time(side.state, time_column) if time_column else ""
    stats = counted_stats(side.state.table.name, side.path, stored, side.version) if stored else None
    if stats is None:
        return None
    low, high = shared_days(stats.days)
    return CountedDays(rows={day.day: day.rows for day in stats.days}, low=low, high=high)


def shared_days(days: Collection[Day]) -> tuple[str, str]:
    """First and last day of the files that hold several days; ("", "") without such files."""
    wide = [day.day for day in days if not day.exact]
    if not wide:
        return "", ""
    low, high = min(wide), max(wide)
    if low == EARLY or high == LATE:
        return low, LATE
    # of a long file only every second, third … day is named, so that its last one may be some days later
    first, last = date.fromisoformat(low), date.fromisoformat(high)
    span = (last - first).days
    margin = timedelta(days=span // (MAX_SPAN_DAYS - 1) + 1 if span >= MAX_SPAN_DAYS else 0)
    return low, (last + margin).isoformat() if date.max - last > margin else LATE


def _kept_from(old: Pinned, new: Pinned, now: float) -> str:
    """The first day that no retention may have deleted in either version."""
    today = datetime.fromtimestamp(now, UTC).date()
    cutoffs = [day for side in (old, new) if (day := cutoff(side.state, today)) is not None]
    return max(cutoffs).isoformat() if cutoffs else EARLY
