"""Maintenance windows and retention in figures, and the plans that do not fit into them."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model.codec import decode, dumps, encode, loads
from console.model.consent import NO_RULES
from console.model.live import Live
from console.model.plan import Plan
from console.model.policy import DAY_MINUTES, Throttle, kept_hours, opens_in, share_of_day, within
from console.model.region import Policy, Region
from console.planning import plan
from tests.planning.world import REGION, live, pipeline, with_column, with_sql

pytestmark = pytest.mark.slow

CHANGE = with_column(pipeline(), "agent", "string", "get_json_object(payload, '$.agent')")
minutes = st.integers(0, DAY_MINUTES - 1)
windows = st.tuples(minutes, minutes).map(
    lambda ends: "-".join(f"{minute // 60:02}:{minute % 60:02}" for minute in ends)
)


@given(windows, minutes)
def test_a_window_opens_when_it_says_and_is_as_long_as_its_share(hours: str, minute: int) -> None:
    left = opens_in(hours, minute)
    assert within(hours, (minute + left) % DAY_MINUTES)
    assert all(not within(hours, (minute + early) % DAY_MINUTES) for early in range(left))
    assert sum(within(hours, m) for m in range(DAY_MINUTES)) == round(share_of_day(hours) * DAY_MINUTES)


@pytest.mark.parametrize(
    ("text", "hours"),
    [("interval 7 days", 168), ("interval 1 week", 168), ("interval 36 hours", 36), ("2 days", 48), ("INTERVAL 90 MINUTES", 1.5),
     ("interval 1 day 12 hours", 36), ("", 168), ("whatever", 168), ("3 fortnights", 168)],
)  # fmt: skip
def test_retention_is_read_as_delta_writes_it(text: str, hours: float) -> None:
    assert kept_hours([("delta.deletedFileRetentionDuration", text)] if text else []) == hours


def test_the_log_may_be_shorter_than_the_files() -> None:
    assert kept_hours([("delta.logRetentionDuration", "interval 1 days")]) == 24


def keeping(retention: str, *, rate: float = 1.0) -> Live:
    """The region with a landing table that keeps removed files for so long, and a rate of so many rows a second."""
    region = live()
    stats = tuple(
        replace(s, properties=(("delta.deletedFileRetentionDuration", retention),)) if s.name == "landing" else s
        for s in region.stats
    )
    return replace(region, stats=stats, rows_per_second=rate)


def warnings_of(region: Live, where: Region = REGION) -> list[tuple[str, str]]:
    made = plan(CHANGE, region, where, "test")
    return [(p.severity, p.message) for p in made.problems if p.code == "C123"]


def takes() -> float:
    """Hours that the change takes at one row a second."""
    hours = plan(CHANGE, keeping("interval 9 weeks"), REGION, "test").price.seconds / 3600
    assert 1 < hours < 24
    return hours


def minutes_of(hours: float) -> str:
    return f"interval {hours * 60:.0f} minutes"


def test_a_rollout_that_could_not_finish_before_its_files_are_gone_is_refused() -> None:
    for times, severities in ((0.9, ["refuse"]), (1.1, ["warn"]), (1.9, ["warn"]), (2.1, [])):
        assert [severity for severity, _ in warnings_of(keeping(minutes_of(takes() * times)))] == severities
    assert warnings_of(keeping("interval 1 hours", rate=0.0)) == []  # nothing was measured: nothing can be said


def test_hours_stretch_the_time_a_rollout_takes() -> None:
    """Six hours a day: four times as long."""
    region = replace(REGION, throttle=Throttle(hours="22:00-04:00"))
    for times, severities in ((3.9, ["refuse"]), (4.1, ["warn"]), (8.1, [])):
        assert [severity for severity, _ in warnings_of(keeping(minutes_of(takes() * times)), region)] == severities
    assert (
        ", within 22:00-04:00, and landing keeps what it reads for"
        in warnings_of(keeping("interval 1 hours"), region)[0][1]
    )


def test_remedies_stand_beside_the_refusal() -> None:
    first = next(p for p in plan(CHANGE, keeping("interval 7 hours"), REGION, "test").problems if p.code == "C123")
    assert "raise delta.deletedFileRetentionDuration of landing" in first.hint
    assert first.node == "landing"


def test_the_operators_query_is_compiled_over_what_is_live() -> None:
    region = replace(REGION, throttle=Throttle(query="SELECT max(ts) > now() - INTERVAL 1 HOUR FROM requests"))
    made = plan(CHANGE, live(), region, "test")
    assert not made.refusals
    assert made.throttle.tables == ("requests",)
    assert made.throttle.query.startswith("SELECT")


@pytest.mark.parametrize(
    ("query", "wrong"),
    [("SELECT 1, 2", "2 columns"), ("SELECT x FROM nowhere", "nowhere"), ("DELETE FROM requests", "S104"),
     ("SELECT reflect('java.lang.System', 'exit', 0)", "reflect"), ("SELECT true; SELECT true", "S103")],
)  # fmt: skip
def test_a_query_that_may_not_be_asked_refuses_the_plan_and_says_why(query: str, wrong: str) -> None:
    region = replace(REGION, throttle=Throttle(query=query), where="regions/eu.yaml:1:1")
    (problem,) = plan(CHANGE, live(), region, "test").refusals
    assert (problem.code, problem.where) == ("C124", "regions/eu.yaml:1:1")
    assert wrong in problem.message


def watching(query: str = "", **more: Any) -> Region:
    policy = Policy(watch_seconds=1800.0, on_breach="rollback", watch_query=query, **more)
    return replace(REGION, policy=policy, where="regions/eu.yaml:1:1")


def test_the_query_of_a_watch_is_compiled_over_what_will_be_live_and_belongs_to_the_accepted_plan() -> None:
    query = "SELECT count(agent) >= 0 FROM requests"
    made = plan(CHANGE, live(), watching(query), "test")
    assert not made.refusals
    assert (made.gate.watch, made.gate.on_breach, made.gate.watch_tables) == (1800.0, "rollback", ("requests",))
    assert made.digest() != plan(CHANGE, live(), watching(), "test").digest()
    assert decode(Plan, loads(dumps(made))).gate == made.gate
    assert "gate!0.2.0" in encode(made)  # an agent that would ignore it refuses the plan
    assert "gate!0.2.0" not in encode(plan(CHANGE, live(), REGION, "test"))


@pytest.mark.parametrize(("query", "wrong"), [("SELECT 1, 2", "2 columns"), ("SELECT x FROM nowhere", "nowhere")])
def test_a_query_of_a_watch_that_cannot_be_asked_refuses_the_plan(query: str, wrong: str) -> None:
    (problem,) = plan(CHANGE, live(), watching(query), "test").refusals
    assert (problem.code, problem.where) == ("C124", "regions/eu.yaml:1:1")
    assert "policy.watch_query" in problem.message
    assert wrong in problem.message


def test_without_a_watch_nothing_of_it_is_in_the_plan() -> None:
    policy = Policy(on_breach="rollback", watch_query="SELECT x FROM nowhere")
    made = plan(CHANGE, live(), replace(REGION, policy=policy), "test")
    assert (made.gate, made.refusals) == (NO_RULES, ())


def test_a_plan_says_nothing_of_a_throttle_that_nobody_set_and_all_of_one_that_is() -> None:
    """Plans of regions without one are, byte by byte, what an agent that knows of none has always read."""
    plain = plan(CHANGE, live(), REGION, "test")
    assert not {"throttle", "quarantine_rows"} & encode(plain).keys()
    region = replace(REGION, throttle=Throttle(lag_seconds=60.0, hours="22:00-06:00"), policy=Policy(quarantine_rows=3))
    throttled = plan(CHANGE, live(), region, "test")
    assert throttled.digest() != plain.digest()
    again = decode(Plan, loads(dumps(throttled)))
    assert (again.throttle, again.quarantine_rows) == (Throttle(lag_seconds=60.0, hours="22:00-06:00"), 3)


def test_a_plan_without_batches_waits_for_nothing() -> None:
    region = replace(REGION, throttle=Throttle(lag_seconds=60.0))
    made = plan(with_sql(pipeline(), "parse", pipeline().materializations[1].sql), live(), region, "test")
    assert made.throttle == Throttle()
