"""The comparison per day in `status`: a tally of each table, and the first days that differ. All days: `show ID --days`."""

from collections.abc import Iterator
from typing import Any

from console.cli.format import count
from console.model.codec import encode
from console.model.compared import TOGETHER, DayTally
from console.model.event import Checked, ComparedDay
from console.model.status import Status
from console.text import safe_text

DAYS_SHOWN = 20


def comparison_data(status: Status) -> list[dict[str, Any]]:
    """Per table, for `--output json`: days of each outcome, the first ones that differ, columns that are meant to change."""
    summaries = {check.table: check.summaries for check in status.checks if check.summaries}
    return [
        {
            "table": check.table,
            "days": tally.days,
            "equal": tally.days - tally.differing,
            "differing": tally.differing,
            "quarantined": tally.quarantined,
            "differing_days": [_plain(day) for day in _differing(check)],
            "changed_columns": [_plain(summary) for summary in summaries.get(check.table, ())],
        }
        for check, tally in _tallies(status)
    ]


def calls_data(status: Status) -> list[dict[str, Any]]:
    """Recorded calls of the gate, for `--output json`: figures only."""
    calls = (call for check in status.checks for call in check.calls)
    return [
        {
            **_plain(call),
            **{side: _plain(cost) if cost else None for side, cost in (("live", call.live), ("new", call.new))},
        }
        for call in calls
    ]


def comparison_lines(status: Status) -> list[str]:
    """A line for each table with differing days, and the command that lists all of them."""
    return [_line(status, check, tally) for check, tally in _tallies(status) if tally.differing]


def _line(status: Status, check: Checked, tally: DayTally) -> str:
    shown = _differing(check)
    days = ", ".join(map(_day_text, shown))
    more = f" and {tally.differing - len(shown)} more" if tally.differing > len(shown) else ""
    quarantined = f"; {count(tally.quarantined, 'row')} in quarantine not counted" if tally.quarantined else ""
    head = f"{check.table}: {tally.differing:,} of {count(tally.days, 'day')} differ"
    return safe_text(f"{head}: {days}{more}{quarantined}; every day: console show {status.rollout} --days")


def _tallies(status: Status) -> Iterator[tuple[Checked, DayTally]]:
    for check in status.checks:
        if check.tally is not None:
            yield check, check.tally


def _differing(check: Checked) -> list[ComparedDay]:
    return [day for day in check.days if not day.equal][:DAYS_SHOWN]


def _day_text(day: ComparedDay) -> str:
    """`2026-11-05 (bytes)`, `2026-11-08 (60 → 59 rows)`"""
    name = day.day or "no day"
    if day.old != day.new:
        return f"{name} ({day.old:,} → {day.new:,} rows)"
    if day.columns == (TOGETHER,):
        return f"{name} (rows of equal columns)"
    return f"{name} ({', '.join(day.columns)}{f' and {day.more} more' if day.more else ''})"


def _plain(record: object) -> dict[str, Any]:
    return {key: value for key, value in encode(record).items() if key != "type"}
