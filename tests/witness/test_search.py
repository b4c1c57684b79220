"""The search without Spark: candidates differ and are small; equivalent queries have none."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from console.drivers.replay import Ran, Replayer
from console.errors import DataError
from console.model.spark_type import parse_type
from console.planning.compare import QueryDifference
from console.witness import WitnessQuery, candidates, witness_between, witness_query
from console.witness.duck import DuckEngine
from console.witness.results import differ
from console.witness.values import ValuePool
from tests.witness.edits import CHANGES, REWRITES, TABLES

pytestmark = pytest.mark.slow
UNKNOWN = QueryDifference(rows="changed")
MANY_SECONDS = 60.0  # found long before


def query(old: str, new: str) -> WitnessQuery:
    return witness_query(old, new, TABLES, UNKNOWN)


def runs(query: WitnessQuery, database: Mapping[str, Any]) -> tuple[Ran, Ran]:
    duck = DuckEngine()
    for table, columns in query.columns.items():
        duck.fill(table, [(name, parse_type(type)) for name, type in columns.items()], database[table])
    return duck.run(query.old), duck.run(query.new)


@pytest.mark.parametrize(("old", "new", "rows"), CHANGES)
def test_a_candidate_differs_and_no_row_of_it_can_be_left_out(old: str, new: str, rows: int) -> None:
    searched = query(old, new)
    database = next(candidates(searched, seconds=MANY_SECONDS))
    assert differ(*runs(searched, database), searched.pairs)
    assert sum(map(len, database.values())) == rows
    for table, table_rows in database.items():
        for at in range(len(table_rows)):
            fewer = {**database, table: table_rows[:at] + table_rows[at + 1 :]}
            assert not differ(*runs(searched, fewer), searched.pairs)


@pytest.mark.parametrize(("old", "new"), REWRITES)
def test_equivalent_queries_have_no_candidate(old: str, new: str) -> None:
    assert next(candidates(query(old, new), seconds=0.5), None) is None


def test_only_columns_that_a_query_reads_are_shown() -> None:
    searched = query("SELECT count(b) AS n FROM t", "SELECT count(*) AS n FROM t")
    assert searched.columns == {"t": {"b": "string"}}
    assert query("SELECT count(*) AS n FROM u", "SELECT 2 * count(*) AS n FROM u").columns == {"u": {"a": "int"}}


def test_values_are_plain_where_the_difference_allows_it() -> None:
    database = next(candidates(query("SELECT DISTINCT a FROM t", "SELECT DISTINCT a, b FROM t"), seconds=MANY_SECONDS))
    assert sorted(database["t"]) == [(0, ""), (0, "a")]


@pytest.mark.parametrize("type", sorted({type for columns in TABLES.values() for type in columns.values()}))
def test_every_type_has_values_that_an_engine_holds(type: str) -> None:
    of, duck = parse_type(type), DuckEngine()
    values = ValuePool((), (), frozenset(), ()).simple(of)
    duck.fill("held", [("x", of)], [(value,) for value in values])
    searched = witness_query("SELECT x FROM held", "SELECT x FROM held WHERE true", {"held": {"x": type}}, UNKNOWN)
    assert len(duck.run(searched.old).rows) == len(values) > 2
    assert None in values


def test_a_type_without_rows_is_named() -> None:
    with pytest.raises(DataError, match="no rows can be made for the type variant"):
        parse_type("variant")


@pytest.mark.parametrize(
    ("old", "new", "tables", "reason"),
    [
        ("SELECT reflect('java.lang.System', 'exit', 1) AS a FROM t", "SELECT a FROM t", TABLES, "reflect"),
        ("SELECT a FROM t", "SELECT a FROM parquet.`/etc/passwd`", TABLES, "parquet"),
        ("SELECT a FROM t", "DROP TABLE t", TABLES, "only SELECT"),
        ("SELECT a FROM t", "SELECT nothing FROM t", TABLES, "no column nothing"),
        ("SELECT a FROM t", "SELECT a + 1 AS a FROM t", None, "--schema"),
        ("SELECT a FROM t", "SELECT a, b FROM t", TABLES, "stay as they are"),
    ],
)
def test_a_query_that_may_not_be_run_starts_no_spark(old: str, new: str, tables: Any, reason: str) -> None:
    with Replayer() as spark:
        result = witness_between(old, new, tables, spark)
        assert result.witness is None
        assert reason in result.reason
        assert not spark.started


def test_without_spark_the_result_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONSOLE_JARS", str(tmp_path))
    with Replayer() as spark:
        result = witness_between("SELECT a FROM t WHERE a > 1", "SELECT a FROM t WHERE a >= 1", TABLES, spark)
    assert result.witness is None
    assert "no Delta jars" in result.reason
