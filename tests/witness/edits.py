"""Edits with a known effect, and the smallest rows that can show it."""

TABLES = {
    "t": {
        "a": "int", "b": "string", "c": "double", "ts": "timestamp", "arr": "array<int>", "doc": "string",
        "d": "decimal(10,2)", "m": "map<string,int>", "s": "struct<x:int,y:string>", "bin": "binary", "f": "boolean",
        "n": "timestamp_ntz", "day": "date", "big": "bigint", "tiny": "tinyint",
    },
    "u": {"a": "int", "k": "string", "v": "int"},
}  # fmt: skip

# old, new, rows of all tables together that the smallest witness has
CHANGES = [
    ("SELECT DISTINCT a FROM t", "SELECT DISTINCT a, b FROM t", 2),
    ("SELECT a FROM t WHERE a > 500", "SELECT a FROM t WHERE a >= 500", 1),
    ("SELECT a FROM t WHERE c > 0.25", "SELECT a FROM t WHERE c > 0.75", 1),
    ("SELECT a FROM t WHERE b = 'shipped'", "SELECT a FROM t WHERE b = 'returned'", 1),
    ("SELECT a FROM t WHERE b LIKE 'x%'", "SELECT a FROM t WHERE b LIKE 'x_'", 1),
    ("SELECT t.a, v FROM t JOIN u ON t.a = u.a", "SELECT t.a, v FROM t LEFT JOIN u ON t.a = u.a", 1),
    ("SELECT t.a FROM t JOIN u ON t.a = u.a", "SELECT t.a FROM t LEFT SEMI JOIN u ON t.a = u.a", 3),
    ("SELECT get_json_object(doc, '$.ua') AS x FROM t", "SELECT get_json_object(doc, '$.UA') AS x FROM t", 1),
    ("SELECT a FROM t", "SELECT a, explode(arr) AS x FROM t", 1),
    ("SELECT count(b) AS x FROM t", "SELECT count(*) AS x FROM t", 1),
    ("SELECT count(*) AS x FROM t WHERE ts >= '2026-11-01'", "SELECT count(*) AS x FROM t WHERE ts > '2026-11-01'", 1),
    ("SELECT day FROM t WHERE day < DATE '2026-11-01'", "SELECT day FROM t WHERE day <= DATE '2026-11-01'", 1),
    ("SELECT a FROM t UNION ALL SELECT v FROM u", "SELECT a FROM t UNION SELECT v FROM u", 2),
    ("SELECT d AS x FROM t", "SELECT CAST(d AS DECIMAL(10,1)) AS x FROM t", 1),
    ("SELECT a / 2 AS x FROM t", "SELECT a DIV 2 AS x FROM t", 1),
    ("SELECT a, max(c) AS x FROM t GROUP BY a", "SELECT a, min(c) AS x FROM t GROUP BY a", 2),
    ("SELECT a, rank() OVER (ORDER BY a) AS x FROM t", "SELECT a, dense_rank() OVER (ORDER BY a) AS x FROM t", 3),
    ("SELECT f FROM t WHERE f", "SELECT f FROM t WHERE f IS NOT FALSE", 1),
]
REWRITES = [
    ("SELECT a FROM t WHERE a > 1 AND b = 'x'", "SELECT a FROM t WHERE b = 'x' AND 1 < a"),
    ("SELECT a FROM t WHERE a BETWEEN 1 AND 5", "SELECT a FROM t WHERE NOT (a < 1 OR a > 5)"),
    ("SELECT a, count(*) AS n FROM t GROUP BY a", "SELECT a, sum(1) AS n FROM t GROUP BY a"),
    ("SELECT DISTINCT a FROM t", "SELECT a FROM t GROUP BY a"),
    ("SELECT t.a FROM t LEFT SEMI JOIN u ON t.a = u.a", "SELECT a FROM t WHERE a IN (SELECT u.a FROM u)"),
]
