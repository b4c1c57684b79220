"""Values that are equal but distinguishable, and NaN: rewrites that are valid for all other values are not applied to them."""

import pytest

from console.planning.compare import compare

TABLES = {
    "t": {
        "a": "int", "k": "int", "v": "int", "b": "string", "c": "double", "d": "date", "m": "decimal(10,2)",
        "folded": "string collate utf8_lcase", "s": "struct<x:int,y:string>",
    },
    "u": {"a": "int", "k": "int", "v": "int", "w": "string", "s": "struct<x:string,y:string>"},
}  # fmt: skip
NEAR_MISSES = [
    # one number, date or word in two spellings
    ("SELECT a FROM t WHERE a = '1' AND a = '01'", "SELECT a FROM t WHERE a = '2' AND a = '02'"),
    ("SELECT a FROM t WHERE a = '1' AND a <> '01'", "SELECT a FROM t WHERE a = '1'"),
    ("SELECT a FROM t WHERE m = '1' AND m = '1.0'", "SELECT a FROM t WHERE false"),
    ("SELECT a FROM t WHERE d = '2024-01-01' AND d = '2024-1-1'", "SELECT a FROM t WHERE false"),
    ("SELECT a FROM t WHERE d IN ('2024-01-01', '2024-01-02') AND d <> '2024-1-1'",
     "SELECT a FROM t WHERE d IN ('2024-01-01', '2024-01-02')"),
    ("SELECT a FROM t WHERE folded = 'a' AND folded = 'A'", "SELECT a FROM t WHERE false"),
    ("SELECT a FROM t WHERE folded = 'a' AND folded <> 'A'", "SELECT a FROM t WHERE folded = 'a'"),
    # one key of a group that was several values (Spark's optimizer may ask below the grouping, and need not)
    ("SELECT folded, count(*) AS n FROM t WHERE hex(folded) = '61' GROUP BY folded",
     "SELECT folded, count(*) AS n FROM t GROUP BY folded HAVING hex(folded) = '61'"),
    ("SELECT DISTINCT folded FROM t WHERE hex(folded) = '61'",
     "SELECT folded FROM (SELECT DISTINCT folded FROM t) WHERE hex(folded) = '61'"),
    ("SELECT c, count(*) AS n FROM t WHERE cast(c AS string) = '-0.0' GROUP BY c",
     "SELECT c, count(*) AS n FROM t GROUP BY c HAVING cast(c AS string) = '-0.0'"),
    ("SELECT a / k AS q, count(*) AS n FROM t WHERE cast(a / k AS string) = '-0.0' GROUP BY a / k",
     "SELECT a / k AS q, count(*) AS n FROM t GROUP BY a / k HAVING cast(a / k AS string) = '-0.0'"),
    ("SELECT folded || '' AS x, count(*) AS n FROM t WHERE folded || '' = 'a' COLLATE utf8_binary GROUP BY folded || ''",
     "SELECT folded || '' AS x, count(*) AS n FROM t GROUP BY folded || '' HAVING folded || '' = 'a' COLLATE utf8_binary"),
    # no value where a column is not in the set
    ("SELECT k, count(*) AS n FROM t WHERE a > 1 GROUP BY k, a GROUPING SETS ((k))",
     "SELECT k, count(*) AS n FROM t GROUP BY k, a GROUPING SETS ((k)) HAVING a > 1"),
    # a cast that takes a collation away
    ("SELECT a FROM t WHERE cast(folded AS string) = 'A'", "SELECT a FROM t WHERE folded = 'A'"),
    ("SELECT DISTINCT cast(folded AS string) AS x FROM t", "SELECT DISTINCT folded AS x FROM t"),
    # NULL beside what is met, and where no row is met
    ("SELECT a FROM t WHERE a IN (k, v) AND v IS NOT NULL", "SELECT a FROM t WHERE a IN (k, v)"),
    ("SELECT t.a FROM t LEFT JOIN u ON t.k = u.k WHERE concat_ws('', u.w) IS NOT NULL",
     "SELECT t.a FROM t JOIN u ON t.k = u.k WHERE concat_ws('', u.w) IS NOT NULL"),
    # a field that UNION ALL casts
    ("SELECT s.x = '1' AS q FROM (SELECT s FROM t UNION ALL SELECT s FROM u)",
     "SELECT s.x = '1' AS q FROM t UNION ALL SELECT s.x = '1' FROM u"),
]  # fmt: skip


@pytest.mark.parametrize("pair", NEAR_MISSES, ids=lambda pair: f"{pair[0]} | {pair[1]}"[:150])
def test_what_holds_for_other_values_is_never_called_the_same(pair: tuple[str, str]) -> None:
    for one, other in (pair, pair[::-1]):
        assert not compare(one, other, TABLES).equal
        assert not compare(one, other).equal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE b = 'x' AND b <> 'y'", "SELECT a FROM t WHERE b = 'x'"),
        ("SELECT a FROM t WHERE a IN (k, v) AND a IS NOT NULL", "SELECT a FROM t WHERE a IN (k, v)"),
        ("SELECT c, count(*) AS n FROM t WHERE c > 0 GROUP BY c", "SELECT c, count(*) AS n FROM t GROUP BY c HAVING c > 0"),
        ("SELECT m, count(*) AS n FROM t WHERE abs(m) > 5 GROUP BY m", "SELECT m, count(*) AS n FROM t GROUP BY m HAVING abs(m) > 5"),
        ("SELECT cast(folded AS string COLLATE utf8_lcase) AS x FROM t", "SELECT folded AS x FROM t"),
        ("SELECT f, count(*) AS n FROM v WHERE f GROUP BY f", "SELECT f, count(*) AS n FROM v GROUP BY f HAVING f"),
    ],
)  # fmt: skip
def test_what_they_have_in_common_with_others_is_recognised(one: str, other: str) -> None:
    assert compare(one, other, TABLES).equal
    assert compare(other, one, TABLES).equal


@pytest.mark.parametrize(
    "more",
    [
        ", (SELECT k FROM u)", ", u", " JOIN u", " x", " WHERE a > 1", " LATERAL VIEW explode(array(1)) e",
        " TABLESAMPLE (10 PERCENT)", " PIVOT (sum(v) FOR k IN (1))",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "query", ["SELECT a FROM t UNION ALL (SELECT v FROM u)", "FROM t |> SELECT a |> UNION ALL (SELECT v FROM u)"]
)
def test_what_spark_refuses_behind_a_query_is_never_passed_over(query: str, more: str) -> None:
    assert not compare(query, query + more, TABLES).equal
    assert not compare(query + more, query, TABLES).equal
