"""A service that never stops logging: sends its events to a region's agent, and records what was acknowledged.

    python -m console.demo.traffic.producer --project DIR --region eu --pipeline web --ledger FILE [--log FILE]

A process of its own. Its ledger is NDJSON outside Delta: a batch is recorded before it is sent and again when the agent
has acknowledged it. An unacknowledged batch is sent again under the same id, also by the next producer, so that every
event is stored exactly once even if the agent is killed.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from console.demo.traffic.access_log import payloads, seed
from console.demo.traffic.generate import TICK_SECONDS, TRAFFIC
from console.drivers.local import LocalDriver
from console.errors import ConsoleError
from console.project import load

BATCH_SECONDS = 1.0  # seconds between batches
MAX_BATCH_ROWS = 600  # in one batch: a frame holds 1 MiB
MAX_BACKLOG_SECONDS = 30.0  # of traffic buffered while the agent does not answer; older events are dropped
LATE_SECONDS = 36 * 3600
_MIX = 2654435761


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows `first … first + rows - 1` of one producer. Its lines are a function of these fields alone.

    prefix  of the ids, `eu-s19a2f-`;  at  when it was logged, seconds UTC
    """

    prefix: str
    first: int
    rows: int
    at: float

    @property
    def id(self) -> str:
        return f"{self.prefix}{self.first}"


def batch_lines(batch: Batch, region: str, events: Sequence[str], external: bool) -> list[str]:
    """The batch as NDJSON. One row in a hundred is late, by up to a day and a half."""

    def one(n: int) -> str:
        late = (n * _MIX >> 4) % LATE_SECONDS if n % 100 == 99 else 0
        at = batch.at - late - (batch.first + batch.rows - 1 - n) * BATCH_SECONDS / max(1, batch.rows)
        row = {
            "id": f"{batch.prefix}{n}",
            "region": region,
            "ts": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
            "payload": events[n % len(events)],
        }
        if external:
            row["ext_id"] = f"x{n * _MIX % 2**32}"
        return json.dumps(row, ensure_ascii=False)

    return [one(n) for n in range(batch.first, batch.first + batch.rows)]


class Ledger:
    """Append-only, on disk before the call returns."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        torn = path.is_file() and not path.read_bytes().endswith(b"\n")
        self._file = path.open("a", encoding="utf-8")
        if torn:  # by a killed producer
            self._file.write("\n")

    def unacknowledged(self) -> Batch | None:
        """The last batch that an earlier producer sent without an acknowledgement."""
        waiting: Batch | None = None
        for line in self._path.read_text().splitlines():
            try:
                entry: dict[str, Any] = json.loads(line)
            except ValueError:
                continue  # cut off by a kill: that batch was not sent yet
            what = entry.pop("what")
            waiting = Batch(**entry) if what == "sending" else None
        return waiting

    def note(self, what: str, batch: Batch) -> None:
        self._file.write(json.dumps({"what": what, **asdict(batch)}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def due_batches(prefix: str, rate: float, clock: Iterator[tuple[float, float]]) -> Iterator[Batch | None]:
    """The batch to send at each tick of the clock; None when it is too early.

    rate   rows a second
    clock  (monotonic seconds, seconds UTC)
    """
    sent = 0
    since, _ = next(clock)
    for now, at in clock:
        since = max(since, now - MAX_BACKLOG_SECONDS - sent / rate)
        rows = min(MAX_BATCH_ROWS, int((now - since) * rate) - sent)
        if rows < 1:
            yield None
            continue
        yield Batch(prefix, sent, rows, at)
        sent += rows


def _clock() -> Iterator[tuple[float, float]]:
    while True:
        yield time.monotonic(), time.time()


async def deliver(driver: LocalDriver, pipeline: str, batch: Batch, rows: list[str], ended: asyncio.Event) -> bool:
    """Send until it is acknowledged or the process has to end. True when acknowledged."""
    pause = 0.2
    while True:
        try:
            await driver.ingest(pipeline, "landing", batch.id, rows)
            return True
        except ConsoleError as error:
            print(f"{batch.id}: {error}", file=sys.stderr, flush=True)
        if ended.is_set():
            return False
        await asyncio.sleep(pause)
        pause = min(5.0, pause * 2)


async def produce(arguments: argparse.Namespace) -> None:
    region = next(region for region in load(arguments.project).regions if region.name == arguments.region)
    traffic = TRAFFIC[arguments.region]
    connection, _ = seed(arguments.log)
    events = payloads(connection)
    connection.close()
    driver, ledger, ended = LocalDriver(region, tick_seconds=TICK_SECONDS), Ledger(arguments.ledger), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)

    async def send(batch: Batch) -> None:
        if await deliver(
            driver, arguments.pipeline, batch, batch_lines(batch, region.name, events, traffic.external), ended
        ):
            ledger.note("acknowledged", batch)

    if pending := ledger.unacknowledged():
        await send(pending)
    for batch in due_batches(f"{region.name}-s{int(time.time()):x}-", traffic.live, _clock()):
        if ended.is_set():
            break
        if batch:
            ledger.note("sending", batch)
            await send(batch)
        await asyncio.sleep(BATCH_SECONDS)
    ledger.close()
    await driver.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--project", type=Path, required=True)
    parser.add_argument("--region", choices=sorted(TRAFFIC), required=True)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--ledger", type=Path, required=True)
    parser.add_argument("--log", type=Path)
    asyncio.run(produce(parser.parse_args()))


if __name__ == "__main__":
    main()
