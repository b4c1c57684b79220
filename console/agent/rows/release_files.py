"""Whether the data files of a table's newest version exist: from its log and listings of its folders, without Spark.

Both are read incrementally: the new commits of the log, and the folders whose entries have changed.
"""

import json
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from console.agent.errors import CommitGone
from console.agent.object_store.object_path import ObjectPath, place
from console.agent.store import log, log_files
from console.errors import ConsoleError
from console.model.live import Release
from console.model.way_back import WayBackFinding
from console.text import redacted, safe_text

MOST_COMMITS = 500  # read one by one; beyond that the whole log is read again
WHOLE_SECONDS = 600.0  # after which every folder is listed again, even with an unchanged time
# A folder's time advances by the kernel's ticks: a change in the tick of the listing would go unnoticed.
TICK_NANOSECONDS = 1_000_000_000


@dataclass(slots=True)
class _Folder:
    """names: of the expected files;  gone: the missing ones;  changed: the folder's time, -1 if unknown"""

    names: set[str] = field(default_factory=set)
    gone: frozenset[str] = frozenset()
    changed: int = -1


@dataclass(slots=True, kw_only=True)
class TableFiles:
    """The data files of one table, known up to a version of its log."""

    path: str
    version: int = -1
    _folders: dict[str, _Folder] = field(default_factory=lambda: defaultdict(_Folder))
    _listed: float = 0.0  # monotonic: when every folder was listed last
    _reported: frozenset[str] = frozenset()  # as gone, by the last check

    @property
    def count(self) -> int:
        return sum(len(folder.names) for folder in self._folders.values())

    def missing(self) -> tuple[str, ...]:
        """Absolute paths of files that the newest version names and that do not exist.

        raises  RegionError, DeltaError or OSError where its log cannot be read
        """
        self._read_on()
        gone = self._gone(whole=time.monotonic() - self._listed > WHOLE_SECONDS)
        if not self._reported.issuperset(gone):
            self._read_whole()  # before a file is reported, everything is read again
            gone = self._gone(whole=True)
        self._reported = frozenset(gone)
        return gone

    def _read_on(self) -> None:
        latest = log.latest_version(self.path)
        if self.version < 0 or not 0 <= latest - self.version <= MOST_COMMITS:
            self._read_whole()
            return
        try:
            for version in range(self.version + 1, latest + 1):
                self._read_commit(version)
                self.version = version
        except (CommitGone, ValueError):
            self._read_whole()

    def _read_commit(self, version: int) -> None:
        for line in log.action_lines(self.path, version):
            match json.loads(line):
                case {"remove": {"path": str(path)}}:
                    folder, name = self._place(path)
                    self._folders[folder].names.discard(name)
                case {"add": {"path": str(path)}}:
                    folder, name = self._place(path)
                    self._folders[folder].names.add(name)
                    self._folders[folder].changed = -1

    def _read_whole(self) -> None:
        table = DeltaTable(self.path)
        self._folders = defaultdict(_Folder)
        for path in table.get_add_actions(flatten=True).column("path").to_pylist():
            folder, name = self._place(path)
            self._folders[folder].names.add(name)
        self.version = table.version()

    def _place(self, path: str) -> tuple[str, str]:
        folder, _, name = log.absolute_path(log_files.root_of(self.path), path).rpartition("/")
        return folder, name

    def _gone(self, *, whole: bool) -> tuple[str, ...]:
        if whole:
            self._listed = time.monotonic()
        self._folders = defaultdict(_Folder, {at: each for at, each in self._folders.items() if each.names})
        for at, folder in self._folders.items():
            _look(at, folder, whole=whole)
        return tuple(f"{at}/{name}" for at, folder in self._folders.items() for name in sorted(folder.gone))


def _look(at: str, folder: _Folder, *, whole: bool) -> None:
    """Find the missing files of a folder, which is listed only if its entries may have changed."""
    now = time.time_ns()
    if isinstance(path := place(at), ObjectPath):
        names = [entry.key.rpartition("/")[2] for entry in path.listed()]
        folder.gone = frozenset(folder.names.difference(names))
        return
    try:
        changed = os.stat(at).st_mtime_ns
        if not whole and changed == folder.changed:
            folder.gone &= folder.names
            return
        with os.scandir(at) as entries:
            folder.gone = frozenset(folder.names.difference(entry.name for entry in entries))
    except FileNotFoundError:
        folder.gone, folder.changed = frozenset(folder.names), -1
        return
    folder.changed = changed if now - changed > TICK_NANOSECONDS else -1


@dataclass(slots=True)
class ReleaseFiles:
    """The files of all tables of a release. One check at a time, from any thread.

    resolve  version path → absolute path
    """

    resolve: Callable[[str], str]
    _tables: dict[str, TableFiles] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def look(self, release: Release) -> tuple[int, tuple[WayBackFinding, ...]]:
        """The number of files that its tables name, and the findings against them."""
        with self._guard:
            paths = {self.resolve(state.version.path): state.table.name for state in release.tables}
            self._tables = {path: self._tables.get(path) or TableFiles(path=path) for path in paths}
            findings = [each for path, name in paths.items() for each in _findings(self._tables[path], name)]
            return sum(files.count for files in self._tables.values()), tuple(findings)


def _findings(files: TableFiles, table: str) -> list[WayBackFinding]:
    try:
        missing = files.missing()
    except (ConsoleError, DeltaError, OSError) as error:
        files.version = -1
        if not place(files.path).exists():
            return [_finding(table, "_delta_log", "failed", "the table's folder is gone")]
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)[:200]
        return [_finding(table, "_delta_log", "inconclusive", f"the log cannot be read: {first}")]
    root = f"{log_files.root_of(files.path)}/"
    return [
        _finding(table, path.removeprefix(root), "failed", "it is gone, and the table names it") for path in missing
    ]


def _finding(table: str, name: str, state: Literal["failed", "inconclusive"], why: str) -> WayBackFinding:
    return WayBackFinding(part="file", name=name, state=state, why=safe_text(redacted(why)), table=table)
