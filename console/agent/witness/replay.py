"""`python -m console.agent replay`: the region's Spark as the judge of a witness.

One JSON object a line. First the settings, `{"master", "conf"}`; then questions, each answered by one line:

    {"tables": {name: {"columns": [[name, type], …], "rows": [[…], …]}}, "queries": [SQL, …]}
    {"answers": [{"columns": [[name, type], …], "rows": [[…], …]} or {"error": "first line of Spark's message"}]}

Tables stay as views until another question replaces them. The SQL is compiled from trees on the allow-list, as all that
reaches an agent. Values are JSON's own; a decimal is text, a time ISO 8601, bytes are hex, a map is a list of pairs.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from console.agent.queries import plain
from console.agent.spark_session import BRIEF, Settings, SparkHandle
from console.errors import ConsoleError, DataError

MOST_ROWS = 1000
_SMALL = {  # a handful of rows a query
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": BRIEF,
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
}


def replay(lines: Iterable[str]) -> Iterator[str]:
    """An answer to each question, in order.

    raises  DataError where a line is no question; RegionError where Spark does not start
    """
    asked = iter(lines)
    spark: SparkHandle | None = None
    try:
        for line in asked:
            question = _read(line)
            if spark is None:
                conf = {str(name): str(value) for name, value in question.get("conf", {}).items()}
                spark = SparkHandle(
                    Settings("replay", str(question.get("master") or "local[1]"), {**conf, **_SMALL}), -1
                )
                session = spark.session()
                continue
            yield json.dumps({"answers": _answers(session, question)}, separators=(",", ":"))
    finally:
        if spark is not None:
            spark.stop()


def _read(line: str) -> dict[str, Any]:
    try:
        question = json.loads(line)
    except ValueError as error:
        raise DataError(f"the request is not valid JSON: {error}") from None
    if not isinstance(question, dict):
        raise DataError("the request is not a JSON object")
    return question


def _answers(session: Any, question: Mapping[str, Any]) -> list[dict[str, Any]]:
    for name, table in question.get("tables", {}).items():
        _view(session, str(name), table["columns"], table["rows"])
    return [_answer(session, str(sql)) for sql in question.get("queries", ())]


def _answer(session: Any, sql: str) -> dict[str, Any]:
    try:
        found = session.sql(sql).limit(MOST_ROWS)
        rows = [[plain(value) for value in row] for row in found.collect()]
        return {"columns": [[name, kind] for name, kind in found.dtypes], "rows": rows}
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
    """JSON's value as the Python value that Spark takes for this type."""
    if value is None:
        return None
    match kind.typeName():
        case "array":
            return [typed(item, kind.elementType) for item in value]
        case "map":
            return {typed(key, kind.keyType): typed(held, kind.valueType) for key, held in value}
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
