"""The forecast of a rollout's gate, over events that are made by hand; `tests/forecast` has recorded ones."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from console.model.event import (
    Accepted,
    BatchDone,
    BatchStarted,
    DriverLost,
    Entered,
    Event,
    Fenced,
    Logged,
    Paused,
    Recorded,
    StepDone,
    StepStarted,
)
from console.model.incident import SparkBack, TryFailed, WaitBegan, WaitEnded
from console.model.live import Release
from console.model.measured import FeedSample
from console.model.plan import Plan
from console.model.policy import Throttle
from console.model.region import Prices, Region, Spark
from console.model.status import replay
from console.model.step import Backfill
from console.runner.outlook.between import Between
from console.runner.outlook.forecast import Forecast, forecast
from console.runner.outlook.pace import measured
from console.runner.outlook.windows import end_of_work
from tests.plans import bare_plan

A, B = "backfill/a/feed", "backfill/b/feed"
STEPS = ((A, 1000), (B, 1000), ("catch-up/a/feed", 0), ("catch-up/b/feed", 0), ("validate", 0), ("promote", 0))
REGION = Region(name="eu", warehouse="/w", spark=Spark(master="local[2]"), prices=Prices(core_hour=3.6, currency="EUR"))
RELEASE = Release(id="r2", pipeline="web", digest="d", tables=(), feeds=())
NOON = 1_795_521_600.0  # 2026-11-24 12:00Z


class Told:
    """Events one after the other. at: seconds since the acceptance"""

    def __init__(self) -> None:
        self.events: list[Recorded] = []
        self.at = 0.0
        self.tell(Accepted(release="r2", was="r1", plan="p", by="ada", host="laptop", steps=STEPS))
        self.tell(Entered("backfilling"))

    def tell(self, event: Event, after: float = 0.0) -> None:
        self.at += after
        self.events.append(Recorded("web-2", len(self.events) + 1, NOON + self.at, event))

    def begin(self, step: str, rows: int = 1000) -> None:
        self.tell(StepStarted(step))
        self.tell(Fenced(step=step, source="t", version=1, slices=10, rows=rows))

    def batch(self, step: str, number: int, seconds: float, rows: int = 100) -> None:
        self.tell(BatchStarted(step=step, label="d", first=number, last=number, of=10, rows=rows))
        self.tell(
            BatchDone(step=step, label="d", position=number, of=10, rows_in=rows, rows_out=rows, bytes=10 * rows, seconds=seconds, version=number),
            after=seconds,
        )  # fmt: skip

    def expected(self, plan: Plan | None = None, after: float = 0.0, samples: Sequence[FeedSample] = ()) -> Forecast:
        found = self.forecast(plan, after, samples)
        assert found is not None
        return found

    def forecast(
        self, plan: Plan | None = None, after: float = 0.0, samples: Sequence[FeedSample] = ()
    ) -> Forecast | None:
        now = NOON + self.at + after
        return forecast(replay(self.events), self.events, region=REGION, plan=plan, now=now, samples=samples)


@pytest.fixture
def told() -> Told:
    """Two tables of a thousand rows each, of which a batch of a hundred took ten seconds: the rehearsal."""
    made = Told()
    for step in (A, B):
        made.begin(step)
        made.batch(step, 1, 10.0)
    return made


def test_nothing_is_foretold_before_a_batch_is_measured_and_something_after_the_first() -> None:
    story = Told()
    story.begin(A)
    assert story.forecast() is None
    story.batch(A, 1, 10.0)
    expected = story.expected()
    left = expected.copied.low - expected.at, expected.copied.high - expected.at
    assert left[0] < 90 + 100 < left[1], "nine batches more, and the other table at the same rate"


def test_each_table_has_its_own_rate_after_the_rehearsal(told: Told) -> None:
    slow = Told()
    slow.begin(A)
    slow.batch(A, 1, 10.0)
    slow.begin(B)
    slow.batch(B, 1, 50.0)
    expected = slow.expected()
    assert expected.copied.low - expected.at < 90 + 450 < expected.copied.high - expected.at
    assert slow.expected().copied.high - slow.at > told.expected().copied.high - told.at + 300


def test_the_interval_narrows_with_each_batch_and_holds_the_end(told: Told) -> None:
    widths = []
    for number in range(2, 11):
        told.batch(A, number, 10.0)
        told.batch(B, number, 10.0)
        expected = told.expected()
        left = 20.0 * (10 - number) + 25.0  # the receipts of both tables
        assert expected.copied.low - expected.at <= left <= expected.copied.high - expected.at
        widths.append(expected.copied.high - expected.copied.low)
    assert widths[-1] < widths[0] / 2


def test_the_time_of_the_running_batch_is_part_of_what_is_left(told: Told) -> None:
    told.tell(BatchStarted(step=A, label="d", first=2, last=2, of=10, rows=100))
    early, late = told.expected(after=1.0), told.expected(after=9.0)
    assert late.gate.high == pytest.approx(early.gate.high, abs=2.5), "the end does not move while it runs as expected"


def test_catching_up_and_the_checks_are_ahead_of_the_gate(told: Told) -> None:
    expected = told.expected()
    assert expected.gate.low - expected.copied.low > 1.0
    for number in range(2, 11):
        told.batch(A, number, 10.0)
        told.batch(B, number, 10.0)
    for step in (A, B, "catch-up/a/feed", "catch-up/b/feed"):
        told.tell(StepStarted(step))
        told.tell(StepDone(step), after=1.0)
    before = told.expected()
    assert before.copied.high == before.at, "the history is closed"
    assert before.gate.low > before.at
    told.tell(Entered("validating"))
    told.tell(StepStarted("validate"))
    assert told.expected(after=3.0).gate.low < before.gate.low + 3.0, "the checks have begun"


def test_a_rollout_that_ends_or_stands_has_no_forecast(told: Told) -> None:
    for event in (Paused("ada"), Entered("awaiting-confirmation")):
        story = Told()
        story.events = [*told.events]
        story.tell(event)
        assert story.forecast() is None


def test_hours_of_a_throttle_move_the_end_and_tell_it_while_the_rollout_waits_for_them(told: Told) -> None:
    nightly = bare_plan(steps=(), release=RELEASE, throttle=Throttle(hours="22:00-06:00"))
    why = "outside of 22:00-06:00 UTC"
    told.tell(Logged(why, incident=WaitBegan(step=A, cause="hours", why=why, since=NOON + told.at)))
    expected = told.expected(nightly)
    assert expected.copied.low >= NOON + 10 * 3600, "no batch before 22:00"
    assert expected.copied.high < NOON + 11 * 3600


@pytest.mark.parametrize("cause", ["lag", "query", "pause"])
def test_no_figure_tells_when_another_wait_ends(told: Told, cause: str) -> None:
    told.tell(Logged("waits", incident=WaitBegan(step=A, cause=cause, why="waits", since=NOON + told.at)))
    assert told.forecast() is None


def test_a_wait_like_those_that_have_ended_is_part_of_the_forecast_until_it_is_much_longer(told: Told) -> None:
    def waits() -> None:
        told.tell(Logged("waits", incident=WaitBegan(step=A, cause="lag", why="", since=NOON + told.at)))

    waits()
    told.tell(Logged("goes on", incident=WaitEnded(step=A, cause="lag", seconds=8.0)), after=8.0)
    expected = told.expected()
    assert told.forecast(after=60.0) is not None
    waits()
    assert told.expected(after=8.0).gate.high > expected.gate.high
    assert told.forecast(after=20.0) is None, "no wait was that long"
    told.tell(Logged("goes on", incident=WaitEnded(step=A, cause="lag", seconds=20.0)), after=20.0)
    told.tell(Logged("waits", incident=WaitBegan(step=A, cause="query", why="", since=NOON + told.at)))
    assert told.forecast(after=1.0) is None, "none of this cause has ended"


def test_batches_in_which_a_jvm_starts_say_nothing_about_later_ones() -> None:
    def rate(*, lost: bool) -> float:
        story = Told()
        story.begin(A)
        story.batch(A, 1, 40.0)
        for number in range(2, 6):
            story.batch(A, number, 10.0)
        if lost:
            story.tell(DriverLost(A))
            story.tell(StepStarted(A))
        story.batch(A, 6, 40.0)
        return measured(replay(story.events), story.events, NOON + story.at).paces[A].per_row.middle

    assert rate(lost=True) == pytest.approx(0.1, rel=0.1), "ten seconds for a hundred rows"
    assert rate(lost=False) > 0.13, "this one has no such excuse"


@pytest.mark.parametrize(
    ("rows", "seconds", "least", "most"),
    [
        (100, 5.0, 2 * 5.0, 4 * 5.0),  # of few rows: the time of some batches
        (1_000_000, 60.0, 2 * 1.5 + 0.1 * 58.5 * 50, 4 * 1.5 + 0.5 * 58.5 * 50),  # of many: a share of the time of all
    ],
)
def test_a_job_over_all_rows_takes_the_time_of_some_batches_and_a_share_of_that_of_their_rows(
    rows: int, seconds: float, least: float, most: float
) -> None:
    story = Told()
    story.begin(A, rows=50 * rows)
    for number in range(1, 6):
        story.batch(A, number, seconds, rows)
    pace = measured(replay(story.events), story.events, NOON + story.at).paces[A]
    job = replace(pace, per_row=Between(seconds / rows, seconds / rows)).job(
        50 * rows, Between(2, 4), Between(0.1, 0.5)
    )
    assert job.high == pytest.approx(most, rel=0.02)
    assert min(least, 2 * 10.0 + 0.1 * 50 * 50) * 0.98 < job.low < least * 1.02


def test_waits_tries_and_a_lost_spark_lengthen_the_upper_end(told: Told) -> None:
    plain = told.expected()

    def after(*events: Event) -> Forecast:
        story = Told()
        story.events, story.at = [*told.events], told.at
        for event in events:
            story.tell(event, after=5.0)
        return story.expected()

    failed = TryFailed(step=A, label="d", first=2, last=2, cause="memory", why="", number=1, of=3, rows=1, rows_next=1, seconds=5.0)  # fmt: skip
    begun = BatchStarted(step=A, label="d", first=2, last=2, of=10, rows=100)
    for events in (
        (begun, Logged("failed", incident=failed), begun),
        (begun, DriverLost(A), Logged("back", incident=SparkBack(step=A, seconds=5.0)), begun),
        (
            Logged("waits", incident=WaitBegan(step=A, cause="lag", why="", since=NOON + told.at)),
            Logged("goes on", incident=WaitEnded(step=A, cause="lag", seconds=5.0)),
            begun,
        ),
    ):
        expected = after(*events)
        assert expected.copied.high - expected.at > plain.copied.high - plain.at, events


def test_a_table_without_a_batch_is_estimated_by_its_rows_and_by_its_bytes() -> None:
    def step(id: str, size: int) -> Backfill:
        _, target, feed = id.split("/")
        return Backfill(materialization=feed, source="t", target=target, route="replay", sql="", time="ts", rows=1000, bytes=size, days=10, batches=10)  # fmt: skip

    story = Told()
    story.begin(A)
    story.batch(A, 1, 10.0)
    alike, heavy = (bare_plan(steps=(step(A, 1000), step(B, size)), release=RELEASE) for size in (1000, 10_000))
    assert story.expected(heavy).copied.high > story.expected(alike).copied.high + 300


def test_half_an_hour_of_samples_tells_the_rate(told: Told) -> None:
    began = NOON
    told.at = 2400.0
    samples = [FeedSample(at=began + 10.0 * n, feed="", rows=0, lag=0, behind=0, backfill=1.0) for n in range(1, 240)]
    expected = told.expected(samples=samples)
    assert expected.copied.low - expected.at == pytest.approx(1800, rel=0.1), "1,800 rows at one a second"


def test_rows_bytes_and_money_are_intervals_around_what_is_measured(told: Told) -> None:
    expected = told.expected()
    assert (expected.rows.low, expected.rows.high) == (2000, 2000)
    assert expected.written.low < 20_000 < expected.written.high
    # two cores at 3.60 an hour: 0.002 a second
    seconds = told.at + (expected.gate.low - expected.at)
    assert expected.money.low == pytest.approx(0.002 * seconds, rel=0.2)
    assert expected.money.low < expected.money.high
    assert expected.batches == 2


@pytest.mark.parametrize(
    ("now", "seconds", "ends"),
    [
        (0, 0, 0),  # at noon, with nothing to do
        (0, 60, 36_060),  # outside of the hours: a minute after 22:00
        (36_000, 8 * 3600, 64_800),  # exactly one night
        (36_000, 8 * 3600 + 60, 122_460),  # and a minute of the next one
        (39_600, 60, 39_660),  # within them
    ],
)
def test_work_runs_only_in_its_hours(now: float, seconds: float, ends: float) -> None:
    assert end_of_work(NOON + now, seconds, "22:00-06:00", "UTC") == NOON + ends


def test_work_of_years_in_an_hour_a_day_has_an_end() -> None:
    assert end_of_work(NOON, 1e9, "22:00-23:00", "UTC") == NOON + 24e9


def test_events_that_are_not_known_here_are_replaced_by_the_figures_of_the_status(told: Told) -> None:
    status = replay(told.events)
    now = NOON + told.at
    found = forecast(status, (), region=REGION, plan=None, now=now)
    assert found is not None
    assert found.copied.low < now + 180 + 25 < found.copied.high
    assert forecast(replace(status, rollout="web-3"), told.events, region=REGION, plan=None, now=now) is not None


def test_a_year_at_the_rate_of_a_handful_of_rows_is_not_foretold() -> None:
    """The newest day may hold three rows, and a date beyond the year 9999 cannot be drawn."""
    story = Told()
    story.begin(A, rows=20_000_000_000)
    story.batch(A, 1, 10.0, rows=1)
    assert story.forecast() is None
