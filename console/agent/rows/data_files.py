"""The data files of a table as of one version, with the log's record of each, so that another table can link them."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from console.agent.errors import CommitGone
from console.agent.store import log, log_files
from console.errors import RegionError


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """A data file of a snapshot.

    path      absolute, on a local disk
    values    partition values from the log, by column
    modified  ms since 1970, as in the log
    stats     the log's statistics, as JSON
    """

    path: str
    bytes: int
    values: tuple[tuple[str, str | None], ...]
    modified: int
    stats: str

    @property
    def rows(self) -> int:
        return int(json.loads(self.stats)["numRecords"])


def files_at(table: str, version: int) -> tuple[DataFile, ...]:
    """The files of a version, ordered by path, from any checkpoint and commits that the log still has.

    raises  RegionError E_LOG_GONE if the log does not reach back that far; E_LINK for a file that cannot be linked
    """
    if not log.covers(table, version):
        raise CommitGone(f"{table}: version {version} is gone from the log", hint=log.LATE_HINT)
    first, active = _checkpoint(table, version)
    for number in range(first, version + 1):
        for line in log.action_lines(table, number):
            match json.loads(line):
                case {"add": dict(add)}:
                    active[str(add["path"])] = add
                case {"remove": dict(remove)}:
                    active.pop(str(remove["path"]), None)
    files = tuple(sorted((_data_file(table, add) for add in active.values()), key=lambda file: file.path))
    _check_complete(table, version, files)
    return files


def _checkpoint(table: str, version: int) -> tuple[int, dict[str, dict[str, Any]]]:
    """The first commit to read, and the files as of the newest checkpoint before it."""
    import pyarrow.parquet as pq

    folder = log_files.root_of(table) / "_delta_log"
    checkpoints = [
        number
        for path in folder.glob("*.checkpoint.parquet")
        if (stem := path.name.partition(".")[0]).isdigit() and (number := int(stem)) <= version
    ]
    if not checkpoints:
        return 0, {}
    rows = (
        pq.read_table(folder / f"{max(checkpoints):020}.checkpoint.parquet", columns=["add"]).column("add").to_pylist()
    )
    adds = ({**add, "partitionValues": dict(add["partitionValues"] or {})} for add in rows if add)
    return max(checkpoints) + 1, {str(add["path"]): add for add in adds}


def _data_file(table: str, add: dict[str, Any]) -> DataFile:
    path = log.absolute_path(log_files.root_of(table), str(add["path"]))
    if add.get("deletionVector") or not add.get("stats") or not path.startswith("/"):
        raise _unfit(table, f"{Path(path).name} has a deletion vector, no statistics, or another store")
    return DataFile(
        path=path,
        bytes=int(add["size"]),
        values=tuple(sorted((add.get("partitionValues") or {}).items())),
        modified=int(add.get("modificationTime") or 0),
        stats=str(add["stats"]),
    )


def _check_complete(table: str, version: int, files: tuple[DataFile, ...]) -> None:
    """raises RegionError E_LINK if Delta's own reader finds other files in the version"""
    actions = DeltaTable(table, version=version).get_add_actions()
    theirs = {log.absolute_path(log_files.root_of(table), path) for path in actions.column("path").to_pylist()}
    ours = {file.path for file in files}
    if ours != theirs:
        raise _unfit(
            table, f"{len(ours ^ theirs)} files of version {version} are described differently by Delta's reader"
        )


def _unfit(table: str, why: str) -> RegionError:
    hint = "console discard, then `history: carry`, which copies the rows"
    return RegionError(f"{table}: its files cannot be taken over: {why}", hint=hint, code="E_LINK")
