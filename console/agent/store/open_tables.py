"""Delta tables on a disk, kept open from one use to the next.

Opening a table reads its checkpoint and each commit since: 5 to 17 ms of processor time, 60 at 100,000 files, where a table that
is kept reads what is new in 1 (`docs/decisions/0038-tables-are-kept-open.md`). deltalake adds each commit that it reads on to its state as a
part of its own, and goes through all parts in each append, so that a table is opened anew, and whole, once it has many. A table in a bucket
is opened anew for each use.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from console.agent.object_store.object_path import in_bucket
from console.agent.store import log, log_files
from console.model.created import CHECKPOINT_COMMITS

MOST_FILES = 200_000  # of all kept tables together: deltalake keeps some 250 bytes of each
UNKNOWN_FILES = 1_000  # of a table without a checkpoint
MOST_PARTS = CHECKPOINT_COMMITS  # of a kept table, one for each commit since it was opened: an append costs 7 ms with few of them, 108 with 2,000


@dataclass(slots=True, kw_only=True)
class _Opened:
    """An open table, and what it is recognised by: deltalake takes no notice of another table in its place.

    version, stamp  a commit of it, and that commit's file; None without one
    whole           its version when it was opened
    files           how many it had then, about
    """

    table: DeltaTable
    version: int
    stamp: log_files.Stamp | None
    whole: int
    files: int

    def is_at(self, path: str) -> bool:
        """Whether no other table is there. What was read of the path before this answer is then of this table."""
        return self.stamp is not None and log_files.stamp(path, self.version) == self.stamp


@dataclass(slots=True, kw_only=True)
class _Tables:
    """Tables that nobody uses at the moment, the one used last at the end."""

    most_files: int = MOST_FILES
    _kept: OrderedDict[str, _Opened] = field(default_factory=OrderedDict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def take(self, path: str) -> _Opened:
        with self._guard:
            kept = self._kept.pop(path, None)
        if kept is not None:
            with suppress(DeltaError):  # one that is opened anew says what is wrong with the log
                _read_on(path, kept.table)
                if kept.is_at(path):
                    return kept
        return _opened_anew(path)

    def keep(self, path: str, used: _Opened) -> None:
        version = int(used.table.version())
        newest = log_files.stamp(path, version)
        if newest is None or version - used.whole >= MOST_PARTS or not used.is_at(path):
            return
        used.version, used.stamp = version, newest
        if used.files > self.most_files:
            return
        with self._guard:
            self._kept[path] = used
            self._kept.move_to_end(path)
            while sum(kept.files for kept in self._kept.values()) > self.most_files:
                self._kept.popitem(last=False)


_TABLES = _Tables()
_IN_USE = threading.local()  # of this thread: path → table


@contextmanager
def opened(path: str) -> Iterator[DeltaTable]:
    """A table at its newest version; no other thread has the same object meanwhile. Within the context, this thread gets it again.

    raises  TableNotFoundError, DeltaError
    """
    if in_bucket(path):
        yield DeltaTable(path)
        return
    in_use: dict[str, DeltaTable] = _IN_USE.__dict__
    if (table := in_use.get(path)) is not None:
        _read_on(path, table)
        yield table
        return
    taken = _TABLES.take(path)
    in_use[path] = taken.table
    try:
        yield taken.table
    finally:
        del in_use[path]
    _TABLES.keep(path, taken)  # after an error its state is unknown


def _opened_anew(path: str) -> _Opened:
    version = log.latest_version(path, missing_ok=True)
    stamp = log_files.stamp(path, version)  # before the table is read: one that takes its place meanwhile has another
    table = DeltaTable(path)
    last = log.last_checkpoint(path)
    files = UNKNOWN_FILES if last is None else max(last.actions, UNKNOWN_FILES)
    return _Opened(table=table, version=version, stamp=stamp, whole=int(table.version()), files=files)


def _read_on(path: str, table: DeltaTable) -> None:
    """Bring an open table to its newest version. deltalake lists the whole log even if there is none (docs/decisions/0039)."""
    if log.latest_version(path, missing_ok=True) != table.version():
        table.update_incremental()


def position(path: str, app_id: str, *, as_of: int | None = None) -> int | None:
    """The last number committed under an app id, or None. as_of: version; None for the latest"""
    try:
        with opened(path) as newest:
            table = newest if as_of in (None, int(newest.version())) else DeltaTable(path, version=as_of)
            number: int | None = table.transaction_version(app_id)
    except TableNotFoundError:
        return None
    return number


def table_id(path: str) -> str:
    """The id that Delta gave the table at its creation; a replaced or cloned table has another one."""
    with opened(path) as table:
        return str(table.metadata().id)


def schema_json(path: str, version: int | None = None) -> str:
    """The schema as Delta's JSON, as of a version."""
    if version is not None:
        return str(DeltaTable(path, version=version).schema().to_json())
    with opened(path) as table:
        return str(table.schema().to_json())
