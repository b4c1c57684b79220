"""The reported progress of a rollout never decreases, whatever dies or arrives late, and ends at the receipts' figures."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.model.event import Accepted, BatchDone, BatchStarted, Fenced, Progress, Recorded, StepDone
from console.model.live import Day
from console.model.status import Status, fold, replay
from console.model.step import Backfill
from console.model.step_status import StepStatus
from tests.runner.worlds import ADA, PIPELINE, at_event, fake, plan, region, survey

Figures = tuple[int, int, float]  # rows, percent, the share that is drawn


def figures(status: Status) -> Figures:
    return status.rows_done, status.percent, status.fraction


async def recorded(days: Sequence[int], priced: int, limit: int, kills: Sequence[int]) -> list[Recorded]:
    """All that one region told while its agent was killed after some of its events, and what a new one told again."""
    world = fake("eu")
    stats = [
        replace(s, days=tuple(Day(f"2026-01-{i:02}", rows, rows * 10) for i, rows in enumerate(days, 1)))
        for s in survey("eu").stats
    ]
    world.disk.stats = {s.name: s for s in stats}
    heard: list[Recorded] = []
    dying: list[asyncio.Task[None]] = []
    for kill in kills:
        at_event(world, kill, lambda: dying.append(asyncio.create_task(world.kill_agent())))
    world.heard.append(heard.append)
    made = plan(PIPELINE, survey("eu"), region("eu"))
    # the price is an estimate: what is fenced later may be much more, or less
    steps = tuple(replace(step, rows=priced) if isinstance(step, Backfill) else step for step in made.steps)
    world.agent.accept(replace(made, steps=steps, rows_limit=limit), ADA)
    for _ in range(2000):
        if world.disk.status.state == "awaiting-confirmation":
            break
        await asyncio.gather(*dying)
        world.agent.start()
        await asyncio.sleep(0)
    await asyncio.gather(*dying)
    return heard


def late(report: Sequence[Recorded], seed: int) -> list[Recorded]:
    """The same, with some of it told once more, and what was said of a running batch also after that batch."""
    draw = random.Random(seed)
    out: list[Recorded] = []
    for one in report:
        out.append(one)
        if draw.random() < 0.3:
            out.append(draw.choice(out))
        if draw.random() < 0.3 and (messages := [r for r in out if isinstance(r.event, Progress)]):
            out.append(draw.choice(messages))
    return out


def never_falls(report: Sequence[Recorded]) -> Status:
    status = fold(Status(), report[0])
    before = figures(status)
    for one in report[1:]:
        status = fold(status, one)
        now = figures(status)
        assert all(new >= old for new, old in zip(now, before, strict=True)), (one, before, now)
        before = now
    return status


@pytest.mark.slow
@settings(max_examples=40)
@given(
    days=st.lists(st.integers(0, 5000), min_size=1, max_size=9),
    priced=st.integers(0, 20_000),
    limit=st.integers(500, 9000),
    kills=st.lists(st.integers(1, 60), max_size=4),
    seed=st.integers(0, 9999),
)
def test_progress_never_falls_and_ends_at_the_receipts(
    days: list[int], priced: int, limit: int, kills: list[int], seed: int
) -> None:
    output = asyncio.run(recorded(days, priced, limit, kills))
    end = never_falls(late(output, seed))
    receipts = {(r.event.step, r.event.position): r.event.rows_in for r in output if isinstance(r.event, BatchDone)}
    assert end.rows_done == end.rows_total == sum(receipts.values())
    assert end.percent == 100
    stored = [one for one in output if one.seq]
    # an agent or a console that starts anew knows what is stored, up to any event
    rows = [status.rows_done for status in accumulate(stored, fold, initial=Status())]
    assert rows == sorted(rows)
    assert rows[-1] == replay(stored).rows_done == end.rows_done


def test_rows_of_two_steps_of_which_one_turns_out_larger_than_priced_do_not_fall_in_percent() -> None:
    story = [
        Accepted(release="r2", was="r1", plan="p", by="ada", host="laptop", steps=(("a", 100), ("b", 100))),
        Fenced(step="a", source="t", version=1, slices=1, rows=100),
        BatchStarted(step="a", label="x", first=1, last=1, of=1, rows=100),
        BatchDone(step="a", label="x", position=1, of=1, rows_in=100, rows_out=100, bytes=1, seconds=1.0, version=1),
        Fenced(step="b", source="t", version=1, slices=2, rows=90_000),
        BatchDone(step="b", label="x", position=1, of=2, rows_in=45_000, rows_out=1, bytes=1, seconds=1.0, version=1),
        BatchDone(step="b", label="y", position=2, of=2, rows_in=45_000, rows_out=1, bytes=1, seconds=1.0, version=2),
    ]
    end = never_falls([Recorded("web-1", i, float(i), event) for i, event in enumerate(story, 1)])
    assert (end.rows_done, end.fraction) == (90_100, 1.0)


@pytest.mark.parametrize("late_by", [1, 2])
def test_what_is_told_of_a_batch_after_its_end_counts_for_nothing(late_by: int) -> None:
    """The thread that asks Spark for a job's progress may be slower than the batch."""
    events = [
        Fenced(step="a", source="t", version=1, slices=2, rows=100),
        BatchStarted(step="a", label="x", first=1, last=1, of=2, rows=60),
        BatchDone(step="a", label="x", position=1, of=2, rows_in=60, rows_out=60, bytes=1, seconds=1.0, version=1),
        BatchStarted(step="a", label="y", first=2, last=2, of=2, rows=40),
    ]
    accepted = Accepted(release="r2", was="r1", plan="p", by="ada", host="laptop", steps=(("a", 100),))
    stored = [Recorded("web-1", i, float(i), event) for i, event in enumerate([accepted, *events][: 3 + late_by], 1)]
    status = fold(replay(stored), Recorded("web-1", 0, 9.0, Progress(step="a", rows=60, batch="x")))
    assert (status.rows_done, status.rows_running) == (60, 0)


def test_a_hundred_per_cent_waits_until_every_feed_has_caught_up() -> None:
    steps = (("backfill/a/feed", 100), ("catch-up/a/feed", 0), ("catch-up/b/feed", 0), ("validate", 0))
    story = [
        Accepted(release="r2", was="r1", plan="p", by="ada", host="laptop", steps=steps),
        Fenced(step="backfill/a/feed", source="t", version=1, slices=1, rows=100),
        BatchDone(step="backfill/a/feed", label="x", position=1, of=1, rows_in=100, rows_out=1, bytes=1, seconds=1.0, version=1),
        *(StepDone(step) for step, _ in steps[:3]),
    ]  # fmt: skip
    recorded = [Recorded("web-1", i, float(i), event) for i, event in enumerate(story, 1)]
    assert [status.percent for status in accumulate(recorded, fold, initial=Status())] == [0, 0, 0, 99, 99, 99, 100]


def test_no_step_is_more_than_done() -> None:
    """A region may say anything."""
    assert StepStatus(id="a", slices=1, slices_done=2).fraction == 1.0
    assert StepStatus(id="a", rows_done=9, rows_total=1, slices=1).fraction == 1.0
