"""A region of many tables and days, and one that keeps five years of rollouts: surveyed, and its state read, in less than a second.

No data file of the tables exists: both are answered by logs.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.transaction import AddAction

from console.agent.__main__ import _state
from console.agent.store.ledger import Releases, Rollouts
from console.agent.survey import survey
from console.model.event import Accepted, Event, Logged, Recorded
from console.model.live import Release
from console.model.schema import Column
from tests.bench.report import Measurement, check
from tests.faults.rules.tables import state

pytestmark = pytest.mark.bench
DAYS, TABLES = 1_000, 200
ROLLOUTS, EVENTS = 5 * 365, 30
SECONDS = 1.0
SCHEMA = pa.schema([("id", pa.string()), ("ts", pa.timestamp("us", "UTC"))])
COLUMNS = (Column(name="id", type="string"), Column(name="ts", type="timestamp"))
BEGAN = datetime(2022, 1, 1, tzinfo=UTC)


def add(name: str, size: int, rows: int, lowest: dict[str, Any], highest: dict[str, Any]) -> AddAction:
    nulls = dict.fromkeys(lowest, 0)
    stats = {"numRecords": rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls}
    return AddAction(name, size, {}, 1_700_000_000_000, True, json.dumps(stats))


def append(table: str, adds: list[AddAction]) -> None:
    opened = DeltaTable(table)
    opened.create_write_transaction(adds, "append", opened.schema(), [])
    DeltaTable(table).create_checkpoint()


def wide(warehouse: Path) -> None:
    """Many tables with a file for each of many days, all live."""
    names = [f"t{number:03}" for number in range(TABLES)]
    days = [BEGAN + timedelta(days=number) for number in range(DAYS)]
    text = "%Y-%m-%dT%H:%M:%S.000Z"
    files = [
        add(f"{number}.parquet", 1 << 20, 1_000, {"id": "a", "ts": day.strftime(text)},
            {"id": "z", "ts": (day + timedelta(hours=23)).strftime(text)})
        for number, day in enumerate(days)
    ]  # fmt: skip
    for name in names:
        write_deltalake(str(warehouse / name), SCHEMA.empty_table())
        append(str(warehouse / name), files)
    tables = tuple(state(name, COLUMNS, partition_by=(), time="ts") for name in names)
    releases = Releases(warehouse, "web")
    releases.propose(Release(id="r1", pipeline="web", digest="d", tables=tables, feeds=()), "web-1", "ada", "ops")
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
    for number in range(2, ROLLOUTS + 1):
        for seq in range(1, EVENTS + 1):
            row = rollouts._row(Recorded(f"web-{number}", seq, BEGAN.timestamp() + number, event(number, seq)), None)
            place = rollouts.path / f"{number}-{seq}.parquet"
            pq.write_table(pa.Table.from_pylist([row], schema), place)
            known = {key: row[key] for key in ("rollout", "seq", "at")}
            files.append(add(place.name, place.stat().st_size, 1, known, known))
    append(str(rollouts.path), files)


def took(work: Callable[[], Any]) -> float:
    """Seconds of the second of two runs: an agent has done it before."""
    work()
    began = time.monotonic()
    work()
    return time.monotonic() - began


@pytest.mark.parametrize("made", [wide, old], ids=lambda made: str(made.__name__))
def test_a_large_region_is_surveyed_and_its_state_is_read_in_a_second(
    made: Callable[[Path], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(tmp_path)
    of = {wide: f"{TABLES} tables of {DAYS:,} days", old: f"{ROLLOUTS:,} rollouts of {EVENTS} events"}[made]
    works = {"survey": lambda: survey(tmp_path, "eu", "web", ()), "state": lambda: _state(tmp_path, "web")}
    with capsys.disabled():
        for name, work in works.items():
            seconds = took(work)
            check(Measurement(what=f"{name} of {of}", figure=seconds, limit=SECONDS, text=f"{seconds:.2f} s"))
