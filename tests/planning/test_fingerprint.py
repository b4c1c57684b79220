"""Fingerprints: a pure rewrite changes none, an edit that changes rows or values changes the right ones."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.planning.sql.relation import Relation, physical
from console.planning.sql.resolve import qualified, schema
from console.planning.sql.semantics import relation_of
from console.planning.sql.tree import Text, parse

TABLES = {
    "t": {"a": "int", "b": "string", "c": "double", "ts": "timestamp", "arr": "array<int>"},
    "u": {"a": "int", "k": "string", "v": "int"},
}
RELATIONS = {name: physical(name, name, {c: f"{name}.{c}" for c in columns}) for name, columns in TABLES.items()}
KNOWN = schema(TABLES)


def of(sql: str) -> Relation:
    text = Text(sql=sql)
    tree = parse(text)
    assert tree is not None, text.problems
    done = qualified(tree, text, TABLES, KNOWN)
    assert done is not None, text.problems
    return relation_of(done, RELATIONS)


def same(one: str, other: str) -> bool:
    a, b = of(one), of(other)
    return a.rows == b.rows and {n: v.hash for n, v in a.columns.items()} == {n: v.hash for n, v in b.columns.items()}


REWRITES = [
    ("SELECT a, b FROM t WHERE a > 1", "select  B as b ,\n A a -- why\n from T x where X.a>1"),
    (
        "SELECT a + 1 AS n FROM t WHERE b = 'x'",
        "WITH q AS (SELECT a + 1 AS m, b FROM t) SELECT m AS n FROM q WHERE q.b = 'x'",
    ),
    ("SELECT a FROM t WHERE a > 1 AND b = 'x'", "SELECT a FROM (SELECT * FROM t WHERE b = 'x') s WHERE 1 < s.a"),
    ("SELECT a FROM t WHERE a BETWEEN 1 AND 5", "SELECT a FROM t WHERE a <= 5 AND a >= 1"),
    ("SELECT a FROM t WHERE NOT (a = 1 OR b = 'x')", "SELECT a FROM t WHERE b <> 'x' AND a != 1"),
    ("SELECT a FROM t WHERE a IN (1, 2)", "SELECT a FROM t WHERE ((a IN (2, 1, 1)))"),
    ("SELECT a * 2 + c AS n FROM t", "SELECT c + (2 * a) AS n FROM t"),
    ("SELECT if(a > 1, 'x', 'y') AS n FROM t", "SELECT CASE WHEN a > 1 THEN 'x' ELSE 'y' END AS n FROM t"),
    ("SELECT int(b) AS n FROM t", "SELECT b :: INT AS n FROM t"),
    (
        "SELECT a, count(*) AS n FROM t GROUP BY a",
        "SELECT count(*) AS n, t.a FROM t GROUP BY 1 + 0, a".replace("1 + 0, ", ""),
    ),
    ("SELECT a, b, count(*) AS n FROM t GROUP BY a, b", "SELECT a, b, count(*) AS n FROM t GROUP BY 2, 1"),
    ("SELECT t.a, u.v FROM t JOIN u ON t.a = u.a", "SELECT x.a, y.v FROM t AS x INNER JOIN u AS y ON y.a = x.a"),
    ("SELECT a FROM t", "SELECT a FROM t WHERE true ORDER BY b"),
    ("SELECT a FROM t UNION ALL SELECT v FROM u", "(SELECT v AS a FROM u) UNION ALL (SELECT a FROM t)"),
    ("SELECT b AS n, b || 'x' AS m FROM t", "SELECT b AS n, n || 'x' AS m FROM t"),
]
HAZARDS = [
    ("SELECT a, b FROM t", "SELECT DISTINCT a, b FROM t"),
    ("SELECT DISTINCT a FROM t", "SELECT DISTINCT a, b FROM t"),
    ("SELECT a, count(*) AS n FROM t GROUP BY ALL", "SELECT a, b, count(*) AS n FROM t GROUP BY ALL"),
    ("SELECT a FROM t UNION SELECT v FROM u", "SELECT a FROM t UNION ALL SELECT v FROM u"),
    ("SELECT a, b FROM t UNION SELECT v, k FROM u", "SELECT a, c FROM t UNION SELECT v, a FROM u"),
    ("SELECT a FROM t EXCEPT SELECT v FROM u", "SELECT v AS a FROM u EXCEPT SELECT a FROM t"),
    ("SELECT a FROM t INTERSECT SELECT v FROM u", "SELECT a FROM t EXCEPT SELECT v FROM u"),
    ("SELECT t.a FROM t NATURAL JOIN u", "SELECT t.a FROM t CROSS JOIN u"),
    ("SELECT t.a FROM t JOIN u ON t.a = u.a", "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a"),
    ("SELECT t.a FROM t LEFT JOIN u ON t.a = u.a", "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a AND u.v > 1"),
    ("SELECT t.a FROM t LEFT SEMI JOIN u ON t.a = u.a", "SELECT t.a FROM t LEFT ANTI JOIN u ON t.a = u.a"),
    ("SELECT a FROM t", "SELECT a, explode(arr) AS x FROM t"),
    ("SELECT a FROM t", "SELECT a FROM t LATERAL VIEW explode(arr) e AS x"),
    ("SELECT a FROM t LATERAL VIEW explode(arr) e AS x", "SELECT a FROM t LATERAL VIEW OUTER explode(arr) e AS x"),
    ("SELECT a FROM t", "SELECT a FROM t LIMIT 5"),
    ("SELECT a FROM t ORDER BY a LIMIT 5", "SELECT a FROM t ORDER BY b LIMIT 5"),
    ("SELECT a, count(*) AS n FROM t GROUP BY a", "SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(*) > 1"),
    ("SELECT a, count(*) AS n FROM t GROUP BY a", "SELECT a, count(*) AS n FROM t GROUP BY ROLLUP (a)"),
    ("SELECT a FROM t WHERE a > 1 AND b = 'x'", "SELECT a FROM t WHERE a > 1 OR b = 'x'"),
    ("SELECT a FROM t WHERE a > 1", "SELECT a FROM t WHERE a >= 1"),
    ("SELECT a FROM t WHERE a IN (1, 2)", "SELECT a FROM t WHERE a NOT IN (1, 2)"),
    (
        "SELECT a FROM t WHERE a IN (SELECT a FROM u)",
        "SELECT a FROM t WHERE a IN (SELECT a FROM u WHERE v > 1)",
    ),
]
VALUES = [
    ("CAST(b AS INT)", "TRY_CAST(b AS INT)"),
    ("CAST(b AS INT)", "CAST(b AS BIGINT)"),
    ("a - 1", "1 - a"),
    ("a / 2", "a DIV 2"),
    ("a = 1", "a <=> 1"),
    ("b LIKE 'x%'", "b ILIKE 'x%'"),
    ("get_json_object(b, '$.x')", "get_json_object(b, '$.X')"),
    ("'1'", "1"),
    ("concat(b, 'x')", "concat('x', b)"),
    ("to_date(ts)", "to_date(ts, 'yyyy')"),
    ("arr[0]", "element_at(arr, 1)"),
    ("transform(arr, x -> x + 1)", "transform(arr, x -> x + 2)"),
    ("struct(a AS x)", "struct(a AS y)"),
    ("hash(a)", "xxhash64(a)"),
]


@pytest.mark.parametrize(("one", "other"), REWRITES)
def test_a_pure_rewrite_changes_no_fingerprint(one: str, other: str) -> None:
    assert same(one, other)


@pytest.mark.parametrize(("one", "other"), HAZARDS)
def test_an_edit_that_may_change_rows_changes_the_rows_fingerprint(one: str, other: str) -> None:
    assert of(one).rows != of(other).rows


@pytest.mark.parametrize(("one", "other"), VALUES)
def test_another_expression_is_another_value_over_the_same_rows(one: str, other: str) -> None:
    before, after = of(f"SELECT {one} AS n FROM t"), of(f"SELECT {other} AS n FROM t")
    assert before.rows == after.rows
    assert before.columns["n"].hash != after.columns["n"].hash


def test_a_filter_before_or_after_a_window_leaves_the_same_rows_with_other_numbers() -> None:
    after = of("SELECT * FROM (SELECT a, row_number() OVER (ORDER BY b) AS n FROM t) WHERE a > 1")
    before = of("SELECT * FROM (SELECT a, row_number() OVER (ORDER BY b) AS n FROM t WHERE a > 1)")
    assert after.rows == before.rows
    assert after.columns["a"].hash == before.columns["a"].hash
    assert after.columns["n"].hash != before.columns["n"].hash


def test_a_column_more_changes_no_other_column() -> None:
    for tail in ("", " WHERE a > 1", " UNION ALL SELECT v, k FROM u"):
        more = tail.replace("v, k", "v, k, 1.0")
        before, after = of(f"SELECT a, b FROM t{tail}"), of(f"SELECT a, b, c FROM t{more}")
        assert before.rows == after.rows
        assert {n: v.hash for n, v in after.columns.items() if n != "c"} == {
            n: v.hash for n, v in before.columns.items()
        }


def test_what_a_column_is_read_from_passes_through_subqueries_and_joins() -> None:
    result = of("WITH q AS (SELECT a, upper(b) AS n FROM t) SELECT n, v, a + v AS s FROM q LEFT JOIN u USING (a)")
    reads = {name: value.reads for name, value in result.columns.items()}
    assert reads == {"n": {("t", "b")}, "v": {("u", "v")}, "s": {("t", "a"), ("u", "a"), ("u", "v")}} or reads["s"] >= {
        ("u", "v")
    }
    assert {name for name, value in result.columns.items() if value.joined} >= {"v", "s"}
    assert not result.columns["n"].joined


def test_now_and_rand_make_a_column_volatile_through_a_subquery() -> None:
    result = of("SELECT x, y FROM (SELECT now() AS x, b AS y FROM t WHERE a > 0)")
    assert (result.columns["x"].volatile, result.columns["y"].volatile) == (True, False)
    assert of("SELECT a FROM t WHERE rand() < 0.5").volatile


atoms = st.sampled_from(["a", "c", "1", "2", "length(b)"])
numbers = st.recursive(
    atoms,
    lambda inner: st.tuples(inner, st.sampled_from(["+", "*", "-"]), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
    max_leaves=6,
)
conditions = st.lists(
    st.tuples(numbers, st.sampled_from(["=", "<", ">=", "<>"]), numbers).map(lambda p: f"{p[0]} {p[1]} {p[2]}"),
    min_size=1,
    max_size=4,
)


@pytest.mark.slow
@given(numbers, conditions, st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_conjuncts_in_any_order_in_any_nesting_mean_the_same(number: str, parts: list[str], random: Random) -> None:
    shuffled = list(parts)
    random.shuffle(shuffled)
    cut = len(shuffled) // 2
    inner, outer = " AND ".join(shuffled[:cut] or ["true"]), " AND ".join(f"({p})" for p in shuffled[cut:])
    plain = f"SELECT {number} AS n, b FROM t WHERE {' AND '.join(parts)}"
    nested = f"WITH z AS (SELECT *, {number} AS w FROM t q WHERE {inner}) SELECT b AS b, w AS n FROM z WHERE {outer}"
    assert same(plain, nested)
