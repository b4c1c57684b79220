"""The loads of a landing table, read from its log: each commit names its load in an app transaction, which checkpoints
keep for good, even after the commit itself was cleaned up.
"""

import re
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from console.agent.errors import CommitGone
from console.agent.store import landing_versions, log, open_tables
from console.model.load import Landed, Loads

_LOAD = re.compile(r"load/(?P<first>[0-9a-f]+)/(?P<chain>[0-9a-f]+)/(?P<line>\d+)/(?P<load>.+)")
_OLDER = re.compile(r"(?P<batch>[0-9a-f]{64})/(?P<number>\d+)")


def app_id(table_id: str, end: Landed) -> str:
    """The app id of a commit's transaction; the transaction's version is the load's row count."""
    return f"ingest/{table_id}/load/{end.first}/{end.chain}/{end.line}/{end.load}"


@dataclass(slots=True)
class _ReadTo:
    """The position up to which the log of a table's version has been read."""

    table_id: str
    version: int


@dataclass(slots=True)
class _TableLoads:
    """Loads of one table, in all of its kept versions."""

    read: dict[str, _ReadTo] = field(default_factory=dict)
    loads: Loads = field(default_factory=Loads)


_cache: dict[str, _TableLoads] = {}
_guard = threading.Lock()


def of(table: str, others: Iterable[str] = ()) -> Loads:
    """The table's loads as of its newest version; reads only commits since the last call.

    others  other versions of the same landing table, whose loads count as well
    """
    with _guard:
        table_loads = _cache.setdefault(table, _TableLoads())
        paths = (table, *others)
        latest = {path: (open_tables.table_id(path), log.latest_version(path)) for path in paths}
        if not all(_continues(read, latest.get(path)) for path, read in table_loads.read.items()):
            table_loads = _TableLoads()
        for path in paths:
            _read(table_loads, path, *latest[path])
        _cache[table] = table_loads
        return table_loads.loads


def forget() -> None:
    """Empty the cache, as in a new process."""
    with _guard:
        _cache.clear()


def _continues(read: _ReadTo, now: tuple[str, int] | None) -> bool:
    """Whether the log continues from the position read. The loads of a dropped version are in the others."""
    return now is None or (read.table_id == now[0] and read.version <= now[1])


def _read(table_loads: _TableLoads, path: str, table_id: str, latest: int) -> None:
    if path not in table_loads.read:
        _read_checkpoint(table_loads, path, table_id, latest)
    try:
        _read_commits(table_loads, path, latest)
    except CommitGone:
        _read_checkpoint(table_loads, path, table_id, latest)  # cleaned up behind a newer checkpoint
        _read_commits(table_loads, path, latest)


def _read_checkpoint(table_loads: _TableLoads, path: str, table_id: str, latest: int) -> None:
    """The loads named in the newest checkpoint."""
    version, all_transactions = landing_versions.at_checkpoint(path, latest)
    table_loads.read[path] = _ReadTo(table_id, version)
    for transactions in all_transactions:
        _add(table_loads.loads, table_id, transactions)


def _read_commits(table_loads: _TableLoads, path: str, latest: int) -> None:
    read = table_loads.read[path]
    for commit in log.commits(path, read.version + 1, latest):
        _add(table_loads.loads, read.table_id, commit.txn)
        read.version = commit.version


def _add(loads: Loads, table_id: str, transactions: Mapping[str, int]) -> None:
    prefix = f"ingest/{table_id}/"
    for name, number in transactions.items():
        if not name.startswith(prefix):
            continue
        rest = name.removeprefix(prefix)
        if match := _LOAD.fullmatch(rest):
            first, chain, line, load = match.group("first", "chain", "line", "load")
            loads.add(Landed(load=load, first=first, chain=chain, rows=number, line=int(line)))
        elif match := _OLDER.fullmatch(rest):
            loads.add_older(match["batch"], int(match["number"]))
