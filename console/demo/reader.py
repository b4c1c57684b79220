"""A program that keeps reading the regions' tables through the live release, and records its observations.

    python reader.py --region eu=WAREHOUSE … --results FILE [--pipeline web] [--wanted READS]

Imports nothing of the program under test. One read takes the live row of the release table, opens every table named in
its manifest, and reads the newest rows. A read is *torn* if a table does not match the manifest, if a release is live
again after its successor, or if a table that only grows has shrunk; it is *failed* if anything raised. Ends on
SIGTERM; FILE always has the current figures by region.
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

READS_PER_SECOND = 1.5  # of each region, while builds need the cores
AFTERWARDS_PER_SECOND = 6.0  # once every region has another release, until there are as many as wanted
MAX_NOTES = 10


@dataclass(kw_only=True)
class ReadLog:
    """Reads of one region. releases: ids in the order in which they were live; notes: the first few faults."""

    reads: int = 0
    failed: int = 0
    torn: int = 0
    rows_sampled: int = 0
    releases: list[str] = field(default_factory=list)
    grown: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def note(self, fault: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(fault)


def live_release(warehouse: Path, pipeline: str) -> tuple[str, dict[str, Any]]:
    releases = DeltaTable(str(warehouse / "_console" / pipeline / "releases"))
    live = QueryBuilder().register("t", releases).execute("SELECT id, manifest FROM t WHERE state = 'live'").read_all()
    if live.num_rows != 1:
        raise LookupError(f"{live.num_rows} live releases")
    return str(live.column("id").to_pylist()[0]), json.loads(live.column("manifest").to_pylist()[0])


def differences(state: dict[str, Any], table: DeltaTable) -> list[str]:
    """How a table differs from its entry in the manifest."""
    name = state["table"]["name"]
    declared = {column["name"] for column in state["version"]["columns"]}
    present = {column.name for column in table.schema().fields}
    problems = [f"{name}: columns {sorted(declared ^ present)}"] if declared != present else []
    partitions = list(table.metadata().partition_columns)
    if partitions != state["version"]["partition_by"]:
        problems.append(f"{name}: partitioned by {partitions}")
    return problems


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
    """The current table; one that is already open reads only the rest of its log."""
    known = tables.get(str(path))
    if known is None:
        known = tables[str(path)] = DeltaTable(str(path))
    else:
        known.update_incremental()
    return known


def read(log: ReadLog, tables: dict[str, DeltaTable], warehouse: Path, pipeline: str) -> None:
    """One read of one region."""
    log.reads += 1
    try:
        release, manifest = live_release(warehouse, pipeline)
        torn: list[str] = []
        for state in manifest["tables"]:
            path = state["version"]["path"]
            table = open_table(tables, warehouse / path)
            torn += differences(state, table)
            rows, sampled = read_newest_file(table, warehouse, path)
            log.rows_sampled += sampled
            name = state["table"]["name"]
            if (
                state["table"]["kind"] != "aggregate"
            ):  # maintenance merges partial states, so they may become fewer rows
                if rows < log.grown.get(name, 0):
                    torn.append(f"{name}: {rows} rows in {release}, {log.grown[name]} before")
                log.grown[name] = max(rows, log.grown.get(name, 0))
        if release not in log.releases:
            log.releases.append(release)
        elif release != log.releases[-1]:
            torn.append(f"{release} again after {log.releases[-1]}")
        if torn:
            log.torn += 1
            log.note(f"torn: {'; '.join(torn)}")
    except Exception as error:
        log.failed += 1
        log.note(f"failed: {type(error).__name__}: {error}")


def write(results: Path, log: dict[str, ReadLog]) -> None:
    part = results.with_suffix(".part")
    part.write_text(json.dumps({name: asdict(figures) for name, figures in log.items()}, indent=1))
    part.replace(results)


def rate(log: dict[str, ReadLog], wanted: int) -> float:
    """Reads per second of each region. wanted: reads of each region for which somebody waits"""
    promoted = all(len(figures.releases) > 1 for figures in log.values())
    waited_for = any(figures.reads < wanted for figures in log.values())
    return AFTERWARDS_PER_SECOND if promoted and waited_for else READS_PER_SECOND


def main() -> int:
    parser = argparse.ArgumentParser(description="read the demo's regions through their releases, until SIGTERM")
    parser.add_argument("--region", action="append", required=True, metavar="NAME=WAREHOUSE")
    parser.add_argument("--pipeline", default="web")
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--wanted", type=int, default=0, help="reads of each region for which somebody waits")
    options = parser.parse_args()
    warehouses = {name: Path(path) for name, _, path in (pair.partition("=") for pair in options.region)}
    log = {name: ReadLog() for name in warehouses}
    tables: dict[str, DeltaTable] = {}
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    while not ended:
        started = time.monotonic()
        for name, warehouse in warehouses.items():
            read(log[name], tables, warehouse, options.pipeline)
        write(options.results, log)
        time.sleep(max(0.0, started + 1 / rate(log, options.wanted) - time.monotonic()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
