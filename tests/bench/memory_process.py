"""Regions that send events, followed and drawn in a process of its own: `python memory_process.py`, started by `test_memory.py`.

Prints one JSON object: octets of memory after so many events each. What is sent is what agents send: jobs' progress, lag
with samples, lines of log, and now and then a stored batch. Their clock runs so fast that all that is kept for a
time is full at the first measurement.
"""

import asyncio
import gc
import json
import os
import sys
import tempfile
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from types import MappingProxyType
from typing import Any

from console.drivers.protocol import RegionState
from console.model.event import (
    Accepted,
    BatchDone,
    Entered,
    Event,
    Fenced,
    Lagging,
    Logged,
    Progress,
    Recorded,
    StepStarted,
)
from console.model.measured import FeedSample, SparkJob
from console.model.region import Region
from console.model.status import Status
from console.runner.journal import Journal
from console.runner.watch import RegionBoard, RegionWatcher
from console.tui.app import ConsoleApp

REGIONS, STEP, ROLLOUT = 20, "backfill/requests/parse", "web-2"
BEGAN = 1_794_000_000.0
SECONDS_AN_EVENT = 0.5  # of one region's clock: an hour of samples is full after 7,240 of its events
SAMPLED_EVERY = 20  # events: each ten seconds of that clock, as an agent does
STORED_EVERY = 40  # a view keeps 400 of them: as many after 16,000 events
SETTLING = 60  # half seconds, at most
TURN = 50  # events of one region before the others and the screen have their turn


def first_events() -> list[Event]:
    steps = ((STEP, 1_000_000),)
    return [
        Accepted(release="r2", was="r1", plan="2f34" + "0" * 60, by="ana", host="ops", steps=steps), Entered("backfilling"),
        StepStarted(STEP), Fenced(step=STEP, source="landing", version=7, slices=100_000, rows=10**9),
    ]  # fmt: skip


def event(number: int, at: float) -> Event:
    match number % 4:
        case 0:
            samples = (
                FeedSample(at=at, feed="", rows=180.0 + number % 9, lag=0.4, behind=number % 70, backfill=9_800.0),
                FeedSample(at=at, feed="parse", rows=180.0, lag=0.4, behind=number % 70),
            )  # fmt: skip
            return Lagging(
                commits=1, rows=number % 70, seconds=0.4, samples=samples if number % SAMPLED_EVERY == 0 else ()
            )
        case 1:
            return Logged(f"job {number}: stage 3 of 5 begins")
        case _:
            job = SparkJob(
                job=number, stage=3, stages=5, done=number % 64, tasks=64, longest=38.0, median=2.0, spilled=0
            )
            return Progress(step=STEP, rows=number % 64_000, batch="2026-11-15", job=job)


class SendingDriver:
    """An agent's link: its first events, then `most` others."""

    def __init__(
        self, region: Region, totals: tuple[int, ...], arrived: asyncio.Semaphore, gate: asyncio.Condition
    ) -> None:
        self.region = region
        self._totals, self._arrived, self._gate = totals, arrived, gate
        self.phase = 0

    async def state(self, pipeline: str) -> RegionState:
        return RegionState(Status(), None, ())

    async def watch(self, pipeline: str, after: int = 0, who: object = None) -> AsyncIterator[Recorded]:
        stored = count(1)
        for first in first_events():
            yield Recorded(ROLLOUT, next(stored), BEGAN, first)
        number = 0
        for phase, total in enumerate(self._totals):
            async with self._gate:
                await self._gate.wait_for(lambda phase=phase: self.phase > phase)
            while number < total:
                number += 1
                at = BEGAN + number * SECONDS_AN_EVENT
                if number % STORED_EVERY == 0:
                    place = number // STORED_EVERY
                    done = BatchDone(step=STEP, label=f"day {place}", position=place, of=100_000, rows_in=9_000, rows_out=9_000,
                                     bytes=1 << 20, seconds=2.0, version=place)  # fmt: skip
                    yield Recorded(ROLLOUT, next(stored), at, done)
                else:
                    yield Recorded(ROLLOUT, 0, at, event(number, at))
                if number % TURN == 0:
                    await asyncio.sleep(0)
            self._arrived.release()
        await asyncio.Event().wait()


class FollowedCockpit:
    """Of a cockpit what a screen asks for that only watches."""

    player = None

    def __init__(self, board: RegionBoard) -> None:
        self._board = board

    def now(self) -> float:
        return BEGAN

    @property
    def views(self) -> Any:
        return MappingProxyType(self._board.views)

    def changes(self) -> Any:
        return self._board.changes()

    async def refresh(self, regions: object = ()) -> None:
        return None

    async def recorded(self, region: str) -> tuple[Recorded, ...]:
        return self._board[region].events

    async def close(self) -> None:
        self._board.close()


def octets() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def measure(totals: tuple[int, ...]) -> dict[str, int]:
    """Memory after so many events of all regions together."""
    arrived, gate = asyncio.Semaphore(0), asyncio.Condition()
    regions = [Region(name=f"r{number:02}", warehouse=f"/w/{number}") for number in range(REGIONS)]
    board, journal = RegionBoard("web", regions), Journal()
    each = tuple(total // REGIONS for total in totals)
    drivers: list[Any] = [SendingDriver(region, each, arrived, gate) for region in regions]
    watchers = [
        RegionWatcher(
            driver,
            board,
            journal,
            who=None,
            sleep=asyncio.sleep,
            on_live_changed=lambda region: None,
            on_missed=lambda region: None,
            clock=lambda: BEGAN,
        )
        for driver in drivers
    ]
    cockpit: Any = FollowedCockpit(board)
    app = ConsoleApp(cockpit, title="web")
    results = {}
    async with app.run_test(size=(200, 60)) as pilot:
        for watcher in watchers:
            watcher.start()
        await pilot.press("2")  # the screen that draws most of what is sent
        for phase, total in enumerate(totals):
            async with gate:
                for driver in drivers:
                    driver.phase = phase + 1
                gate.notify_all()
            for _ in drivers:
                await arrived.acquire()
            for _ in range(SETTLING):  # a busy machine draws later: the picture of all of them is to be in memory
                if app.repaints.settled:
                    break
                await pilot.pause(0.5)
            await pilot.pause(0.5)
            results[str(total)] = octets()
        for watcher in watchers:
            await watcher.stop()
    journal.close()
    return results


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as home:
        os.environ["CONSOLE_HOME"] = home
        print(json.dumps(asyncio.run(measure(tuple(map(int, sys.argv[1:]))))))
