"""The loads of a landing table, read from its log: each commit names its load in an app transaction, which checkpoints
keep for good, even after the commit itself was cleaned up.
"""

import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from console.agent.errors import CommitGone
from console.agent.store import log
from console.model.load import Landed, Loads

_LOAD = re.compile(r"load/(?P<first>[0-9a-f]+)/(?P<chain>[0-9a-f]+)/(?P<line>\d+)/(?P<load>.+)")
_OLDER = re.compile(r"(?P<batch>[0-9a-f]{64})/(?P<number>\d+)")


def app_id(table_id: str, end: Landed) -> str:
    """The app id of a commit's transaction; the transaction's version is the load's row count."""
    return f"ingest/{table_id}/load/{end.first}/{end.chain}/{end.line}/{end.load}"


@dataclass(slots=True)
class _TableLoads:
    """Loads of one table as of a version of its log."""

    table_id: str
    version: int
    loads: Loads = field(default_factory=Loads)


_cache: dict[str, _TableLoads] = {}
_guard = threading.Lock()


def of(table: str) -> Loads:
    """The table's loads as of its newest version; only commits since the last call are read."""
    with _guard:
        table_id, latest = log.table_id(table), log.latest_version(table)
        table_loads = _cache.get(table)
        if table_loads is None or table_loads.table_id != table_id or table_loads.version > latest:
            table_loads = _from_checkpoint(table, table_id, latest)
        try:
            _read_commits(table, table_loads, latest)
        except CommitGone:
            table_loads = _from_checkpoint(table, table_id, latest)  # cleaned up behind a newer checkpoint
            _read_commits(table, table_loads, latest)
        _cache[table] = table_loads
        return table_loads.loads


def forget() -> None:
    """Empty the cache, as in a new process."""
    with _guard:
        _cache.clear()


def _from_checkpoint(table: str, table_id: str, latest: int) -> _TableLoads:
    """The loads named in the newest checkpoint."""
    version, files = _checkpoint(table, latest)
    table_loads = _TableLoads(table_id, version)
    for file in files:
        for transactions in _transactions(file):
            _add(table_loads, transactions)
    return table_loads


def _read_commits(table: str, table_loads: _TableLoads, latest: int) -> None:
    for commit in log.commits(table, table_loads.version + 1, latest):
        _add(table_loads, commit.txn)
        table_loads.version = commit.version


def _add(table_loads: _TableLoads, transactions: Mapping[str, int]) -> None:
    prefix = f"ingest/{table_loads.table_id}/"
    for name, number in transactions.items():
        if not name.startswith(prefix):
            continue
        rest = name.removeprefix(prefix)
        if match := _LOAD.fullmatch(rest):
            first, chain, line, load = match.group("first", "chain", "line", "load")
            table_loads.loads.add(Landed(load=load, first=first, chain=chain, rows=number, line=int(line)))
        elif match := _OLDER.fullmatch(rest):
            table_loads.loads.add_older(match["batch"], int(match["number"]))


def _checkpoint(table: str, latest: int) -> tuple[int, list[Path]]:
    """(version, files) of the newest complete checkpoint up to a version; (-1, []) if there is none."""
    checkpoints: dict[int, list[Path]] = {}
    for path in (log.local(table) / "_delta_log").glob("*.checkpoint*.parquet"):
        stem = path.name.partition(".")[0]
        if stem.isdigit() and int(stem) <= latest:
            checkpoints.setdefault(int(stem), []).append(path)
    for version, paths in sorted(checkpoints.items(), reverse=True):
        single = [path for path in paths if path.name.count(".") == 2]
        if single:
            return version, single
        parts = {path.name.split(".")[3] for path in paths if path.name.count(".") == 4}
        if parts and len(paths) == int(next(iter(parts))):
            return version, paths
    return -1, []


def _transactions(file: Path) -> Iterator[dict[str, int]]:
    """The app transactions in a checkpoint."""
    import pyarrow.parquet as pq

    parquet = pq.ParquetFile(file)
    if "txn" not in parquet.schema_arrow.names:
        return
    for batch in parquet.iter_batches(columns=["txn.appId", "txn.version"]):
        transactions = batch.column("txn")
        yield {entry["appId"]: entry["version"] for entry in transactions.to_pylist() if entry and entry["appId"]}
