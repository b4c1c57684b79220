"""Maintenance of a table in a bucket: the agent's own commits, and its own deletions behind them (docs/decisions/0023).

Neither Spark nor deltalake may do it by itself: Spark commits nothing there, and deltalake's compaction and VACUUM move to
a later version instead of being refused by it.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from math import ceil
from typing import Any
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from console import crash
from console.agent.maintenance.vacuum import kept_hours
from console.agent.object_store.object_path import ObjectPath
from console.agent.store import commits, days, log
from console.agent.store.file_action import FileAction
from console.errors import RegionError

_VECTORS = "deletionVectors"  # a RemoveAction names no vector, so that a file with one would stay


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """A file of a partition. name: relative to the table, as it is stored"""

    name: str
    bytes: int


def partition_files(table: str, version: int, values: Sequence[tuple[str, str | None]]) -> tuple[PartitionFile, ...]:
    """The files of one partition as of a version. values: (column, value), None for NULL

    raises  RegionError E_DV for a table whose files may have deletion vectors
    """
    opened = DeltaTable(table, version=version)
    if _VECTORS in (opened.protocol().writer_features or ()):
        raise RegionError(f"{table}: files with deletion vectors are not rewritten in a bucket", code="E_DV")
    actions = opened.get_add_actions(flatten=True)
    paths, sizes = (actions.column(name).to_pylist() for name in ("path", "size_bytes"))
    parts = [days.partition_texts(actions, column) for column, _ in values]
    places = zip(*parts, strict=True) if parts else (() for _ in paths)
    wanted = tuple(value for _, value in values)
    found = zip(paths, sizes, places, strict=True)
    return tuple(PartitionFile(unquote(path), size) for path, size, place in found if place == wanted)


def replace_files(
    table: str,
    gone: Sequence[PartitionFile],
    files: Sequence[FileAction],
    values: Sequence[tuple[str, str | None]],
    note: Mapping[str, Any],
) -> int:
    """One commit without data change, by which other files hold the same rows. Returns its version.

    gone    the files from which the rows were read, all of one partition;  files: those that have them now
    raises  RegionError E_BUSY, with nothing committed, if one of them is no file of the table any more
    """
    now = int(time.time() * 1000)
    removes = [RemoveAction(file.name, False, now, file.bytes, dict(values)) for file in gone]
    adds = [AddAction(f.name, f.bytes, dict(f.values), f.modified, False, f.stats) for f in files]

    def write(opened: DeltaTable, properties: CommitProperties) -> None:
        if missing := {file.name for file in gone} - _named(opened):
            raise RegionError(
                f"{table}: {len(missing)} files were removed while they were compacted; nothing was changed",
                hint="console maintain, again",
                code="E_BUSY",
            )
        by = opened.metadata().partition_columns
        crash.point("before-commit-compact")
        opened.create_write_transaction([*removes, *adds], "append", opened.schema(), by, commit_properties=properties)

    version = 1 + commits.commit(table, write, note=note)
    crash.point("after-commit-compact")
    return version


def delete_older(table: str, column: str, keep: date, *, or_null: bool, note: Mapping[str, Any]) -> None:
    """Delete the rows before a day, in one commit.

    or_null  also those without a time
    """
    named = '"' + column.replace('"', '""') + '"'
    older = f"{named} < '{keep.isoformat()}'"  # takes the column's own type: a day is its first moment, in UTC
    which = f"({older} OR {named} IS NULL)" if or_null else older

    def write(opened: DeltaTable, properties: CommitProperties) -> None:
        crash.point("before-commit-retention")
        opened.delete(which, commit_properties=properties)

    commits.commit(table, write, note=note)
    crash.point("after-commit-retention")


def vacuum(table: str) -> int:
    """Delete the files that belong to no version within the table's own retention. Returns their number.

    A commit stands in front of the deletion: a former holder of the lease cannot make it. Killed after it, files are left
    to the next one.
    """
    commits.own(table)
    folder = log.root_of(table)
    assert isinstance(folder, ObjectPath)
    opened = DeltaTable(table)
    hours = ceil(kept_hours(table))
    # deltalake only names them, those that are gone already as well: by itself it would delete by a version that may be stale
    unneeded = opened.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
    there = {entry.key.removeprefix(f"{folder.key}/") for entry in folder.listed()}
    names = sorted(there.intersection(unneeded) - _named(opened))
    if not names:
        return 0

    def write(newest: DeltaTable, properties: CommitProperties) -> None:
        if newest.version() != opened.version() and (named := _named(newest) & set(names)):
            raise RegionError(f"{table}: {len(named)} files are named again; nothing was deleted", code="E_BUSY")
        by = newest.metadata().partition_columns
        crash.point("before-commit-vacuum")
        newest.create_write_transaction([], "append", newest.schema(), by, commit_properties=properties)

    commits.commit(table, write, note={"kind": "vacuum", "files": len(names), "hours": hours})
    crash.point("after-commit-vacuum")
    folder.objects.delete((f"{folder.key}/{name}" for name in names), commits.check_tenure)
    return len(names)


def _named(opened: DeltaTable) -> set[str]:
    """The files of a version, relative to the table, as they are stored."""
    return {unquote(path) for path in opened.get_add_actions().column("path").to_pylist()}
