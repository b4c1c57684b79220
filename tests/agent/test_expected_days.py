"""Days compared with the previous day, and the identification of failing rows: pure, judged by lists of days."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.agent.expectations.at_gate import odd_days
from console.agent.expectations.failing import Unexpected
from console.agent.expectations.guard import row_checks
from console.model.expectation import DayCheck, RowCheck, RowsOfDayBefore, UniqueInDay
from console.model.live import TableState, Version
from console.model.newest import Newest
from console.model.schema import Kind, Table
from console.model.slices import EARLY, LATE

TODAY = date(2026, 11, 8)
MERGED = Newest(key=("id",), order=(), tie=(), bucket=False, merged="")
CHECKS = (
    RowCheck(name="a", severity="stop", failing="`id` IS NULL"),
    DayCheck(name="b", severity="stop", rule=UniqueInDay(("id",))),
)


def test_a_day_with_half_of_its_rows_and_one_without_any_are_odd_and_today_is_not_over() -> None:
    rows = {"2026-11-03": 100, "2026-11-04": 40, "2026-11-05": 50, "2026-11-07": 500, "2026-11-08": 1, "": 7}
    assert odd_days({**rows, EARLY: 9, LATE: 9}, RowsOfDayBefore(0.5, None), TODAY) == {
        "2026-11-04": (40, 100),
        "2026-11-06": (0, 50),
    }
    assert odd_days(rows, RowsOfDayBefore(None, 1.2), TODAY) == {"2026-11-05": (50, 40)}
    assert odd_days({}, RowsOfDayBefore(0.5, 2.0), TODAY) == {}


@pytest.mark.slow
@settings(max_examples=50)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=9), st.sampled_from([0.5, 1.0]), st.sampled_from([None, 2.0]))
def test_each_complete_day_is_compared_with_the_one_before_it(
    rows: list[int], least: float, most: float | None
) -> None:
    """By a plain list of consecutive days, the last of which is today. Days without rows are in no table."""
    first = TODAY - timedelta(days=len(rows) - 1)
    named = {(first + timedelta(days=i)).isoformat(): number for i, number in enumerate(rows) if number}
    odd = [
        (first + timedelta(days=i)).isoformat()
        for i in range(1, len(rows) - 1)
        if rows[i - 1] and (rows[i] < rows[i - 1] * least or (most is not None and rows[i] > rows[i - 1] * most))
    ]
    assert list(odd_days(named, RowsOfDayBefore(least, most), TODAY)) == odd


def test_failing_rows_are_named_by_days_and_first_keys() -> None:
    one = Unexpected("x", {"2026-11-07": 1}, ("id=e17",))
    assert str(one) == "1 row fails (2026-11-07: 1), at id=e17"
    many = Unexpected("x", {"": 1, **{f"2026-11-{day:02}": 1_000 for day in range(1, 6)}}, ("id=e1", "id=e2"))
    days = "no day: 1, 2026-11-01: 1,000, 2026-11-02: 1,000 and 3 more days"
    assert str(many) == f"5,001 rows fail ({days}), at the first id=e1; id=e2"
    long = Unexpected("x", {"2026-11-07": 10}, tuple(f"id={'e' * 150}{n}" for n in range(10)))
    assert len(str(long)) < 300
    assert str(long).count("id=") == 1
    assert str(Unexpected("x", {"2026-11-07": 2}, ("", ""))) == "2 rows fail (2026-11-07: 2)"


@pytest.mark.parametrize(
    ("kind", "newest", "checked"),
    [("append", None, 1), ("aggregate", None, 0), ("append", MERGED, 0)],
)
def test_rows_that_are_merged_when_they_are_read_are_not_checked_as_they_are_written(
    kind: Kind, newest: Newest | None, checked: int
) -> None:
    state = TableState(
        table=Table(name="t", kind=kind, columns=()), version=Version(content="", path="", columns=()), read="", rows="",
        values={}, newest=newest, checks=CHECKS,
    )  # fmt: skip
    assert len(row_checks(state)) == checked
