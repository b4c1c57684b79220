"""A release's reads for an engine without Spark."""

import sqlglot
from sqlglot import exp

from console.errors import DataError
from console.planning.sql.tree import DIALECT

_SPARK_ONLY = ("hll_", "kll_")


def in_duckdb(read: str) -> str:
    """The read of an append table as DuckDB understands it, over a relation named `stored`.

    raises  DataError where the table keeps states that only Spark can merge
    """
    tree = sqlglot.parse_one(read, read=DIALECT)
    calls = [node.name.lower() for node in tree.find_all(exp.Anonymous)]
    if any(call.startswith(_SPARK_ONLY) for call in calls) or tree.find(exp.AggFunc):
        raise DataError(
            "the table keeps partial states that only Spark merges",
            hint="pass a SparkSession: release.spark(name, session), or use `console query`",
            code="E_STATES",
        )
    return tree.sql(dialect="duckdb")
