"""A query over DataFrames, each under the name by which the query reads it: the one way of rows into a name.

A DataFrame of a JVM's Spark is analysed when it is made, and keeps what its names meant then. One of Spark Connect is analysed
when it is run, and reads what has the name by then. There the DataFrames are parts of the query's own plan, which no later
use of a name reaches (docs/decisions/0027).
"""

from collections.abc import Mapping
from typing import Any

from console.model.schema import quoted


def query_over(session: Any, sql: str, frames: Mapping[str, Any]) -> Any:
    """The rows of a compiled query, which stay those of these DataFrames.

    Through a JVM's session each name is left behind as a view: a plan of its own for each query would cost calls there.

    frames   name in the query → DataFrame of the same session; another name is a view of the session
    raises   whatever Spark raises for a query that it cannot analyse
    """
    from pyspark.sql import SparkSession

    if isinstance(session, SparkSession):  # that of Spark Connect is another class
        for name, rows in frames.items():
            rows.createOrReplaceTempView(name)
        return session.sql(sql)
    keys = [f"rows{at}" for at in range(len(frames))]
    return session.sql(
        _template(sql, dict(zip(frames, keys, strict=True))), **dict(zip(keys, frames.values(), strict=True))
    )


def _template(sql: str, keys: Mapping[str, str]) -> str:
    """The query for PySpark's `sql(text, **rows)`, which gives the rows names that nothing else has.

    The query's text is not searched for its names: they are given above it, where they hide views and tables of those names.

    keys  name → keyword
    """
    if not keys:
        return _literal(sql)
    given = ", ".join(f"{_literal(quoted(name))} AS (SELECT * FROM {{{key}}})" for name, key in keys.items())
    return f"WITH {given} SELECT * FROM (\n{_literal(sql)}\n)"


def _literal(text: str) -> str:
    """Text of a format of Python's that stands for itself."""
    return text.replace("{", "{{").replace("}", "}}")
