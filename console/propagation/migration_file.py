"""A migration's file: its JSON, written and read.

source  docs/migration.schema.json is generated from the code (`published.py`)
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final, assert_never

from console.errors import DataError
from console.model.codec import loads
from console.propagation.migration import (
    CLASSIFICATIONS,
    FACETS,
    KEPT,
    PHASES,
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Migration,
    Operation,
    ReplaceColumn,
    SwapColumns,
    swap,
)
from console.propagation.types import parse

VERSION: Final = 1
MAX_BYTES: Final = 256 * 1024
# possible defaults, as in the published schema: a number, true, false, a quoted text, now() or []
DEFAULT: Final = (
    r"^(?:[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|true|false|now\(\)|\[\]|'(?:[^'\x00]|'')*')$"
)
_DEFAULT: Final = re.compile(DEFAULT)


def written(migration: Migration) -> str:
    """The text of a migration's file."""
    return json.dumps(to_data(migration), indent=2, ensure_ascii=False) + "\n"


def to_data(migration: Migration) -> dict[str, Any]:
    """A migration as the JSON that is committed, keys in the published order."""
    operation = migration.operation
    data: dict[str, Any]
    match operation:
        case AddColumn():
            data = {
                "type": "add_column",
                "name": operation.name,
                "data_type": str(operation.data_type),
                "nullable": operation.nullable,
                "default": operation.default,
            }
        case DropColumn():
            data = {"type": "drop_column", "name": operation.name}
        case SwapColumns():
            data = {"type": "swap_columns", "columns": dict(operation.columns)}
        case ChangeColumn():
            data = {
                "type": "change_column",
                "name": operation.name,
                **_facets_data(operation.to),
                "was": _facets_data(operation.was),
                "classification": operation.classification,
            }
        case ReplaceColumn():
            data = {
                "type": "replace_column",
                "name": operation.name,
                "from": operation.source,
                **_facets_data(operation.to),
            }
        case _:
            assert_never(operation)
    head = {"version": VERSION, "phase": migration.phase, "schema": migration.schema, "table": migration.table}
    return {**head, "operation": data}


def _facets_data(facets: Facets) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if facets.data_type is not KEPT:
        data["data_type"] = str(facets.data_type)
    if facets.nullable is not KEPT:
        data["nullable"] = facets.nullable
    if facets.default is not KEPT:
        data["default"] = facets.default
    return data


def read(text: str | bytes) -> Migration:
    """A migration file's content.

    raises  DataError for anything but the JSON of a migration
    """
    if len(text) > MAX_BYTES:
        raise DataError(f"larger than {MAX_BYTES // 1024} KiB")
    return from_data(loads(text))


def from_data(data: Any) -> Migration:
    """A migration from its JSON.

    raises  DataError naming an invalid, unknown or missing key
    """
    head = _object(data, "migration", {"version", "phase", "schema", "table", "operation"})
    if head["version"] != VERSION or isinstance(head["version"], bool):
        raise DataError(f"version: expected {VERSION}, found {head['version']!r:.40}")
    phase = head["phase"]
    if phase not in PHASES:
        raise DataError(f"phase: expected pre or post, found {phase!r:.40}")
    operation = _operation(head["operation"])
    return Migration(phase, _name(head["schema"], "schema"), _name(head["table"], "table"), operation)


def _operation(data: Any) -> Operation:
    kind = data.get("type") if isinstance(data, dict) else None
    if kind == "add_column":
        entry = _object(data, "operation", {"type", "name", "data_type", "nullable", "default"})
        facets = _facets(entry, "operation")
        assert facets.data_type is not KEPT
        assert facets.nullable is not KEPT
        assert facets.default is not KEPT
        return AddColumn(_name(entry["name"], "operation.name"), facets.data_type, facets.nullable, facets.default)
    if kind == "drop_column":
        return DropColumn(_name(_object(data, "operation", {"type", "name"})["name"], "operation.name"))
    if kind == "swap_columns":
        columns = _object(data, "operation", {"type", "columns"})["columns"]
        if not isinstance(columns, dict):
            raise DataError("operation.columns: expected an object of old name → new name")
        return swap({_name(old, "operation.columns"): _name(new, "operation.columns") for old, new in columns.items()})
    if kind == "change_column":
        return _change(data)
    if kind == "replace_column":
        return _replace(data)
    raise DataError(
        "operation.type: expected add_column, drop_column, swap_columns, change_column or replace_column,"
        f" found {kind!r:.40}"
    )


def _change(data: Any) -> ChangeColumn:
    entry = _object(data, "operation", {"type", "name", "was", "classification"}, frozenset(FACETS))
    if entry["classification"] not in CLASSIFICATIONS:
        raise DataError(f"operation.classification: expected one of {', '.join(CLASSIFICATIONS)}")
    to = _facets(entry, "operation")
    if to == Facets():
        raise DataError("operation: a change_column changes data_type, nullable or default")
    was = _facets(_object(entry["was"], "operation.was", frozenset(), frozenset(FACETS)), "operation.was")
    return ChangeColumn(_name(entry["name"], "operation.name"), to, was, entry["classification"])


def _replace(data: Any) -> ReplaceColumn:
    entry = _object(data, "operation", {"type", "name", "from"}, frozenset(FACETS))
    name, source = _name(entry["name"], "operation.name"), entry["from"]
    if source is None:
        _object(data, "operation", {"type", "name", "from", *FACETS})
    elif _name(source, "operation.from") == name:
        raise DataError("operation.from: a column does not take the place of itself")
    return ReplaceColumn(name, source, _facets(entry, "operation"))


def _facets(data: Mapping[str, Any], path: str) -> Facets:
    kind, nullable, default = (data.get(key, KEPT) for key in ("data_type", "nullable", "default"))
    if kind is not KEPT:
        try:
            kind = parse(_name(kind, f"{path}.data_type"))
        except ValueError as error:
            raise DataError(f"{path}.data_type: {error}") from None
    if nullable is not KEPT and not isinstance(nullable, bool):
        raise DataError(f"{path}.nullable: expected true or false")
    if default is not KEPT and default is not None and not (isinstance(default, str) and _DEFAULT.fullmatch(default)):
        raise DataError(
            f"{path}.default: expected a number, true, false, now(), [], a text in single quotes or null,"
            f" found {default!r:.60}"
        )
    return Facets(kind, nullable, default)


def _object(
    data: Any, path: str, needed: set[str] | frozenset[str], allowed: frozenset[str] = frozenset()
) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise DataError(f"{path}: expected an object, found {type(data).__name__}")
    if strange := sorted(set(data) - needed - allowed):
        raise DataError(f"{path}: unknown key {strange[0]!r:.60}")
    if missing := sorted(needed - set(data)):
        raise DataError(f"{path}: {missing[0]} is missing")
    return data


def _name(value: Any, path: str) -> str:
    if not isinstance(value, str) or not value or "\0" in value:
        raise DataError(f"{path}: expected a text")
    return value
