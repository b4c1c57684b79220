"""How the files of a table are read: its schema as the log has it, and the names of columns in the files."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from console.agent.store import log
from console.errors import RegionError


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How the files of a table are read, as of one version.

    schema   Delta's JSON, with what it says of each column's name and number in the files
    mapping  by what a column is found in a file: the name it shows, another name, or a number
    """

    schema: str
    partition_by: tuple[str, ...]
    mapping: Literal["none", "name", "id"]
    columns: str  # highest number of a column so far, as the table's property says it

    @property
    def texts(self) -> tuple[str, ...]:
        """Partition columns of type string: a Delta log has no empty text for them, only NULL."""
        fields = json.loads(self.schema)["fields"]
        return tuple(f["name"] for f in fields if f["name"] in self.partition_by and f["type"] == "string")


def layout_of(table: str, version: int) -> TableLayout:
    """raises  RegionError E_MAPPING where columns are found in a way that nobody knows; E_LOG_GONE as the log tells it no more"""
    opened = _opened(table, version)
    held = opened.metadata()
    match held.configuration.get("delta.columnMapping.mode", "none"):
        case "none" | "name" | "id" as mapping:
            most = held.configuration.get("delta.columnMapping.maxColumnId", "")
            return TableLayout(str(opened.schema().to_json()), tuple(held.partition_columns), mapping, most)
        case other:
            raise RegionError(f"{table}: delta.columnMapping.mode is {other!r:.40}", code="E_MAPPING")


def _opened(table: str, version: int) -> DeltaTable:
    """The table as of a version; as of a later one of the same schema, where the log was cleaned up below this one alone.

    Whoever cleans up by age alone leaves commits behind the last checkpoint that nothing leads up to.
    """
    try:
        return DeltaTable(table, version=version)
    except DeltaError:
        last = log.latest_version(table)
        changed = (commit.version for commit in log.commits(table, version + 1, last) if commit.metadata)
        same = next(changed, last + 1) - 1
        try:
            return DeltaTable(table, version=same)
        except DeltaError:
            gone = f"{table}: version {version} can no longer be read: the log below it was cleaned up"
            raise RegionError(gone, hint=log.LATE_HINT, code="E_LOG_GONE") from None


def physical_name(schema: dict[str, Any], column: str) -> str:
    """The name that a column has in the files and their statistics. schema: Delta's"""
    metadata: dict[str, Any] = next((field["metadata"] for field in schema["fields"] if field["name"] == column), {})
    return str(metadata.get("delta.columnMapping.physicalName", column))
