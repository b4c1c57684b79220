"""What no feed can follow is refused with what would do it, and that is planned: the endpoint, and the function that merges."""

from dataclasses import replace

import pytest

from console.errors import Problems
from console.model.pipeline import Endpoint, Pipeline
from console.model.plan import Plan
from console.model.schema import Table
from tests.planning.test_joined_tables import fed
from tests.planning.world import actions, columns, live, pipeline, planned

DAILY = Table(
    name="daily", kind="aggregate", columns=columns(day="date", v="string"), time="day", partition_by=("day",)
)
ROWS = replace(DAILY, name="rows", kind="append", time="", partition_by=())
# without a state that merges → its type, and the function that has one, if any
FUNCTIONS = {
    "first(ip)": ("string", "min_by(ip, ts)"),
    "last(ip)": ("string", "max_by(ip, ts)"),
    "first_value(ip)": ("string", "min_by(ip, ts)"),
    "last_value(ip)": ("string", "max_by(ip, ts)"),
    "collect_list(ip)": ("array<string>", "collect_set(ip)"),
    "percentile(ms, 0.9)": ("double", "approx_percentile(ms, 0.9)"),
    "median(ms)": ("double", "approx_percentile(ms, 0.5)"),
    "histogram_numeric(ms, 5)": ("array<struct<x:double,y:double>>", "count_if(ms > 5)"),
    "count(DISTINCT ip)": ("bigint", "approx_count_distinct(ip)"),
    "mode(ip)": ("string", ""),
    "skewness(ms)": ("double", ""),
    "regr_slope(ms, ms)": ("double", ""),
}
# with a state that merges → the column's type
MERGING = {
    "any_value(ip)": "string", "max_by(ip, ts)": "string", "min_by(ip, ts)": "string", "stddev(ms)": "double",
    "variance(ms)": "double", "corr(ms, bytes)": "double", "bool_and(ms > 5)": "boolean", "bool_or(ms > 5)": "boolean",
    "collect_set(ip)": "array<string>", "hll_sketch_agg(ip)": "binary", "approx_count_distinct(ip)": "bigint",
    "kll_sketch_agg_double(CAST(ms AS DOUBLE))": "binary", "approx_percentile(ms, 0.9)": "double",
}  # fmt: skip
SHAPES = (
    "SELECT r.day, l.payload AS v FROM requests r RIGHT JOIN landing l ON l.id = r.event_id",
    "SELECT r.day, l.payload AS v FROM requests r FULL JOIN landing l ON l.id = r.event_id",
    "SELECT day, lag(ip) OVER (PARTITION BY day ORDER BY ts) AS v FROM requests",
    "SELECT day, ip AS v FROM requests QUALIFY row_number() OVER (PARTITION BY ip ORDER BY ts DESC) = 1",
    "SELECT day, ip AS v FROM requests ORDER BY ts LIMIT 5",
    "SELECT DISTINCT day, ip AS v FROM requests",
    "SELECT day, ip AS v FROM requests UNION SELECT day, host FROM requests",
)


def of_feed(table: Table, sql: str) -> Plan:
    return planned(fed(pipeline(), table, "more", sql), live(pipeline()))


def hint(table: Table, sql: str) -> str:
    with pytest.raises(Problems) as refused:
        of_feed(table, sql)
    (problem,) = refused.value.problems
    assert problem.code in ("S112", "S113")
    return problem.hint


def as_endpoint(sql: str) -> Plan:
    wanted: Pipeline = pipeline()
    endpoint = Endpoint(name="more", sql=sql, where="plans/web/endpoints/more.sql:1:1")
    return planned(replace(wanted, endpoints=(*wanted.endpoints, endpoint)), live(pipeline()))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_function_without_a_state_is_refused_under_its_own_name_with_what_does_it(function: str) -> None:
    type, merging = FUNCTIONS[function]
    table = replace(DAILY, columns=columns(day="date", v=type))
    sql = f"SELECT day, {function} AS v FROM requests GROUP BY day"
    text = hint(table, sql)
    assert "endpoints/more.sql: the same query" in text
    assert merging.partition("(")[0] in text
    assert as_endpoint(sql).refusals == ()
    if merging:
        assert of_feed(table, sql.replace(function, merging)).refusals == ()


@pytest.mark.parametrize("function", MERGING)
def test_a_function_whose_states_merge_feeds_an_aggregate(function: str) -> None:
    table = replace(DAILY, columns=columns(day="date", v=MERGING[function]))
    done = of_feed(table, f"SELECT day, {function} AS v FROM requests GROUP BY day")
    assert (done.refusals, actions(done)) == ((), {"daily": "create"})


def test_it_is_named_as_it_is_written() -> None:
    with pytest.raises(Problems) as refused:
        of_feed(
            replace(DAILY, columns=columns(day="date", v="array<string>")),
            "SELECT day, collect_list(ip) AS v FROM requests GROUP BY day",
        )
    assert refused.value.problems[0].message.startswith("v: collect_list has no state")


@pytest.mark.parametrize("sql", SHAPES)
def test_a_query_that_depends_on_how_rows_are_divided_is_an_endpoint(sql: str) -> None:
    assert "endpoints/more.sql: the same query" in hint(ROWS, sql)
    assert as_endpoint(sql).refusals == ()
