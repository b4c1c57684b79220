"""A data file that is in a table's folder and in no commit yet, and what is checked of it: deltalake checks nothing."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from console.errors import RegionError


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAction:
    """A data file that is already in the table's folder. name: relative to it; other fields as in the log"""

    name: str
    bytes: int
    values: tuple[tuple[str, str | None], ...]
    modified: int
    stats: str


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


def nullable(kind: Any) -> Any:
    """A type of Delta's in which everything may be NULL, at all levels."""
    match kind:
        case {"type": "struct", "fields": fields}:
            return {
                **kind,
                "fields": [{**field, "type": nullable(field["type"]), "nullable": True} for field in fields],
            }
        case {"type": "array", "elementType": element}:
            return {**kind, "elementType": nullable(element), "containsNull": True}
        case {"type": "map", "keyType": key, "valueType": value}:
            return {**kind, "keyType": nullable(key), "valueType": nullable(value), "valueContainsNull": True}
    return kind


def added_file(table: str, action: Mapping[str, Any], folder: str = "") -> FileAction:
    """The file of an action of Delta's.

    folder   in the table's, with a slash behind it, to which the action's path is relative
    raises   RegionError E_DV if it is anything else than a whole file
    """
    match action:
        case {"add": dict(add)} if not add.get("deletionVector"):
            return FileAction(
                name=folder + unquote(add["path"]),
                bytes=int(add["size"]),
                # a blank is NULL by the protocol, and deltalake would write it to the log unchanged
                values=tuple((name, value or None) for name, value in add["partitionValues"].items()),
                modified=int(add["modificationTime"]),
                stats=str(add["stats"]),
            )
        case other:
            raise RegionError(f"{table}: Delta wrote something else than a data file: {str(other)[:200]}", code="E_DV")
