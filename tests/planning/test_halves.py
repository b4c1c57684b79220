"""A day cuts a table's slices in two: every row is in exactly one half."""

import itertools
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model.live import Day
from console.model.slices import Slice, cut, half

pytestmark = pytest.mark.slow

FIRST = date(2026, 11, 1)
DAYS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3000)), unique_by=lambda pair: pair[0])


def holds(piece: Slice, at: datetime | None) -> bool:
    if at is None or piece.null:
        return piece.null and at is None
    moment = at.strftime("%Y-%m-%dT%H:%M:%S")
    return (not piece.first or moment >= piece.first) and (not piece.end or moment < piece.end)


@given(DAYS, st.integers(-3, 45), st.sampled_from([None, 1000]), st.none() | st.integers(-100, 1100))
def test_every_row_is_in_exactly_one_slice_of_one_half(
    days: list[tuple[int, int]], boundary: int, limit: int | None, hour: int | None
) -> None:
    slices = cut([Day((FIRST + timedelta(n)).isoformat(), rows, rows) for n, rows in days], limit)
    day = FIRST + timedelta(boundary)
    start = datetime.combine(FIRST, datetime.min.time(), UTC)
    at = None if hour is None else start + timedelta(hours=hour)
    older, newer = half(slices, until=day.isoformat()), half(slices, since=day.isoformat())
    results = [piece for piece in (*older, *newer) if holds(piece, at)]
    assert len(results) == 1
    assert (results[0] in newer) == (at is not None and at.date() >= day)
    for part in (older, newer):
        assert [piece.index for piece in part] == list(range(1, len(part) + 1))
        ranged = [piece for piece in part if not piece.null]
        assert all(a.first == b.end for a, b in itertools.pairwise(ranged))
