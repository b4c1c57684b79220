"""A day cuts a table's slices in two: every row is in exactly one half."""

import itertools
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model import small_batch
from console.model.live import Day
from console.model.region import Limits
from console.model.slices import Slice, cut, half
from console.planning import estimate

pytestmark = pytest.mark.slow

FIRST = date(2026, 11, 1)
DAYS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3000)), unique_by=lambda pair: pair[0])


def holds(piece: Slice, at: datetime | None) -> bool:
    if at is None or piece.null:
        return piece.null and at is None
    moment = at.strftime("%Y-%m-%dT%H:%M:%S")
    return (not piece.first or moment >= piece.first) and (not piece.end or moment < piece.end)


LIMITS = st.sampled_from([(None, None), (1000, None), (None, 2000), (1000, 2000)])


@given(DAYS, st.integers(-3, 45), LIMITS, st.none() | st.integers(-100, 1100))
def test_every_row_is_in_exactly_one_slice_of_one_half(
    days: list[tuple[int, int]], boundary: int, limits: tuple[int | None, int | None], hour: int | None
) -> None:
    most_rows, most_bytes = limits
    cut_days = [Day((FIRST + timedelta(n)).isoformat(), rows, rows) for n, rows in days]
    slices = cut(cut_days, most_rows, bytes_limit=most_bytes)
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


SMALL = st.fixed_dictionaries(
    {"SLICES": st.integers(2, 20), "ROWS": st.integers(500, 5000), "BYTES": st.integers(500, 5000)}
)


@given(DAYS, LIMITS, st.sampled_from([None, 500, 3000]), SMALL)
def test_the_price_counts_the_batches_that_the_slices_are_packed_into(
    days: list[tuple[int, int]], limits: tuple[int | None, int | None], heavy: int | None, small: dict[str, int]
) -> None:
    most_rows, most_bytes = limits
    every = [Day((FIRST + timedelta(n)).isoformat(), rows, rows) for n, rows in days]
    slices, after, batches = cut(every, heavy, bytes_limit=most_bytes), 0, 0
    with pytest.MonkeyPatch.context() as patch:
        for name, value in small.items():
            patch.setattr(small_batch, name, value)
        while run := small_batch.next_run(slices, after, most_rows, most_bytes):
            batches, after = batches + any(piece.rows for piece in run), run[-1].index
        assert estimate._batches(every, Limits(rows=most_rows, bytes=most_bytes), hours=True, heavy=heavy) == batches
