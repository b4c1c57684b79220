"""Promotions and rollbacks in turn, of a region of 50 tables with traffic and readers: `FOLDER TIMES REBOUND`. Prints one JSON object.

The agent is this process. Its landing table gets 1,000 rows a second through the agent's intake, and eight readers beside it read
through the live release. One table is fed by another query in either release; REBOUND tables below it are shared by both, and are rebound each
time. All others are fed from a landing table in which nothing lands.
"""

import json
import random
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from console.agent.rollout import rebind
from tests.bench.measured_region import BY, HOST, MeasuredRegion
from tests.bench.parts import ROOT

TABLES = 50
BATCHES, LINES = 4, 250  # a second, and in each: 1,000 rows a second
PAUSES = 0.3, 1.2  # seconds between two alternations
WARM = 3
LANDING = "kind: landing\nmanaged: true\ntime: ts\ncolumns: {id: string, n: bigint, ts: timestamp, payload: string}\n"
COPY = "time: ts\npartition_by: [day]\ncolumns:\n  id: string\n  n: bigint\n  ts: timestamp\n  day: date\n"
QUIET = "columns: {id: string, n: bigint}\n"


def files(rebound: int, *, wider: bool, tables: int = TABLES) -> dict[str, str]:
    """wider: the table between the landing table and the rebound ones has one column more"""
    more, column = (", length(payload) AS size", "  size: int\n") if wider else ("", "")
    results = {
        "pipeline.yaml": "description: alternating\n",
        "tables/landing.yaml": LANDING,
        "tables/still.yaml": LANDING,
        "tables/copy.yaml": COPY + column,
        "materializations/copying.sql": f"/* into: copy */\nSELECT id, n, ts, to_date(ts) AS day{more} FROM landing\n",
    }
    for place in range(rebound):
        results[f"tables/shared_{place}.yaml"] = COPY
        results[f"materializations/sharing_{place}.sql"] = (
            f"/* into: shared_{place} */\nSELECT id, n, ts, day FROM copy\n"
        )
    for place in range(tables - 3 - rebound):
        results[f"tables/quiet_{place:02}.yaml"] = QUIET
        results[f"materializations/keeping_{place:02}.sql"] = f"/* into: quiet_{place:02} */\nSELECT id, n FROM still\n"
    return results


@dataclass(kw_only=True)
class Intake:
    """A sender: its batches are due at fixed times."""

    region: MeasuredRegion
    sent: int = 0
    failed: list[str] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        ended = threading.Event()
        sender = threading.Thread(target=self._send, args=(ended,), name="sender", daemon=True)
        sender.start()
        try:
            yield
        finally:
            ended.set()
            sender.join()

    def _send(self, ended: threading.Event) -> None:
        due, batch = time.monotonic(), 0
        while not ended.wait(max(0.0, due - time.monotonic())):
            now, batch = datetime.now(UTC).isoformat(), batch + 1
            lines = [
                json.dumps({"id": f"{batch}-{n}", "n": self.sent + n, "ts": now, "payload": "x" * 80})
                for n in range(LINES)
            ]
            try:
                self.region.service.ingest("web", "landing", f"b{batch}", lines)
            except Exception as error:
                self.failed.append(f"{type(error).__name__}: {error}")
            self.waits.append(time.monotonic() - due)
            self.sent += LINES
            due += 1 / BATCHES


@contextmanager
def reading(warehouse: Path) -> Iterator[dict[str, Any]]:
    """What the readers have seen, once they have ended."""
    words = [sys.executable, "-m", "tests.bench.alternation_readers", str(warehouse)]
    found: dict[str, Any] = {}
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield found
        finally:
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=120)
    found |= json.loads(out)


class Alternation:
    """The way from one release to the other, in its two parts."""

    def __init__(self, region: MeasuredRegion) -> None:
        self._controller = region.controller
        self._releases = self._controller.releases.path / "_delta_log"
        self._level = 0.0
        level = rebind.level

        @contextmanager
        def timed(*args: Any, **named: Any) -> Iterator[None]:
            with level(*args, **named):
                self._level = time.time()
                yield

        pytest.MonkeyPatch().setattr(rebind, "level", timed)

    def turn(self) -> tuple[float, float]:
        """Seconds of the drain, and from level feeds until the other release is readable: its commit is in the log."""
        began = time.time()
        event = self._controller.rollback(self._controller.live().id, BY, HOST)
        readable = (self._releases / f"{event.version:020}.json").stat().st_mtime
        return self._level - began, readable - self._level


def main(place: Path, times: int, rebound: int) -> dict[str, Any]:
    region = MeasuredRegion(place, tick_seconds=0.5, follow_lag_seconds=1.0)
    region.deploy(files(rebound, wider=False))
    region.start()
    region.controller.resume()
    pauses, intake = random.Random(7), Intake(region=region)
    try:
        plan = region.plan(files(rebound, wider=True))
        region.carry(plan)
        region.promote()
        moved = [feed.target for feed in plan.release.feeds if feed.moved]
        assert len(moved) == rebound, moved
        alternation = Alternation(region)
        with intake.running():
            for _ in range(WARM):
                time.sleep(pauses.uniform(*PAUSES))
                alternation.turn()
            with reading(region.warehouse) as seen:
                turns = []
                for _ in range(times):
                    time.sleep(pauses.uniform(*PAUSES))
                    turns.append(alternation.turn())
        arrived(region, intake.sent)
    finally:
        region.close()
    drains, swaps = zip(*turns, strict=True)
    return {
        "drain": drains,
        "readable": swaps,
        "readers": seen,
        "sent": intake.sent,
        "refused": intake.failed,
        "wait": statistics.median(intake.waits),
    }


def arrived(region: MeasuredRegion, sent: int) -> None:
    """raises AssertionError unless every row that was sent is once in each table that it belongs to, of either release"""
    region.agent.follower.align("web").result(300)
    for stored in region.controller.releases.all():
        for state in stored.release.tables:
            if state.table.name.startswith(("copy", "shared")):
                table = DeltaTable(region.controller.path(state.version.path))
                counted = QueryBuilder().register("t", table).execute("SELECT count(*), count(DISTINCT id) FROM t")
                found = [column.to_pylist() for column in pa.table(counted.read_all()).columns]
                assert found == [[sent], [sent]], f"{stored.release.id}: {state.table.name}: {found} of {sent} rows"


if __name__ == "__main__":
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))))
