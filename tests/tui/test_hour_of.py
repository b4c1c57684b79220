"""The hour that a sparkline shows, whatever else the view keeps."""

import pytest

from console.model.measured import FeedSample
from console.runner.view import RegionView
from console.tui.fleet.figures import hour_of
from tests.screens.scripted import US

UNTIL = 1_794_000_000.0 // 60 * 60


def view(*samples: tuple[float, float]) -> RegionView:
    """Seconds before the hour's end → rows per second."""
    kept = tuple(FeedSample(at=UNTIL - ago, feed="", rows=rows, lag=rows, behind=0) for ago, rows in samples)
    return RegionView(region=US, samples=kept)


@pytest.mark.parametrize("columns", [8, 20, 120])
@pytest.mark.parametrize("figure", ["rows", "lag"])
def test_a_peak_before_the_hour_is_not_shown_in_its_first_column(columns: int, figure: str) -> None:
    hour = [(float(ago), 5.0) for ago in range(3600, 0, -10)]
    before = [(float(ago), 900.0) for ago in range(4200, 3600, -10)]
    alone = hour_of(view(*hour), figure, UNTIL - 1, columns)
    assert alone == (5.0,) * columns
    assert hour_of(view(*before, *hour), figure, UNTIL - 1, columns) == alone


def test_a_region_that_reported_nothing_within_the_hour_has_no_sparkline() -> None:
    assert hour_of(view((3700.0, 5.0)), "rows", UNTIL - 1, 20) == ()
