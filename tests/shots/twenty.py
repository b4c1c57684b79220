"""Makes the recording of twenty regions: `python -m tests.shots.twenty [FILE]` (default `docs/tour/fleet.jsonl.gz`).

The runner and its fold are the real ones; the regions are those in memory that the tests use, on the clock of this machine.
"""

import asyncio
import gzip
import math
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from console.drivers.fake import FakeDriver, FakeRegion, Scenario
from console.drivers.protocol import Who
from console.model.event import Lagging
from console.model.live import Day, Live
from console.model.measured import FeedSample
from console.model.pipeline import Pipeline
from console.model.plan import Plan, Price
from console.model.region import Region
from console.model.step import Validate
from console.runner.fleet import Fleet
from console.runner.journal import Journal
from console.runner.recording.writer import RecordingWriter
from tests.runner.worlds import CHECKED, PIPELINE, survey
from tests.screens import scripted
from tests.shots.story import FLEET

NAMES = (
    "us-east", "us-west", "ca", "br", "mx", "eu-north", "eu-west", "eu-south", "uk", "ch", "za", "ae", "in", "sg", "id", "jp",
    "kr", "au", "nz", "tr",
)  # fmt: skip
ANA = Who("ana@ops1", "ops1")
SECONDS = 75
SAMPLED_SECONDS = 20


def regions() -> list[Region]:
    return [
        Region(
            name=name, warehouse=f"s3://lake/{name}", environment="staging" if number == 0 else "prod", canary=number == 0,
            wave=1 + (number > 0) + (number > 12), owner="data-platform",
        )
        for number, name in enumerate(NAMES)
    ]  # fmt: skip


def rows_of(number: int) -> int:
    """Of a day."""
    return 4_000 + 2_600 * ((7 * number) % 20)


def sample(number: int, at: float) -> FeedSample:
    """Each region has its own rate and lag, with its own waves."""
    rate = rows_of(number) / 250 * (1 + 0.4 * math.sin(at / 200 + number))
    lag = 1.5 + 6 * max(0.0, math.sin(at / 300 + 2 * number)) ** 3
    return FeedSample(at=round(at, 1), feed="", rows=round(rate, 1), lag=round(lag, 1), behind=int(rate * lag))


def region_in_memory(region: Region, number: int) -> FakeRegion:
    days = tuple(Day(f"2026-11-{day:02}", rows_of(number) + 90 * day, 200 * rows_of(number)) for day in range(1, 15))
    live: Live = replace(survey(region.name))
    stats = tuple(replace(table, days=days) for table in live.stats)
    script = Scenario(
        rows_per_second=rows_of(number) * (6.0 if number == 0 else 0.35 + 0.12 * (number % 5)),
        failures={"validate": 1} if number == 5 else {},
        differ=("requests",) if number == 3 else (),
    )
    made = FakeRegion(region, replace(live, stats=stats), script, clock=time.time, sleep=asyncio.sleep)
    now = time.time()
    made.samples = [sample(number, now - ago) for ago in range(3600, 0, -SAMPLED_SECONDS)]
    made.agent.start()
    return made


def planner(pipeline: Pipeline, live: Live, region: Region) -> Plan:
    """The demo's change, where the live release is another than the files; else nothing."""
    rows = sum(day.rows for day in live.stats[0].days)
    made = scripted.plan(region, rows, desired=pipeline.description, live=live.release.id if live.release else "")
    steps = tuple(CHECKED if isinstance(step, Validate) else step for step in made.steps)
    made = replace(made, steps=steps, rows_limit=rows // 6, release=replace(made.release, digest=pipeline.description))
    if live.release and live.release.digest == pipeline.description:
        kept = tuple(replace(node, action="keep", columns=(), price=Price()) for node in made.nodes)
        return replace(made, nodes=kept, steps=())
    return made


async def roll_out(recording: Path) -> None:
    made = [region_in_memory(region, number) for number, region in enumerate(regions())]
    drivers = {region.region.name: FakeDriver(region) for region in made}
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(
            "web", drivers, dict.fromkeys(drivers, PIPELINE), planner, Journal(Path(folder) / "journal.db"), ANA, remember=True, parallelism=12
        )  # fmt: skip
        fleet.record(RecordingWriter(recording))
        await fleet.refresh()
        run = asyncio.create_task(fleet.run())
        for second in range(SECONDS):
            await asyncio.sleep(1.0)
            for number, region in enumerate(made):
                now = sample(number, time.time())
                kept = (now,) if second % SAMPLED_SECONDS == 0 else ()
                region.disk.say(Lagging(commits=1, rows=now.behind, seconds=now.lag, samples=kept))
            await _decide(fleet, made)
        await run
        await fleet.close()


async def _decide(fleet: Fleet, made: list[FakeRegion]) -> None:
    """What operators did meanwhile: gates opened, one region paused; one is out of reach."""
    views = fleet.views
    if views["uk"].status.state == "backfilling" and not views["uk"].status.held:
        await fleet.control("uk", "pause")
    if views["ch"].status.state == "backfilling" and made[NAMES.index("ch")].reachable:
        made[NAMES.index("ch")].drop_link()
    for name in NAMES[:5]:
        view = views[name]
        if view.status.state == "awaiting-confirmation" and all(check.ok for check in view.status.checks):
            await fleet.promote(name)


def main(file: Path = FLEET) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        recording = Path(scratch) / "fleet.jsonl"
        asyncio.run(roll_out(recording))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(recording.read_bytes(), 9, mtime=0))
        print(f"{file}: {file.stat().st_size:,} bytes, {recording.stat().st_size:,} unpacked", file=sys.stderr)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
