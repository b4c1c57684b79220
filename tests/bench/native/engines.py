"""The answers of Spark and of DuckDB to one function, value by value, in one form."""

from collections.abc import Callable, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from tests.bench.native.functions import Pair

FAILS = "fails"  # whatever the error: a batch stops in both engines


def by_spark(session: Any, pair: Pair) -> list[str]:
    def ask(rows: pa.Table) -> list[Any]:
        session.createDataFrame(rows).createOrReplaceTempView("odd")
        answer = session.sql(f"SELECT n, {pair.spark} AS answer FROM odd").toArrow()
        return list(answer.sort_by("n")["answer"].to_pylist())

    return _each(pair, ask)


def by_duckdb(pair: Pair) -> list[str]:
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")

    def ask(rows: pa.Table) -> list[Any]:
        db.register("odd", rows)
        answer = db.execute(f"SELECT n, {pair.duckdb} AS answer FROM odd ORDER BY n").to_arrow_table()
        return list(answer["answer"].to_pylist())

    return _each(pair, ask)


def _each(pair: Pair, ask: Callable[[pa.Table], list[Any]]) -> list[str]:
    """All at once, and where that fails one after the other."""
    try:
        return [named(answer) for answer in ask(_rows(pair, pair.values))]
    except Exception:
        return [_one(pair, value, ask) for value in pair.values]


def _one(pair: Pair, value: Any, ask: Callable[[pa.Table], list[Any]]) -> str:
    try:
        return named(ask(_rows(pair, [value]))[0])
    except Exception:
        return FAILS


def _rows(pair: Pair, values: Sequence[Any]) -> pa.Table:
    return pa.table({"n": pa.array(range(len(values)), pa.int32()), "v": pa.array(values, pair.type)})


def named(value: Any) -> str:
    """A value with its type, so that 1, 1.0, '1' and true are four; every NaN is one, and the two zeros are two."""
    return f"{type(value).__name__} {value!r}"


def differing(pair: Pair, spark: Sequence[str], other: Sequence[str]) -> list[tuple[str, str, str]]:
    """Value, Spark's answer and the other one's, where they differ."""
    answers = zip(pair.values, spark, other, strict=True)
    return [(named(value), one, two) for value, one, two in answers if one != two]
