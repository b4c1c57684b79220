"""The types of partial states: no part of a total is truncated, however the rows are divided into commits."""

from collections.abc import Iterator

import duckdb
import pytest

from tests.planning.test_aggregates import duck, refused, split

# argument of sum(…) AS n declared bigint → the type of its state
STATES = {
    "i": "bigint",
    "d": "decimal(38,2)",
    "f": "double",
    "i * 0.1": "decimal(38,1)",
    "d * d": "decimal(38,4)",
    "d / 3": "decimal(38,6)",
    "d * d * d * d * d": "decimal(38,6)",
    "f / 3": "double",
    "CASE WHEN i > 2 THEN 0.25 ELSE 1 END": "decimal(38,2)",
    "if(i > 2, l, 0)": "bigint",
    "if(i > 2, NULL, d)": "decimal(38,2)",
    "coalesce(i, 0.5)": "decimal(38,1)",
    "-i % 7": "bigint",
    "pmod(d, 7)": "decimal(38,2)",
    "abs(round(d, 1))": "decimal(38,2)",
    "floor(f)": "bigint",
    "length(s)": "bigint",
    "extract(SECOND FROM CAST(day AS TIMESTAMP))": "decimal(38,6)",
    "extract(HOUR FROM CAST(day AS TIMESTAMP))": "bigint",
    "json_array_length(s)": "bigint",
    "greatest(d, 0.125)": "decimal(38,3)",
    "1.5e0 * i": "double",
    "CAST(s AS DECIMAL(9,3)) + i": "decimal(38,3)",
}


@pytest.mark.parametrize("argument", STATES)
def test_a_state_has_its_arguments_type_and_not_the_declared_one(argument: str) -> None:
    code = split(f"SELECT day, sum({argument}) AS n FROM t GROUP BY day", day="date", n="bigint")
    assert [column.type for column in code.stored] == ["date", STATES[argument]]
    assert code.read.endswith("AS BIGINT) AS `n` FROM stored GROUP BY `day`")


def test_a_column_of_a_subquery_has_the_type_of_what_it_is_computed_by() -> None:
    for inner in ("SELECT day, d * d AS v FROM t", "SELECT day, v FROM (SELECT day, d * d AS v FROM t)"):
        code = split(f"WITH x AS ({inner}) SELECT day, sum(v) AS n FROM x GROUP BY day", day="date", n="bigint")
        assert [column.type for column in code.stored] == ["date", "decimal(38,4)"], inner


@pytest.mark.parametrize(("function", "type"), [("sum", "bigint"), ("avg", "decimal(12,2)"), ("mean", "int")])
def test_a_sum_of_what_has_no_certain_type_asks_for_a_cast(function: str, type: str) -> None:
    sql = f"SELECT day, {function}(try_to_number(s, '999.9')) AS n FROM t GROUP BY day"
    (problem,) = refused(sql, day="date", n=type).problems
    assert (problem.code, "is not known" in problem.message) == ("S112", True)
    assert "cast the argument" in problem.hint
    plain = sql.replace("try_to_number(s, '999.9')", "CAST(try_to_number(s, '999.9') AS DECIMAL(9,1))")
    assert split(plain, day="date", n=type).stored[1].type == "decimal(38,1)"


def test_columns_casts_and_declared_doubles_are_kept_as_ever() -> None:
    """A state's type is a part of the fingerprint: another one would replay tables that are right."""
    code = split(
        "SELECT day, sum(i * 0.1) AS a, avg(i) AS b, sum(CAST(s AS INT)) AS c, max(f) AS d, min(length(s)) AS e,"
        " approx_count_distinct(year(day)) AS g, max(CAST(i AS BIGINT)) AS h FROM t GROUP BY day",
        day="date", a="double", b="double", c="int", d="double", e="smallint", g="bigint", h="bigint",
    )  # fmt: skip
    assert {column.name: column.type for column in code.stored} == {
        "day": "date", "a": "double", "b__sum": "bigint", "b__count": "bigint", "c": "bigint", "d": "double", "e": "smallint",
        "g__hll": "binary", "h": "bigint",
    }  # fmt: skip
    assert "HLL_SKETCH_AGG(YEAR(`t`.`day`), 12)" in code.feed.sql


@pytest.fixture(scope="module")
def base() -> Iterator[duckdb.DuckDBPyConnection]:
    connection = duckdb.connect(config={"threads": 1})
    connection.execute("CREATE TABLE given (day DATE, i INT, d DECIMAL(10,2))")
    connection.execute("INSERT INTO given SELECT DATE '2026-11-01', n, n + 0.37 FROM range(1, 31) AS r(n)")
    connection.execute("CREATE TABLE t AS SELECT * FROM given")
    yield connection
    connection.close()


@pytest.mark.parametrize("argument", ["i * 0.1", "d * d", "CASE WHEN i % 2 = 0 THEN 0.25 ELSE 1 END", "d"])
@pytest.mark.parametrize("function", ["sum", "max"])
def test_one_batch_equals_ten(base: duckdb.DuckDBPyConnection, function: str, argument: str) -> None:
    sql = f"SELECT day, {function}({argument}) AS n FROM t GROUP BY day"
    code = split(sql, day="date", n="bigint")
    totals = []
    for batches in (1, 10):
        base.execute("DELETE FROM t; INSERT INTO t SELECT * FROM given; DROP TABLE IF EXISTS stored")
        base.execute(f"CREATE TABLE stored AS {duck(code.feed.sql)} LIMIT 0")
        for batch in range(batches):
            base.execute("DELETE FROM t")
            base.execute("INSERT INTO t SELECT * FROM given WHERE i % ? = ?", [batches, batch])
            base.execute(f"INSERT INTO stored {duck(code.feed.sql)}")
        totals.append(base.execute(duck(code.read)).fetchall())
    base.execute("DELETE FROM t; INSERT INTO t SELECT * FROM given")
    assert totals[0] == totals[1] == base.execute(f"SELECT day, CAST(n AS BIGINT) FROM ({duck(sql)})").fetchall()


@pytest.mark.slow
def test_what_a_row_adds_to_each_sum_of_doubles_adds_up_to_that_sum() -> None:
    sql = """SELECT day, sum(f) AS total, mean(f / 3) AS mean, sum(f) FILTER (WHERE i > 2) AS late, max(f) AS most, sum(d) AS exact,
      sum(f * f) / count(*) - avg(f) * avg(f) AS spread, avg(f * rand()) AS dice, approx_count_distinct(s) AS some
      FROM t WHERE i <> 4 GROUP BY day"""
    double = dict.fromkeys(("total", "mean", "late", "most", "spread", "dice"), "double")
    code = split(sql, day="date", exact="decimal(38,2)", some="bigint", **double)
    terms = code.feed.terms
    assert terms is not None
    assert (terms.keys, terms.sketches, terms.volatile) == (("day",), ("some__hll",), ("dice__sum", "dice__count"))
    assert terms.sums == ("total", "mean__sum", "late", "spread__1", "spread__3__sum", "spread__4__sum", "dice__sum")
    sums = [name for name in terms.sums if not name.startswith("dice")]
    with duckdb.connect(config={"threads": 1}) as base:
        base.execute("CREATE TABLE t (day DATE, i INT, d DECIMAL(10,2), f DOUBLE, s VARCHAR)")
        base.execute(
            "INSERT INTO t SELECT DATE '2026-11-01' + CAST(n % 3 AS INT), n % 7, n, n / 8, n FROM range(1, 61) AS r(n)"
        )
        base.execute("INSERT INTO t VALUES ('2026-11-01', 5, 1, NULL, 'x')")
        wanted = ", ".join(sums)
        kept = duck(code.feed.sql).replace("HLL_SKETCH_AGG", "MAX").replace("t.s, 12", "t.s")
        partial = base.execute(f"SELECT day, {wanted} FROM ({kept}) ORDER BY 1").fetchall()
        added = ", ".join(f"sum({name})" for name in sums)
        again = base.execute(f"SELECT day, {added} FROM ({duck(terms.sql)}) GROUP BY 1 ORDER BY 1").fetchall()
    assert len(partial) == 3
    assert again == partial
