"""The rows of files that commits added, as Delta's own reader gives them: columns by the names or numbers that they have
in the files, partition values by the log, paths as they are (docs/decisions/0012).

Plain files cost what reading Parquet costs. What only Delta can read, it reads, from an excerpt of the log.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from console.agent.rows import log_excerpt
from console.agent.store import log
from console.agent.store.shape import TableLayout
from console.agent.store.survey import simple_type
from console.errors import RegionError
from console.model.schema import quoted, text_literal

MAPPED_ROWS = 10_000  # up to which a file is looked up in a map that is searched from its beginning for each row
_PATTERN = "{}[]*?\\"
# a path that no reader passes over or takes for anything but a file's
_SIMPLE = re.compile(r"[A-Za-z0-9_/=.+-]*/[A-Za-z0-9][A-Za-z0-9_=.+-]*\.parquet")

Values = tuple[tuple[str, str | None], ...]


def rows(session: Any, source: str, shape: TableLayout, files: Sequence[log.AddedFile], scratch: Path) -> Any:
    """The rows of these files in the table's columns, those that it is partitioned by at the end.

    scratch  where an excerpt may be made, which has to stay until the rows were read
    """
    held = {file.path: file for file in files}  # a file that was added twice is one
    fields = json.loads(shape.schema)["fields"]
    if any(file.vector for file in files) or any(_strange(field) for field in fields):
        return log_excerpt.rows(session, source, shape, tuple(held.values()), scratch)
    stored = [field for field in fields if field["name"] not in shape.partition_by]
    if shape.mapping == "id":
        session.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    schema = _struct({"type": "struct", "fields": [_physical(field, shape.mapping) for field in stored]})
    # without a look for partitions, whose values would be told from names of folders
    reader = session.read.schema(schema).option("recursiveFileLookup", "true")
    found = reader.parquet(*map(_literal, held))
    parts = {values: at for at, values in enumerate(dict.fromkeys(file.values for file in files), 1)}
    uris: dict[str, str] = {}
    if len(parts) > 1 or not all(map(_SIMPLE.fullmatch, held)):  # Spark's list of files costs a live step a twentieth
        uris = {_path(uri): uri for uri in found.inputFiles()}
        if uris.keys() != held.keys():  # it passes over names that begin with _ or a dot
            return log_excerpt.rows(session, source, shape, tuple(held.values()), scratch)
    if shape.mapping == "none" and not shape.partition_by:
        return found
    number, kept = "1", ["*"]  # each column that is named costs a live step calls into the JVM
    if len(parts) > 1:
        kept = [quoted(_name(field, shape.mapping)) for field in stored]
        numbers = {_short(uris[path]): parts[file.values] for path, file in held.items()}
        rows = sum(file.rows if file.rows >= 0 else MAPPED_ROWS for file in files)
        found, number = _numbered(session, found, numbers, rows)
    told = {
        field["name"]: _partition(field, shape, tuple(parts), number)
        for field in fields
        if field["name"] in shape.partition_by
    }
    if shape.mapping == "none":
        return found.selectExpr(*kept, *told.values())
    return found.select(*(_shown(field, shape.mapping, told.get(field["name"])) for field in fields))


def _partition(field: dict[str, Any], shape: TableLayout, parts: Sequence[Values], number: str) -> str:
    """SQL for a partition column: the value that the log has for each file.

    number  SQL for which of the parts a row's file belongs to
    """
    stored = _name(field, shape.mapping)
    values = ", ".join(_value(dict(part).get(stored)) for part in parts)
    told = values if len(parts) == 1 else f"element_at(array({values}), {number})"
    # one that is no such value is an error: deltalake has spelled -1.25 as `-1.-25`
    return f"CAST(CAST({told} AS STRING) AS {simple_type(field['type'])}) AS {quoted(field['name'])}"


def _shown(field: dict[str, Any], mapping: str, told: str | None) -> Any:
    """A column of a mapped table by the names it shows, its inner ones too. told: SQL for one that is not in the files"""
    from pyspark.sql.functions import col, expr

    if told is not None:
        return expr(told)
    kind = _struct({"type": "struct", "fields": [_physical(field, "none")]})[0].dataType
    return col(quoted(_name(field, mapping))).cast(kind).alias(field["name"])


def _numbered(session: Any, found: Any, numbers: dict[str, int], rows: int) -> tuple[Any, str]:
    """The rows, and SQL for the number that the file of each has."""
    from pyspark.sql.functions import expr

    if rows <= MAPPED_ROWS:
        number = f"element_at(from_json({text_literal(json.dumps(numbers))}, 'map<string,int>'), _metadata.file_path)"
    else:
        told = text_literal(json.dumps([{"uri": uri, "number": number} for uri, number in numbers.items()]))
        known = session.sql(
            f"SELECT inline(from_json({told}, 'array<struct<uri:string,number:int>>')) AS (`uri of file`, `number of file`)"
        )
        found = found.selectExpr("*", "_metadata.file_path AS `path of file`").join(
            known.hint("broadcast"), expr("`path of file` = `uri of file`"), "left"
        )
        number = "`number of file`"
    return found, f"coalesce({number}, raise_error('a row of no file of the range'))"


def _value(value: str | None) -> str:
    return "NULL" if value is None else text_literal(value)


def _physical(field: dict[str, Any], mapping: str) -> dict[str, Any]:
    """A field as the files have it; nullable all the way down, as Spark reads Parquet: it casts to nothing narrower."""
    number = field["metadata"].get("delta.columnMapping.id") if mapping == "id" else None
    return {
        "name": _name(field, mapping),
        "type": _inside(field["type"], mapping),
        "nullable": True,
        "metadata": {} if number is None else {"parquet.field.id": number},
    }


def _inside(kind: Any, mapping: str) -> Any:
    match kind:
        case {"type": "struct", "fields": fields}:
            return {**kind, "fields": [_physical(field, mapping) for field in fields]}
        case {"type": "array", "elementType": element}:
            return {**kind, "elementType": _inside(element, mapping), "containsNull": True}
        case {"type": "map", "keyType": key, "valueType": value}:
            inner = {"keyType": _inside(key, mapping), "valueType": _inside(value, mapping)}
            return {**kind, **inner, "valueContainsNull": True}
    return kind


def _name(field: dict[str, Any], mapping: str) -> str:
    if mapping == "none":
        return str(field["name"])
    try:
        return str(field["metadata"]["delta.columnMapping.physicalName"])
    except KeyError:
        raise RegionError(
            f"column {field['name']} of a mapped table has no name in its files", code="E_MAPPING"
        ) from None


def _strange(field: dict[str, Any]) -> bool:
    """Whether Parquet is not enough: a column without a type, or one that hides what Spark tells of a row's file."""
    return field["name"].lower() == "_metadata" or _void(field["type"])


def _void(kind: Any) -> bool:
    match kind:
        case {"type": "struct", "fields": fields}:
            return any(_void(field["type"]) for field in fields)
        case {"type": "array", "elementType": element}:
            return _void(element)
        case {"type": "map", "valueType": value}:
            return _void(value)
    return bool(kind == "void")


def _struct(kind: dict[str, Any]) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(kind)


def _literal(path: str) -> str:
    """A path that Spark takes for no pattern."""
    return "".join(f"\\{char}" if char in _PATTERN else char for char in path)


def _path(uri: str) -> str:
    return unquote("/" + uri.removeprefix("file:").lstrip("/")) if uri.startswith("file:") else uri


def _short(uri: str) -> str:
    """A URI of Spark's list of files as `_metadata.file_path` has it."""
    return "file:/" + uri.removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri
