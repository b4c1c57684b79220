"""Data files that Spark writes and the agent commits: the way of rows into a table in a bucket (docs/decisions/0024).

Delta's own file writer in the JVM is used, without its commit. Tasks write under names of their own in their final places,
nothing is renamed, and what counts is the list that the driver received from the tasks that it let commit: a file of a
lost or late task is in no list, and nobody's row.
"""

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from console.agent.store import log
from console.errors import RegionError


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAction:
    """A data file that is already in the table's folder. name: relative to it; other fields as in the log"""

    name: str
    bytes: int
    values: tuple[tuple[str, str | None], ...]
    modified: int
    stats: str


def write(session: Any, rows: Any, table: str, schema: str = "") -> tuple[FileAction, ...]:
    """Write rows as files of a table, and commit nothing.

    rows    DataFrame with the table's stored columns
    schema  of the rows, as Delta's JSON, if they are to replace the table's rows and columns: they may be other ones then
    raises  RegionError E_COLUMNS if it has other ones; whatever Spark raises. Files of a failed job are left behind, and named
            by no log
    """
    delta = session._jvm.org.apache.spark.sql.delta.DeltaLog
    transaction = delta.forTable(session._jsparkSession, table).startTransaction()
    if schema:
        was = transaction.metadata()
        own = (was.id(), was.name(), was.description(), was.format())
        fresh = was.copy(*own, schema, was.partitionColumns(), was.configuration(), was.createdTime())
        transaction.updateMetadataForTableOverwrite(fresh)
    else:
        check_columns(table, json.loads(log.schema_json(table)), json.loads(rows.schema.json()))
    written = transaction.writeFiles(rows._jdf)
    return tuple(_added(table, written.apply(at).json()) for at in range(written.size()))


def check_columns(table: str, stored: dict[str, Any], written: dict[str, Any]) -> None:
    """Check that files fit a table: Delta does it in its commit, and deltalake not at all. A column that is left out is NULL.

    stored, written  schemas as Delta's JSON
    raises           RegionError E_COLUMNS
    """
    known = {field["name"]: _bare(field["type"]) for field in stored["fields"]}
    for field in written["fields"]:
        name, kind = field["name"], _bare(field["type"])
        if known.get(name) != kind:
            has = f"is {known[name]}" if name in known else "is missing"
            raise RegionError(
                f"{table}: rows with {name} {kind} cannot be written, since it {has} there",
                hint="console plan shows what has changed there",
                code="E_COLUMNS",
            )


def _bare(kind: Any) -> Any:
    """A type without what says nothing about its files: whether values may be NULL, and metadata."""
    match kind:
        case {"type": "struct", "fields": fields}:
            return {"struct": [[field["name"], _bare(field["type"])] for field in fields]}
        case {"type": "array", "elementType": element}:
            return {"array": _bare(element)}
        case {"type": "map", "keyType": key, "valueType": value}:
            return {"map": [_bare(key), _bare(value)]}
    return kind


def _added(table: str, action: str) -> FileAction:
    match json.loads(action):
        case {"add": dict(add)} if not add.get("deletionVector"):
            return FileAction(
                name=unquote(add["path"]),
                bytes=int(add["size"]),
                # a blank is NULL by the protocol, and deltalake would write it to the log unchanged
                values=tuple((name, value or None) for name, value in add["partitionValues"].items()),
                modified=int(add["modificationTime"]),
                stats=str(add["stats"]),
            )
        case other:
            raise RegionError(f"{table}: Delta wrote something else than a data file: {str(other)[:200]}", code="E_DV")
