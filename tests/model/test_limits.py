"""Rows of a day that is still carried in one piece."""

from dataclasses import replace

import pytest

from console.model.region import Limits
from tests.planning.world import live, pipeline, planned


@pytest.mark.parametrize(
    ("rate", "target", "rows"),
    [
        (0.0, 60.0, None),  # nothing was measured yet
        (10_000.0, 60.0, 2_400_000),
        (10_000.0, 30.0, 1_200_000),
        (3.0, 60.0, 100_000),  # the rate of a few rows is that of their batch's start
    ],
)
def test_a_day_may_take_four_times_the_target_duration(rate: float, target: float, rows: int | None) -> None:
    assert Limits(target_seconds=target).day_rows(rate) == rows


def test_a_plan_holds_it_at_the_rate_of_its_region() -> None:
    done = planned(pipeline(), replace(live(), rows_per_second=5_000.0))
    assert (done.rows_limit, done.day_rows, done.heavy_rows) == (2_000, 1_200_000, 2_000)
    assert replace(done, rows_limit=None).heavy_rows == 1_200_000
    assert planned(pipeline(), replace(live(), rows_per_second=0.0)).day_rows is None
