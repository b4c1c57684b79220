"""What deltalake appends exactly as Spark would: which tables, and which rows of them."""

import json
from collections.abc import Sequence
from typing import Any

from deltalake import DeltaTable

from console.agent.store import days, open_tables

_PLAIN_TYPES = {
    "string", "byte", "short", "integer", "long", "float", "double", "boolean", "binary", "date", "timestamp",
}  # fmt: skip
_NULL_TEXTS = ("", "__HIVE_DEFAULT_PARTITION__")  # partition values that Spark writes as NULL
_UNSAFE_PARTITIONS = {"float", "double", "binary"}


class Inexact(Exception):
    """Arrow cannot convert rows exactly to a table's columns, or a row's day is no valid partition."""


def supports_small_appends(target: str) -> bool:
    """Whether deltalake writes every column of the table as Spark would.

    In partition columns it does not: a negative decimal becomes `-1.-25`, which no reader understands, bytes become
    `\\u0061`, and 1e300 has more digits than a folder name can hold.
    """
    with open_tables.opened(target) as opened:
        schema, partition_by = json.loads(opened.schema().to_json()), opened.metadata().partition_columns
    kinds = [field["type"] for field in schema["fields"] if field["name"] in partition_by]
    return is_plain(schema) and not any(kind in _UNSAFE_PARTITIONS or kind.startswith("decimal(") for kind in kinds)


def is_plain(kind: Any) -> bool:
    """Whether deltalake writes values of a type as Spark does. kind: a type in Delta's schema JSON"""
    match kind:
        case {"type": "struct", "fields": fields}:
            return all(is_plain(field["type"]) for field in fields)
        case {"type": "array", "elementType": element}:
            return is_plain(element)
        case {"type": "map", "keyType": key, "valueType": value}:
            return is_plain(key) and is_plain(value)
        case str():
            return kind in _PLAIN_TYPES or kind.startswith("decimal(")
    return False


def as_stored(table: DeltaTable, data: Any) -> Any:
    """An Arrow table in the columns of a Delta table. raises  Inexact"""
    import pyarrow as pa

    schema = pa.schema(table.schema().to_arrow())
    try:
        data = data.cast(schema)
    except (pa.ArrowException, ValueError):  # ValueError: the table has an added column, which Spark fills with NULL
        raise Inexact from None
    partition_by = table.metadata().partition_columns
    if not all(days.all_nameable(data.column(name)) for name in partition_by):
        raise Inexact
    return _nulls_for_blanks(data, partition_by)


def _nulls_for_blanks(data: Any, partition_by: Sequence[str]) -> Any:
    """Empty text in partition columns becomes NULL, as in Spark's writes: deltalake would write it to the log unchanged."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(data.schema):
        if field.name in partition_by and field.type in (pa.string(), pa.large_string()):
            values = data.column(at)
            data = data.set_column(
                at,
                field,
                pc.if_else(pc.is_in(values, pa.array(_NULL_TEXTS, values.type)), pa.scalar(None, field.type), values),
            )
    return data
