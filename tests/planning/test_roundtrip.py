"""SQL that sqlglot would read with another meaning is refused, wherever a query is compiled."""

from dataclasses import replace

import pytest

from console.errors import Problems
from console.planning import compile_query
from console.planning.sql.compile import NameScope, query
from console.planning.sql.tree import Text
from tests.planning.world import PARSE, live, node, pipeline, planned, release, with_column, with_sql

KNOWN = NameScope({"requests": {"a": "double", "f": "bigint", "s": "string", "ts": "timestamp", "day": "date"}})
OTHERWISE = {  # call → what would be sent
    "percentile(a, 0.5, f)": "PERCENTILE(a, 0.5)",
    "percentile(a, array(0.5, 0.9), f + 1)": "PERCENTILE(a, ARRAY(0.5, 0.9))",
    "date_format(ts, 'YYYY')": "DATE_FORMAT(ts, 'yyyy')",
    "date_format(ts, 'y-MM')": "DATE_FORMAT(ts, 'yyyy-MM')",
    "to_date(s, 'YYYY-MM-dd')": "TO_DATE(s, 'yyyy-MM-dd')",
    "to_timestamp(s, 'YYYY')": "TO_TIMESTAMP(s, 'yyyy')",
    "from_unixtime(f, 'YYYY')": "FROM_UNIXTIME(f, 'yyyy')",
    "unix_timestamp(s, 'YYYY')": "UNIX_TIMESTAMP(s, 'yyyy')",
    "date_trunc(s, ts)": "DATE_TRUNC('S', ts)",
    "trunc(day, s)": "TRUNC(day, 'SECOND')",
}
AS_WRITTEN = [
    "percentile(a, 0.5)", "percentile_approx(a, 0.5, 100)", "date_format(ts, 'yyyy-MM-dd HH:mm:ss.SSS')", "date_format(ts, s)",
    "to_date(s)", "to_date(s, 'yyyyMMdd')", "to_date(s, 'yyyy-MM-dd')", "from_unixtime(f, 'yyyy-MM-dd HH:mm:ss')", "to_timestamp(s)", "from_unixtime(f)", "unix_timestamp()", "unix_timestamp(s, 'yyyy')",
    "date_trunc('hour', ts)", "date_trunc('HOUR', ts)", "trunc(day, 'mm')", "date_sub(day, 3)", "date_trunc('week', ts) > ts",
    "get_json_object(s, '$.a.b[0]')", "get_json_object(s, '$[''a b'']')", "get_json_object(s, concat('$.', s))",
    "regexp_extract(s, 'x(.)', 1)", "regexp_extract(s, 'x(.)')", "regexp_extract(s, '(x)(.)', 2)", "log(a)", "log10(a)", "log(2, a)",
    "lpad(s, 5)", "rpad(s, 5, 'x')", "str_to_map(s)", "sort_array(array(f, 1), false)", "slice(array(f), 1, 1)", "locate('x', s, 2)",
    "from_utc_timestamp(ts, 'Europe/Madrid')", "'YYYY'", "concat(s, 'percentile(a, 0.5, f)')",
]  # fmt: skip


@pytest.mark.parametrize("call", OTHERWISE)
def test_a_call_that_would_be_sent_otherwise_is_refused_with_what_would_be_sent(call: str) -> None:
    text = Text(sql=f"SELECT s, {call} AS x FROM requests GROUP BY ALL", where="plans/web/endpoints/e.sql:3:1")
    assert query(text, KNOWN) is None
    assert [problem.code for problem in text.problems] == ["S105"]
    assert f"sent to Spark as {OTHERWISE[call]}" in text.problems[0].message
    assert text.problems[0].where.startswith("plans/web/endpoints/e.sql:3:")


@pytest.mark.parametrize("call", AS_WRITTEN)
def test_what_reaches_spark_whole_is_compiled(call: str) -> None:
    text = Text(sql=f"SELECT {call} AS x FROM requests")
    assert query(text, KNOWN) is not None, text.problems


@pytest.mark.parametrize("call", ["log10(a)", "log2(a)", "log(10, a)", "log(2, a)", "LOG10 (a + 1)"])
def test_logarithms_of_ten_and_two_are_computed_by_sparks_own(call: str) -> None:
    """`log(10, 1000)` is 2.9999999999999996, and `log10(1000)` is 3."""
    done = query(Text(sql=f"SELECT {call} AS x FROM requests"), KNOWN)
    assert done is not None
    sent = done.sql.replace("`requests`.`a`", "a").upper()
    assert f"SELECT {call.upper().replace(' (', '(')} AS" in sent
    again = query(Text(sql=done.sql), KNOWN)
    assert again is not None
    assert again.sql == done.sql


@pytest.mark.parametrize(
    "call", ["max(a, f)", "min(f, 1)", "to_hex(s)", "countif(f > 1)", "array_cat(array(1), array(2))"]
)
def test_a_function_that_would_be_sent_as_another_is_refused_with_its_place(call: str) -> None:
    text = Text(sql=f"SELECT upper(s) AS u,\n  {call} AS x, max(a) OVER () AS m FROM requests", where="e.sql:3:1")
    assert query(text, KNOWN) is None
    (problem, *_) = text.problems
    assert (problem.code, problem.where) == ("S105", "e.sql:4:3")
    assert call.partition("(")[0] in problem.message


@pytest.mark.parametrize(
    "call",
    ["mod(f, 2)", "substr(s, 1, 2)", "len(s)", "ifnull(s, '')", "nvl(s, '')", "instr(s, 'x')", "pow(a, 2)", "ltrim('x', s)",
     "named_struct('x', a).x", "to_timestamp(s)", "date_sub(day, 1)", "regexp_like(s, 'x')", "unix_date(day)", "sha1(s)",
     "timestampadd(HOUR, 2, ts)", "ceiling(a)", "map_from_arrays(array(s), array(a))['x']", "exists(array(a), v -> v > 1)",
     "count(*) FILTER (WHERE a IN (1, 2))", "extract(YEAR FROM ts)", "CASE WHEN (a > 1) AND (f > 1) THEN 1 END", "date(ts)",
     "left(s, 2)", "if(a > 1, 1, 0)", "'max(a, f)'",
     "string(a)", "double(s)", "current_date()", "s LIKE ('x%')", "f DIV (f + 1)", "like(s, 'x')"],
)  # fmt: skip
def test_another_name_of_the_same_function_is_taken(call: str) -> None:
    text = Text(sql=f"SELECT {call} AS x FROM requests GROUP BY ALL")
    assert query(text, KNOWN) is not None, text.problems


def test_a_format_is_written_although_a_cast_would_take_it_too() -> None:
    """`to_date('2026-11-21 10:00', 'yyyy-MM-dd')` fails, and a cast gives a day."""
    for format in ("yyyy-MM-dd", "yyyy-MM-dd HH:mm:ss"):
        done = query(Text(sql=f"SELECT to_date(s, '{format}') AS x FROM requests"), KNOWN)
        assert done is not None
        assert f"TO_DATE(`requests`.`s`, '{format}')" in done.sql
    plain = query(Text(sql="SELECT datediff(to_date(s), day) AS x, to_date(ts) AS y FROM requests"), KNOWN)
    assert plain is not None
    assert "'yyyy" not in plain.sql


@pytest.mark.slow
def test_feeds_endpoints_and_forward_queries_are_all_held_to_it() -> None:
    wrong = "date_format(ts, 'YYYY')"
    fed = with_sql(pipeline(), "parse", PARSE.replace("region AS host", f"{wrong} AS host"))
    read = replace(pipeline(), endpoints=(replace(pipeline().endpoints[0], sql=f"SELECT {wrong} AS y FROM requests"),))
    for desired in (fed, read):
        with pytest.raises(Problems) as error:
            planned(desired)
        assert {problem.code for problem in error.value.problems} >= {"S105"}
    with pytest.raises(Problems, match="sent to Spark as"):
        compile_query(f"SELECT {wrong} AS y FROM requests", release(live()))
    wider = with_column(pipeline(), "year", "string", "get_json_object(payload, '$.year')")
    table = wider.table("requests")
    assert table is not None
    forwarded = replace(table, forward_query=f"*, {wrong} AS year")
    done = planned(replace(wider, tables=tuple(forwarded if t.name == "requests" else t for t in wider.tables)))
    assert [p.code for p in done.refusals if "forward_query" in p.message] == ["S105"]
    assert node(done, "requests").action == "forward"
