"""Slices of a fence, day by day, and what events say of each."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model import codec
from console.model.calendar import DayCell, calendar
from console.model.event import Accepted, BatchDone, BatchStarted, Event, Fenced, Logged, Recorded, StepStarted
from console.model.incident import SlicedDay, TryFailed
from console.model.live import Day
from console.model.slices import by_day, cut

STEP = "backfill/requests/parse"
FRAME = 1 << 20


def recorded(*events: Event) -> list[Recorded]:
    accepted = Accepted(release="r2", was="r1", plan="p", by="ada", host="laptop", steps=((STEP, 100),))
    return [Recorded("web-1", seq, float(seq), event) for seq, event in enumerate((accepted, *events), 1)]


def fenced(*days: Day, limit: int | None = None) -> Fenced:
    slices = cut(days, limit)
    return Fenced(
        step=STEP,
        source="landing",
        version=7,
        slices=len(slices),
        rows=sum(day.rows for day in days),
        days=by_day(slices),
    )


def batch(first: int, last: int) -> BatchStarted:
    return BatchStarted(step=STEP, label=f"{first}", first=first, last=last, of=9, rows=10)


def done(position: int) -> BatchDone:
    return BatchDone(
        step=STEP, label=f"{position}", position=position, of=9, rows_in=10, rows_out=10, bytes=1, seconds=1.0, version=position
    )  # fmt: skip


def failed(first: int, last: int) -> Logged:
    incident = TryFailed(
        step=STEP, label="x", first=first, last=last, cause="memory", why="heap", number=1, of=3, rows=9, rows_next=3, seconds=2.0
    )  # fmt: skip
    return Logged("it failed", "warning", incident)


def cells(*events: Event) -> dict[str, DayCell]:
    (step,) = calendar(recorded(*events))
    return {day.label: day for day in step.days}


THREE = fenced(Day("2026-11-05", 50, 500), Day("2026-11-06", 2400, 600), Day("2026-11-07", 70, 700), limit=1000)


def test_each_day_has_what_became_of_it() -> None:
    shown_cells = cells(THREE, batch(1, 1), done(1), batch(2, 9), failed(2, 9), batch(2, 5), done(5), batch(6, 9))
    assert list(shown_cells) == ["2026-11-07", "2026-11-06", "2026-11-05", "no day"]
    heavy = shown_cells["2026-11-06"]
    assert [day.state for day in shown_cells.values()] == ["done", "running", "waiting", "waiting"]
    assert (heavy.rows, heavy.first, heavy.last, heavy.done) == (2400, 2, 25, 4)
    assert (heavy.tries, heavy.causes, heavy.batch) == (1, ("memory",), done(5))
    assert heavy.hours[3:5] == (("2026-11-06T20", "retried"), ("2026-11-06T19", "running"))
    assert shown_cells["2026-11-07"].hours == ()
    assert (shown_cells["2026-11-07"].batch, shown_cells["2026-11-07"].at) == (done(1), 4.0)


def test_a_day_that_needed_a_second_try_says_so_when_it_is_in() -> None:
    shown_cells = cells(
        fenced(Day("2026-11-07", 70, 700)), batch(1, 2), failed(1, 2), batch(1, 1), done(1), batch(2, 2), done(2)
    )
    assert [day.state for day in shown_cells.values()] == ["retried", "retried"]


def test_a_batch_that_ended_with_its_agent_runs_no_longer() -> None:
    assert cells(THREE, batch(1, 1))["2026-11-07"].state == "running"
    assert cells(THREE, batch(1, 1), StepStarted(STEP, away_since=3.0))["2026-11-07"].state == "waiting"
    assert cells(THREE, batch(1, 1), failed(1, 1))["2026-11-07"].state == "waiting"


def test_a_fence_of_an_older_agent_has_no_days() -> None:
    (step,) = calendar(recorded(dataclasses.replace(THREE, days=()), batch(1, 1), done(1)))
    assert step.days == ()


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 5000), min_size=0, max_size=60),
    st.one_of(st.none(), st.integers(1, 3000)),
    st.integers(1, 20),
)
def test_no_slice_and_no_row_is_lost_whatever_is_listed_together(rows: list[int], limit: int | None, most: int) -> None:
    slices = cut([Day(f"2026-{1 + at // 28:02}-{1 + at % 28:02}", n, n) for at, n in enumerate(rows)], limit)
    for days in (by_day(slices), by_day(slices, most)):
        assert sum(day.slices for day in days) == len(slices)
        assert sum(day.rows for day in days) == sum(piece.rows for piece in slices)
    assert len(by_day(slices, most)) <= most


@pytest.mark.slow
def test_a_fence_over_a_hundred_years_fits_into_one_message() -> None:
    names = [f"{1930 + at // 336}-{1 + at // 28 % 12:02}-{1 + at % 28:02}" for at in range(100 * 336)]
    # listed in runs of seven days; in each run one day is cut into hours
    days = [Day(name, 10**9 if at % 7 else 10**10, 10**12) for at, name in enumerate(names)]
    slices = cut(days, 10**9)
    event = Fenced(step=STEP, source="landing", version=7, slices=len(slices), rows=1, days=by_day(slices))
    message = codec.dumps(Recorded("web-1", 4, 1.0, event))
    assert len(message) < FRAME
    assert codec.decode(Recorded, json.loads(message)).event == event
    assert " … " in event.days[0].label
    assert event.days[-1].label.endswith("no day")


def test_the_days_of_one_slice_need_no_fence_of_days() -> None:
    assert by_day(cut(())) == (SlicedDay(label="all", rows=0), SlicedDay(label="no day", rows=0))
