"""Records rollouts on real Spark, by which the forecast is judged: `python -m tests.forecast.record [NAME …]`.

Each one is a change of a region that is live, from its acceptance to its gate, under a condition of its own. What the agent sent goes to
`recordings/NAME.jsonl.gz`: a line with the plan and the load of the machine, then one line per event. Some minutes each, at load 15 up to
seven; all by default. Name those of one first release together, as a first release takes a minute as well.
"""

import asyncio
import contextlib
import gzip
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from deltalake import write_deltalake
from pyspark.errors import PySparkException

from console.agent.feeds import backfill
from console.agent.service import Service
from console.agent.settings import Settings
from console.agent.spark_process import BRIEF
from console.errors import Unreachable
from console.model.codec import encode
from console.model.event import BatchDone, Entered, Failed, Lagging, Recorded
from console.model.plan import Plan
from tests.forecast.stories import PIPELINE, Files, Story, files
from tests.life.region import FIRST_DAY, LANDING, ME, LiveRegion

FOLDER = Path(__file__).parent / "recordings"
DAYS, MORE_DAYS, MANY_DAYS = 15, 24, 36  # of landing
ROWS = 20_000  # of a day
HEAVY_DAY, HEAVY_ROWS = MANY_DAYS // 3, 12 * ROWS  # history runs from the newest day to the oldest: in its second half
# queries are compiled, as in production: without that the checks take several times as long as the batches
SPARK = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": BRIEF}
FIRST_BATCH = 1_000_000  # of the first release, which is not recorded
BURST_ROWS, BURST_SECONDS = 10_000, 10.0
BUSY_SECONDS, BUSY_PROCESSES = 30.0, 3
FITS = ROWS + ROWS // 2  # rows of a batch that fits into the memory that the story says there is
LONGEST_SECONDS = 900.0
CLOSES_IN = (30, 45)  # seconds from the acceptance to the end of the hours
GATE = Entered("awaiting-confirmation")
Act = Callable[["Recording"], Awaitable[None]]


def landing(day: int, rows: int, name: str = "") -> pa.Table:
    """Rows of one day, always the same. name: by which rows that arrive later differ from those of history"""
    start, step = FIRST_DAY + timedelta(days=day), 86_400_000_000 // rows
    drawn = duckdb.sql(
        f"""
        SELECT 'd{day}-{name}' || i AS id, TIMESTAMPTZ '{start.isoformat()}' + to_microseconds(i * {step}) AS ts,
          json_object('ip', '192.0.2.' || hash(i, {day}) % 250, 'status', list_extract([200, 200, 304, 404, 500], 1 + (hash(i, 'status') % 5)::INT),
            'bytes', hash(i, 'bytes') % 10000, 'ms', round(hash(i, 'ms') % 400000 / 1000.0, 3), 'ua', 'agent/' || hash(i, 'ua') % 90) AS payload
        FROM range({rows}) drawn(i)
        """
    )
    return drawn.to_arrow_table().cast(LANDING)


@dataclass(kw_only=True)
class Conditions:
    """One recorded rollout.

    files   the pipeline before and after the change
    days    of landing
    batch   rows a batch
    heavy   one day holds many times the rows of the others
    limits  further lines of the region's file, as of the moment of acceptance
    during  what happens meanwhile
    inside  the agent is this process, so that failures can be injected
    """

    files: Files = Files.TABLE
    days: int = DAYS
    batch: int = ROWS + ROWS // 10
    heavy: bool = False
    limits: Callable[[], Mapping[str, Any]] = dict
    during: Act | None = None
    inside: bool = False

    @property
    def first(self) -> tuple[object, ...]:
        """By which stories have a first release in common."""
        return self.files, self.days, self.heavy, self.inside


@dataclass(kw_only=True)
class Recording:
    """A rollout that is being recorded. batches: committed so far"""

    region: LiveRegion
    events: list[Recorded] = field(default_factory=list)

    @property
    def batches(self) -> int:
        return sum(isinstance(recorded.event, BatchDone) for recorded in self.events)

    @property
    def ended(self) -> bool:
        return any(isinstance(r.event, Failed) or r.event == GATE for r in self.events)

    async def until_batch(self, number: int) -> None:
        while self.batches < number and not self.ended:
            await asyncio.sleep(0.1)


# -- what happens meanwhile


async def bursts(recording: Recording) -> None:
    """Many live rows at once, again and again, so that live feeds fall behind."""
    number = 0
    while not recording.ended:
        number += 1
        rows = await asyncio.to_thread(landing, DAYS - 1 + number % 2, BURST_ROWS, f"live{number}-")
        write_deltalake(str(recording.region.warehouse / "landing"), rows, mode="append")
        await asyncio.sleep(BURST_SECONDS)


async def jvm_lost(recording: Recording) -> None:
    await recording.until_batch(DAYS // 3)
    lock = json.loads((recording.region.warehouse / "_console" / "agent.lock").read_text())
    for pid in _children(int(lock["pid"])):
        os.kill(pid, signal.SIGKILL)


def _children(parent: int) -> list[int]:
    """Processes below one of this recording's agents."""
    found = []
    for tasks in Path(f"/proc/{parent}/task").iterdir():
        found += [int(pid) for pid in (tasks / "children").read_text().split()]
    return [*found, *(pid for child in found for pid in _children(child))]


def busy_from(batch: int) -> Act:
    async def busy(recording: Recording) -> None:
        await recording.until_batch(batch)
        burning = [
            multiprocessing.Process(target=_burn, args=(BUSY_SECONDS,), daemon=True) for _ in range(BUSY_PROCESSES)
        ]
        for process in burning:
            process.start()
        for process in burning:
            await asyncio.to_thread(process.join)

    return busy


def _burn(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(10_000))


async def little_memory(recording: Recording) -> None:
    """Batches of more than some rows fail as Spark's do for want of memory, once they have read their rows."""
    real = backfill.run_batch

    def run_batch(spark: Any, session: Any, history: Any, run: Any, watch: Any, **more: Any) -> Any:
        if sum(piece.rows for piece in run) > FITS:
            backfill.count_rows(session, history, run)
            raise PySparkException("java.lang.OutOfMemoryError: Java heap space")
        return real(spark, session, history, run, watch, **more)

    backfill.run_batch = run_batch
    try:
        while not recording.ended:
            await asyncio.sleep(0.2)
    finally:
        backfill.run_batch = real


def closed_for_a_minute() -> Mapping[str, Any]:
    """Hours that are over in the middle of the rollout, and begin again a minute later."""
    while not CLOSES_IN[0] <= 60 - time.time() % 60 <= CLOSES_IN[1]:
        time.sleep(1)
    closes = datetime.now(UTC) + timedelta(minutes=1)
    return {"throttle": {"hours": f"{closes + timedelta(minutes=1):%H:%M}-{closes:%H:%M}"}}


STORIES: Mapping[Story, Conditions] = {
    Story.STEADY: Conditions(),
    Story.HEAVY_DAY: Conditions(heavy=True, days=MANY_DAYS),
    Story.HOURS: Conditions(limits=closed_for_a_minute),
    Story.JVM_LOST: Conditions(during=jvm_lost),
    Story.MEMORY: Conditions(days=MORE_DAYS, batch=3 * ROWS + ROWS // 2, during=little_memory, inside=True),
    Story.BUSY_EARLY: Conditions(during=busy_from(2)),
    Story.BUSY_LATE: Conditions(during=busy_from(DAYS // 2)),
    Story.LAG: Conditions(limits=lambda: {"throttle": {"lag": "3s"}}, during=bursts),  # the last one: its rows stay
    Story.TWO_TABLES: Conditions(files=Files.TABLES, days=MORE_DAYS // 2),
    Story.AGGREGATE: Conditions(files=Files.AGGREGATE, days=MORE_DAYS),
}


class Inside(LiveRegion):
    """A region whose agent is this process."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, rows=0)
        (self.warehouse / "_console").mkdir()
        settings = Settings(region="eu", master="local[2]", conf={**SPARK}, tick_seconds=0.5)
        self.service = Service(self.warehouse, settings, -1)
        self.service.agent.start()

    async def close(self) -> None:
        self.service.agent.stop()
        await super().close()


def configured(region: LiveRegion, rows: int, more: Mapping[str, Any]) -> None:
    spark = {"master": "local[2]", "conf": SPARK}
    given = {"name": "eu", "warehouse": "warehouse", "spark": spark, "limits": {"rows": rows, "target_seconds": 60},
             "prices": {"core_hour": 0.05, "tb_read": 5.0, "currency": "EUR"}, **more}  # fmt: skip
    (region.root / "regions" / "eu.yaml").write_text(json.dumps(given))


async def accepted(region: LiveRegion, plan: Plan) -> None:
    assert not plan.refusals, plan.refusals
    if isinstance(region, Inside):
        region.service.accept(encode(plan), ME.name, ME.host)
    else:
        await region.driver.accept(plan, ME)


async def sent(region: LiveRegion, after: int = 0) -> AsyncIterator[Recorded]:
    """What the region's agent sends, to the gate."""
    seen = after
    while True:
        try:
            if isinstance(region, Inside):
                stream = _inside(region, seen)
            else:
                await region.driver.start_agent()
                stream = region.driver.watch(PIPELINE, seen)
            async for recorded in stream:
                seen = max(seen, recorded.seq)
                yield recorded
                if recorded.event == GATE or isinstance(recorded.event, Failed):
                    return
        except Unreachable:
            await asyncio.sleep(0.5)


async def _inside(region: Inside, after: int) -> AsyncIterator[Recorded]:
    queue: asyncio.Queue[Recorded] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    recorder = region.service.agent.controller(PIPELINE).recorder
    stop = recorder.watch(after, lambda recorded: loop.call_soon_threadsafe(queue.put_nowait, recorded))
    try:
        while True:
            yield await queue.get()
    finally:
        stop()


async def first_release(region: LiveRegion, story: Conditions) -> None:
    for day in range(story.days):
        rows = HEAVY_ROWS if story.heavy and day == HEAVY_DAY else ROWS
        write_deltalake(str(region.warehouse / "landing"), landing(day, rows), mode="append")
    configured(region, FIRST_BATCH, {})
    files(region.root / "before", story.files, changed=False)
    region.install(PIPELINE, region.root / "before")
    await accepted(region, await region.plan(PIPELINE))
    async for recorded in sent(region):
        assert not isinstance(recorded.event, Failed), recorded
    if isinstance(region, Inside):
        controller = region.service.agent.controller(PIPELINE)
        controller.promote(controller.recorder.rollout, "", ME.name, ME.host)
    else:
        status = (await region.driver.state(PIPELINE)).status
        await region.driver.promote(PIPELINE, status.rollout, status.was, ME)


async def record(region: LiveRegion, story: Conditions) -> tuple[Plan, list[Recorded]]:
    """Roll a change out to its gate, and discard it."""
    files(region.root / "after", story.files, changed=True)
    region.install(PIPELINE, region.root / "after")
    configured(region, story.batch, story.limits())
    plan = await region.plan(PIPELINE)
    recording = Recording(region=region)
    acting = asyncio.create_task(story.during(recording)) if story.during else None
    await accepted(region, plan)
    async for recorded in sent(region):
        if not isinstance(recorded.event, Lagging):
            recording.events.append(recorded)
    if acting is not None:
        await acting
    assert recording.events[-1].event == GATE, recording.events[-1]
    if isinstance(region, Inside):
        region.service.agent.controller(PIPELINE).control("discard", ME.name)
    else:
        await region.driver.control(PIPELINE, "discard", ME)
    return plan, recording.events


def keep(story: Story, plan: Plan, events: list[Recorded], load: tuple[float, float]) -> None:
    """load: mean of the last minute, before the acceptance and at the gate"""
    machine = {"cores": os.cpu_count(), "load": [round(each, 1) for each in load]}
    head = json.dumps({"story": story.value, "machine": machine, "plan": encode(plan)})
    lines = [head, *(json.dumps(encode(event)) for event in events)]
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{story.value}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode() + b"\n", 9, mtime=0))
    took = events[-1].at - events[0].at
    print(
        f"{story.value}: {len(events)} events, {took:.0f} s to the gate, load {machine['load']}",
        file=sys.stderr,
        flush=True,
    )


async def record_all(stories: Sequence[Story], root: Path) -> None:
    """Stories over the same first release, one after the other in one region."""
    first = STORIES[stories[0]]
    region = Inside(root) if first.inside else LiveRegion(root, rows=0)
    try:
        await first_release(region, first)
        for story in stories:
            before = os.getloadavg()[0]
            plan, events = await asyncio.wait_for(record(region, STORIES[story]), LONGEST_SECONDS)
            keep(story, plan, events, (before, os.getloadavg()[0]))
    finally:
        with contextlib.suppress(Unreachable):
            await region.close()


def main(names: list[str]) -> None:
    groups: dict[tuple[object, ...], list[Story]] = {}
    for story in map(Story, names) if names else STORIES:
        groups.setdefault(STORIES[story].first, []).append(story)
    for group in groups.values():
        with tempfile.TemporaryDirectory(prefix="console-forecast-") as scratch:
            asyncio.run(record_all(group, Path(scratch) / "region"))


if __name__ == "__main__":
    main(sys.argv[1:])
