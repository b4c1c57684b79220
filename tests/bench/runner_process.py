"""Hundreds of regions that report, followed without a screen in a process of its own: `python runner_process.py`, started by
`test_runner.py`.

Each region sends the lines of JSON that an agent sends, which are parsed, folded into the region's view and, if stored, written to
the journal. Prints one JSON object: processor seconds for all events, octets of memory after so many, stored events that were sent and
that are in the journal, and processor seconds until another console has all regions again.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any

from console.drivers.protocol import RegionState
from console.model.codec import decode, dumps, loads
from console.model.event import BatchDone, Recorded
from console.model.region import Region
from console.model.status import Status, fold
from console.runner.journal import Journal
from console.runner.view_events import SAMPLES_SECONDS
from console.runner.watch import RegionBoard, RegionWatcher
from tests.bench.memory_process import (
    BEGAN,
    ROLLOUT,
    SAMPLED_EVERY,
    SECONDS_AN_EVENT,
    STEP,
    event,
    first_events,
    octets,
)

REGIONS = 500
STORED_EVERY = 100
FIRST_STORED = 400  # as many as a view keeps: from then on its memory is that of any later time
FIRST_FLEETING = int(
    SAMPLES_SECONDS / SECONDS_AN_EVENT
)  # of those before it only the samples are sent: a view is full of them
TURN = 20  # lines of one region before the others have their turn


def fleeting_lines(numbers: range) -> list[str]:
    times = ((number, BEGAN + number * SECONDS_AN_EVENT) for number in numbers)
    return [dumps(Recorded(ROLLOUT, 0, at, event(number, at))) for number, at in times]


def stored_line(seq: int, place: int) -> str:
    done = BatchDone(step=STEP, label=f"day {place}", position=place, of=100_000, rows_in=9_000, rows_out=9_000,
                     bytes=1 << 20, seconds=2.0, version=place)  # fmt: skip
    return dumps(Recorded(ROLLOUT, seq, BEGAN + place, done))


class ReportingDriver:
    """An agent's link: its first events and an hour's samples, then as many lines as each phase allows.

    status  the region's own, of stored events
    """

    def __init__(self, region: Region, hour: list[str], lines: list[str]) -> None:
        self.region = region
        self.status = Status()
        self.stored = 0
        self.allowed, self.more = 0, asyncio.Event()
        self.arrived = asyncio.Event()
        self._hour, self._lines = hour, lines

    async def state(self, pipeline: str) -> RegionState:
        return decode(RegionState, loads(dumps(RegionState(self.status, None, ()))))  # as it comes from an agent

    def allow(self, lines: int) -> None:
        self.arrived.clear()
        self.allowed = lines
        self.more.set()

    async def watch(self, pipeline: str, after: int = 0, who: object = None) -> AsyncIterator[Recorded]:
        seqs, sent = count(after + 1), 0
        for first in first_events() if not after else ():
            yield self._store(Recorded(ROLLOUT, next(seqs), BEGAN, first))
        for place in range(0 if after else FIRST_STORED):
            yield self._store(decode(Recorded, loads(stored_line(next(seqs), place))))
            if place % TURN == 0:
                await asyncio.sleep(0)
        for place, line in enumerate(self._hour if not after else ()):
            yield decode(Recorded, loads(line))
            if place % TURN == 0:
                await asyncio.sleep(0)
        while True:
            while sent < self.allowed:
                sent += 1
                if sent % STORED_EVERY == STORED_EVERY - 1:  # never one with samples
                    yield self._store(decode(Recorded, loads(stored_line(next(seqs), sent // STORED_EVERY))))
                else:
                    yield decode(Recorded, loads(self._lines[sent]))
                if sent % TURN == 0:
                    await asyncio.sleep(0)
            self.arrived.set()
            self.more.clear()
            await self.more.wait()

    def _store(self, recorded: Recorded) -> Recorded:
        self.status = fold(self.status, recorded)
        self.stored += 1
        return recorded


def watchers(drivers: list[Any], board: RegionBoard, journal: Journal) -> list[RegionWatcher]:
    def nothing(region: str) -> None:
        return None

    who: Any = None
    return [
        RegionWatcher(
            driver,
            board,
            journal,
            who=who,
            sleep=asyncio.sleep,
            on_live_changed=nothing,
            on_missed=nothing,
            clock=lambda: BEGAN,
        )
        for driver in drivers
    ]


async def resumed(drivers: list[ReportingDriver], journal: Journal) -> float:
    """Processor seconds until another console has the state of every region."""
    began = time.process_time()
    for driver in drivers:
        driver.allow(0)
    board = RegionBoard("web", [driver.region for driver in drivers])
    following = watchers(list(drivers), board, journal)
    for watcher in following:
        watcher.start()
    for driver in drivers:
        await board.until(driver.region.name, lambda view, seq=driver.status.seq: view.status.seq == seq)
    took = time.process_time() - began
    for watcher in following:
        await watcher.stop()
    return took


async def measure(totals: tuple[int, ...]) -> dict[str, Any]:
    lines = fleeting_lines(range(FIRST_FLEETING, FIRST_FLEETING + max(totals) // REGIONS + 1))
    hour = fleeting_lines(range(0, FIRST_FLEETING, SAMPLED_EVERY))
    regions = [Region(name=f"r{number:03}", warehouse=f"/w/{number}") for number in range(REGIONS)]
    drivers = [ReportingDriver(region, hour, lines) for region in regions]
    board, journal = RegionBoard("web", regions), Journal()
    following = watchers(list(drivers), board, journal)
    for watcher in following:
        watcher.start()
    memory: dict[str, int] = {}
    for driver in drivers:
        await driver.arrived.wait()
    began = time.process_time()
    for total in totals:
        for driver in drivers:
            driver.allow(total // REGIONS)
        for driver in drivers:
            await driver.arrived.wait()
        memory[str(total)] = octets()
    seconds = time.process_time() - began
    for watcher in following:
        await watcher.stop()
    took = await resumed(drivers, journal)
    kept = len(journal.entries("event"))
    whole = sum(complete(journal, driver) for driver in drivers)
    journal.close()
    stored = sum(driver.stored for driver in drivers)
    return {"seconds": seconds, "memory": memory, "stored": stored, "journal": kept, "whole": whole, "resume": took}


def complete(journal: Journal, driver: ReportingDriver) -> bool:
    """Whether the journal has each of a region's stored events once, in their order."""
    found = [recorded.seq for recorded in journal.events(driver.region.name, "web")]
    return found == list(range(1, driver.stored + 1))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(dir=Path("/dev/shm") if Path("/dev/shm").is_dir() else None) as home:
        os.environ["CONSOLE_HOME"] = home
        print(json.dumps(asyncio.run(measure(tuple(map(int, sys.argv[1:]))))))
