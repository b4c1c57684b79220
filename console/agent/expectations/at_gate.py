"""Expectations of whole tables at the gate: one pass over each rebuilt table, and a named check for each expectation."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, assert_never

from console.agent.expectations.failing import Unexpected, by_day
from console.agent.rows.key_texts import key_texts
from console.model.event import Checked
from console.model.expectation import DayCheck, ExpectationCheck, Fresh, RowCheck, RowsOfDayBefore, UniqueInDay
from console.model.live import TableState
from console.model.schema import quoted
from console.model.slices import EARLY, LATE

_Days = Sequence[Mapping[str, Any]]  # per day: its name, its rows, and the aggregates of the checks


def unknown(state: TableState, why: str) -> Iterator[Checked]:
    """Inconclusive checks for a table whose checks could not run."""
    for check in state.checks:
        yield Checked(table=state.table.name, check=check_title(check), ok=None, detail=f"not checked: {why}")


def check_table(rows: Any, state: TableState, now: float) -> list[Checked]:
    """The checks of one table.

    rows  DataFrame of its logical rows
    now   seconds since 1970, UTC
    """
    from pyspark.sql.functions import expr

    asked = [sql for i, check in enumerate(state.checks) if (sql := _aggregate(check, state, i, now))]
    days = by_day(rows, state.table.time, [expr("count(1) AS rows"), *map(expr, asked)])
    return [_checked(check, state, days, rows, i, now) for i, check in enumerate(state.checks)]


def _aggregate(check: ExpectationCheck, state: TableState, number: int, now: float) -> str:
    """A check's aggregate per day, named `n` and its number; "" if the number of rows suffices."""
    if isinstance(check, RowCheck):
        return f"count_if({check.failing}) AS n{number}"
    match check.rule:
        case UniqueInDay(columns):
            return f"count(1) - count(DISTINCT struct({', '.join(map(quoted, columns))})) AS n{number}"
        case Fresh():
            at = f"unix_micros({_moment(state)})"
            return f"max(CASE WHEN {at} <= {int(now * 1e6)} THEN {at} END) AS n{number}"  # future rows are not fresh
        case RowsOfDayBefore():
            return ""
        case other:
            assert_never(other)


def _moment(state: TableState) -> str:
    """The time of a row as a timestamp; a date as its first moment."""
    return f"CAST({quoted(state.table.time)} AS TIMESTAMP)"


def _checked(check: ExpectationCheck, state: TableState, days: _Days, rows: Any, number: int, now: float) -> Checked:
    if isinstance(check, RowCheck):
        return _of_rows(check, state, _failing(days, number), days, rows.where(check.failing))
    match check.rule:
        case UniqueInDay(columns):
            return _of_rows(check, state, _failing(days, number), days, _repeated(rows, columns, state.table.time))
        case Fresh(seconds):
            newest = max((int(day[f"n{number}"]) for day in days if day[f"n{number}"] is not None), default=None)
            return _fresh(check, state, seconds, newest, now)
        case RowsOfDayBefore() as rule:
            today = datetime.fromtimestamp(now, UTC).date()
            return _of_days(check, state, odd_days({str(day["day"]): int(day["rows"]) for day in days}, rule, today))
        case other:
            assert_never(other)


def _failing(days: _Days, number: int) -> dict[str, int]:
    return {str(day["day"]): int(day[f"n{number}"]) for day in days if day[f"n{number}"]}


def _of_rows(check: ExpectationCheck, state: TableState, failing: Mapping[str, int], days: _Days, bad: Any) -> Checked:
    if not failing:
        return _result(check, state, True, f"none of {sum(int(day['rows']) for day in days):,} rows fails")
    return _result(check, state, False, str(Unexpected(check.name, failing, key_texts(bad, check.keys))))


def _repeated(rows: Any, columns: Sequence[str], time_column: str) -> Any:
    """One row of each group of a day's rows that are equal in these columns."""
    names = ", ".join(map(quoted, columns))
    day = f"to_date({quoted(time_column)}), " if time_column else ""
    return rows.selectExpr(
        "*", f"row_number() OVER (PARTITION BY {day}{names} ORDER BY {names}) AS `nth of its key`"
    ).where("`nth of its key` = 2")


def _fresh(check: DayCheck, state: TableState, allowed: float, newest: int | None, now: float) -> Checked:
    if newest is None:
        return _result(check, state, False, "no row has a time")
    age = now - newest / 1e6
    return _result(check, state, age <= allowed, f"the newest row is {age / 3600:,.2f} h old")


def odd_days(rows: Mapping[str, int], rule: RowsOfDayBefore, today: date) -> dict[str, tuple[int, int]]:
    """Complete days that have too few or too many rows: day → rows, and rows of the day before it.

    A day without rows counts if the day before it has some. The oldest day is not compared, since retention may have
    deleted a part of the day before it.

    rows   day → rows
    today  UTC; it is not complete
    """
    known = {date.fromisoformat(day): number for day, number in rows.items() if day not in ("", EARLY, LATE)}
    odd: dict[str, tuple[int, int]] = {}
    for before in sorted(day for day in known if day < today - timedelta(days=1)):
        day = before + timedelta(days=1)
        was, number = known[before], known.get(day, 0)
        few = rule.least is not None and number < was * rule.least
        many = rule.most is not None and number > was * rule.most
        if few or many:
            odd[day.isoformat()] = (number, was)
    return odd


def _of_days(check: DayCheck, state: TableState, odd: Mapping[str, tuple[int, int]]) -> Checked:
    if not odd:
        return _result(check, state, True, "each complete day compared with the day before it")
    some = [f"{day}: {rows:,} after {was:,}" for day, (rows, was) in list(odd.items())[-3:]]
    more = f", and {len(odd) - len(some)} days before" if len(odd) > len(some) else ""
    return _result(check, state, False, f"{', '.join(some)} rows{more}")


def _result(check: ExpectationCheck, state: TableState, ok: bool, detail: str) -> Checked:
    """A failing `warn` is inconclusive: a person must see it, and may promote."""
    warned = not ok and check.severity == "warn"
    return Checked(
        table=state.table.name,
        check=check_title(check),
        ok=None if warned else ok,
        detail=f"warn: {detail}" if warned else detail,
    )


def check_title(check: ExpectationCheck) -> str:
    """The name of an expectation's check."""
    return f"expects {check.name}"
