"""Makes the recording of which the tour's pictures are drawn: `python -m tests.shots.record FOLDER [FILE]`.

A real rollout of the demo's change: Spark, live traffic, canary first, the agent of `eu` killed in the middle of its history. It takes
some ten minutes. FOLDER is empty, or holds the demo; FILE is `docs/tour/demo.jsonl.gz`.
"""

import asyncio
import gzip
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from console.demo.cockpit import DemoFleet
from console.demo.folder import project_root
from console.demo.prepare import Demo, stop
from console.runner.recording.writer import RecordingWriter
from console.runner.view import RegionView

FILE = Path(__file__).parents[2] / "docs" / "tour" / "demo.jsonl.gz"
TRAFFIC_SECONDS = 120.0  # before the rollout, so that there are rates to see
LOOK_SECONDS = 12.0  # between what happens and the decision on it
STAGE_SECONDS = 1800.0


async def roll_out(folder: Path, recording: Path) -> None:
    demo = Demo.of(folder)
    fleet = DemoFleet(demo, None, chaos="struck")

    async def until(name: str, test: Callable[[RegionView], bool]) -> None:
        changes = fleet.changes()
        async with asyncio.timeout(STAGE_SECONDS):
            while not test(fleet.views[name]):
                await anext(changes)
        print(f"{name}: {fleet.views[name].status.shown}", file=sys.stderr, flush=True)
        await asyncio.sleep(LOOK_SECONDS)

    try:
        await fleet.refresh()
        await asyncio.sleep(TRAFFIC_SECONDS)
        fleet.record(RecordingWriter(recording))
        await asyncio.sleep(LOOK_SECONDS)
        run = asyncio.create_task(fleet.run())
        for name in fleet.views:  # in the order of waves
            await until(name, lambda view: view.status.state == "awaiting-confirmation")
            await fleet.promote(name)
            await until(name, lambda view: view.status.state == "live" and bool(view.guide))
        await run
        await fleet.rollback("ap")
        await until("ap", lambda view: view.live == "r1")
    finally:
        await fleet.close()
        await stop(demo)


def main(folder: Path, file: Path = FILE) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        recording = Path(scratch) / "demo.jsonl"
        asyncio.run(roll_out(project_root(folder), recording))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(recording.read_bytes(), 9, mtime=0))
        print(f"{file}: {file.stat().st_size:,} bytes, {recording.stat().st_size:,} unpacked")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
