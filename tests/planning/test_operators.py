"""Operators, pipes and aliases are parsed like Spark parses them; `oracle/` asks Spark itself."""

import pytest
import sqlglot

from console.model.pipeline import Parameter
from console.planning.compare import compare
from console.planning.sql.compile import NameScope, query
from console.planning.sql.tree import DIALECT, Text, render

TABLES = {
    "t": {"a": "int", "b": "string", "k": "int", "id": "int", "flag": "boolean"},
    "u": {"a": "int", "k": "int", "v": "int"},
}
BINDS = [  # as written, as Spark groups it, and as many other engines do
    ("a | 4 & 2", "a | (4 & 2)", "(a | 4) & 2"),
    ("a ^ k & 3", "a ^ (k & 3)", "(a ^ k) & 3"),
    ("a | k ^ 3", "a | (k ^ 3)", "(a | k) ^ 3"),
    ("a & k << 1", "a & (k << 1)", "(a & k) << 1"),
    ("a << 1 + k", "a << (1 + k)", "(a << 1) + k"),
    ("a >> k | 1", "(a >> k) | 1", "a >> (k | 1)"),
    ("b || a + k", "(b || a) + k", "b || (a + k)"),
    ("a - k || b", "(a - k) || b", "a - (k || b)"),
    ("flag <> (a > 1) < (k > 1)", "(flag <> (a > 1)) < (k > 1)", "flag <> ((a > 1) < (k > 1))"),
    ("a < k = flag", "(a < k) = flag", "a < (k = flag)"),
    ("flag = a < k", "(flag = a) < k", "flag = (a < k)"),
    ("flag <=> a = k", "(flag <=> a) = k", "flag <=> (a = k)"),
    ("a = k IS NULL", "(a = k) IS NULL", "a = (k IS NULL)"),
    ("NOT a = k", "NOT (a = k)", "(NOT a) = k"),
    ("a = k IN (true, false)", "(a = k) IN (true, false)", "a = (k IN (true, false))"),
    ("flag IS DISTINCT FROM a = k", "flag IS DISTINCT FROM (a = k)", "(flag IS DISTINCT FROM a) = k"),
    ("a BETWEEN 1 AND 2 | 4", "a BETWEEN 1 AND (2 | 4)", "(a BETWEEN 1 AND 2) | 4"),
    ("b LIKE 'x' || 'y'", "b LIKE ('x' || 'y')", "(b LIKE 'x') || 'y'"),
    ("- a & k", "(- a) & k", "- (a & k)"),
    ("~ a + k", "(~ a) + k", "~ (a + k)"),
    ("-1::string", "(-1)::string", "-(1::string)"),
    ("a % k * 2", "(a % k) * 2", "a % (k * 2)"),
    ("a DIV k * 2", "(a DIV k) * 2", "a DIV (k * 2)"),
]


@pytest.mark.parametrize(("written", "grouped", "otherwise"), BINDS, ids=[one for one, _, _ in BINDS])
def test_an_operator_binds_as_tight_as_in_spark(written: str, grouped: str, otherwise: str) -> None:
    messages, same, other = (f"SELECT {one} AS x FROM t" for one in (written, grouped, otherwise))
    assert compare(messages, same, TABLES).equal
    assert not compare(messages, other, TABLES).equal


@pytest.mark.parametrize("written", [one for row in BINDS for one in row])
def test_what_is_sent_is_grouped_as_it_was_read(written: str) -> None:
    """Without the parentheses that were written, which a tree does not need."""
    tree = sqlglot.parse_one(f"SELECT {written} AS x FROM t", read=DIALECT)
    bare = tree.transform(lambda node: node.this if isinstance(node, sqlglot.exp.Paren) else node)
    assert compare(render(tree), render(bare), TABLES).equal


@pytest.mark.parametrize(
    "text", ["a IS NULL IS NULL", "a IN (1) = flag", "a = NOT flag", "a LIKE 'x' LIKE 'y'", "a IS 5", "a <  < 1"]
)
def test_what_spark_does_not_parse_is_not_parsed(text: str) -> None:
    assert compare(f"SELECT {text} AS x FROM t", f"SELECT {text} AS x, 1 AS y FROM t", TABLES).rows == "unknown"


INTERVALS = [  # as written, as Spark reads it, and as sqlglot alone does
    ("d + INTERVAL 1 DAY - 2 HOURS", "d + (INTERVAL 1 DAY + INTERVAL -2 HOURS)", "d + INTERVAL 1 DAY - 2"),
    ("d + INTERVAL 1 DAY + 2 HOURS", "d + INTERVAL 1 DAY 2 HOURS", "d + INTERVAL 1 DAY + 2"),
    ("INTERVAL '1' DAY + '2 days'", "(INTERVAL '1' DAY) + '2 days'", "INTERVAL '1' DAY + INTERVAL '2' DAYS"),
    ("INTERVAL '1 day' + 2", "(INTERVAL '1 day') + 2", "INTERVAL '1' DAY + INTERVAL '2'"),
    ("interval + 1", "`interval` + 1", "INTERVAL '1'"),
    ("interval - 1", "`interval` - 1", "INTERVAL '-1'"),
]


@pytest.mark.parametrize(("written", "same", "other"), INTERVALS, ids=[one for one, _, _ in INTERVALS])
def test_what_stands_behind_an_interval_belongs_to_it_only_with_its_unit(written: str, same: str, other: str) -> None:
    tables = {"e": {"d": "date", "interval": "int"}}
    messages, grouped, otherwise = (f"SELECT {one} AS x FROM e" for one in (written, same, other))
    assert compare(messages, grouped, tables).equal
    assert not compare(messages, otherwise, tables).equal


PIPES = {
    "FROM t |> SELECT DISTINCT k": "SELECT DISTINCT k FROM t",
    "FROM t |> LIMIT 5 |> WHERE a > 1": "SELECT * FROM (SELECT * FROM t LIMIT 5) WHERE a > 1",
    "FROM t |> WHERE a > 1 |> LIMIT 5": "SELECT * FROM t WHERE a > 1 LIMIT 5",
    "FROM t |> EXTEND a + 1 AS z |> WHERE z > 1": "SELECT *, a + 1 AS z FROM t WHERE a + 1 > 1",
    "FROM t |> SET a = a + 1, k = a": "SELECT a + 1 AS a, b, a + 1 AS k, id, flag FROM t",
    "FROM t |> DROP a, b": "SELECT k, id, flag FROM t",
    "FROM t |> AS q |> WHERE q.a > 1 |> SELECT q.k": "SELECT k FROM t WHERE a > 1",
    "FROM t |> AGGREGATE count(*) AS n GROUP BY k AS g": "SELECT k AS g, count(*) AS n FROM t GROUP BY k",
    "FROM t |> AGGREGATE sum(a) AS s": "SELECT sum(a) AS s FROM t",
    "FROM t |> JOIN u ON t.a = u.a |> SELECT t.a, u.v": "SELECT t.a, u.v FROM t JOIN u ON t.a = u.a",
    "SELECT a FROM t UNION SELECT a FROM u |> WHERE a > 1": "SELECT a FROM (SELECT a FROM t UNION SELECT a FROM u) WHERE a > 1",
    "FROM t |> SELECT a |> UNION ALL (SELECT v FROM u)": "SELECT a FROM t UNION ALL SELECT v FROM u",
    "FROM t |> ORDER BY a, id |> LIMIT 2 OFFSET 1": "SELECT * FROM (SELECT * FROM t ORDER BY a, id) LIMIT 2 OFFSET 1",
    "FROM t |> SELECT a, k |> PIVOT (sum(a) FOR k IN (1, 2))": "SELECT * FROM (SELECT a, k FROM t) PIVOT (sum(a) FOR k IN (1, 2))",
    "FROM t |> SELECT a, sum(k) OVER w AS s WINDOW w AS (ORDER BY id)": "SELECT a, sum(k) OVER (ORDER BY id) AS s FROM t",
    "WITH c AS (FROM t |> SELECT a) FROM c |> SELECT a + 1 AS x": "SELECT a + 1 AS x FROM t",
}


@pytest.mark.slow
@pytest.mark.parametrize("piped", PIPES)
def test_each_operator_of_a_pipe_acts_on_what_stands_before_it(piped: str) -> None:
    comparison = compare(piped, PIPES[piped], TABLES)
    assert comparison.equal, comparison
    others = [other for other in PIPES if other != piped]
    assert [other for other in others if compare(piped, other, TABLES).equal] == []


@pytest.mark.parametrize("piped", [piped for piped in PIPES if "PIVOT" not in piped])
def test_a_pipe_is_compiled_to_queries_within_each_other(piped: str) -> None:
    done = query(Text(sql=piped), NameScope(TABLES))
    assert done is not None
    assert "|>" not in done.sql
    assert compare(piped, done.sql, TABLES).equal


@pytest.mark.parametrize(
    ("piped", "message"),
    [
        ("FROM t |> LIMIT 5 WHERE a > 1", "LIMIT"),
        ("SELECT a FROM t LIMIT 5 |> WHERE a > 1", "parentheses"),
        ("FROM t |> ORDER BY a LIMIT 3", "a |> of their own"),
        ("FROM t |> SELECT a WHERE a > 1", "a |> of its own"),
        ("FROM t |> EXTEND sum(a) AS s", "AGGREGATE"),
        ("FROM t |> AGGREGATE count(*) AS n GROUP BY 1", "name the columns"),
        ("FROM t |> SET a = 1, a = 2", "each column once"),
        ("FROM t |> DISTINCT", "DISTINCT is not understood"),
        ("FROM t |> RENAME a AS z", "RENAME is not understood"),
    ],
)
def test_a_pipe_that_is_not_covered_is_refused_with_what_to_write(piped: str, message: str) -> None:
    text = Text(sql=piped)
    assert query(text, NameScope(TABLES)) is None
    assert [problem.code for problem in text.problems] == ["S102"]
    assert message in text.problems[0].message
    assert compare(piped, f"{piped} ", TABLES).rows == "unknown"


def test_intersect_binds_tighter_than_union() -> None:
    written = "SELECT a FROM t UNION ALL SELECT a FROM u INTERSECT SELECT k FROM u"
    right = "SELECT a FROM t UNION ALL (SELECT a FROM u INTERSECT SELECT k FROM u)"
    assert compare(written, right, TABLES).equal
    wrong = "(SELECT a FROM t UNION ALL SELECT a FROM u) INTERSECT SELECT k FROM u"
    assert not compare(written, wrong, TABLES).equal


def test_order_by_of_a_set_operation_names_what_it_shows() -> None:
    assert query(Text(sql="SELECT a FROM t UNION SELECT v FROM u ORDER BY a LIMIT 2"), NameScope(TABLES)) is not None


@pytest.mark.parametrize(
    ("written", "same", "other"),
    [
        (
            "SELECT -id AS id FROM t ORDER BY id LIMIT 2",
            "SELECT -id AS id FROM t ORDER BY -t.id LIMIT 2",
            "SELECT -id AS id FROM t ORDER BY t.id LIMIT 2",
        ),
        (
            "SELECT k, -sum(a) AS a FROM t GROUP BY k HAVING a > 1",
            "SELECT k, -sum(a) AS a FROM t GROUP BY k HAVING -sum(a) > 1",
            "SELECT k, -sum(a) AS a FROM t GROUP BY k HAVING sum(a) > 1",
        ),
        (
            "SELECT a + 1 AS a, count(*) AS n FROM t GROUP BY a",
            "SELECT a + 1 AS a, count(*) AS n FROM t GROUP BY t.a",
            "SELECT a + 1 AS a, count(*) AS n FROM t GROUP BY t.a + 1",
        ),
        (
            "SELECT -a AS a, a + 1 AS x FROM t",
            "SELECT -a AS a, t.a + 1 AS x FROM t",
            "SELECT -a AS a, -t.a + 1 AS x FROM t",
        ),
        (
            "SELECT -a AS a, rank() OVER (ORDER BY a) AS n FROM t",
            "SELECT -a AS a, rank() OVER (ORDER BY t.a) AS n FROM t",
            "SELECT -a AS a, rank() OVER (ORDER BY -t.a) AS n FROM t",
        ),
    ],
)
@pytest.mark.parametrize("tables", [TABLES, None])
def test_an_alias_made_of_its_own_name_is_what_spark_takes_it_for(
    written: str, same: str, other: str, tables: dict[str, dict[str, str]] | None
) -> None:
    assert compare(written, same, tables).equal
    assert not compare(written, other, tables).equal


TIES = ["row_number()", "lag(a)", "lead(a, 2)", "ntile(2)", "first_value(a)", "last_value(a)", "nth_value(a, 2)"]


@pytest.mark.parametrize("call", [*TIES, "collect_list(a)"])
@pytest.mark.parametrize("below", ["(SELECT * FROM t ORDER BY id)", "(SELECT * FROM t SORT BY a)"])
def test_what_is_taken_of_ties_depends_on_the_order_below(call: str, below: str) -> None:
    old = f"SELECT k, {call} OVER (PARTITION BY k ORDER BY b) AS n FROM t"
    assert compare(old, old.replace("FROM t", f"FROM {below}"), TABLES).rows == "unknown"
    top = f"SELECT k FROM t QUALIFY {call} OVER (PARTITION BY k ORDER BY b) = 1"
    assert compare(top, top.replace("FROM t", f"FROM {below}"), TABLES).rows == "unknown"


def test_sides_of_a_join_and_branches_of_a_union_come_in_their_order() -> None:
    old = "SELECT t.k, row_number() OVER (ORDER BY t.k) AS n FROM t JOIN u ON t.a = u.a"
    assert compare(old, old.replace("t JOIN u", "u JOIN t"), TABLES).rows == "unknown"
    old = "SELECT k, row_number() OVER (ORDER BY k) AS n FROM (SELECT k FROM t UNION ALL SELECT v FROM u)"
    new = "SELECT k, row_number() OVER (ORDER BY k) AS n FROM (SELECT v AS k FROM u UNION ALL SELECT k FROM t)"
    assert compare(old, new, TABLES).rows == "unknown"
    old = "SELECT t.k, u.v FROM t JOIN u ON t.a = u.a ORDER BY t.k LIMIT 3"
    assert compare(old, old.replace("t JOIN u", "u JOIN t"), TABLES).rows == "unknown"


@pytest.mark.parametrize("call", ["rank()", "dense_rank()", "percent_rank()", "cume_dist()", "sum(a)", "count(*)"])
def test_what_ties_share_depends_on_no_order_below(call: str) -> None:
    old = f"SELECT k, {call} OVER (PARTITION BY k ORDER BY b) AS n FROM t"
    assert compare(old, old.replace("FROM t", "FROM (SELECT * FROM t ORDER BY id)"), TABLES).equal


def test_a_total_order_has_no_ties() -> None:
    grouped = "(SELECT k, id, count(*) AS n FROM t GROUP BY k, id)"
    old = f"SELECT k, row_number() OVER (PARTITION BY k ORDER BY id) AS n FROM {grouped}"
    assert compare(old, old.replace("GROUP BY k, id)", "GROUP BY k, id ORDER BY n)"), TABLES).equal
    short = old.replace("ORDER BY id", "ORDER BY n")
    assert compare(short, short.replace("GROUP BY k, id)", "GROUP BY k, id ORDER BY n)"), TABLES).rows == "unknown"


def test_the_same_text_with_ties_is_the_same_and_may_get_a_column_more() -> None:
    old = "SELECT a, row_number() OVER (PARTITION BY k ORDER BY b) AS n FROM t"
    assert compare(old, old.replace("OVER", "over"), TABLES).equal
    assert compare("SELECT a FROM t", f"SELECT a, n FROM ({old})", TABLES).additive
    assert compare(old, old.replace("SELECT a,", "SELECT a, id,"), TABLES).additive


READ_OTHERWISE = {  # by sqlglot than by Spark, without a word
    "SELECT v:a AS x FROM r": "a path into a VARIANT",
    "SELECT v:since FROM r": "a path into a VARIANT",
    "SELECT v LIKE ALL ('x', 'y') < a AS x FROM r": "followed by an operator",
    "SELECT v NOT ILIKE SOME ('x', 'y') || 'z' AS x FROM r": "followed by an operator",
    "SELECT 0x1F AS x FROM r": "is not a number to Spark",
    'SELECT a AS "K" FROM r': "a name stands in backquotes",
    "SELECT DISTINCT ON (a) a FROM r": "DISTINCT ON is not allowed",
    "SELECT a FROM r WHERE a BETWEEN SYMMETRIC 3 AND 1": "BETWEEN SYMMETRIC is not allowed",
    "SELECT posexplode(arr) FROM r": "needs names for what it yields",
    "SELECT x FROM (SELECT explode(arr) FROM r)": "needs names for what it yields",
    "SELECT k AS a, a AS k FROM r QUALIFY max(k) OVER () = 3": "k in QUALIFY is ambiguous",
    "SELECT k, count(*) AS n FROM r GROUP BY k QUALIFY rank() OVER (ORDER BY n) = 1": "QUALIFY over an aggregate",
    "SELECT k, count(*) AS n FROM r GROUP BY ROLLUP (k) HAVING grouping(k) = 1": "GROUPING in HAVING",
}


@pytest.mark.parametrize("sql", READ_OTHERWISE)
def test_what_spark_reads_otherwise_is_refused_by_name(sql: str) -> None:
    text = Text(sql=sql)
    known = NameScope({"r": {"a": "int", "k": "int", "arr": "array<int>", "v": "variant", "array": "array<int>"}})
    assert query(text, known, parameters=(Parameter("since", "date"),)) is None
    assert READ_OTHERWISE[sql] in str(text.problems[0])


def test_an_item_of_a_column_called_array_is_no_new_array() -> None:
    tables = {"r": {"array": "array<int>"}}
    done = query(Text(sql="SELECT array[0] AS x FROM r"), NameScope(tables))
    assert done is not None
    assert "`array`[0]" in done.sql
    assert not compare("SELECT array[0] AS x FROM r", "SELECT array(0) AS x FROM r", tables).equal


def test_a_negative_decimal_literal_is_one() -> None:
    done = query(Text(sql="SELECT -1.5BD AS x FROM t"), NameScope(TABLES))
    assert done is not None
    assert "'-1.5' AS DECIMAL(2, 1)" in done.sql


def test_qualify_is_sent_as_it_is_written() -> None:
    done = query(
        Text(sql="SELECT k AS k, id FROM t QUALIFY row_number() OVER (ORDER BY id) = 1 AND k > 1"), NameScope(TABLES)
    )
    assert done is not None
    assert "QUALIFY" in done.sql
    assert done.sql.count("SELECT") == 1
