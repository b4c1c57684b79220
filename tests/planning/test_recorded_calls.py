"""The recorded calls that a plan runs, and its expectations of their answers."""

from dataclasses import replace

import pytest

from console.model.live import Live
from console.model.pipeline import Endpoint, Parameter, Pipeline
from console.model.plan import Plan, numbered
from console.model.recorded_call import AnswerForm, PlannedCall, RecordedCall
from console.model.step import CreateTable, Promote, Validate
from console.planning import plan
from console.planning.sql.answer import answer_form
from console.planning.sql.relation import physical
from tests.planning.world import CACHE, REGION, empty, live, pipeline, with_column, with_sql

CALL = RecordedCall(endpoint="top_errors", name="call 1", parameters=(("day", "2026-11-07"),), differs="wanted")
HOURS = Endpoint(name="hours", sql="SELECT hour, p95 FROM requests_by_hour WHERE day = '2026-11-02'")


def recorded(desired: Pipeline, *calls: RecordedCall) -> Pipeline:
    return replace(desired, calls=calls or (CALL,))


def planned(desired: Pipeline, region: Live | None = None) -> Plan:
    return plan(desired, region or live(pipeline()), REGION, "t", CACHE)


def calls(made: Plan) -> tuple[PlannedCall, ...]:
    return tuple(call for step in made.steps if isinstance(step, Validate) for call in step.calls)


def test_a_recorded_call_is_no_change_and_nothing_is_called_where_nothing_changes() -> None:
    assert recorded(pipeline()).digest() == pipeline().digest()
    assert planned(recorded(pipeline())).steps == ()


def test_an_edited_endpoint_is_called_although_no_table_is_built() -> None:
    (endpoint,) = pipeline().endpoints
    edited = replace(pipeline(), endpoints=(replace(endpoint, sql=endpoint.sql.replace("500", "400")),))
    made = planned(recorded(edited))
    assert [type(step) for step in made.steps] == [Validate, Promote]
    (call,) = calls(made)
    assert (call.changed, call.differs) == ("its query changed", "wanted")
    assert call.live is not None
    assert ("500" in call.live.sql, "400" in call.new.sql) == (True, True)
    assert call.new.args == (("day", "2026-11-07", "date"),)
    assert call.new.tables == ("requests",)


@pytest.mark.slow
def test_a_rebuilt_table_below_an_endpoint_leaves_its_meaning_alone() -> None:
    made = planned(recorded(with_column(pipeline(), "ua", "string", "get_json_object(payload, '$.ua')")))
    assert CreateTable("requests") in made.steps
    (call,) = calls(made)
    assert call.changed == ""
    status = with_sql(pipeline(), "parse", pipeline().materializations[1].sql.replace("$.status", "$.code"))
    assert "requests.status has another value" in calls(planned(recorded(status)))[0].changed


@pytest.mark.slow
def test_a_change_beside_its_tables_calls_nothing() -> None:
    hourly = with_sql(pipeline(), "count_hours", pipeline().materializations[0].sql.replace(">= 500", ">= 400"))
    made = planned(recorded(hourly))
    assert made.steps
    assert calls(made) == ()


def test_a_new_endpoint_and_one_that_live_cannot_call_so_are_run_alone() -> None:
    both = replace(pipeline(), endpoints=(HOURS, *pipeline().endpoints))
    (call,) = calls(planned(recorded(both, RecordedCall(endpoint="hours", name="all"))))
    assert call.live is None
    (endpoint,) = pipeline().endpoints
    older = replace(
        endpoint, sql=endpoint.sql + " LIMIT :x", parameters=(Parameter("day", "date"), Parameter("x", "int"))
    )
    (call,) = calls(planned(recorded(pipeline()), live(replace(pipeline(), endpoints=(older,)))))
    assert call.live is None


def test_a_region_without_a_release_has_nothing_to_compare_with() -> None:
    assert calls(planned(recorded(pipeline()), empty())) == ()


def test_calls_are_kept_beside_a_plan_that_older_agents_read() -> None:
    (endpoint,) = pipeline().endpoints
    made = planned(recorded(replace(pipeline(), endpoints=(replace(endpoint, sql=endpoint.sql + " LIMIT 5"),))))
    assert calls(numbered(made, 2)) == calls(made)
    assert calls(made)[0].form == AnswerForm(limited=True)


def test_columns_of_an_aggregate_that_are_estimates_are_known_as_such() -> None:
    edited = replace(pipeline(), endpoints=(replace(HOURS, sql=HOURS.sql + " ORDER BY hour"),))
    before = replace(pipeline(), endpoints=(HOURS,))
    (call,) = calls(planned(recorded(edited, RecordedCall(endpoint="hours", name="all")), live(before)))
    assert call.form == AnswerForm(estimates=("p95",))  # the order that counts is that of live


T = {"t": physical("t", "", dict.fromkeys(("a", "b"), ""))}


@pytest.mark.parametrize(
    ("sql", "form"),
    [
        ("SELECT t.a AS a, t.b AS b FROM t ORDER BY t.b DESC, a LIMIT 5", AnswerForm(order=("b", "a"), limited=True)),
        ("SELECT t.a AS a FROM t ORDER BY t.b, a", AnswerForm()),
        ("SELECT t.a AS a, rand() AS r, now() AS at FROM t", AnswerForm(volatile=("r", "at"))),
        ("SELECT approx_percentile(t.a, 0.5) AS m, count(*) AS n FROM t", AnswerForm(estimates=("m",))),
        (
            "SELECT x.m AS m FROM (SELECT approx_percentile(t.a, 0.5) AS m FROM t) AS x",
            AnswerForm(doubt="it estimates within a subquery"),
        ),
        (
            "SELECT x.a AS a FROM (SELECT t.a AS a FROM t LIMIT 3) AS x",
            AnswerForm(doubt="a subquery of it ends after some rows"),
        ),
    ],
)
def test_what_may_differ_between_two_answers(sql: str, form: AnswerForm) -> None:
    assert answer_form(sql, T, T) == form
