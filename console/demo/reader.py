"""A program that reads the regions' tables all the time, through whichever release is live, and notes what it saw.

    python reader.py --region eu=WAREHOUSE … --results FILE [--pipeline web]

Imports nothing of the program that it watches. One read takes the live row of the release table, opens every table
that its manifest names, and looks at the newest rows. It is *torn* where a table is not what the manifest says, where
a promoted release gives way to the one before it, or where a table that only grows has become smaller; it is *failed*
where anything raised. Ends at SIGTERM; FILE holds, at any moment, region → figures.
"""

import argparse
import json
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow.parquet
from deltalake import DeltaTable, QueryBuilder

READS_A_SECOND = 1.5  # of each region


@dataclass
class ReadLog:
    """What was read of one region. releases: ids in the order in which they were live; notes: the first few faults."""

    reads: int = 0
    failed: int = 0
    torn: int = 0
    rows_sampled: int = 0
    releases: list[str] = field(default_factory=list)
    grown: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, kind: str, what: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.notes) < 10:
            self.notes.append(f"{kind}: {what}")


def live_release(warehouse: Path, pipeline: str) -> tuple[str, dict[str, Any]]:
    releases = DeltaTable(str(warehouse / "_console" / pipeline / "releases"))
    live = QueryBuilder().register("t", releases).execute("SELECT id, manifest FROM t WHERE state = 'live'").read_all()
    if live.num_rows != 1:
        raise LookupError(f"{live.num_rows} live releases")
    return str(live.column("id").to_pylist()[0]), json.loads(live.column("manifest").to_pylist()[0])


def differences(state: dict[str, Any], table: DeltaTable) -> list[str]:
    """How a table differs from what its manifest says of it."""
    name = state["table"]["name"]
    wanted = {column["name"] for column in state["version"]["columns"]}
    held = {column.name for column in table.schema().fields}
    found = [f"{name}: columns {sorted(wanted ^ held)}"] if wanted != held else []
    partitions = list(table.metadata().partition_columns)
    if partitions != state["version"]["partition_by"]:
        found.append(f"{name}: partitioned by {partitions}")
    return found


def read_newest_file(table: DeltaTable, warehouse: Path, path: str) -> tuple[int, int]:
    """(rows in the table, rows read of its newest file)"""
    files = table.get_add_actions(flatten=True)
    counts = files.column("num_records").to_pylist()
    if not counts:
        return 0, 0
    times = files.column("modification_time").to_pylist()
    last = max(range(len(counts)), key=lambda i: times[i])
    rows = pyarrow.parquet.ParquetFile(warehouse / path / files.column("path").to_pylist()[last]).read()
    if rows.num_rows != counts[last]:
        raise LookupError(f"{path}: {rows.num_rows} rows in a file of {counts[last]}")
    return sum(counts), rows.num_rows


def open_table(tables: dict[str, DeltaTable], path: Path) -> DeltaTable:
    """The table as it is now; one that was open goes on from where its log was read."""
    known = tables.get(str(path))
    if known is None:
        known = tables[str(path)] = DeltaTable(str(path))
    else:
        known.update_incremental()
    return known


def read(seen: ReadLog, tables: dict[str, DeltaTable], warehouse: Path, pipeline: str) -> None:
    """One read of one region."""
    seen.reads += 1
    try:
        release, manifest = live_release(warehouse, pipeline)
        torn: list[str] = []
        for state in manifest["tables"]:
            path = state["version"]["path"]
            table = open_table(tables, warehouse / path)
            torn += differences(state, table)
            rows, sampled = read_newest_file(table, warehouse, path)
            seen.rows_sampled += sampled
            name = state["table"]["name"]
            if state["table"]["kind"] != "aggregate":  # states are merged by maintenance, so their rows may grow fewer
                if rows < seen.grown.get(name, 0):
                    torn.append(f"{name}: {rows} rows in {release}, {seen.grown[name]} before")
                seen.grown[name] = max(rows, seen.grown.get(name, 0))
        if release not in seen.releases:
            seen.releases.append(release)
        elif release != seen.releases[-1]:
            torn.append(f"{release} again after {seen.releases[-1]}")
        if torn:
            seen.note("torn", "; ".join(torn))
    except Exception as error:
        seen.note("failed", f"{type(error).__name__}: {error}")


def write(results: Path, seen: dict[str, ReadLog]) -> None:
    part = results.with_suffix(".part")
    part.write_text(json.dumps({name: asdict(figures) for name, figures in seen.items()}, indent=1))
    part.replace(results)


def main() -> int:
    parser = argparse.ArgumentParser(description="read the demo's regions through their releases, until SIGTERM")
    parser.add_argument("--region", action="append", required=True, metavar="NAME=WAREHOUSE")
    parser.add_argument("--pipeline", default="web")
    parser.add_argument("--results", type=Path, required=True)
    asked = parser.parse_args()
    warehouses = {name: Path(path) for name, _, path in (pair.partition("=") for pair in asked.region)}
    seen = {name: ReadLog() for name in warehouses}
    tables: dict[str, DeltaTable] = {}
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    while not ended:
        started = time.monotonic()
        for name, warehouse in warehouses.items():
            read(seen[name], tables, warehouse, asked.pipeline)
        write(asked.results, seen)
        time.sleep(max(0.0, started + 1 / READS_A_SECOND - time.monotonic()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
