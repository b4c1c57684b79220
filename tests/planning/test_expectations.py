"""What a table is expected to hold, compiled: conditions of failing rows, judged by DuckDB and by plain Python; and what a
change of them does to a plan, which is nothing to any row."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.model import beside
from console.model.codec import decode, encode
from console.model.expectation import (
    AcceptedValues,
    DayCheck,
    Expectation,
    Fresh,
    Holds,
    InRange,
    NotNull,
    RowCheck,
    RowsOfDayBefore,
    Rule,
    Severity,
    UniqueInDay,
)
from console.model.live import Live, Release
from console.model.pipeline import Pipeline
from console.model.plan import Plan, numbered
from console.model.step import CreateTable, Promote
from console.planning.build import desired, plan
from console.planning.cache.planner_cache import PlannerCache
from tests.planning.world import CACHE, REGION, REQUESTS, live, pipeline, with_column, with_table

Row = Mapping[str, Any]
HOLDS: list[tuple[Rule, Callable[[Row], bool]]] = [
    (NotNull("ip"), lambda row: row["ip"] is not None),
    (AcceptedValues("ip", ("'a'", "'b'")), lambda row: row["ip"] in (None, "a", "b")),
    (InRange("status", "100", "599"), lambda row: row["status"] is None or 100 <= row["status"] <= 599),
    (InRange("status", None, "599"), lambda row: row["status"] is None or row["status"] <= 599),
    (InRange("status", "0", None), lambda row: row["status"] is None or row["status"] >= 0),
    (Holds("status < 600"), lambda row: row["status"] is not None and row["status"] < 600),
    (Holds("ip IS NULL OR ip <> 'x' -- any"), lambda row: row["ip"] != "x"),
]
ROWS = st.fixed_dictionaries(
    {
        "ip": st.sampled_from([None, "a", "b", "x", ""]),
        "status": st.sampled_from([None, -1, 0, 99, 100, 599, 600]),
    }
)


def expecting(*rules: Rule, severity: Severity = "stop", **more: Any) -> Pipeline:
    expected = tuple(Expectation(rule, severity) for rule in rules)
    return with_table(pipeline(), replace(REQUESTS, expectations=expected, **more))


def checks(*rules: Rule, **more: Any) -> tuple[RowCheck | DayCheck, ...]:
    wanted = desired(expecting(*rules, **more), PlannerCache())
    assert wanted.problems == ()
    return wanted.tables["requests"].checks


COMPILED = checks(*(rule for rule, _ in HOLDS))


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(ROWS, max_size=12))
def test_a_row_fails_where_duckdb_and_python_say_so(rows: list[Row]) -> None:
    values = ", ".join("(?, ?)" for _ in rows) or "(NULL, NULL)"
    given_rows = [value for row in rows for value in (row["ip"], row["status"])]
    for (_, holds), check in zip(HOLDS, COMPILED, strict=True):
        assert isinstance(check, RowCheck)
        failing = check.failing.replace("`", '"')
        sql = f"SELECT {failing} FROM (VALUES {values}) AS t(ip, status)"
        result = [one for (one,) in duckdb.execute(sql, given_rows).fetchall()][: len(rows)]
        assert result == [not holds(row) for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "code", "message"),
    [
        ("status > (SELECT 1)", "C010", "other rows"),
        ("max(status) > 1", "C010", "other rows"),
        ("row_number() OVER (ORDER BY ts) > 1", "C010", "other rows"),
        ("explode(array(status)) > 1", "S105", "needs names"),
        ("*", "C010", "other rows"),
        ("rand() > 0.5", "C010", "another answer"),
        ("ts < now()", "C010", "another answer"),
        ("status > 1, ip", "C010", "more than one condition"),
        ("status > 1) , (ip = ''", "C010", "more than one condition"),
        ("status > 1) FROM landing WHERE (true", "S102", "cannot be read"),
        ("EXISTS (SELECT 1 FROM landing)", "S107", "there is no table landing"),
        ("nope > 1", "S108", "no column nope"),
        ("status > :least", "S111", ":least is neither"),
        ("reflect('java.lang.System', 'exit') = 1", "S105", "it calls Java"),
        ("status >", "S102", "cannot be read"),
        ("/* never closed", "S102", "cannot be read"),
        ("1 = 1; DROP TABLE requests", "S10", "statement"),
    ],
)
def test_a_condition_that_is_none_of_one_row_is_refused_at_the_tables_file(sql: str, code: str, message: str) -> None:
    (problem,) = desired(expecting(Holds(sql)), PlannerCache()).problems
    assert problem.code.startswith(code)
    assert problem.where == REQUESTS.where
    assert problem.message.startswith("expectation `")
    assert message in problem.message
    assert problem.remedies


@pytest.mark.slow
def test_a_failing_row_is_named_by_key_and_sort_columns_and_never_by_what_is_in_question() -> None:
    rules = (NotNull("status"), NotNull("EVENT_ID"), Holds("ip <> '' OR ts IS NULL"), UniqueInDay(("ip",)))
    results = [check.keys for check in checks(*rules, cluster_by=("event_id", "ip"))]
    assert results == [("event_id", "ip", "ts"), ("ip", "ts"), ("event_id",), ("event_id", "ip", "ts")]
    hours = replace(
        next(table for table in pipeline().tables if table.kind == "aggregate"),
        expectations=(Expectation(NotNull("hits")),),
    )
    (check,) = desired(with_table(pipeline(), hours), PlannerCache()).tables["requests_by_hour"].checks
    assert check.keys == ("hour", "day")


def planned(wanted: Pipeline, region: Live) -> Plan:
    return plan(wanted, region, REGION, "test", CACHE)


def test_an_expectation_alone_is_metadata_and_moves_no_row() -> None:
    made = planned(expecting(NotNull("ip"), Fresh(60.0)), live())
    (change,) = [node for node in made.nodes if node.changes]
    assert (change.name, change.action, change.why) == ("requests", "metadata", "expectations: no row moves")
    assert made.steps == (Promote(),)
    state = made.release.table("requests")
    assert state is not None
    assert [check.name for check in state.checks] == ["ip is not null", "newest row within 1 min"]
    assert planned(pipeline(), live()).steps == ()


def test_the_same_expectation_twice_is_no_change_and_another_severity_is_one() -> None:
    once = numbered(planned(expecting(NotNull("ip")), live()), 8)
    region = replace(live(), release=once.release)
    assert planned(expecting(NotNull("ip")), region).steps == ()
    other = planned(expecting(NotNull("ip"), severity="warn"), region)
    assert [(node.name, node.action) for node in other.nodes if node.changes] == [("requests", "metadata")]
    gone = planned(pipeline(), region)
    state = gone.release.table("requests")
    assert state is not None
    assert (state.checks, gone.steps) == ((), (Promote(),))


@pytest.mark.slow
def test_a_rebuilt_table_takes_its_checks_along_and_an_older_reader_passes_over_them() -> None:
    rules = (NotNull("ip"), RowsOfDayBefore(0.5, None))
    made = planned(with_column(expecting(*rules), "ua", "string", "upper(payload)"), live())
    assert CreateTable("requests") in made.steps
    state = made.release.table("requests")
    assert state is not None
    assert [check.name for check in state.checks] == ["ip is not null", "rows at least 0.5 × the day before"]
    data, rest = beside.split(made.release)
    older = decode(Release, data)
    assert [(one.checks, one.table.expectations) for one in older.tables] == [((), ())] * len(older.tables)
    assert decode(Release, beside.join(data, rest)) == made.release
    assert decode(Release, encode(made.release)) == made.release


@pytest.mark.slow
def test_expectations_are_no_part_of_what_rows_mean() -> None:
    plain = desired(pipeline(), PlannerCache()).tables["requests"]
    stored = desired(expecting(NotNull("ip"), UniqueInDay(("event_id",))), PlannerCache()).tables["requests"]
    assert (plain.content, plain.rows, plain.values) == (stored.content, stored.rows, stored.values)
