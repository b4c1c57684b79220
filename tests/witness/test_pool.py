"""Values worth trying, at the ends of what Python's times and decimals hold."""

import random
from datetime import date, datetime
from decimal import Decimal

import pytest

from console.model.spark_type import parse_type
from console.planning.sql.duckdb import Trial
from console.witness.values import ValuePool

pytestmark = pytest.mark.slow


def pool(*, numbers: tuple[str, ...] = (), texts: tuple[str, ...] = ()) -> ValuePool:
    return ValuePool.of(Trial(sql="", duckdb="", columns=(), reads={}, numbers=numbers, texts=texts))


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("9999-12-31", {date(9999, 12, 31), date(9999, 12, 30)}),
        ("0001-01-01", {date(1, 1, 1), date(1, 1, 2)}),
        ("2026-11-07", {date(2026, 11, 6), date(2026, 11, 7), date(2026, 11, 8)}),
    ],
)
def test_a_day_at_the_end_of_time_has_neighbours_on_one_side(text: str, days: set[date]) -> None:
    candidates = pool(texts=(text,))
    assert days <= set(candidates.simple(parse_type("date")))
    assert datetime.fromisoformat(text) in candidates.simple(parse_type("timestamp"))


@pytest.mark.parametrize("type", ["decimal(38,18)", "decimal(38,38)", "decimal(38,0)", "decimal(5,2)"])
def test_long_numbers_are_tried_as_decimals_where_they_fit(type: str) -> None:
    number = Decimal("1234567890123456789012.5")
    candidates = pool(numbers=("1700000000000", str(number), "0.000000000000000001"))
    of = parse_type(type)
    whole, scale = of.scale
    values = [value for value in candidates.simple(of) if value is not None]
    assert all(-value.as_tuple().exponent == scale and len(value.as_tuple().digits) <= whole + 1 for value in values)
    if type == "decimal(38,18)":
        assert {Decimal(1700000000000), Decimal(1700000000000) + Decimal("1e-18")} <= set(values)
    assert all(value is not None for value in candidates.draw(random.Random(1), of, "x", 20))
