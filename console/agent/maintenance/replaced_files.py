"""Files of a partition that others replace, named one by one in a commit without data change, which feeds skip.

A commit that names what it read cannot lose a row that was appended meanwhile. In a bucket every compaction is made so
(docs/decisions/0023), and on a disk, too, whatever changes rows (docs/decisions/0029).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable
from deltalake.transaction import AddAction, RemoveAction

from console import crash
from console.agent.store import commits, days
from console.agent.store.file_action import FileAction
from console.errors import RegionError

_VECTORS = "deletionVectors"  # a RemoveAction names no vector, so that a file with one would stay


@dataclass(frozen=True, slots=True)
class PartitionFile:
    """A file of a partition. name: relative to the table, as it is stored; modified: ms since 1970, as in the log"""

    name: str
    bytes: int
    modified: int = 0


def partition_files(table: str, version: int, values: Sequence[tuple[str, str | None]]) -> tuple[PartitionFile, ...]:
    """The files of one partition as of a version. values: (column, value), None for NULL

    raises  RegionError E_DV for a table whose files may have deletion vectors
    """
    opened = DeltaTable(table, version=version)
    if _VECTORS in (opened.protocol().writer_features or ()):
        raise RegionError(f"{table}: files with deletion vectors are not replaced by name", code="E_DV")
    actions = opened.get_add_actions(flatten=True)
    paths, sizes, times = (actions.column(name).to_pylist() for name in ("path", "size_bytes", "modification_time"))
    parts = [days.partition_texts(actions, column) for column, _ in values]
    places = zip(*parts, strict=True) if parts else (() for _ in paths)
    wanted = tuple(value for _, value in values)
    found = zip(paths, sizes, times, places, strict=True)
    return tuple(PartitionFile(unquote(path), size, at or 0) for path, size, at, place in found if place == wanted)


def replace_files(
    table: str,
    gone: Sequence[PartitionFile],
    files: Sequence[FileAction],
    values: Sequence[tuple[str, str | None]],
    note: Mapping[str, Any],
) -> int:
    """One commit without data change, by which other files are in the place of these. Returns its version.

    gone    the files from which the rows were read, all of one partition;  files: those that have them now
    note    its `kind` names the commit, in the log and where an agent may die
    raises  RegionError E_BUSY, with nothing committed, if one of them is no file of the table any more
    """
    now = int(time.time() * 1000)
    removes = [RemoveAction(file.name, False, now, file.bytes, dict(values)) for file in gone]
    adds = [AddAction(f.name, f.bytes, dict(f.values), f.modified, False, f.stats) for f in files]

    def write(opened: DeltaTable, properties: CommitProperties) -> None:
        if missing := {file.name for file in gone} - named_files(opened):
            raise RegionError(
                f"{table}: {len(missing)} files were removed while they were compacted; nothing was changed",
                hint="console maintain, again",
                code="E_BUSY",
            )
        by = opened.metadata().partition_columns
        crash.point(f"before-commit-{note['kind']}")
        opened.create_write_transaction([*removes, *adds], "append", opened.schema(), by, commit_properties=properties)

    version = 1 + commits.commit(table, write, note=note)
    crash.point(f"after-commit-{note['kind']}")
    return version


def named_files(opened: DeltaTable) -> set[str]:
    """The files of a version, relative to the table, as they are stored."""
    return {unquote(path) for path in opened.get_add_actions().column("path").to_pylist()}
