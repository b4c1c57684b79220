"""Partial states: however rows are divided into commits, the merged read equals the operator's query over all rows."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import duckdb
import pytest
import sqlglot
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from console.model.schema import Table
from console.planning.sql.compile import NameScope
from console.planning.sql.duckdb import read_of, trial
from console.planning.sql.feed import FeedCode
from console.planning.sql.relation import physical
from console.planning.sql.tree import Text
from tests.planning.feeds import feed_code
from tests.planning.world import columns

TABLES = {
    "t": {"k": "string", "day": "date", "i": "int", "l": "bigint", "d": "decimal(10,2)", "f": "double", "s": "string"}
}
KNOWN = NameScope(TABLES, {"t": physical("t", "t", {c: c for c in TABLES["t"]})})
TARGET = Table(name="agg", kind="aggregate", columns=(), partition_by=("day",))


@cache
def split(sql: str, **types: str) -> FeedCode:
    table = replace(TARGET, columns=columns(**types))
    code, text = feed_code(sql, table, KNOWN)
    assert code is not None, text.problems
    return code


def refused(sql: str, **types: str) -> Text:
    code, text = feed_code(sql, replace(TARGET, columns=columns(**types)), KNOWN)
    assert code is None
    return text


EXACT = """SELECT k, day, count(*) AS n, count(i) AS ni, count_if(i > 2) AS big, sum(i) AS si, sum(d) AS sd, min(s) AS lo,
  max(i) AS hi, avg(i) AS mean, avg(d) AS price, coalesce(sum(l), 0) AS sl, CAST(sum(i) AS DOUBLE) / count(*) AS rate,
  sum(i) FILTER (WHERE s = 'x') AS only_x, count(*) FILTER (WHERE s IS NULL) AS nulls
FROM t WHERE coalesce(i, 0) < 9 GROUP BY k, day"""
TYPES = {
    "k": "string", "day": "date", "n": "bigint", "ni": "bigint", "big": "bigint", "si": "bigint", "sd": "decimal(38,2)",
    "lo": "string", "hi": "int", "mean": "double", "price": "double", "sl": "bigint", "rate": "double", "only_x": "bigint",
    "nulls": "bigint",
}  # fmt: skip

Row = tuple[object, ...]
small = st.one_of(st.none(), st.integers(-5, 12))
rows = st.tuples(
    st.sampled_from(["a", "b", None]),
    st.sampled_from(["2026-11-01", "2026-11-02"]),
    small,
    small,
    small,
    st.sampled_from(["x", "y", None]),
)


@pytest.fixture(scope="module")
def base() -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine of its own: the operator's query, the partial query and the read run as they are, only translated."""
    connection = duckdb.connect(config={"threads": 1})
    connection.execute(
        "CREATE TABLE given (n INT, k VARCHAR, day DATE, i INT, l BIGINT, d DECIMAL(10,2), f DOUBLE, s VARCHAR)"
    )
    connection.execute("CREATE TABLE t AS SELECT * EXCLUDE (n) FROM given")
    connection.execute(f"CREATE TABLE stored AS {duck(split(EXACT, **TYPES).feed.sql)}")
    yield connection
    connection.close()


@cache
def duck(sql: str) -> str:
    return sqlglot.transpile(sql, "spark", "duckdb")[0]


@pytest.mark.slow
@given(commits=st.lists(st.lists(rows, max_size=8), min_size=1, max_size=3))
@settings(
    max_examples=10,
    deadline=None,
    phases=(Phase.generate,),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_cut_into_commits_merges_to_the_same_result(
    base: duckdb.DuckDBPyConnection, commits: list[list[Row]]
) -> None:
    code = split(EXACT, **TYPES)
    base.execute("DELETE FROM given; DELETE FROM stored; DELETE FROM t")
    given = [(at, *row[:5], None, row[5]) for at, commit in enumerate(commits) for row in commit]
    if given:
        base.executemany("INSERT INTO given VALUES (?, ?, ?, ?, ?, ?, ?, ?)", given)
    for at in range(len(commits)):
        base.execute("DELETE FROM t")
        base.execute("INSERT INTO t SELECT * EXCLUDE (n) FROM given WHERE n = ?", [at])
        base.execute(f"INSERT INTO stored {duck(code.feed.sql)}")
    base.execute("DELETE FROM t")
    base.execute("INSERT INTO t SELECT * EXCLUDE (n) FROM given")
    merged, at_once = (
        sorted(map(str, base.execute(f"SELECT * REPLACE (round(price, 6) AS price) FROM ({duck(sql)})").fetchall()))
        for sql in (code.read, EXACT)
    )
    assert merged == at_once


def test_states_have_types_that_do_not_overflow_or_drift() -> None:
    code = split(
        "SELECT day, count(*) AS n, sum(i) AS si, sum(d) AS sd, sum(f) AS sf, avg(l) AS al, approx_count_distinct(f) AS u, "
        "approx_percentile(i, 0.95) AS p FROM t GROUP BY day",
        day="date", n="int", si="bigint", sd="decimal(12,2)", sf="double", al="double", u="bigint", p="double",
    )  # fmt: skip
    assert {c.name: c.type for c in code.stored} == {
        "day": "date", "n": "bigint", "si": "bigint", "sd": "decimal(38,2)", "sf": "double", "al__sum": "decimal(38,0)",
        "al__count": "bigint", "u__hll": "binary", "p__kll": "binary",
    }  # fmt: skip
    assert code.split is not None
    assert code.split.inexact == ("sf", "u", "p")
    assert code.split.keys == ("day",)


def test_sketches_take_what_spark_takes_and_give_null_or_zero_for_nothing() -> None:
    code = split(
        "SELECT day, approx_count_distinct(f) AS u, approx_percentile(i, 0.95) FILTER (WHERE s = 'x') AS p FROM t GROUP BY day",
        day="date", u="bigint", p="double",
    )  # fmt: skip
    assert "HLL_SKETCH_AGG(CAST(`t`.`f` AS STRING), 12)" in code.feed.sql
    assert "KLL_SKETCH_AGG_DOUBLE(CAST(`t`.`i` AS DOUBLE)) FILTER(WHERE `t`.`s` = 'x')" in code.feed.sql
    assert "COALESCE(HLL_SKETCH_ESTIMATE(" in code.read
    assert "CASE WHEN KLL_SKETCH_GET_N_DOUBLE(" in code.read


def test_another_fraction_is_another_value_and_the_same_state() -> None:
    one, other = (
        split(f"SELECT day, approx_percentile(i, {f}) AS p FROM t GROUP BY day", day="date", p="double")
        for f in (0.5, 0.9)
    )
    assert one.feed.sql == other.feed.sql
    assert one.values["p"] != other.values["p"]


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("SELECT day, count(DISTINCT s) AS n FROM t GROUP BY day", "DISTINCT"),
        ("SELECT day, mode(i) AS n FROM t GROUP BY day", "no state"),
        ("SELECT day, first(i) AS n FROM t GROUP BY day", "no order"),
        ("SELECT day, last_value(i) AS n FROM t GROUP BY day", "no order"),
        ("SELECT day, histogram_numeric(f, 5) AS n FROM t GROUP BY day", "no state"),
        ("SELECT day, max_by(i, try_to_number(s, '9')) AS n FROM t GROUP BY day", "is not known"),
        ("SELECT day, max_by(map(i, i), l) AS n FROM t GROUP BY day", "no order"),
        ("SELECT day, max_by(i, l, 3) AS n FROM t GROUP BY day", "only one value"),
        ("SELECT day, collect_set(try_to_number(s, '9')) AS n FROM t GROUP BY day", "is not known"),
        ("SELECT day, hll_sketch_agg(f) AS n FROM t GROUP BY day", "takes string"),
        ("SELECT day, kll_sketch_agg_double(i) AS n FROM t GROUP BY day", "takes double"),
        ("SELECT day, approx_percentile(i, array(0.5, 0.9)) AS n FROM t GROUP BY day", "fraction"),
        ("SELECT day, count(*) AS n FROM t GROUP BY day HAVING count(*) > 1", "HAVING"),
        ("SELECT day, count(*) AS n FROM t GROUP BY day ORDER BY n LIMIT 3", "LIMIT"),
        ("SELECT day, count(*) AS n FROM t GROUP BY day, k", "GROUP BY"),
        ("SELECT day, i AS n FROM t GROUP BY day", "neither a key"),
        ("SELECT day, count(*) + i AS n FROM t GROUP BY day, i", "mixes"),
        ("SELECT day, count(*) AS n FROM t GROUP BY ROLLUP (day)", "ROLLUP"),
        ("SELECT day, i AS n FROM t", "GROUP BY"),
        ("SELECT day, sum(n) AS n FROM (SELECT day, count(*) AS n FROM t GROUP BY day) GROUP BY day", "outermost"),
    ],
)
def test_what_cannot_be_merged_is_refused_with_the_reason(sql: str, word: str) -> None:
    assert any(word in problem.message for problem in refused(sql, day="date", n="bigint").problems)


def test_group_by_all_is_the_same_as_the_keys_named() -> None:
    one = split("SELECT k, day, count(*) AS n FROM t GROUP BY ALL", k="string", day="date", n="bigint")
    other = split("SELECT k, day, count(*) AS n FROM t GROUP BY k, day", k="string", day="date", n="bigint")
    assert (one.feed.sql, one.read, one.rows) == (other.feed.sql, other.read, other.rows)


MORE = """SELECT day, any_value(s) AS some, max_by(s, l) AS last, stddev(f) / avg(f) AS spread, corr(i, f) AS pair,
  bool_and(i > 2) AS every, collect_set(s) AS seen, hll_sketch_agg(s, 8) AS sketch, bit_or(i) AS bits FROM t GROUP BY day"""
MORE_TYPES = {
    "day": "date", "some": "string", "last": "string", "spread": "double", "pair": "double", "every": "boolean",
    "seen": "array<string>", "sketch": "binary", "bits": "int",
}  # fmt: skip


@pytest.mark.slow
def test_every_state_has_a_column_of_its_own_and_a_type_that_delta_stores() -> None:
    code = split(MORE, **MORE_TYPES)
    assert {column.name: column.type for column in code.stored} == {
        "day": "date", "some": "string", "last__by": "struct<o:bigint,v:string>",
        "spread__1__moments": "struct<n:bigint,mx:double,sx:double>", "spread__2__sum": "double",
        "spread__2__count": "bigint",
        "pair__moments": "struct<n:bigint,mx:double,my:double,sx:double,sy:double,sxy:double>", "every": "boolean",
        "seen__set": "array<string>", "sketch__hll": "binary", "bits": "int",
    }  # fmt: skip
    terms = code.feed.terms
    assert terms is not None
    assert terms.moments == ("spread__1__moments", "pair__moments")
    assert (terms.sums, terms.sketches, terms.volatile) == (("spread__2__sum",), ("sketch__hll",), ("some",))
    read_of(code.read)


def test_only_any_value_is_not_repeated() -> None:
    """Ties of an order and the elements of a set are settled by the state; which value `any_value` keeps is not."""
    code = split(MORE, **MORE_TYPES)
    assert code.volatile == {"some"}
    assert code.split is not None
    assert code.split.inexact == ("spread", "pair", "sketch")


def test_the_condition_of_a_filter_stands_at_every_aggregate_of_a_state() -> None:
    code = split("SELECT day, var_pop(f) FILTER (WHERE s = 'x') AS v FROM t GROUP BY day", day="date", v="double")
    assert code.feed.sql.count("FILTER(WHERE `t`.`s` = 'x')") == 5


def test_all_are_true_where_the_least_is_and_one_is_where_the_greatest_is() -> None:
    """So that either spelling is one state and a change between them is none."""
    spelled = ("bool_and(i > 2)", "every(i > 2)", "min(i > 2)"), ("bool_or(i > 2)", "some(i > 2)", "max(i > 2)")
    for calls in spelled:
        codes = [split(f"SELECT day, {call} AS b FROM t GROUP BY day", day="date", b="boolean") for call in calls]
        assert len({code.values["b"] for code in codes}) == 1
        assert len({code.read for code in codes}) == 1


@pytest.mark.slow
def test_witnesses_are_searched_in_duckdb_for_all_that_it_has() -> None:
    calls = ("max_by(s, l)", "any_value(s)", "std(f)", "var_pop(f)", "corr(i, f)", "every(i > 1)", "some(i > 1)", "collect_set(s)", "bit_or(i)")  # fmt: skip
    with duckdb.connect(config={"threads": 1}) as base:
        base.execute("CREATE TABLE t (k VARCHAR, day DATE, i INT, l BIGINT, d DECIMAL(10,2), f DOUBLE, s VARCHAR)")
        for call in calls:
            base.execute(trial(f"SELECT k, {call} AS v FROM t GROUP BY k", TABLES).duckdb)
