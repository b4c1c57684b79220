"""Which kept files may still hold rows that were erased from the live release, from the Delta logs alone.

Only deletions in the live release's tables count, by any program: DELETE, UPDATE, MERGE, an overwrite, the table's own
retention. A file of another version counts if it was written before one of them and belongs to the same partition; where the
two versions are partitioned by other columns, or by other values of one, every such file counts.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os.path import exists, relpath
from pathlib import Path

from deltalake import DeltaTable

from console.agent.errors import CommitGone
from console.agent.failure import cause
from console.agent.maintenance.vacuum import kept_hours
from console.agent.object_store.object_path import in_bucket
from console.agent.pipeline import PipelineController
from console.agent.store import log, log_files
from console.agent.store.days import COMPARABLE, partition_texts
from console.model.erased import ErasedRows, Keeper
from console.model.live import Release, TableState

EVERY_SECONDS = 60.0
DISK_SECONDS = 600.0  # between two questions to the disk about the same files, while a table has no new commit
HOUR = 3600.0
Place = tuple[str | None, ...]  # a partition: the values of the columns that are compared


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedFile:
    """A data file that a commit removed, with rows. at: seconds since 1970, UTC; values: by partition column"""

    path: str
    bytes: int
    at: float
    values: Mapping[str, str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptVersion:
    """A version of a table that a kept release or a preview names. name: its id or name"""

    state: TableState
    keeper: Keeper
    name: str
    until: float


@dataclass(slots=True, kw_only=True)
class TableRemovals:
    """The files removed by commits of one table, read once each.

    there  those that the disk had when it was last asked
    """

    path: str
    files: list[RemovedFile] = field(default_factory=list)
    there: list[RemovedFile] = field(default_factory=list)
    _read: int = -1  # last version
    _asked: float = 0.0  # monotonic: when the disk was last asked for all of `there`

    def renew(self) -> None:
        """Read new commits, and ask the disk for the files after one, as a VACUUM makes, and every ten minutes. What is gone
        does not come back.
        """
        read = self._read
        for version in range(self._read + 1, log.latest_version(self.path) + 1):
            try:
                if log.commit(self.path, version).kind == "rewrite":
                    removed = tuple(_removed(self.path, version))
                    self.files += removed
                    self.there += removed
            except CommitGone:  # cleaned up: files that were removed that long ago are vacuumed as well
                pass
            self._read = version
        if self._read > read or time.monotonic() > self._asked + DISK_SECONDS:
            self.there = [file for file in self.there if exists(file.path)]
            self._asked = time.monotonic()


def _removed(path: str, version: int) -> Iterator[RemovedFile]:
    root, at = log_files.root_of(path), log.commit(path, version).at_ms / 1000
    for line in log.action_lines(path, version):
        remove = json.loads(line).get("remove")
        if remove and remove.get("dataChange", True):
            values = {name: value or None for name, value in (remove.get("partitionValues") or {}).items()}
            place = log.absolute_path(root, str(remove["path"]))
            yield RemovedFile(path=place, bytes=int(remove.get("size") or 0), at=at, values=values)


@dataclass(slots=True, kw_only=True)
class ErasedRowsSearch:
    """Looks once a minute at every pipeline of a region, in a thread of its own.

    keep_hours  the rollback window
    report      called with (pipeline, level, text)
    """

    controllers: Callable[[], Iterable[PipelineController]]
    keep_hours: float
    report: Callable[[str, str, str], None]
    _found: dict[str, tuple[ErasedRows, ...]] = field(default_factory=dict)
    _removals: dict[str, TableRemovals] = field(default_factory=dict)
    _due: float = 0.0
    _thread: threading.Thread | None = None

    def found(self, pipeline: str) -> tuple[ErasedRows, ...] | None:
        """The newest result; None before the first."""
        return self._found.get(pipeline)

    def tick(self) -> None:
        """Called every second. Never raises."""
        if time.monotonic() < self._due or (self._thread is not None and self._thread.is_alive()):
            return
        self._due = time.monotonic() + EVERY_SECONDS
        self._thread = threading.Thread(target=self._look_everywhere, name="erased rows", daemon=True)
        self._thread.start()

    def _look_everywhere(self) -> None:
        for controller in self.controllers():
            if in_bucket(str(controller.warehouse)):  # a request for each commit of each table
                continue
            try:
                self._found[controller.pipeline] = self.look(controller)
            except Exception as error:  # a table that is being cleaned up, for example: again in a minute
                self.report(controller.pipeline, "warning", f"files with erased rows are not listed: {cause(error)}")
        self._removals = {path: removals for path, removals in self._removals.items() if log.exists(path)}
        self._due = time.monotonic() + EVERY_SECONDS

    def look(self, controller: PipelineController) -> tuple[ErasedRows, ...]:
        """What is kept now, by table and version."""
        live = controller.releases.in_state("live")
        if live is None:
            return ()
        kept = tuple(self._kept(controller, live.release, live.row.at + self.keep_hours * HOUR))
        found: list[ErasedRows] = []
        for state in _managed(live.release):
            path = controller.path(state.version.path)
            removals = self._renewed(path)
            found += _still_there(controller.warehouse, live.release.id, state, path, removals.there)
            for version in (each for each in kept if each.state.table.name == state.table.name):
                other = controller.path(version.state.version.path)
                found += _still_there(
                    controller.warehouse, version.name, version.state, other, self._renewed(other).there
                )
                found += _survivors(controller.warehouse, state, version, other, removals.files)
        return tuple(found)

    def _renewed(self, path: str) -> TableRemovals:
        removals = self._removals.setdefault(path, TableRemovals(path=path))
        removals.renew()
        return removals

    def _kept(self, controller: PipelineController, live: Release, until: float) -> Iterator[KeptVersion]:
        """Versions other than those of the live release, each once."""
        seen = {state.version.path for state in live.tables}
        for keeper, name, release, goes in _keepers(controller, until):
            for state in _managed(release):
                if state.version.path not in seen and log.exists(controller.path(state.version.path)):
                    seen.add(state.version.path)
                    yield KeptVersion(state=state, keeper=keeper, name=name, until=goes)


def _keepers(controller: PipelineController, until: float) -> Iterator[tuple[Keeper, str, Release, float]]:
    """Of each kept release and preview: why, its name, itself, and from when on it goes."""
    stored = controller.releases.all()
    held = {each.release: each.due for each in controller.cleaning.held()}
    for each in stored:
        if each.row.state == "previous":
            yield "previous", each.row.id, each.release, until
    for each in stored:
        if each.row.id in held and each.row.state == "retired":
            yield "hold", each.row.id, each.release, held[each.row.id]
    for sandbox in controller.sandboxes.opened():
        yield "preview", sandbox.order.name, sandbox.plan.release, sandbox.order.expires
    for each in stored:
        if each.row.id not in held and each.row.state == "retired":
            yield "retired", each.row.id, each.release, 0.0


def _managed(release: Release) -> Iterator[TableState]:
    for state in release.tables:
        if state.version.path and (state.table.kind != "landing" or state.table.managed):
            yield state


def _still_there(
    warehouse: Path, release: str, state: TableState, path: str, there: Sequence[RemovedFile]
) -> Iterator[ErasedRows]:
    """Removed files that no VACUUM has deleted. One that the newest version names again lost rows to a deletion vector."""
    if there:
        newest = max(file.at for file in there)
        yield ErasedRows(
            table=state.table.name, keeper="removed", name=release, path=relpath(path, warehouse), files=len({file.path for file in there}),
            bytes=sum({file.path: file.bytes for file in there}.values()), at=newest, until=newest + kept_hours(path) * HOUR,
        )  # fmt: skip


def _survivors(
    warehouse: Path, live: TableState, version: KeptVersion, path: str, removed: Iterable[RemovedFile]
) -> Iterator[ErasedRows]:
    """Files of a kept version that are older than a deletion in the same partition of the live one."""
    columns = _compared(live, version.state)
    erased: dict[Place, float] = {}  # partition → its newest deletion
    for file in removed:
        place = tuple(file.values.get(column) for column in columns)
        erased[place] = max(erased.get(place, 0.0), file.at)
    if not erased:
        return
    actions = DeltaTable(path).get_add_actions(flatten=True)
    parts = [partition_texts(actions, column) for column in columns]
    places = zip(*parts, strict=True) if parts else (() for _ in range(actions.num_rows))
    sizes, written = (actions.column(name).to_pylist() for name in ("size_bytes", "modification_time"))
    older = [
        (size, erased[place])
        for place, size, at_ms in zip(places, sizes, written, strict=True)
        if at_ms / 1000 < erased.get(place, 0.0)
    ]
    if older:
        yield ErasedRows(
            table=version.state.table.name, keeper=version.keeper, name=version.name, path=relpath(path, warehouse), files=len(older),
            bytes=sum(size for size, _ in older), at=max(at for _, at in older), until=version.until,
        )  # fmt: skip


def _compared(live: TableState, other: TableState) -> tuple[str, ...]:
    """Partition columns that hold the same value for the same row in both versions, and whose text in the log says it."""
    types = {column.name: column.type for column in live.version.columns}
    others = {column.name: column.type for column in other.version.columns}
    return tuple(
        name
        for name in live.version.partition_by
        if name in other.version.partition_by
        and types.get(name) == others.get(name)
        and types.get(name) in COMPARABLE
        and name in live.values
        and live.values[name] == other.values.get(name)
    )
