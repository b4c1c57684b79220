"""The loads of a landing table, told from its log: each commit names its load in an app transaction, which checkpoints
keep for good, also when the commit itself was cleaned up.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from console.agent.store import log
from console.errors import RegionError
from console.model.load import Landed, Loads

_LOAD = re.compile(r"load/(?P<first>[0-9a-f]+)/(?P<chain>[0-9a-f]+)/(?P<line>\d+)/(?P<load>.+)")
_OLDER = re.compile(r"(?P<batch>[0-9a-f]{64})/(?P<number>\d+)")


def app_id(table_id: str, end: Landed) -> str:
    """The name of a commit's transaction; its number is the load's rows."""
    return f"ingest/{table_id}/load/{end.first}/{end.chain}/{end.line}/{end.load}"


@dataclass(slots=True)
class _Read:
    """What was read of one table, up to a version."""

    table_id: str
    version: int
    loads: Loads = field(default_factory=Loads)


_read: dict[str, _Read] = {}
_guard = threading.Lock()


def of(table: str) -> Loads:
    """The table's loads as of its newest version; only what was committed since the last call is read."""
    with _guard:
        table_id, latest = log.table_id(table), log.latest_version(table)
        held = _read.get(table)
        if held is None or held.table_id != table_id or held.version > latest:
            held = _begun(table, table_id, latest)
        try:
            _go_on(table, held, latest)
        except RegionError as error:
            if error.code != "E_LOG_GONE":
                raise
            held = _begun(table, table_id, latest)  # cleaned up behind a newer checkpoint
            _go_on(table, held, latest)
        _read[table] = held
        return held.loads


def forget() -> None:
    """What a new process knows: nothing yet."""
    with _guard:
        _read.clear()


def _begun(table: str, table_id: str, latest: int) -> _Read:
    """What the newest checkpoint holds."""
    version, files = _checkpoint(table, latest)
    held = _Read(table_id, version)
    for file in files:
        for found in _kept(file):
            _take(held, found)
    return held


def _go_on(table: str, held: _Read, latest: int) -> None:
    for commit in log.commits(table, held.version + 1, latest):
        _take(held, commit.txn)
        held.version = commit.version


def _take(held: _Read, transactions: Mapping[str, int]) -> None:
    prefix = f"ingest/{held.table_id}/"
    for name, number in transactions.items():
        if not name.startswith(prefix):
            continue
        rest = name.removeprefix(prefix)
        if found := _LOAD.fullmatch(rest):
            first, chain, line, load = found.group("first", "chain", "line", "load")
            held.loads.add(Landed(load=load, first=first, chain=chain, rows=number, line=int(line)))
        elif found := _OLDER.fullmatch(rest):
            held.loads.add_older(found["batch"], int(found["number"]))


def _checkpoint(table: str, latest: int) -> tuple[int, list[Path]]:
    """(version, files) of the newest whole checkpoint up to a version; (-1, []) without one."""
    found: dict[int, list[Path]] = {}
    for path in (log.local(table) / "_delta_log").glob("*.checkpoint*.parquet"):
        stem = path.name.partition(".")[0]
        if stem.isdigit() and int(stem) <= latest:
            found.setdefault(int(stem), []).append(path)
    for version, paths in sorted(found.items(), reverse=True):
        single = [path for path in paths if path.name.count(".") == 2]
        if single:
            return version, single
        parts = {path.name.split(".")[3] for path in paths if path.name.count(".") == 4}
        if parts and len(paths) == int(next(iter(parts))):
            return version, paths
    return -1, []


def _kept(file: Path) -> Iterator[dict[str, int]]:
    """The app transactions in a checkpoint."""
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)
    if "txn" not in parquet.schema_arrow.names:
        return
    for batch in parquet.iter_batches(columns=["txn.appId", "txn.version"]):
        kept = batch.column("txn")
        yield {entry["appId"]: entry["version"] for entry in kept.to_pylist() if entry and entry["appId"]}
