"""Charts: values to rows of braille, and their fallbacks. Pure: no app, no terminal."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from console.tui.charts import chart, chart_columns, dots, round_top, sparkline, spread
from console.tui.terminal.ascii import to_ascii, to_blocks

pytestmark = pytest.mark.slow

values = st.lists(st.none() | st.floats(-1e12, 1e12) | st.sampled_from([math.nan, math.inf]), max_size=300)


def test_a_sparkline_rises_to_its_highest_value() -> None:
    assert sparkline([1, 2, 3, 4, 4, 3, 2, 1], 4) == "⣠⣾⣷⣄"
    assert sparkline([1, 2], 2, top=4) == " ⣠"


def test_a_measured_zero_is_seen_and_a_gap_is_empty() -> None:
    assert sparkline([0, 0, None, None, 0, 0], 3) == "⣀ ⣀"
    assert sparkline([], 3) == "   "
    assert sparkline([None, 8], 1) == "⢸"


def test_the_latest_values_are_drawn() -> None:
    assert sparkline([9, 9, 9, 9, 0, 0], 1) == "⣀"


def test_rows_lie_above_each_other() -> None:
    assert dots([1, 8], 1, 2, 8) == ("⢸", "⣸")


def test_a_chart_states_its_scale_and_its_moments() -> None:
    drawn = chart([0, 5_000, 10_000, 15_000, None, None, 18_000, 18_000], 13, 3, moments=("13:32", "14:32"))
    assert drawn == (
        "20.0k│    ⢠ ⣿",
        "    0└   ⣠⣿ ⣿",
        "        14:32",
    )


def test_the_limit_is_a_dashed_line_within_the_scale() -> None:
    drawn = chart([1, 1, 30, 30, None, None], 9, 3, limit=60)
    assert drawn[0].startswith(" 100│".rjust(6))
    assert [row.count("┄") for row in drawn] == [0, 3, 0]
    assert "┄" not in "".join(chart([1, 1], 9, 3))


def test_moments_are_spread_over_the_axis() -> None:
    last = chart([1], 40, 3, moments=("13:32", "14:02", "14:32"))[-1]
    assert [last.find(text) for text in ("13:32", "14:02", "14:32")] == [6, 20, 35]


def test_samples_are_spread_over_columns_and_gaps_stay() -> None:
    samples = [(10.0 * n, float(n)) for n in range(6) if n != 3]
    assert spread(samples, 0, 60, 6, hold=10) == (0, 1, 2, None, 4, 5)
    assert spread(samples, 0, 60, 12, hold=10) == (0, 0, 1, 1, 2, 2, None, None, 4, 4, 5, 5)
    assert spread(samples, 0, 60, 2, hold=10) == (2, 5)
    assert spread(samples, 100, 160, 3, hold=10) == (None, None, None)
    assert spread(samples, 60, 60, 3) == (None, None, None)


def test_a_scale_ends_at_a_round_number() -> None:
    assert [round_top([value]) for value in (0, 0.3, 1, 1.1, 17_000, 50, 51, -4)] == [1, 0.5, 1, 2, 20_000, 50, 100, 1]
    assert round_top([None]) == 1


@given(values, st.integers(0, 120), st.integers(1, 12), st.floats(0, 1e9))
def test_every_chart_has_its_size(given_values: list[float | None], width: int, height: int, limit: float) -> None:
    assert cell_len(sparkline(given_values, width)) == width
    moments = ("13:32", "14:02", "14:32")
    for rows in (
        chart(given_values, width, height),
        chart(given_values, width, height, limit=limit, moments=moments if height > 1 else ()),
    ):
        assert len(rows) == height
        assert {cell_len(row) for row in rows} <= {max(width, 6)}
    assert chart_columns(width) == 2 * max(0, width - 6)


@given(values)
def test_the_fallbacks_keep_the_cells_and_the_order_of_heights(given_values: list[float | None]) -> None:
    line = sparkline(given_values, 40)
    assert cell_len(to_blocks(line)) == cell_len(to_ascii(line)) == 40
    assert to_ascii(line).isascii()
    assert not any(0x2800 <= ord(char) < 0x2900 for char in to_blocks(line))
    assert [char == " " for char in to_blocks(line)] == [char == " " for char in line]


def test_fallbacks_of_a_rising_line() -> None:
    rising = sparkline([0, 0, 2, 2, 3, 3, 4, 4], 4, top=4)
    assert to_blocks(rising) == "▂▄▆█"
    assert to_ascii(rising) == "_-=#"
