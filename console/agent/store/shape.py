"""The layout of a table's files: its schema as of a version, and the names of its columns in the files."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from console.agent.errors import CommitGone
from console.agent.store import log, log_files
from console.errors import RegionError


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The layout of a table's files as of one version.

    schema   Delta's schema JSON, with each column's physical name and number
    mapping  column mapping mode: columns are found in files by name, by physical name, or by number
    columns  highest column number so far, as in the table's properties; "" without column mapping
    """

    schema: str
    partition_by: tuple[str, ...]
    mapping: Literal["none", "name", "id"]
    columns: str

    @property
    def texts(self) -> tuple[str, ...]:
        """Partition columns of type string: in a Delta log an empty text in them is NULL."""
        fields = json.loads(self.schema)["fields"]
        return tuple(f["name"] for f in fields if f["name"] in self.partition_by and f["type"] == "string")


# Of each table the version whose layout was read last, and the stamp of that commit's file: to open a table costs a live step
# 10 ms, and only a commit with metadata changes its layout.
_KNOWN: dict[str, tuple[int, log_files.Stamp, TableLayout]] = {}
_MOST_KNOWN = 4096


def layout_of(table: str, version: int) -> TableLayout:
    """The layout of a version. raises  RegionError E_MAPPING for an unknown mapping mode, E_LOG_GONE if the log is gone"""
    stamp = log_files.stamp(table, version)
    if stamp is None:
        return _read_layout(table, version)
    layout = _known_layout(table, version) or _read_layout(table, version)
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    _KNOWN[table] = version, stamp, layout
    return layout


def _known_layout(table: str, version: int) -> TableLayout | None:
    """The layout read last, if this version is of the same log and has no other."""
    if table not in _KNOWN:
        return None
    known, stamp, layout = _KNOWN[table]
    if version < known or log_files.stamp(table, known) != stamp:  # or another table is there now
        return None
    try:
        changed = any(commit.metadata for commit in log.commits(table, known + 1, version))
    except CommitGone:
        return None
    return None if changed else layout


def _read_layout(table: str, version: int) -> TableLayout:
    opened = _opened(table, version)
    metadata = opened.metadata()
    match metadata.configuration.get("delta.columnMapping.mode", "none"):
        case "none" | "name" | "id" as mapping:
            highest = metadata.configuration.get("delta.columnMapping.maxColumnId", "")
            return TableLayout(str(opened.schema().to_json()), tuple(metadata.partition_columns), mapping, highest)
        case other:
            raise RegionError(f"{table}: delta.columnMapping.mode is {other!r:.40}", code="E_MAPPING")


def _opened(table: str, version: int) -> DeltaTable:
    """The table as of a version, or as of a later one with the same schema if this one can no longer be opened.

    A clean-up by age alone can leave commits after a checkpoint that no longer exists.
    """
    try:
        return DeltaTable(table, version=version)
    except DeltaError:
        last = log.latest_version(table)
        changed = (commit.version for commit in log.commits(table, version + 1, last) if commit.metadata)
        equivalent = next(changed, last + 1) - 1
        try:
            return DeltaTable(table, version=equivalent)
        except DeltaError:
            message = f"{table}: version {version} can no longer be read: the log below it was cleaned up"
            raise CommitGone(message, hint=log.LATE_HINT) from None


def physical_name(schema: dict[str, Any], column: str) -> str:
    """A column's name in the files and their statistics. schema: Delta's schema JSON, parsed"""
    metadata: dict[str, Any] = next((field["metadata"] for field in schema["fields"] if field["name"] == column), {})
    return str(metadata.get("delta.columnMapping.physicalName", column))
