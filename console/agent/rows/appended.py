"""Rows of added files as Delta's own reader returns them: columns by their physical names or numbers, partition values
from the log, paths taken literally (docs/decisions/0012).

Plain files cost no more than reading Parquet. Files that only Delta can read are read by it, from an excerpt of the log.
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
from console.agent.store.table_stats import simple_type
from console.errors import RegionError
from console.model.schema import quoted, text_literal

MAPPED_ROWS = 10_000  # up to this many, a row's file is looked up by a linear search in a map
_PATTERN_CHARACTERS = "{}[]*?\\"
# a path that no reader skips or interprets as a pattern
_PLAIN_PATH = re.compile(r"(?:s3:/)?[A-Za-z0-9_/=.+-]*/[A-Za-z0-9][A-Za-z0-9_=.+-]*\.parquet")

Values = tuple[tuple[str, str | None], ...]


def rows(
    session: Any,
    source: str,
    layout: TableLayout,
    files: Sequence[log.AddedFile],
    scratch: Path,
    columns: Sequence[str] = (),
) -> Any:
    """The rows of these files in the table's columns, partition columns last.

    scratch  folder for an excerpt of the log, if one is needed; it must exist until the rows are read
    columns  columns in whose order they are given where that costs nothing: of a plain table that has these and no others
    """
    by_path = {file.path: file for file in files}  # a file that was added twice counts once
    fields = json.loads(layout.schema)["fields"]
    if any(file.vector for file in files) or any(_needs_delta(field) for field in fields):
        return log_excerpt.rows(session, source, layout, tuple(by_path.values()), scratch)
    stored = [field for field in fields if field["name"] not in layout.partition_by]
    read = _reader(session, stored, layout.mapping).parquet(*map(_escaped, by_path))
    parts = {values: at for at, values in enumerate(dict.fromkeys(file.values for file in files), 1)}
    uris: dict[str, str] = {}
    # Spark's list of files takes a twentieth of a live step
    if len(parts) > 1 or not all(map(_PLAIN_PATH.fullmatch, by_path)):
        uris = {_path_of(uri): uri for uri in read.inputFiles()}
        if uris.keys() != by_path.keys():  # Spark's listing skips names that begin with _ or a dot
            return log_excerpt.rows(session, source, layout, tuple(by_path.values()), scratch)
    if layout.mapping == "none" and not layout.partition_by:
        return read
    number, read_columns = "1", ["*"]  # every named column costs calls into the JVM
    if len(parts) > 1:
        read_columns = [quoted(_physical_name(field, layout.mapping)) for field in stored]
        numbers = {_metadata_uri(uris[path]): parts[file.values] for path, file in by_path.items()}
        rows = sum(file.rows if file.rows >= 0 else MAPPED_ROWS for file in files)
        read, number = _numbered(session, read, numbers, rows)
    sql_by_column = {
        field["name"]: _partition_sql(field, layout, tuple(parts), number)
        for field in fields
        if field["name"] in layout.partition_by
    }
    if layout.mapping == "none":
        if {field["name"] for field in fields} == set(columns):
            return read.selectExpr(*(sql_by_column.get(name) or quoted(name) for name in columns))
        return read.selectExpr(*read_columns, *sql_by_column.values())
    return read.select(*(_logical_column(field, layout.mapping, sql_by_column.get(field["name"])) for field in fields))


def _reader(session: Any, stored: Sequence[dict[str, Any]], mapping: str) -> Any:
    """A reader of Parquet files. stored: the fields that they have"""
    if mapping == "id":
        session.conf.set("spark.sql.parquet.fieldId.read.enabled", "true")
    schema = _struct({"type": "struct", "fields": [_physical_field(field, mapping) for field in stored]})
    # recursive lookup disables partition discovery, which would take values from folder names
    return session.read.schema(schema).option("recursiveFileLookup", "true")


def _partition_sql(field: dict[str, Any], layout: TableLayout, parts: Sequence[Values], number: str) -> str:
    """SQL for a partition column: the value in the log for each file.

    parts   distinct partition values of the files
    number  SQL for the number of a row's file in `parts`, from 1
    """
    stored = _physical_name(field, layout.mapping)
    values = ", ".join(_value_sql(dict(part).get(stored)) for part in parts)
    value = values if len(parts) == 1 else f"element_at(array({values}), {number})"
    # CAST, so that an invalid value is an error: deltalake has written -1.25 as `-1.-25`
    return f"CAST(CAST({value} AS STRING) AS {simple_type(field['type'])}) AS {quoted(field['name'])}"


def _logical_column(field: dict[str, Any], mapping: str, sql: str | None) -> Any:
    """A column of a mapped table by its logical names, inner ones too. sql: for a partition column, which files lack"""
    from pyspark.sql.functions import col, expr

    if sql is not None:
        return expr(sql)
    kind = _struct({"type": "struct", "fields": [_physical_field(field, "none")]})[0].dataType
    return col(quoted(_physical_name(field, mapping))).cast(kind).alias(field["name"])


def _numbered(session: Any, read: Any, numbers: dict[str, int], rows: int) -> tuple[Any, str]:
    """The rows, and SQL for the number of each row's file. numbers: URI → number"""
    from pyspark.sql.functions import expr

    if rows <= MAPPED_ROWS:
        number = f"element_at(from_json({text_literal(json.dumps(numbers))}, 'map<string,int>'), _metadata.file_path)"
    else:
        pairs = text_literal(json.dumps([{"uri": uri, "number": number} for uri, number in numbers.items()]))
        file_numbers = session.sql(
            f"SELECT inline(from_json({pairs}, 'array<struct<uri:string,number:int>>')) AS (`uri of file`, `number of file`)"
        )
        read = read.selectExpr("*", "_metadata.file_path AS `path of file`").join(
            file_numbers.hint("broadcast"), expr("`path of file` = `uri of file`"), "left"
        )
        number = "`number of file`"
    return read, f"coalesce({number}, raise_error('a row of no file of the range'))"


def _value_sql(value: str | None) -> str:
    return "NULL" if value is None else text_literal(value)


def _physical_field(field: dict[str, Any], mapping: str) -> dict[str, Any]:
    """A field as it is in the files; nullable at all levels, as Spark reads Parquet."""
    number = field["metadata"].get("delta.columnMapping.id") if mapping == "id" else None
    return {
        "name": _physical_name(field, mapping),
        "type": _physical_type(field["type"], mapping),
        "nullable": True,
        "metadata": {} if number is None else {"parquet.field.id": number},
    }


def _physical_type(kind: Any, mapping: str) -> Any:
    match kind:
        case {"type": "struct", "fields": fields}:
            return {**kind, "fields": [_physical_field(field, mapping) for field in fields]}
        case {"type": "array", "elementType": element}:
            return {**kind, "elementType": _physical_type(element, mapping), "containsNull": True}
        case {"type": "map", "keyType": key, "valueType": value}:
            inner = {"keyType": _physical_type(key, mapping), "valueType": _physical_type(value, mapping)}
            return {**kind, **inner, "valueContainsNull": True}
    return kind


def _physical_name(field: dict[str, Any], mapping: str) -> str:
    if mapping == "none":
        return str(field["name"])
    try:
        return str(field["metadata"]["delta.columnMapping.physicalName"])
    except KeyError:
        raise RegionError(
            f"column {field['name']} of a mapped table has no name in its files", code="E_MAPPING"
        ) from None


def _needs_delta(field: dict[str, Any]) -> bool:
    """Whether only Delta can read it: a column of type void, or one that hides Spark's `_metadata`."""
    return field["name"].lower() == "_metadata" or _has_void(field["type"])


def _has_void(kind: Any) -> bool:
    match kind:
        case {"type": "struct", "fields": fields}:
            return any(_has_void(field["type"]) for field in fields)
        case {"type": "array", "elementType": element}:
            return _has_void(element)
        case {"type": "map", "valueType": value}:
            return _has_void(value)
    return bool(kind == "void")


def _struct(kind: dict[str, Any]) -> Any:
    from pyspark.sql.types import StructType

    return StructType.fromJson(kind)


def _escaped(path: str) -> str:
    """A path escaped for Spark, which would interpret special characters as a pattern."""
    return "".join(f"\\{char}" if char in _PATTERN_CHARACTERS else char for char in path)


def _path_of(uri: str) -> str:
    return unquote("/" + uri.removeprefix("file:").lstrip("/")) if uri.startswith("file:") else uri


def _metadata_uri(uri: str) -> str:
    """A URI of Spark's list of files in the form of `_metadata.file_path`."""
    return "file:/" + uri.removeprefix("file:").lstrip("/") if uri.startswith("file:") else uri
