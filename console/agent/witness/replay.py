"""`python -m console.agent replay`: runs witness queries on the region's Spark.

One JSON object a line. First the settings, `{"master", "conf"}`; then requests, each answered by one line:

    {"tables": {name: {"columns": [[name, type], …], "rows": [[…], …]}}, "queries": [SQL, …]}
    {"answers": [{"columns": [[name, type], …], "rows": [[…], …]} or {"error": "first line of Spark's message"}]}

Tables stay as views until another request replaces them. The SQL is compiled from trees on the allow-list, like all SQL
that reaches an agent. Values are JSON; a decimal is text, a time ISO 8601, bytes are hex, a map is a list of pairs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from console.agent.queries import plain
from console.agent.spark_session import BRIEF, Settings, SparkHandle
from console.errors import ConsoleError, DataError

MAX_ROWS = 1000
_SMALL = {  # settings for queries over a few rows
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": BRIEF,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
}


def replay(lines: Iterable[str]) -> Iterator[str]:
    """One answer to each request, in order.

    raises  DataError where a line is not a request; RegionError where Spark does not start
    """
    spark: SparkHandle | None = None
    try:
        for line in lines:
            request = _read(line)
            if spark is None:
                conf = {str(name): str(value) for name, value in request.get("conf", {}).items()}
                spark = SparkHandle(
                    Settings(region="replay", master=str(request.get("master") or "local[1]"), conf={**conf, **_SMALL}),
                    -1,
                )
                session = spark.session()
                continue
            yield json.dumps({"answers": _answers(session, request)}, separators=(",", ":"))
    finally:
        if spark is not None:
            spark.stop()


def _read(line: str) -> dict[str, Any]:
    try:
        request = json.loads(line)
    except ValueError as error:
        raise DataError(f"the request is not valid JSON: {error}") from None
    if not isinstance(request, dict):
        raise DataError("the request is not a JSON object")
    return request


def _answers(session: Any, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    for name, table in request.get("tables", {}).items():
        _view(session, str(name), table["columns"], table["rows"])
    return [_answer(session, str(sql)) for sql in request.get("queries", ())]


def _answer(session: Any, sql: str) -> dict[str, Any]:
    try:
        result = session.sql(sql).limit(MAX_ROWS)
        rows = [[plain(value) for value in row] for row in result.collect()]
        return {"columns": [[name, kind] for name, kind in result.dtypes], "rows": rows}
    except ConsoleError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        return {"error": lines[0][:400] if lines else type(error).__name__}


def _view(session: Any, name: str, columns: Sequence[Sequence[str]], rows: Sequence[Sequence[Any]]) -> None:
    from pyspark.sql.types import DataType, StructField, StructType

    kinds = [DataType.fromDDL(kind) for _, kind in columns]
    fields = [StructField(column, kind, True) for (column, _), kind in zip(columns, kinds, strict=True)]
    values = [tuple(typed(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in rows]
    session.createDataFrame(values, StructType(fields)).createOrReplaceTempView(name)


def typed(value: Any, kind: Any) -> Any:
    """A JSON value as the Python value that Spark expects for this type."""
    if value is None:
        return None
    match kind.typeName():
        case "array":
            return [typed(item, kind.elementType) for item in value]
        case "map":
            return {typed(key, kind.keyType): typed(item, kind.valueType) for key, item in value}
        case "struct":
            return tuple(typed(item, field.dataType) for item, field in zip(value, kind.fields, strict=True))
        case "decimal":
            return Decimal(value)
        case "date":
            return date.fromisoformat(value)
        case "timestamp":
            return datetime.fromisoformat(value).replace(tzinfo=UTC)
        case "timestamp_ntz":
            return datetime.fromisoformat(value)
        case "binary":
            return bytearray.fromhex(value)
        case "double" | "float":
            return float(value)
    return value
