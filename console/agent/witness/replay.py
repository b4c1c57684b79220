"""`python -m console.agent replay`: runs queries of witnesses and of fixture tests on a Spark without a warehouse.

One JSON object a line. First the settings, `{"master", "conf"}`; then requests, each answered by one line:

    {"tables": {name: {"columns": [[name, type], …], "rows": [[…], …]}}, "views": [VIEW, …],
     "limit": rows of one answer, "queries": [SQL or {"sql", "args": {name: [text, type]}}, …]}
    {"answers": [{"columns": [[name, type], …], "rows": [[…], …], "truncated"} or {"error": "first line of Spark's message"}],
     "failed": {view: "first line of Spark's message"}}

A VIEW is {"name", "read", "added", "feeds": [SQL, …]} or the same with "given", a table, instead of "feeds": their rows, with the
columns that are `added` as SQL over them, are the view `stored`, over which `read` selects ("": all of them). Views are made in order. Tables and views stay until another request
replaces them. The SQL is compiled from trees on the allow-list, like all SQL that reaches an agent. Values are JSON; a
decimal is text, a time ISO 8601, bytes are hex; a map is a list of pairs, and an object in answers.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

from console.agent.queries import plain
from console.agent.rows.arguments import arguments
from console.agent.settings import Settings
from console.agent.spark_process import BRIEF
from console.agent.spark_session import SparkHandle
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

    raises  DataError if a line is not a request; RegionError if Spark does not start
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
            yield json.dumps(_answer_all(session, request), separators=(",", ":"))
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


def _answer_all(session: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    for name, table in request.get("tables", {}).items():
        _rows(session, table).createOrReplaceTempView(str(name))
    failed = {}
    for view in request.get("views", ()):
        try:
            _make_view(session, view)
        except ConsoleError:
            raise
        except Exception as error:
            session.catalog.dropTempView(str(view["name"]))  # or an earlier request's would be read
            failed[str(view["name"])] = _first_line(error)
    limit = int(request.get("limit") or MAX_ROWS)
    return {"answers": [_answer(session, query, limit) for query in request.get("queries", ())], "failed": failed}


def _make_view(session: Any, view: Mapping[str, Any]) -> None:
    if given := view.get("given"):
        stored = _rows(session, given)
    else:
        stored = reduce(lambda one, other: one.unionByName(other), map(session.sql, view["feeds"]))
    if view["added"]:
        stored = stored.selectExpr("*", *view["added"])
    if view["read"]:
        stored.createOrReplaceTempView("stored")
        stored = session.sql(view["read"])
    stored.createOrReplaceTempView(view["name"])


def _answer(session: Any, query: Any, limit: int) -> dict[str, Any]:
    sql, args = (query, {}) if isinstance(query, str) else (query["sql"], query["args"])
    try:
        result = session.sql(sql, args=arguments(args)).limit(limit + 1)
        rows = [[plain(value) for value in row] for row in result.collect()]
    except ConsoleError:
        raise
    except Exception as error:
        return {"error": _first_line(error)}
    columns = [[name, kind] for name, kind in result.dtypes]
    return {"columns": columns, "rows": rows[:limit], "truncated": len(rows) > limit}


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:400] if lines else type(error).__name__


def _rows(session: Any, table: Mapping[str, Any]) -> Any:
    """The rows of a request as a DataFrame. table: columns, rows"""
    from pyspark.sql.types import DataType, StructField, StructType

    kinds = [DataType.fromDDL(kind) for _, kind in table["columns"]]
    fields = [StructField(column, kind, True) for (column, _), kind in zip(table["columns"], kinds, strict=True)]
    values = [tuple(typed(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in table["rows"]]
    return session.createDataFrame(values, StructType(fields))


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
