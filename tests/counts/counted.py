"""One small region's life in figures that do not depend on the machine: `python -m tests.counts.counted` prints them, `--keep` stores them.

The agent is this process. Batches are cut by rows alone, a feed moves only when it is told to, and nothing runs by the clock: what is
counted then depends on the code alone. Not counted is what a loop does while it waits.
"""

import asyncio
import json
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from py4j.protocol import Py4JJavaError

from console.agent.feeds.follower import FeedFollower
from console.agent.service import Service
from console.agent.settings import Settings
from console.agent.store import log
from console.model.codec import encode
from tests.counts.calls import calls_of_a_rollout
from tests.life.region import LANDING, SHORT_LIVED, LiveRegion

STORED = Path(__file__).with_name("stored.json")
CALLS = "calls of a rollout"
ROWS, BATCH, LIVE_COMMITS, LIVE_ROWS = 1200, 400, 5, 10
PARSE = """/* into: requests */
SELECT id, ts, to_date(ts) AS day, CAST(get_json_object(payload, '$.status') AS INT) AS status"""
FILES = {
    "pipeline.yaml": "description: counted\n",
    "tables/landing.yaml": "kind: landing\nmanaged: true\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n",
    "tables/requests.yaml": "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, status: int}\n",
    "tables/failures.yaml": "time: ts\ncolumns: {id: string, ts: timestamp, status: int}\n",
    "materializations/parse.sql": f"{PARSE} FROM landing\n",
    "materializations/failed.sql": "/* into: failures */\nSELECT id, ts, status FROM requests WHERE status >= 400\n",
}
WIDER = {
    "tables/requests.yaml": FILES["tables/requests.yaml"].replace("int}", "int, ip: string}"),
    "materializations/parse.sql": f"{PARSE}, get_json_object(payload, '$.ip') AS ip FROM landing\n",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What one part of the region's life took.

    jobs, stages   of Spark
    bytes_read     that Spark's stages counted
    commits        to tables
    files, bytes   of data, written to tables
    ledger         commits to the tables in which the region keeps its own state
    opened         tables opened by deltalake
    log_files      files of logs that Python has read
    log_lists      folders of logs that it has listed
    """

    jobs: int
    stages: int
    bytes_read: int
    commits: int
    files: int
    bytes: int
    ledger: int
    opened: int
    log_files: int
    log_lists: int


class ToldFollower(FeedFollower):
    """A follower that moves its feeds when somebody waits for them, and never else."""

    def run(self) -> None:
        while not self._ended:
            self._wake.wait()
            self._wake.clear()
            while not self._ended and self._requests:
                for pipeline in dict.fromkeys(name for name, _ in self._requests):
                    self._tick_pipeline(pipeline)


class Reads:
    """Reads of logs by Python, and tables that deltalake has opened, since the process began."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()
        opened = DeltaTable.__init__

        def counting(table: DeltaTable, *args: Any, **named: Any) -> None:
            self.of["opened"] += 1
            opened(table, *args, **named)

        pytest.MonkeyPatch().setattr(DeltaTable, "__init__", counting)
        sys.addaudithook(self._hook)

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event in ("open", "os.scandir", "os.listdir") and "_delta_log" in str(args[0]):
            self.of["log_files" if event == "open" else "log_lists"] += 1


class CountedRegion(LiveRegion):
    def __init__(self, root: Path, reads: Reads) -> None:
        super().__init__(root, rows=ROWS, most=BATCH)
        settings = Settings(region="eu", master="local[2]", conf=SHORT_LIVED, tick_seconds=3600.0)
        self.service = Service(self.warehouse, settings, -1)
        self.agent = self.service.agent
        (self.warehouse / "_console").mkdir()  # the lock's, which nobody takes here
        self.agent.follower = ToldFollower(self.agent.spark, 3600.0, self.agent.report, settings.follow)
        self.agent.start()
        self.controller = self.agent.controller("web")
        self._reads = reads

    def edit(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            file = self.root / "plans" / "web" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)

    async def carry(self) -> None:
        """Plan, and carry to the gate."""
        plan = await self.plan("web")
        assert not plan.refusals, plan.refusals
        self.service.accept(encode(plan), "ada", "laptop")
        carrier = self.controller.execution.executor
        assert carrier is not None
        await asyncio.to_thread(carrier.join, 600)
        status = self.controller.recorder.status
        assert status.shown == "awaiting-confirmation", status.why

    async def promote(self) -> None:
        status = self.controller.recorder.status
        await asyncio.to_thread(self.controller.promote, status.rollout, status.was, "ada", "laptop")

    async def roll_back(self) -> None:
        await asyncio.to_thread(self.controller.rollback, self.controller.live().id, "ada", "laptop")

    async def live_rows(self) -> None:
        for _ in range(LIVE_COMMITS):
            rows = pa.Table.from_pylist([self._next() for _ in range(LIVE_ROWS)], LANDING)
            write_deltalake(str(self.warehouse / "landing"), rows, mode="append")
            await asyncio.to_thread(self.agent.follower.align("web").result, 120)

    async def close(self) -> None:
        self.agent.stop()
        await super().close()

    # -- counted

    def _probe(self) -> tuple[int, int]:
        """The numbers that Spark gives to a job and a stage now."""
        session = self.agent.spark.session()
        context = session.sparkContext
        group = f"probe {os.urandom(4).hex()}"
        with self.agent.spark.job(session, group):
            session.range(1).foreach(lambda _: None)
        context._jsc.sc().listenerBus().waitUntilEmpty(20_000)
        tracker = context.statusTracker()
        (job,) = tracker.getJobIdsForGroup(group)
        return job, max(tracker.getJobInfo(job).stageIds)

    def _input_bytes(self, first: int, last: int) -> int:
        """first, last: numbers of stages; both are not counted"""
        store = self.agent.spark.session().sparkContext._jsc.sc().statusStore()
        total = 0
        for stage in range(first + 1, last):
            with suppress(Py4JJavaError):  # it was skipped, since an earlier one had its result
                total += int(store.lastStageAttempt(stage).inputBytes())
        return total

    def _data(self) -> Counter[str]:
        written: Counter[str] = Counter()
        for folder in self.warehouse.rglob("_delta_log"):
            commits = sum(file.suffix == ".json" and file.stem.isdigit() for file in folder.iterdir())
            if "_console" in folder.parts:
                written["ledger"] += commits
                continue
            if folder.parent.name == "landing":
                continue
            written["commits"] += commits
            data = [file for file in folder.parent.rglob("*.parquet") if "_delta_log" not in file.parts]
            written["files"] += len(data)
            written["bytes"] += sum(file.stat().st_size for file in data)
        return written

    async def counted(self, part: Callable[[], Awaitable[None]]) -> Counts:
        job, stage = await asyncio.to_thread(self._probe)
        written, reads = self._data(), self._reads.of.copy()
        await part()
        after_reads, after_written = self._reads.of.copy(), self._data()
        next_job, next_stage = await asyncio.to_thread(self._probe)
        figures = {"jobs": next_job - job - 1, "stages": next_stage - stage - 1}
        figures["bytes_read"] = await asyncio.to_thread(self._input_bytes, stage, next_stage)
        for name in ("commits", "files", "bytes", "ledger"):
            figures[name] = after_written[name] - written[name]
        for name in ("opened", "log_files", "log_lists"):
            figures[name] = after_reads[name] - reads[name]
        return Counts(**figures)


async def life(root: Path, reads: Reads) -> dict[str, Counts]:
    """A first release, live rows, a change with two tables rebuilt, its promotion, and the way back."""
    region = CountedRegion(root, reads)
    counts = {}
    try:
        region.edit(FILES)
        counts["first release"] = await region.counted(region.carry)
        counts["first promotion"] = await region.counted(region.promote)
        counts["live rows"] = await region.counted(region.live_rows)
        region.edit(WIDER)
        counts["change"] = await region.counted(region.carry)
        counts["promotion"] = await region.counted(region.promote)
        counts["live rows of both releases"] = await region.counted(region.live_rows)
        counts["rollback"] = await region.counted(region.roll_back)
    finally:
        await region.close()
    return counts


def main() -> int:
    reads = Reads()
    pytest.MonkeyPatch().setattr(log, "LISTED_SECONDS", math.inf)  # a slow machine would list more often
    with tempfile.TemporaryDirectory(prefix="console-counts-") as place:
        counts = asyncio.run(life(Path(place) / "region", reads))
        calls = asyncio.run(calls_of_a_rollout(Path(place)))
    figures = {CALLS: calls, **{part: asdict(of) for part, of in counts.items()}}
    text = json.dumps(figures, indent=1) + "\n"
    if "--keep" in sys.argv[1:]:
        STORED.write_text(text)
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
