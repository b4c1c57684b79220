"""The parts of an account sum to the time since acceptance, whatever happened, and each has the time that it took."""

from collections import defaultdict
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.model.account import Account, account
from console.model.event import (
    Accepted,
    BatchDone,
    BatchStarted,
    Checked,
    DriverLost,
    Ended,
    Entered,
    Event,
    Failed,
    Lagging,
    Logged,
    Paused,
    Promoted,
    Recorded,
    Resumed,
    StepDone,
    StepStarted,
)
from console.model.incident import SparkBack, TryFailed, WaitBegan, WaitEnded

STEP = "backfill/requests/parse"
ACCEPTED = Accepted(release="r2", was="r1", plan="p", by="ada", host="laptop", steps=((STEP, 100),))
BEGUN = BatchStarted(step=STEP, label="x", first=1, last=1, of=9, rows=60)
DONE = BatchDone(
    step=STEP, label="x", position=1, of=9, rows_in=60, rows_out=60, bytes=1, seconds=1.0, version=1
)  # fmt: skip
FAILED_TRY = TryFailed(
    step=STEP, label="x", first=1, last=1, cause="memory", why="Java heap space", number=1, of=3, rows=60, rows_next=15, seconds=4.0
)  # fmt: skip


class World:
    """What happened in a region, second by second, and what its agents stored of it."""

    def __init__(self, start: float) -> None:
        self.now = self.start = start
        self.events: list[Recorded] = []
        self.spent: dict[str, float] = defaultdict(float)
        self.store(ACCEPTED)
        self.store(Entered("backfilling"))
        self.store(StepStarted(STEP))

    def store(self, event: Event) -> None:
        self.events.append(Recorded("web-1", len(self.events) + 1, self.now, event))

    def report(self, incident: TryFailed | WaitBegan | WaitEnded | SparkBack) -> None:
        self.store(Logged("a line", "info", incident))

    def spend(self, seconds: float, on: str) -> None:
        self.now += seconds
        self.spent[on] += seconds

    # -- what may happen, each with some seconds

    def batch(self, seconds: float) -> None:
        self.store(BEGUN)
        self.spend(seconds, "batches")
        self.store(DONE)

    def wait(self, seconds: float) -> None:
        since = self.now
        self.spend(seconds / 2, "lag")
        self.report(WaitBegan(step=STEP, cause="lag", why="live rows are 70 s behind", since=since))
        self.spend(seconds / 2, "lag")
        self.report(WaitEnded(step=STEP, cause="lag", seconds=seconds))

    def wait_for_hours(self, seconds: float) -> None:
        self.report(WaitBegan(step=STEP, cause="hours", why="outside of 22:00-06:00", since=self.now))
        self.spend(seconds, "hours")
        self.report(WaitEnded(step=STEP, cause="hours", seconds=seconds))

    def failing(self, seconds: float) -> None:
        self.store(BEGUN)
        self.spend(seconds, "tries")
        self.report(FAILED_TRY)
        self.spend(4.0, "tries")
        self.batch(seconds)

    def loses_spark(self, seconds: float) -> None:
        self.store(BEGUN)
        self.spend(seconds, "spark")
        self.store(DriverLost(STEP, "its memory ran out"))
        self.spend(seconds, "spark")
        self.store(StepStarted(STEP, away_since=self.now - 1))
        self.spend(3.0, "spark")
        self.report(SparkBack(step=STEP, seconds=seconds + 3))

    def paused(self, seconds: float) -> None:
        self.store(Paused("ada"))
        self.spend(seconds, "paused")
        self.store(Resumed("ada"))
        self.store(StepStarted(STEP))

    def paused_in_a_wait(self, seconds: float) -> None:
        self.report(WaitBegan(step=STEP, cause="hours", why="outside of 22:00-06:00", since=self.now))
        self.spend(seconds, "hours")
        self.paused(seconds)

    def failed(self, seconds: float) -> None:
        self.store(BEGUN)
        self.spend(seconds, "tries")
        self.report(FAILED_TRY)
        self.store(Failed(STEP, "E_MEMORY"))
        self.spend(seconds, "failed")
        self.store(Resumed("ada"))
        self.store(StepStarted(STEP))

    def killed_in_a_wait(self, seconds: float) -> None:
        self.report(WaitBegan(step=STEP, cause="lag", why="live rows are 70 s behind", since=self.now))
        self.spend(seconds, "lag")
        self.back_after(seconds)

    def killed_in_a_batch(self, seconds: float) -> None:
        self.store(BEGUN)
        self.spend(seconds, "batches")
        self.back_after(seconds)

    def back_after(self, seconds: float) -> None:
        last_seen = self.now
        self.spend(seconds, "away")
        self.store(StepStarted(STEP, away_since=last_seen))

    def other(self, seconds: float) -> None:
        self.spend(seconds, "other")
        self.store(Checked(table="requests", check="rows", ok=True, detail="equal"))

    def gate(self, seconds: float) -> None:
        self.store(Entered("awaiting-confirmation"))
        self.spend(seconds, "gate")
        self.store(Entered("validating"))


HAPPENINGS: tuple[Callable[[World, float], None], ...] = (
    World.batch, World.wait, World.wait_for_hours, World.failing, World.loses_spark, World.paused, World.paused_in_a_wait, World.failed,
    World.killed_in_a_wait, World.killed_in_a_batch, World.other, World.gate,
)  # fmt: skip


def by_use(result: Account) -> dict[str, float]:
    return {part.cause or part.use: part.seconds for part in result.parts if part.seconds}


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.floats(0.01, 4000)), max_size=12), st.integers(0, 500))
def test_the_whole_time_is_divided_as_it_was_spent(
    drawn: list[tuple[Callable[[World, float], None], float]], rest: int
) -> None:
    world = World(1_790_000_000.0)
    for happens, seconds in drawn:
        happens(world, seconds)
    world.spend(rest, "gate" if world.events[-1].event == Entered("awaiting-confirmation") else "other")
    accounted = account(world.events, world.now)
    assert sum(part.seconds for part in accounted.parts) == pytest.approx(accounted.seconds, abs=0.01)
    assert accounted.seconds == pytest.approx(world.now - world.start, abs=0.01)
    assert by_use(accounted) == pytest.approx({use: spent for use, spent in world.spent.items() if spent}, abs=0.1)


@pytest.mark.slow
@settings(max_examples=200)
@given(st.lists(st.tuples(st.sampled_from(HAPPENINGS), st.floats(0.01, 400)), max_size=8), st.data())
def test_cut_anywhere_and_with_stepped_clocks_the_parts_sum_to_the_whole(
    drawn: list[tuple[Callable[[World, float], None], float]], data: st.DataObject
) -> None:
    """A console that attaches, an agent that is killed, a host whose clock is set: the time is divided without rest."""
    world = World(1_790_000_000.0)
    for happens, seconds in drawn:
        happens(world, seconds)
    events = world.events[: data.draw(st.integers(1, len(world.events)))]
    steps = data.draw(st.lists(st.floats(-3600, 3600), min_size=len(events), max_size=len(events)))
    stepped = [Recorded(r.rollout, r.seq, r.at + step, r.event) for r, step in zip(events, steps, strict=True)]
    now = stepped[-1].at + data.draw(st.floats(-100, 1000))
    accounted = account(stepped, now)
    assert sum(part.seconds for part in accounted.parts) == pytest.approx(accounted.seconds, abs=0.01)
    assert accounted.seconds == pytest.approx(max([now, *(r.at for r in stepped)]) - stepped[0].at, abs=0.01)
    assert all(part.seconds >= 0 for part in accounted.parts)


def recorded(*events: tuple[float, Event]) -> list[Recorded]:
    return [Recorded("web-1", seq, at, event) for seq, (at, event) in enumerate(events, 1)]


def test_a_rollout_that_has_ended_grows_no_older() -> None:
    events = recorded(
        (0.0, ACCEPTED),
        (5.0, BEGUN),
        (9.0, DONE),
        (12.0, Promoted(release="r2", was="r1", by="ada", host="laptop", version=3)),
    )
    assert account(events, 1000.0).seconds == 12.0
    assert account(recorded((0.0, ACCEPTED), (2.0, Ended("cancelled", "ada"))), 9.0).seconds == 2.0


def test_what_ran_when_it_was_asked_counts_for_what_it_is() -> None:
    began = WaitBegan(step=STEP, cause="query", why="throttle.query answers false", since=3.0)
    waiting = recorded((0.0, ACCEPTED), (6.0, Logged("the backfill waits", incident=began)))
    assert by_use(account(waiting, 10.0)) == {"other": 3.0, "query": 7.0}
    assert by_use(account(recorded((0.0, ACCEPTED), (2.0, BEGUN)), 10.0)) == {"other": 2.0, "batches": 8.0}
    lost = recorded((0.0, ACCEPTED), (2.0, BEGUN), (6.0, DriverLost(STEP)))
    assert by_use(account(lost, 10.0)) == {"other": 2.0, "spark": 8.0}


def test_each_use_is_counted() -> None:
    world = World(0.0)
    for happens in (World.wait, World.wait, World.failing, World.batch, World.loses_spark, World.killed_in_a_batch):
        happens(world, 10.0)
    accounted = account(world.events, world.now)
    times = {part.cause or part.use: part.times for part in accounted.parts}
    assert times == {"batches": 2, "lag": 2, "tries": 1, "spark": 1, "away": 1}
    assert [part.use for part in accounted.parts] == ["batches", "waiting", "tries", "spark", "away"]
    assert accounted.of("waiting").seconds == accounted.of("waiting", "lag").seconds == 20.0
    assert accounted.of("paused").seconds == 0.0


def test_fleeting_events_and_those_of_older_agents_do_no_harm() -> None:
    older = recorded(
        (0.0, ACCEPTED), (2.0, DriverLost(STEP)), (9.0, StepStarted(STEP)), (12.0, BEGUN), (20.0, StepDone(STEP))
    )
    fleeting = Recorded("web-1", 0, 99.0, Lagging(commits=0, rows=0, seconds=1.0))
    assert by_use(account([*older, fleeting], 21.0)) == {"other": 3.0, "spark": 10.0, "batches": 8.0}
    assert account((), 5.0) == Account(began=0.0, seconds=0.0, parts=())
