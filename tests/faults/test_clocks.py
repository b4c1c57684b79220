"""A clock that jumps, a night that clocks go back or forward in, a leap day: order is by number, days are cut in UTC (F13)."""

import itertools
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from console.model.event import Accepted, BatchDone, Entered, Event, Recorded, StepStarted
from console.model.live import Day
from console.model.slices import Slice, cut
from console.model.status import Status, fold

pytestmark = pytest.mark.slow

STEP = "backfill/requests"
EVENTS: tuple[Event, ...] = (
    Accepted(release="r2", was="r1", plan="p", by="ada", host="laptop", steps=((STEP, 300),)),
    Entered("backfilling"),
    StepStarted(STEP),
    BatchDone(
        step=STEP, label="2026-11-07", position=1, of=3, rows_in=100, rows_out=100, bytes=1000, seconds=2.0, version=4
    ),
    BatchDone(
        step=STEP, label="2026-11-06", position=2, of=3, rows_in=100, rows_out=100, bytes=1000, seconds=2.0, version=5
    ),
    BatchDone(
        step=STEP, label="2026-11-05", position=3, of=3, rows_in=150, rows_out=150, bytes=1000, seconds=0.0, version=6
    ),  # more rows than the plan knew of
)


def contains(piece: Slice, at: datetime) -> bool:
    moment = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return not piece.null and (not piece.first or moment >= piece.first) and (not piece.end or moment < piece.end)


@pytest.mark.parametrize("limit", [None, 10])
@pytest.mark.parametrize(
    ("day", "zone"),
    [("2024-02-29", "UTC"), ("2026-10-25", "Europe/Madrid"), ("2026-03-29", "Europe/Madrid"), ("2026-04-05", "Australia/Lord_Howe")],
)  # fmt: skip
def test_every_moment_of_an_odd_day_is_in_exactly_one_slice_whatever_the_local_clocks_show(
    day: str, zone: str, limit: int | None
) -> None:
    middle = date.fromisoformat(day)
    days = [Day((middle + timedelta(offset)).isoformat(), 100, 1000) for offset in (-1, 0, 1)]
    slices = cut(days, limit)
    start = datetime.combine(middle - timedelta(2), datetime.min.time(), UTC)
    local = ZoneInfo(zone)
    for quarter in range(5 * 24 * 4):
        at = (start + timedelta(minutes=15 * quarter)).astimezone(local)
        results = [piece for piece in slices if contains(piece, at)]
        assert len(results) == 1, at
        if at.astimezone(UTC).date() == middle:
            assert results[0].label.startswith(day)
    ranged = [piece for piece in slices if not piece.null]
    assert all(newer.first == older.end for newer, older in itertools.pairwise(ranged))


@pytest.mark.parametrize("jumps", list(itertools.product((-86_400.0, 0.0, 7_200.0), repeat=3)))
def test_events_are_told_by_their_number_and_no_estimate_is_negative_however_the_clock_jumps(
    jumps: tuple[float, ...],
) -> None:
    steady, jumping, at, off = Status(), Status(), 1000.0, 0.0
    for seq, event in enumerate(EVENTS, 1):
        off += jumps[seq % 3]
        steady = fold(steady, Recorded("web-2", seq, at + seq, event))
        jumping = fold(jumping, Recorded("web-2", seq, at + seq + off, event))
        assert jumping.eta_seconds is None or jumping.eta_seconds >= 0
        assert jumping.rate == steady.rate, "by what the batches took, not by when they were told"
    again = fold(jumping, Recorded("web-2", 3, 10**10, Entered("live")))
    assert again == jumping, "a number that was told is past, however late its clock says it is"
    assert (jumping.state, jumping.seq, jumping.rows_done) == (steady.state, steady.seq, steady.rows_done)
    assert [step.state for step in jumping.steps] == [step.state for step in steady.steps]
