"""Edits of queries whose truth is plain: what changes rows, what changes nothing, what only adds a column."""

from functools import cache

from console.planning.compare import QueryDifference, compare

TABLES = {
    "t": {"a": "int", "b": "string", "c": "double", "ts": "timestamp", "arr": "array<int>", "j": "string", "k": "int"},
    "u": {"a": "int", "k": "int", "v": "int", "w": "string"},
    "v": {"k": "int", "x": "int", "y": "string"},
}
Edit = tuple[str, str]

# the new query gives other rows on some data
HAZARDS: list[Edit] = [
    ("SELECT DISTINCT a FROM t", "SELECT DISTINCT a, b FROM t"),
    ("SELECT a FROM t", "SELECT DISTINCT a FROM t"),
    ("SELECT a FROM t UNION SELECT a FROM u", "SELECT a, k FROM t UNION SELECT a, k FROM u"),
    ("SELECT a FROM t UNION ALL SELECT a FROM u", "SELECT a FROM t UNION SELECT a FROM u"),
    ("SELECT a FROM t INTERSECT SELECT a FROM u", "SELECT a, k FROM t INTERSECT SELECT a, k FROM u"),
    ("SELECT a FROM t EXCEPT SELECT a FROM u", "SELECT a, k FROM t EXCEPT SELECT a, k FROM u"),
    ("SELECT a FROM t MINUS SELECT a FROM u", "SELECT a, k FROM t MINUS SELECT a, k FROM u"),
    ("SELECT a FROM t EXCEPT SELECT a FROM u", "SELECT a FROM t EXCEPT ALL SELECT a FROM u"),
    ("SELECT a, count(*) AS n FROM t GROUP BY ALL", "SELECT a, b, count(*) AS n FROM t GROUP BY ALL"),
    ("SELECT a, count(*) AS n FROM t GROUP BY 1", "SELECT b, a, count(*) AS n FROM t GROUP BY 1, 2"),
    ("SELECT a, b, count(*) AS n FROM t GROUP BY 1, 2", "SELECT a, c AS b, count(*) AS n FROM t GROUP BY 1, 2"),
    ("SELECT a, k FROM (SELECT a FROM t) NATURAL JOIN u", "SELECT a, k FROM (SELECT a, k FROM t) NATURAL JOIN u"),
    ("SELECT * FROM t JOIN u USING (a)", "SELECT * FROM t JOIN u USING (a, k)"),
    (
        "SELECT * FROM (SELECT a, k FROM t) PIVOT (count(a) FOR k IN (1, 2))",
        "SELECT * FROM (SELECT a, b, k FROM t) PIVOT (count(a) FOR k IN (1, 2))",
    ),
    ("SELECT a FROM t", "SELECT a, explode(arr) AS e FROM t"),
    ("SELECT a FROM t", "SELECT a, posexplode(arr) AS (p, e) FROM t"),
    ("SELECT a FROM t", "SELECT a, inline(array(struct(1 AS x))) FROM t"),
    ("SELECT a FROM t", "SELECT a, stack(2, 1, 2) AS s FROM t"),
    ("SELECT a FROM t", "SELECT a, explode_outer(arr) AS e FROM t"),
    ("SELECT a, explode(arr) AS e FROM t", "SELECT a, explode_outer(arr) AS e FROM t"),
    ("SELECT a FROM t", "SELECT a, my_function(b) AS e FROM t"),
    ("SELECT 1 AS one FROM t", "SELECT 1 AS one, length(my_function(b)) AS n FROM t"),
    ("SELECT a FROM t", "SELECT a, window(ts, '10 minutes', '5 minutes') AS w FROM t"),
    ("SELECT a FROM t LIMIT 5", "SELECT a FROM t LIMIT 6"),
    ("SELECT a FROM t ORDER BY a LIMIT 5", "SELECT a FROM t ORDER BY a DESC LIMIT 5"),
    ("SELECT a, b FROM t ORDER BY 1 LIMIT 5", "SELECT b, a FROM t ORDER BY 1 LIMIT 5"),
    ("SELECT a FROM t LIMIT 5", "SELECT a FROM t LIMIT 5 OFFSET 1"),
    ("SELECT a FROM (SELECT a FROM t LIMIT 5) WHERE a > 1", "SELECT a FROM (SELECT a FROM t WHERE a > 1) LIMIT 5"),
    ("SELECT a FROM t TABLESAMPLE (10 PERCENT)", "SELECT a FROM t TABLESAMPLE (11 PERCENT)"),
    ("SELECT a FROM t", "SELECT a FROM t TABLESAMPLE (10 ROWS)"),
    (
        "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY ts) = 1",
        "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY a, b ORDER BY ts) = 1",
    ),
    (
        "SELECT a FROM (SELECT a, row_number() OVER (PARTITION BY a ORDER BY ts) AS n FROM t) WHERE n = 1",
        "SELECT a FROM (SELECT a, row_number() OVER (PARTITION BY a ORDER BY ts DESC) AS n FROM t) WHERE n = 1",
    ),
    ("SELECT a FROM t WHERE a > 1", "SELECT a FROM t WHERE a >= 1"),
    ("SELECT a FROM t WHERE a > 1 AND k > 1", "SELECT a FROM t WHERE a > 1 OR k > 1"),
    ("SELECT a FROM t WHERE a NOT IN (SELECT a FROM u)", "SELECT t.a FROM t LEFT ANTI JOIN u ON t.a = u.a"),
    ("SELECT a FROM t WHERE NOT (a = 1 AND k = 1)", "SELECT a FROM t WHERE a <> 1 AND k <> 1"),
    ("SELECT a FROM t WHERE a <=> k", "SELECT a FROM t WHERE a = k"),
    ("SELECT a FROM t WHERE b LIKE 'x%'", "SELECT a FROM t WHERE b LIKE 'X%'"),
    ("SELECT a FROM t WHERE b = 'x'", 'SELECT a FROM t WHERE b = "X"'),
    ("SELECT t.a FROM t JOIN u ON t.a = u.a", "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a"),
    ("SELECT t.a FROM t JOIN u ON t.a = u.a", "SELECT t.a FROM t RIGHT JOIN u ON t.a = u.a"),
    ("SELECT t.a FROM t LEFT JOIN u ON t.a = u.a", "SELECT t.a FROM t FULL JOIN u ON t.a = u.a"),
    ("SELECT t.a FROM t JOIN u ON t.a = u.a", "SELECT t.a FROM t JOIN u ON t.a = u.k"),
    (
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a AND u.v > 1",
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a WHERE u.v > 1",
    ),
    (
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a AND t.k > 1",
        "SELECT t.a FROM t LEFT JOIN u ON t.a = u.a WHERE t.k > 1",
    ),
    ("SELECT t.a FROM t LEFT SEMI JOIN u ON t.a = u.a", "SELECT t.a FROM t JOIN u ON t.a = u.a"),
    ("SELECT t.a FROM t, u", "SELECT t.a FROM t, u, v"),
    ("SELECT x.a FROM t x JOIN t y ON x.a = y.k", "SELECT x.a FROM t x JOIN t y ON x.a = x.k"),
    (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = t.a)",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.a = u.a)",
    ),
    (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t s WHERE s.a = t.a)",
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t s WHERE t.a = t.a)",
    ),
    ("SELECT a FROM t LATERAL VIEW explode(arr) e AS x", "SELECT a FROM t LATERAL VIEW OUTER explode(arr) e AS x"),
    ("SELECT a FROM t", "SELECT a FROM t, LATERAL explode(arr) AS e(x)"),
    ("SELECT a, count(*) AS n FROM t GROUP BY a", "SELECT a, count(*) AS n FROM t GROUP BY a, b"),
    ("SELECT a, count(*) AS n FROM t GROUP BY a", "SELECT a, count(*) AS n FROM t GROUP BY CUBE (a)"),
    (
        "SELECT a, k, count(*) AS n FROM t GROUP BY ROLLUP (a, k)",
        "SELECT a, k, count(*) AS n FROM t GROUP BY ROLLUP (k, a)",
    ),
    (
        "SELECT a, k, count(*) AS n FROM t GROUP BY GROUPING SETS ((a), (k))",
        "SELECT a, k, count(*) AS n FROM t GROUP BY GROUPING SETS ((a), (k), ())",
    ),
    (
        "SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(*) > 1",
        "SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(*) > 2",
    ),
    (
        "SELECT a, sum(k) AS k FROM t GROUP BY a HAVING k > 1",
        "SELECT a, sum(k) AS k FROM t GROUP BY a HAVING sum(k) > 2",
    ),
    ("SELECT a FROM t WHERE a > 1", "SELECT a FROM t HAVING a > 1"),
    ("SELECT a FROM t", "SELECT count(*) AS a FROM t"),
    ("SELECT col1 FROM VALUES (1), (2)", "SELECT col1 FROM VALUES (1), (2), (2)"),
    ("SELECT id FROM range(5)", "SELECT id FROM range(6)"),
    ("SELECT a FROM t", "SELECT a FROM u"),
    ("SELECT a FROM t", "SELECT a FROM t VERSION AS OF 3"),
    ("WITH q AS (SELECT a FROM t) SELECT x.a FROM q x, q y", "WITH q AS (SELECT a FROM t) SELECT x.a FROM q x"),
    ("SELECT a FROM t WHERE rand() < 0.5", "SELECT a FROM t WHERE rand() < 0.6"),
    (
        "SELECT a FROM t UNION ALL SELECT a FROM u",
        "SELECT a FROM t UNION ALL SELECT a FROM u UNION ALL SELECT a FROM u",
    ),
    (
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 2 FROM r WHERE n < 5) SELECT n FROM r",
    ),
    ("SELECT a FROM t WHERE a = (SELECT max(a) FROM u)", "SELECT a FROM t WHERE a = (SELECT min(a) FROM u)"),
    (
        "SELECT k, a FROM t UNPIVOT (n FOR which IN (a, c))",
        "SELECT k, n AS a FROM t UNPIVOT (n FOR which IN (a, c, k))",
    ),
]
# the new query is the old one in other words
REWRITES: list[Edit] = [
    ("SELECT a, b FROM t", "select  X.`B` b, /* x */ x.A from t as x -- y"),
    ("SELECT a FROM t WHERE a > 1 AND b = 'x'", 'SELECT a FROM t WHERE "x" = b AND 1 < a'),
    ("WITH q AS (SELECT a FROM t) SELECT a FROM q", "WITH z AS (SELECT a FROM t) SELECT z.a FROM z"),
    ("SELECT a FROM t", "SELECT a FROM (SELECT * FROM t)"),
    ("SELECT a + k AS n FROM t", "SELECT k + a AS n FROM t"),
    ("SELECT a FROM t WHERE a BETWEEN 1 AND 5", "SELECT a FROM t WHERE NOT (a < 1 OR a > 5)"),
    ("SELECT a FROM t WHERE a IN (1, 2)", "SELECT a FROM t WHERE a = 2 OR 1 = a"),
    ("SELECT a FROM t WHERE a NOT IN (1, 2)", "SELECT a FROM t WHERE a <> 1 AND NOT a = 2"),
    ("SELECT a FROM t WHERE a != 1", "SELECT a FROM t WHERE NOT (a = 1)"),
    ("SELECT a FROM t WHERE b IS NOT NULL", "SELECT a FROM t WHERE NOT isnull(b)"),
    ("SELECT a FROM t WHERE isnotnull(b)", "SELECT a FROM t WHERE NOT (b <=> NULL)"),
    ("SELECT nvl(a, 0) AS n FROM t", "SELECT CASE WHEN a IS NULL THEN 0 ELSE a END AS n FROM t"),
    ("SELECT coalesce(a, k, 0) AS n FROM t", "SELECT ifnull(a, coalesce(k, 0)) AS n FROM t"),
    ("SELECT if(a > 1, 'x', NULL) AS n FROM t", "SELECT CASE WHEN 1 < a THEN 'x' END AS n FROM t"),
    (
        "SELECT CASE a WHEN 1 THEN 'x' ELSE 'y' END AS n FROM t",
        "SELECT CASE WHEN a = 1 THEN 'x' ELSE 'y' END AS n FROM t",
    ),
    ("SELECT nullif(a, 0) AS n FROM t", "SELECT if(a = 0, NULL, a) AS n FROM t"),
    ("SELECT nvl2(a, 1, 2) AS n FROM t", "SELECT IF(a IS NOT NULL, 1, 2) AS n FROM t"),
    ("SELECT b || '-' || j AS n FROM t", "SELECT concat(b, '-', j) AS n FROM t"),
    ("SELECT CAST(b AS INT) AS n FROM t", "SELECT b::int AS n FROM t"),
    ("SELECT year(ts) AS y FROM t", "SELECT EXTRACT(YEAR FROM ts) AS y FROM t"),
    ("SELECT now() AS n FROM t", "SELECT current_timestamp() AS n FROM t"),
    ("SELECT a, count(*) AS n FROM t GROUP BY a", "SELECT a, count(1) AS n FROM t GROUP BY 1"),
    ("SELECT a AS z, avg(c) AS m FROM t GROUP BY a", "SELECT a AS z, mean(c) AS m FROM t GROUP BY z"),
    ("SELECT a, b, count(*) AS n FROM t GROUP BY a, b", "SELECT a, b, count(*) AS n FROM t GROUP BY ALL"),
    ("SELECT DISTINCT a, b FROM t", "SELECT a, b FROM t GROUP BY b, a"),
    ("SELECT a FROM t UNION SELECT a FROM u", "SELECT DISTINCT a FROM (SELECT a FROM u UNION ALL SELECT a FROM t)"),
    (
        "SELECT a, k, count(*) AS n FROM t GROUP BY ROLLUP (a, k)",
        "SELECT a, k, count(*) AS n FROM t GROUP BY GROUPING SETS ((), (a), (a, k))",
    ),
    (
        "SELECT a, k, count(*) AS n FROM t GROUP BY a, k WITH CUBE",
        "SELECT a, k, count(*) AS n FROM t GROUP BY CUBE (k, a)",
    ),
    (
        "SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(*) > 1",
        "SELECT * FROM (SELECT a, count(*) AS n FROM t GROUP BY a) WHERE n > 1",
    ),
    (
        "SELECT a, count(*) AS n FROM t GROUP BY a HAVING a > 1 AND n > 1",
        "SELECT a, count(*) AS n FROM t GROUP BY a HAVING count(1) > 1 AND a > 1",
    ),
    ("SELECT t.a, v FROM t JOIN u ON t.a = u.a", "SELECT t.a, u.v FROM u INNER JOIN t ON u.a = t.a"),
    (
        "SELECT t.a, u.v, x FROM t JOIN u ON t.a = u.a JOIN v ON v.k = t.k",
        "SELECT t.a, u.v, x FROM v JOIN t ON t.k = v.k JOIN u ON t.a = u.a",
    ),
    ("SELECT t.a, u.v FROM t JOIN u ON t.a = u.a AND u.v > 1", "SELECT t.a, u.v FROM t, u WHERE u.v > 1 AND t.a = u.a"),
    (
        "SELECT t.a, s.v FROM t JOIN (SELECT * FROM u WHERE v > 1) s ON t.a = s.a",
        "SELECT t.a, u.v FROM t JOIN u ON t.a = u.a WHERE u.v > 1",
    ),
    ("SELECT t.b, u.v FROM t JOIN u USING (a)", "SELECT t.b, u.v FROM t JOIN u ON t.a = u.a"),
    ("SELECT t.b, u.v FROM t LEFT JOIN u ON t.a = u.a", "SELECT t.b, u.v FROM u RIGHT OUTER JOIN t ON u.a = t.a"),
    (
        "SELECT t.b, s.v FROM t LEFT JOIN (SELECT * FROM u WHERE v > 1) s ON t.a = s.a",
        "SELECT t.b, u.v FROM t LEFT JOIN u ON u.v > 1 AND t.a = u.a",
    ),
    ("SELECT a FROM t LEFT SEMI JOIN u ON t.a = u.a", "SELECT a FROM t WHERE EXISTS (SELECT * FROM u WHERE u.a = t.a)"),
    ("SELECT a FROM t WHERE a IN (SELECT a FROM u)", "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u WHERE t.a = u.a)"),
    (
        "SELECT a FROM t LEFT ANTI JOIN u ON t.a = u.a",
        "SELECT a FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE t.a = u.a)",
    ),
    ("SELECT a, explode(arr) AS e FROM t", "SELECT a, x AS e FROM t LATERAL VIEW explode(arr) l AS x"),
    ("SELECT a FROM t UNION ALL SELECT a FROM u", "SELECT a FROM u UNION ALL SELECT a FROM t"),
    (
        "(SELECT a FROM t UNION ALL SELECT a FROM u) UNION ALL SELECT k FROM v",
        "SELECT k AS a FROM v UNION ALL (SELECT a FROM u UNION ALL SELECT a FROM t)",
    ),
    ("SELECT a FROM t INTERSECT SELECT a FROM u", "SELECT a FROM t INTERSECT (SELECT u.a FROM u)"),
    ("SELECT col1 AS n FROM VALUES (1), (2)", "SELECT n FROM VALUES (2), (1) AS s(n)"),
    ("SELECT a FROM t", "SELECT a FROM t ORDER BY b"),
    ("SELECT a FROM t", "SELECT /*+ REPARTITION(8) */ a FROM t WHERE 1 = 1"),
    (
        "SELECT a, sum(k) OVER (PARTITION BY b ORDER BY ts) AS s FROM t",
        "SELECT a, sum(k) OVER w AS s FROM t WINDOW w AS (PARTITION BY b ORDER BY ts)",
    ),
    (
        "SELECT a FROM t QUALIFY row_number() OVER (PARTITION BY a ORDER BY ts) = 1",
        "SELECT a FROM (SELECT a, row_number() OVER (PARTITION BY a ORDER BY ts) AS n FROM t) WHERE n = 1",
    ),
    ("SELECT b AS n, n || 'x' AS m FROM t", "SELECT b AS n, b || 'x' AS m FROM t"),
    ("SELECT transform(arr, x -> x + 1) AS n FROM t", "SELECT transform(arr, y -> 1 + y) AS n FROM t"),
    ("SELECT * EXCEPT (arr, j) FROM t", "SELECT a, b, c, ts, k FROM t"),
    ("FROM t SELECT a", "SELECT a FROM t"),
    ("SELECT greatest(a, k) AS n FROM t", "SELECT greatest(k, a) AS n FROM t"),
    ("SELECT a FROM t WHERE a > 2 * 5", "SELECT a FROM t WHERE a > 10"),
    ("SELECT count(DISTINCT a, k) AS n FROM t", "SELECT count(DISTINCT k, a) AS n FROM t"),
    (
        "WITH p AS (SELECT a, k FROM t WHERE a > 1), q AS (SELECT a FROM p WHERE k > 1) SELECT a FROM q",
        "SELECT a FROM t WHERE k > 1 AND a > 1",
    ),
    (
        "WITH p AS (SELECT a FROM t) SELECT x.a, y.a AS z FROM p x JOIN p y ON x.a = y.a",
        "SELECT x.a, y.a AS z FROM (SELECT a FROM t) x JOIN (SELECT a FROM t) y ON x.a = y.a",
    ),
]
# one column more, and the rest as before
ADDITIONS: list[Edit] = [
    ("SELECT a FROM t", "SELECT a, b FROM t"),
    ("SELECT a FROM t", "SELECT a, json_tuple(j, 'x', 'y') AS (x, y) FROM t"),
    ("SELECT a FROM t", "SELECT a, upper(my_function(b)) AS n FROM t"),
    ("SELECT a FROM t", "SELECT a, row_number() OVER (ORDER BY b) AS n FROM t"),
    ("SELECT a FROM t", "SELECT a, now() AS loaded FROM t"),
    ("SELECT a FROM t", "SELECT a, (SELECT max(v) FROM u WHERE u.a = t.a) AS m FROM t"),
    ("SELECT a FROM t UNION ALL SELECT a FROM u", "SELECT a, k FROM t UNION ALL SELECT a, k FROM u"),
    ("SELECT a, count(*) AS n FROM t GROUP BY a", "SELECT a, count(*) AS n, max(b) AS m FROM t GROUP BY a"),
    ("SELECT t.a FROM t JOIN u ON t.a = u.a", "SELECT t.a, u.w FROM t JOIN u ON t.a = u.a"),
    ("SELECT a FROM t ORDER BY a LIMIT 5", "SELECT a, b FROM t ORDER BY a LIMIT 5"),
    ("WITH q AS (SELECT a FROM t) SELECT * FROM q", "WITH q AS (SELECT a, b FROM t) SELECT * FROM q"),
    ("SELECT a FROM t LATERAL VIEW explode(arr) e AS x", "SELECT a, x FROM t LATERAL VIEW explode(arr) e AS x"),
    ("SELECT DISTINCT a FROM (SELECT a FROM t)", "SELECT DISTINCT a FROM (SELECT a, b FROM t)"),
]


@cache
def judged(edit: Edit) -> QueryDifference:
    return compare(edit[0], edit[1], TABLES)
