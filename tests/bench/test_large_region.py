"""A region of many tables and days, and one that keeps five years of rollouts: surveyed, and its state read, in less than a second:
by an agent that runs, by one that has just started, and by a command while none runs.

No data file of the tables exists: all are answered by logs.
"""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.transaction import AddAction

from console.agent.__main__ import _state
from console.agent.feeds.app_ids import live_id
from console.agent.store import table_stats
from console.agent.store.ledger import Releases, Rollouts
from console.agent.survey import survey
from console.drivers.local import LocalDriver
from console.model.event import Accepted, Event, Logged, Recorded
from console.model.live import Feed, Release
from console.model.region import Region
from console.model.schema import Column
from tests.bench.report import Measurement, check
from tests.faults.rules.tables import number, state

pytestmark = pytest.mark.bench
ROOT = Path(__file__).resolve().parents[2]
DAYS, TABLES = 1_000, 200
ROLLOUTS, EVENTS = 5 * 365, 30
RELEASES = 30  # of the last rollouts, whose versions a clean-up has not dropped yet
SECONDS = 1.0
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
COLUMNS = (Column(name="id", type="string"), Column(name="ts", type="timestamp"))
BEGAN = datetime(2022, 1, 1, tzinfo=UTC)


def add(name: str, size: int, rows: int, lowest: dict[str, Any], highest: dict[str, Any]) -> AddAction:
    nulls = dict.fromkeys(lowest, 0)
    stats = {"numRecords": rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}
    return AddAction(name, size, {}, 1_700_000_000_000, True, json.dumps(stats))


def append(table: str, adds: list[AddAction], app_id: str = "", position: int = 0) -> None:
    """app_id: of a feed that has reached the position; "" for none"""
    opened = DeltaTable(table)
    numbers = [Transaction(app_id, number(1, position))] if app_id else []
    properties = CommitProperties(app_transactions=numbers)
    opened.create_write_transaction(adds, "append", opened.schema(), [], commit_properties=properties)
    DeltaTable(table).create_checkpoint()


def feed(target: str) -> Feed:
    return Feed(materialization=f"m_{target}", source="t000", target=target, sql="SELECT id, ts FROM t000")


def wide(warehouse: Path) -> None:
    """Many tables with a file for each of many days, all live, and all but one fed from that one."""
    names = [f"t{place:03}" for place in range(TABLES)]
    days = [BEGAN + timedelta(days=place) for place in range(DAYS)]
    text = "%Y-%m-%dT%H:%M:%S.000Z"
    files = [
        add(f"{place}.parquet", 1 << 20, 1_000, {"id": "a", "ts": day.strftime(text)},
            {"id": "z", "ts": (day + timedelta(hours=23)).strftime(text)})
        for place, day in enumerate(days)
    ]  # fmt: skip
    for name in names:
        write_deltalake(str(warehouse / name), SCHEMA.empty_table())
        fed = name != names[0]
        append(str(warehouse / name), files, live_id(str(warehouse / name), feed(name)) if fed else "", position=1)
    tables = tuple(state(name, COLUMNS, partition_by=(), time="ts") for name in names)
    feeds = tuple(feed(name) for name in names[1:])
    releases = Releases(warehouse, "web")
    releases.propose(Release(id="r1", pipeline="web", digest="d", tables=tables, feeds=feeds), "web-1", "ada", "ops")
    releases.swap("", "r1", "ada", "ops")


def old(warehouse: Path) -> None:
    """A rollout for each day of five years, with a file for each of its events, as the agent leaves them."""
    rollouts = Rollouts(warehouse, "web")

    def event(number: int, seq: int) -> Event:
        if seq > 1:
            return Logged(f"line {seq} of rollout {number}")
        return Accepted(release=f"r{number}", was="", plan="p", by="ada", host="ops", steps=(("promote", 0),))

    rollouts.append("web-1", 1, event(1, 1))
    schema = pa.schema(DeltaTable(str(rollouts.path)).schema().to_arrow())
    files = []
    for place in range(2, ROLLOUTS + 1):
        for seq in range(1, EVENTS + 1):
            row = rollouts._row(Recorded(f"web-{place}", seq, BEGAN.timestamp() + place, event(place, seq)), None)
            file = rollouts.path / f"{place}-{seq}.parquet"
            pq.write_table(pa.Table.from_pylist([row], schema), file)
            known = {key: row[key] for key in ("rollout", "seq", "at")}
            files.append(add(file.name, file.stat().st_size, 1, known, known))
    append(str(rollouts.path), files)
    releases, tables = Releases(warehouse, "web"), tuple(state(f"t{place:03}", COLUMNS) for place in range(20))
    for place in (1, *range(ROLLOUTS - RELEASES, ROLLOUTS + 1)):
        release = Release(id=f"r{place}", pipeline="web", digest="d", tables=tables, feeds=())
        releases.propose(release, f"web-{place}", "ada", "ops")
        live = releases.in_state("live")
        releases.swap(live.row.id if live else "", f"r{place}", "ada", "ops")
    log, commits = releases.path / "_delta_log", DeltaTable(str(releases.path)).version()
    for version in range(commits + 1, commits + 1 + 4 * ROLLOUTS):  # proposed, promoted, retired, dropped
        (log / f"{version:020}.json").write_text('{"commitInfo":{"timestamp":1700000000000}}\n')
    DeltaTable(str(releases.path)).create_checkpoint()


def took(work: Callable[[], Any]) -> tuple[float, float]:
    """Processor seconds of this process and of those that it waited for, and seconds, of the second of two runs: the files of the
    logs are in memory."""
    work()
    began, at = os.times(), time.monotonic()
    work()
    ended = os.times()
    return sum(ended[:4]) - sum(began[:4]), time.monotonic() - at


def without_memory(work: Callable[[], Any]) -> Callable[[], Any]:
    """As the first time in a process."""

    def run() -> None:
        table_stats._KNOWN.clear()
        work()

    return run


def driven(warehouse: Path, call: Callable[[LocalDriver], Awaitable[Any]]) -> Callable[[], Any]:
    """A console's call to a region whose agent does not run: in a process of its own."""

    async def run() -> None:
        driver = LocalDriver(Region(name="eu", warehouse=str(warehouse)))
        await call(driver)
        await driver.close()

    return lambda: asyncio.run(run())


def command(root: Path, *words: str) -> Callable[[], Any]:
    """A command in a project whose only region is this one."""
    files = {"regions/eu.yaml": f"name: eu\nwarehouse: {root}\n", "plans/web/pipeline.yaml": "description: x\n",
             "plans/web/tables/t000.yaml": "kind: landing\ntime: ts\ncolumns: {id: string, ts: timestamp}\n"}  # fmt: skip
    project = root.with_name("project")
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    environment = {**os.environ, "CONSOLE_HOME": str(project / "home"), "PYTHONPATH": str(ROOT)}
    line = [sys.executable, "-m", "console.main", *words]
    return lambda: subprocess.run(line, cwd=project, env=environment, check=True, capture_output=True)


@pytest.mark.parametrize("made", [wide, old], ids=lambda made: str(made.__name__))
def test_a_large_region_is_surveyed_and_its_state_is_read_in_a_second(
    made: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # an installed console has its modules compiled
    root = tmp_path / "warehouse"
    root.mkdir()
    made(root)
    of = {wide: f"{TABLES} tables of {DAYS:,} days", old: f"{ROLLOUTS:,} rollouts of {EVENTS} events"}[made]
    works = {
        "survey": lambda: survey(root, "eu", "web", ()),
        "first survey": without_memory(lambda: survey(root, "eu", "web", ())),
        "state": lambda: _state(root, "web"),
        "survey by a process of its own": driven(root, lambda driver: driver.survey("web", ())),
        "state by a process of its own": driven(root, lambda driver: driver.state("web")),
        "`console status`": command(root, "status"),
    }
    results = []
    with capsys.disabled():
        for name, work in works.items():
            processor, seconds = took(work)
            text = f"{min(processor, seconds):.2f} s ({processor:.2f} processor seconds in {seconds:.2f} s)"
            results.append(
                Measurement(what=f"{name} of {of}", figure=min(processor, seconds), limit=SECONDS, text=text)
            )
        check(*results)
