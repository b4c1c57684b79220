"""A rollout as events: days, a day divided into hours, waits, failed tries, a lost Spark, samples and a Spark job."""

import math
from collections.abc import Sequence
from dataclasses import replace

from console.model.event import (
    Accepted,
    BatchDone,
    BatchStarted,
    DriverLost,
    Entered,
    Event,
    Fenced,
    Lagging,
    Logged,
    Progress,
    Promoted,
    Recorded,
    StepDone,
    StepStarted,
)
from console.model.incident import SlicedDay, SparkBack, TryFailed, WaitBegan, WaitEnded
from console.model.measured import FeedSample, SparkJob
from console.model.policy import Throttle
from console.model.region import Region
from console.model.status import replay
from console.runner.view import RegionView
from tests.screens import scripted as s

BEGAN = s.NOON - 3124  # 52 m 04 s
BACKFILL = "backfill/requests/parse_requests"
DAYS = (
    118_000,
    122_000,
    120_000,
    119_000,
    90_000,
    88_000,
    131_000,
    125_000,
    640_000,
    121_000,
    119_000,
    120_000,
    118_000,
    96_000,
)
STEPS = ("create/requests", "create/requests_by_hour", BACKFILL, "catch-up/requests/parse_requests", "catch-up/requests_by_hour/hourly", "validate", "promote")  # fmt: skip


def sliced() -> tuple[SlicedDay, ...]:
    """Fourteen days, the ninth of them cut into its hours, and the rows without a day."""
    days = tuple(
        SlicedDay(label=f"2026-11-{22 - n:02}", rows=rows, slices=24 if rows > 500_000 else 1)
        for n, rows in enumerate(DAYS)
    )
    return (*days, SlicedDay(label="no day", rows=12))


def record(events: Sequence[tuple[float, Event]], rollout: str = "web-8") -> tuple[Recorded, ...]:
    """Stored events, numbered, at seconds after the acceptance."""
    return tuple(Recorded(rollout, seq, BEGAN + at, event) for seq, (at, event) in enumerate(events, 1))


def batch(first: int, last: int, rows: int, seconds: float) -> BatchDone:
    labels = [f"2026-11-{22 - n:02}" for n in range(14)]
    label = labels[first - 1] if first == last else f"{labels[first - 1]} … {labels[last - 1]}"
    return BatchDone(step=BACKFILL, label=label, position=last if last < 9 else last + 23, of=38, rows_in=rows, rows_out=rows, bytes=rows * 140, seconds=seconds, version=205 + last)  # fmt: skip


def begun(done: BatchDone, first: int) -> BatchStarted:
    return BatchStarted(step=BACKFILL, label=done.label, first=first, last=done.position, of=38, rows=done.rows_in)


def slow_events() -> list[tuple[float, Event]]:
    """52 minutes: batches, waits for the lag, tries out of memory, and a Spark that was lost."""
    steps = tuple((step, sum(DAYS) if step == BACKFILL else 0) for step in STEPS)
    first, second, third = batch(1, 4, 479_000, 282.0), batch(5, 6, 178_000, 109.0), batch(7, 7, 131_204, 362.0)
    return [
        (0, Accepted(release="r8", was="r7", plan="2f34" + "0" * 60, by="ana", host="ops2", steps=steps)),
        (1, Entered("preparing")), (2, StepStarted(STEPS[0])), (4, StepDone(STEPS[0])), (5, StepStarted(STEPS[1])), (6, StepDone(STEPS[1])),
        (7, Entered("backfilling")), (8, StepStarted(BACKFILL)),
        (10, Fenced(step=BACKFILL, source="landing", version=1430, slices=38, rows=sum(DAYS), days=sliced())),
        (12, begun(first, 1)), (294, first),
        (300, Logged("waits: lag 71 s", incident=WaitBegan(step=BACKFILL, cause="lag", why="lag of live rows is 71 s, the throttle allows 60 s", since=BEGAN + 295))),
        (1020, Logged("goes on after 12 m", incident=WaitEnded(step=BACKFILL, cause="lag", seconds=725.0))),
        (1021, begun(second, 5)), (1130, second), (1131, begun(batch(7, 8, 250_000, 1.0), 7)),
        (1340, Logged("batch 2026-11-16 … 2026-11-15 failed: memory (try 1 of 3); again, at most 62,500 rows", "warning",
                      TryFailed(step=BACKFILL, label="2026-11-16 … 2026-11-15", first=7, last=8, cause="memory", why="Java heap space", number=1, of=3, rows=256_000, rows_next=62_500, seconds=209.0))),
        (1342, begun(third, 7)), (1704, third), (1705, begun(batch(8, 8, 125_000, 1.0), 8)),
        (2600, DriverLost(BACKFILL, "out of memory")), (2730, Logged("Spark responds again", incident=SparkBack(step=BACKFILL, seconds=130.0))),
        (2731, begun(batch(8, 8, 125_000, 1.0), 8)),
    ]  # fmt: skip


def samples(backfill: bool = True) -> tuple[FeedSample, ...]:
    """An hour: the rate of history falls where the lag rises; three minutes in which nobody measured."""
    results = []
    for n in range(360):
        at = s.NOON - 3600 + 10.0 * n
        if 100 <= n < 118:
            continue
        lag = 2.0 + 75 * max(0.0, math.sin(n / 40)) ** 4
        rate = (0.0 if lag > 60 else 9_800.0 + 3_000 * math.sin(n / 7)) if backfill and at >= BEGAN else 0.0
        results.append(
            FeedSample(at=at, feed="", rows=180 + 40 * math.sin(n / 5), lag=lag, behind=int(lag * 60), backfill=rate)
        )
        results.append(FeedSample(at=at, feed="parse_requests", rows=180.0, lag=lag, behind=int(lag * 60)))
    return tuple(results)


def slow(region: Region = s.EU) -> RegionView:
    """In the middle of a slow backfill."""
    events = record(slow_events())
    job = SparkJob(job=41, stage=3, stages=5, done=41, tasks=64, longest=38.0, median=2.0, spilled=1_100_000_000)
    fleeting: list[Event] = [
        Lagging(commits=3, rows=138, seconds=2.3),
        Progress(step=BACKFILL, rows=64_000, batch="2026-11-15", job=job),
        Logged("job 41: stage 3 begins"),
    ]
    status = replay([*events, *(Recorded("web-8", 0, s.NOON - 1, event) for event in fleeting)])
    plan = replace(s.plan(region), throttle=Throttle(lag_seconds=60.0))
    return RegionView(
        region=region, link="connected", status=status, plan=s.plan(region), accepted=plan, live="r7",
        attended=True, heard=s.NOON, events=events, samples=samples(),
    )  # fmt: skip


def promoted(region: Region = s.EU) -> RegionView:
    """Live since a while, and another change is pending."""
    events = record([*slow_events(), (2900, batch(8, 14, 1_339_000, 160.0)), (3000, Promoted(release="r8", was="r7", by="ana", host="ops2", version=4))])  # fmt: skip
    view = replace(slow(region), events=events, status=replay(events), live="r8", previous="r7", samples=samples(False))
    return replace(view, plan=replace(s.plan(region), live="r8"))
