"""The allow-list: expressions that compute values pass, those that reach outside the pipeline's tables do not."""

import pytest

from console.errors import DataError, Problems
from console.planning import compile_query
from tests.planning.world import live, release

LIVE = release(live())
HOSTILE = [
    "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
    "SELECT java_method('java.util.UUID', 'randomUUID')",
    "SELECT try_reflect('a', 'b')",
    "SELECT TRANSFORM(ip) USING 'id' FROM requests",
    "SELECT * FROM text.`/etc/passwd`",
    "SELECT * FROM delta.`/tmp/x`",
    "SELECT * FROM main.web.requests",
    "SELECT * FROM read_files('/etc')",
    "SELECT * FROM range(10)",
    "SELECT * FROM requests VERSION AS OF 1",
    "SELECT * FROM requests TIMESTAMP AS OF '2026-01-01'",
    "SELECT ${env:HOME}",
    "SELECT my_udf(ip) FROM requests",
    "SELECT ai_query('x', ip) FROM requests",
    "SELECT java_method FROM requests; DROP TABLE requests",
    "INSERT INTO requests SELECT * FROM requests",
    "DROP TABLE requests",
    "SET spark.sql.ansi.enabled=false",
    "ADD JAR '/tmp/x.jar'",
    "CREATE TABLE x AS SELECT 1",
    "MERGE INTO requests USING requests ON true WHEN MATCHED THEN DELETE",
    "WITH RECURSIVE q AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM q) SELECT * FROM q",
    "SELECT IDENTIFIER('ip') FROM requests",
    "SELECT input_file_name() FROM requests",
    "SELECT current_user()",
    "SELECT " + "(" * 3000 + "1" + ")" * 3000,
    "SELECT " + "NOT " * 3000 + "true",
    "SELECT " + "1 + " * 3000 + "1",
    "SELECT '" + "x" * 70_000 + "'",
    "SELECT 'open FROM requests",
    "SELECT `open FROM requests",
    "",
    ";;",
    "\x00",
]
FINE = [
    "SELECT ip, count(*) FILTER (WHERE status = 200) AS n FROM requests GROUP BY ALL HAVING n > 1 ORDER BY n DESC LIMIT 5",
    "WITH q AS (SELECT * EXCEPT (ms) FROM requests) SELECT q.*, row_number() OVER (PARTITION BY ip ORDER BY ts) AS n FROM q",
    "SELECT a.ip FROM requests a LEFT ANTI JOIN requests b ON a.ip = b.ip AND b.status = 500",
    "SELECT explode(split(ip, '[.]')) AS part FROM requests",
    "SELECT x.part FROM requests LATERAL VIEW explode(split(ip, '[.]')) x AS part",
    "SELECT from_json(host, 'a int, b string').b, transform(array(1, 2), x -> x + 1) FROM requests",
    "SELECT ts + INTERVAL 1 DAY, date_add(day, 1), date_sub(day, 2), extract(HOUR FROM ts), date_trunc('HOUR', ts) FROM requests",
    "SELECT ip FROM requests WHERE status IN (SELECT status FROM requests) UNION SELECT host FROM requests",
    "SELECT CASE status WHEN 200 THEN 'ok' ELSE 'bad' END, coalesce(ip, ''), try_cast(ip AS INT), ip RLIKE '^1' FROM requests",
    "SELECT percentile_approx(ms, 0.5), hll_sketch_estimate(hll_sketch_agg(ip, 12)), stddev(ms), max_by(ip, ts) FROM requests",
    "(SELECT now(), rand(), uuid(), current_date)",
    "SELECT hits FROM daily_hits",
]


@pytest.mark.parametrize("sql", HOSTILE, ids=lambda sql: sql[:40] or "empty")
def test_what_reaches_outside_the_tables_is_refused_as_the_operators_error(sql: str) -> None:
    with pytest.raises(DataError):
        compile_query(sql, LIVE)


@pytest.mark.parametrize("sql", FINE)
def test_what_computes_values_from_the_tables_is_allowed_and_can_be_read_again(sql: str) -> None:
    once = compile_query(sql, LIVE)
    again = compile_query(once.sql, LIVE)
    assert (again.tables, len(again.columns)) == (once.tables, len(once.columns))


def test_a_refusal_names_the_node_and_the_place() -> None:
    with pytest.raises(Problems) as caught:
        compile_query("SELECT ip,\n  reflect('a', 'b')\nFROM text.`/etc/passwd`", LIVE)
    messages = [str(problem) for problem in caught.value.problems]
    assert any("reflect" in line and "2:3" in line for line in messages)
    assert any("/etc/passwd" in line and "3:6" in line for line in messages)


def test_unknown_names_are_reported_all_at_once_with_the_nearest() -> None:
    with pytest.raises(Problems) as caught:
        compile_query("SELECT ipp, r.statu FROM requests r WHERE hosst = 1", LIVE)
    assert {problem.hint for problem in caught.value.problems} == {
        "did you mean ip?",
        "did you mean status?",
        "did you mean host?",
    }
    with pytest.raises(Problems, match="there is no table request "):
        compile_query("SELECT 1 FROM request", LIVE)


def test_field_names_of_structs_keep_their_case_since_to_json_writes_them() -> None:
    assert "userId" in compile_query("SELECT to_json(named_struct('userId', ip)) AS j FROM requests", LIVE).sql
    assert "userId" in compile_query("SELECT to_json(struct(ip AS userId)) AS j FROM requests", LIVE).sql


def test_names_of_a_result_keep_the_case_in_which_they_were_written() -> None:
    made = compile_query("SELECT IP AS clientIp, Status, count(*) FROM Requests GROUP BY ALL ORDER BY clientIp", LIVE)
    assert made.columns == ("clientIp", "Status", "COUNT(*)")
    assert "AS `clientIp`" in made.sql
    both = compile_query("SELECT ip AS A FROM requests UNION ALL SELECT host FROM requests", LIVE)
    assert both.columns == ("A",)
