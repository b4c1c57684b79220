"""The search without Spark: what it finds differs and is small; where nothing differs it finds nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from console.drivers.replay import Ran, Replayer
from console.errors import DataError
from console.planning.compare import QueryDifference
from console.witness import WitnessQuery, candidates, witness_between, witness_query
from console.witness.duck import DuckEngine
from console.witness.results import differ
from console.witness.spark_types import parse_type
from console.witness.values import ValuePool
from tests.witness.edits import CHANGES, REWRITES, TABLES

pytestmark = pytest.mark.slow
UNTOLD = QueryDifference("changed")
MANY_SECONDS = 60.0  # found long before


def asked(old: str, new: str) -> WitnessQuery:
    return witness_query(old, new, TABLES, UNTOLD)


def runs(asked: WitnessQuery, database: Mapping[str, Any]) -> tuple[Ran, Ran]:
    duck = DuckEngine()
    for table, columns in asked.columns.items():
        duck.fill(table, [(name, parse_type(type)) for name, type in columns.items()], database[table])
    return duck.run(asked.old), duck.run(asked.new)


@pytest.mark.parametrize(("old", "new", "rows"), CHANGES)
def test_the_rows_found_differ_and_none_of_them_can_be_left_out(old: str, new: str, rows: int) -> None:
    here = asked(old, new)
    found = next(candidates(here, seconds=MANY_SECONDS))
    assert differ(*runs(here, found), here.pairs)
    assert sum(map(len, found.values())) == rows
    for table, held in found.items():
        for at in range(len(held)):
            fewer = {**found, table: held[:at] + held[at + 1 :]}
            assert not differ(*runs(here, fewer), here.pairs)


@pytest.mark.parametrize(("old", "new"), REWRITES)
def test_where_nothing_differs_nothing_is_found(old: str, new: str) -> None:
    assert next(candidates(asked(old, new), seconds=0.5), None) is None


def test_only_columns_that_a_query_reads_are_shown() -> None:
    here = asked("SELECT count(b) AS n FROM t", "SELECT count(*) AS n FROM t")
    assert here.columns == {"t": {"b": "string"}}
    assert asked("SELECT count(*) AS n FROM u", "SELECT 2 * count(*) AS n FROM u").columns == {"u": {"a": "int"}}


def test_values_are_plain_where_the_difference_allows_it() -> None:
    found = next(candidates(asked("SELECT DISTINCT a FROM t", "SELECT DISTINCT a, b FROM t"), seconds=MANY_SECONDS))
    assert sorted(found["t"]) == [(0, ""), (0, "a")]


@pytest.mark.parametrize("type", sorted({type for columns in TABLES.values() for type in columns.values()}))
def test_every_type_has_values_that_an_engine_holds(type: str) -> None:
    of, duck = parse_type(type), DuckEngine()
    values = ValuePool((), (), frozenset(), ()).simple(of)
    duck.fill("held", [("x", of)], [(value,) for value in values])
    here = witness_query("SELECT x FROM held", "SELECT x FROM held WHERE true", {"held": {"x": type}}, UNTOLD)
    assert len(duck.run(here.old).rows) == len(values) > 2
    assert None in values


def test_a_type_without_rows_is_named() -> None:
    with pytest.raises(DataError, match="no rows can be made for the type variant"):
        parse_type("variant")


@pytest.mark.parametrize(
    ("old", "new", "tables", "said"),
    [
        ("SELECT reflect('java.lang.System', 'exit', 1) AS a FROM t", "SELECT a FROM t", TABLES, "reflect"),
        ("SELECT a FROM t", "SELECT a FROM parquet.`/etc/passwd`", TABLES, "parquet"),
        ("SELECT a FROM t", "DROP TABLE t", TABLES, "only SELECT"),
        ("SELECT a FROM t", "SELECT nothing FROM t", TABLES, "no column nothing"),
        ("SELECT a FROM t", "SELECT a + 1 AS a FROM t", None, "--schema"),
        ("SELECT a FROM t", "SELECT a, b FROM t", TABLES, "stay as they are"),
    ],
)
def test_what_may_not_be_run_starts_no_spark(old: str, new: str, tables: Any, said: str) -> None:
    with Replayer() as spark:
        sought = witness_between(old, new, tables, spark)
        assert sought.witness is None
        assert said in sought.reason
        assert not spark.started


def test_without_a_spark_the_answer_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONSOLE_JARS", str(tmp_path))
    with Replayer() as spark:
        sought = witness_between("SELECT a FROM t WHERE a > 1", "SELECT a FROM t WHERE a >= 1", TABLES, spark)
    assert sought.witness is None
    assert "no Delta jars" in sought.reason
