"""Limits changed beside the accepted plan: the limits in force, the refusals, and the text of a change."""

import pytest

from console.errors import DataError
from console.model.event import Logged, Recorded, StepStarted
from console.model.policy import Throttle
from console.model.status import replay
from console.model.tuning import AS_PLANNED, Tuned, Tuning, described, limits, merged, parse
from tests.model.test_account import ACCEPTED, STEP, recorded
from tests.runner.worlds import PIPELINE, plan, region, survey

PLAN = plan(PIPELINE, survey("eu"), region("eu"))


def test_what_is_not_changed_is_as_planned() -> None:
    assert limits(PLAN, AS_PLANNED).rows == PLAN.rows_limit == 3000
    stored = limits(PLAN, Tuning(rows=500, lag=30.0, hours="22:00-06:00", zone="Europe/Madrid"))
    assert (stored.rows, stored.target_seconds, stored.bytes) == (500, 60.0, None)
    assert stored.throttle == Throttle(lag_seconds=30.0, hours="22:00-06:00", zone="Europe/Madrid")
    assert PLAN.digest() == plan(PIPELINE, survey("eu"), region("eu")).digest()


def test_none_lifts_a_limit_and_a_later_change_counts() -> None:
    assert limits(PLAN, parse({"rows": "none"})).rows is None
    both = merged(parse({"rows": "70_000", "lag": "20"}), parse({"lag": "none"}))
    assert (both.rows, both.lag, both.changed) == (70_000, -1, ("rows", "lag"))
    assert limits(PLAN, both).throttle.lag_seconds is None


@pytest.mark.parametrize(
    "words",
    [{"target_seconds": "0"}, {"target_seconds": "none"}, {"target_seconds": "nan"}, {"rows": "0"}, {"rows": "many"}, {"bytes": "7"},
     {"lag": "-1"}, {"lag": "inf"}, {"hours": "22-06"}, {"hours": "24:00-06:00"}, {"speed": "9"}, {"query": "x" * 30_000}],
)  # fmt: skip
def test_what_is_out_of_range_is_refused_with_the_range(words: dict[str, str]) -> None:
    with pytest.raises(DataError) as refused:
        parse(words)
    assert refused.value.code == "E_RANGE"
    assert refused.value.hint


def test_a_change_is_said_with_both_sides() -> None:
    change = parse({"target_seconds": "20", "rows": "none", "hours": "22:00-06:00"})
    description = described(limits(PLAN, AS_PLANNED), limits(PLAN, change))
    assert description == "target_seconds 60 → 20, rows 3,000 → none, hours any → 22:00-06:00 UTC"
    assert described(limits(PLAN, change), limits(PLAN, change)) == ""


def test_the_status_keeps_the_last_change_until_another_rollout_begins() -> None:
    tuned = Tuned(by="ada", host="ops2", tuning=Tuning(target_seconds=20.0))
    line = Logged("ada from ops2: target_seconds 60 → 20", incident=tuned)
    result = replay(recorded((0.0, ACCEPTED), (1.0, line), (2.0, StepStarted(STEP, away_since=1.5))))
    assert (result.tuned, result.tuning) == (tuned, tuned.tuning)
    assert replay([Recorded("web-2", 1, 3.0, ACCEPTED)], result).tuning == AS_PLANNED
