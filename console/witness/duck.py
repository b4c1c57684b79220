"""DuckDB as the fast engine of the search. A difference found here is only a candidate, to be confirmed on Spark."""

import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

from console.drivers.replay import Ran
from console.model.spark_type import SparkType
from console.planning.sql.duckdb import Trial

_UNSUPPORTED = (
    duckdb.BinderException,
    duckdb.CatalogException,
    duckdb.ParserException,
    duckdb.SyntaxException,
    duckdb.NotImplementedException,
    duckdb.InternalException,
)


class Unsupported(Exception):
    """DuckDB does not support a function or a construct of the query."""


class DuckEngine:
    """A database in memory; each try registers its tables again."""

    def __init__(self) -> None:
        self._db = duckdb.connect(config={"threads": 1, "enable_external_access": False})
        self._db.execute("SET TimeZone = 'UTC'")

    def fill(self, table: str, columns: Sequence[tuple[str, SparkType]], rows: Sequence[Sequence[Any]]) -> None:
        arrays = [pa.array([_arrow(row[i], kind) for row in rows], _type(kind)) for i, (_, kind) in enumerate(columns)]
        self._db.register(table, pa.table(arrays, names=[name for name, _ in columns]))

    def run(self, trial: Trial) -> Ran:
        """raises  Unable"""
        if not trial.duckdb:
            raise Unsupported
        try:
            cursor = self._db.execute(trial.duckdb)
            names, kinds = (tuple(str(column[i]) for column in cursor.description or ()) for i in range(2))
            return Ran(names, tuple(tuple(json_value(value) for value in row) for row in cursor.fetchall()), "", kinds)
        except _UNSUPPORTED as error:
            raise Unsupported(str(error)) from None
        except duckdb.Error as error:
            return Ran((), (), str(error).splitlines()[0])
        except (OverflowError, ValueError) as error:  # a value that Python cannot hold
            return Ran((), (), str(error))

    def close(self) -> None:
        self._db.close()


def _type(kind: SparkType) -> pa.DataType:
    match kind.name:
        case "array":
            return pa.list_(_type(kind.inner[0]))
        case "map":
            return pa.map_(_type(kind.inner[0]), _type(kind.inner[1]))
        case "struct":
            return pa.struct([(name, _type(of)) for name, of in zip(kind.fields, kind.inner, strict=True)])
        case "decimal":
            return pa.decimal128(*kind.scale)
        case "timestamp":
            return pa.timestamp("us", "UTC")
        case "timestamp_ntz":
            return pa.timestamp("us")
    names = {"tinyint": "int8", "smallint": "int16", "int": "int32", "bigint": "int64", "float": "float32"}
    names |= {"double": "float64", "string": "string", "boolean": "bool_", "date": "date32", "binary": "binary"}
    arrow_type: pa.DataType = getattr(pa, names[kind.name])()
    return arrow_type


def _arrow(value: Any, kind: SparkType) -> Any:
    if value is None:
        return None
    match kind.name:
        case "array":
            return [_arrow(item, kind.inner[0]) for item in value]
        case "map":
            return [(_arrow(key, kind.inner[0]), _arrow(item, kind.inner[1])) for key, item in value]
        case "struct":
            parts = zip(kind.fields, value, kind.inner, strict=True)
            return {name: _arrow(item, of) for name, item, of in parts}
    return value


def json_value(value: Any) -> Any:
    """A value as in the replayer's JSON."""
    match value:
        case datetime():
            return value.replace(tzinfo=None).isoformat()
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            return str(value)
        case bytes() | bytearray():
            return value.hex()
        case dict():
            return [json_value(item) for item in value.values()]
        case list() | tuple():
            return [json_value(item) for item in value]
    return value
