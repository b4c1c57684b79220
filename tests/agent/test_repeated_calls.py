"""A recorded call that fails is called again at once, at a gate and after a promotion alike: what fails once is inconclusive."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.agent.execution import endpoint_calls
from console.agent.execution.endpoint_calls import call_checks
from console.agent.rollout.context import RolloutContext
from console.model.recorded_call import AnswerForm, CallQuery, PlannedCall, ReplayedCall
from console.model.step import Validate

QUERY = CallQuery("SELECT 1", ())
CALLS = tuple(
    PlannedCall(endpoint="top", name=name, new=QUERY, live=QUERY, form=AnswerForm()) for name in ("steady", "drawn")
)
CONTEXT = cast(
    RolloutContext,
    SimpleNamespace(
        spark=SimpleNamespace(session=lambda **_: None), live=lambda: None, plan=SimpleNamespace(release=None)
    ),
)
WELL = ReplayedCall(endpoint="top", name="", same=True, same_cost=True)
SLOW = replace(WELL, same_cost=False, why_cost="1.80 s → 9.13 s")
OTHER = replace(WELL, same=False, why="1 of 3 rows only live")
UNKNOWN = replace(WELL, same=None, same_cost=None, why="it took too long", why_cost="it took too long")


# answers, cost: of the endpoint; times: calls of `drawn`
@pytest.mark.parametrize(
    ("results", "answers", "cost", "times"),
    [
        ([WELL], True, True, 1),
        ([SLOW, WELL], True, None, 2),
        ([SLOW, SLOW], True, False, 2),
        ([SLOW, OTHER], True, None, 2),
        ([OTHER, WELL], None, True, 2),
        ([OTHER, OTHER], False, True, 2),
        ([OTHER, UNKNOWN], None, True, 2),
        ([UNKNOWN], None, None, 1),
    ],
)
def test_a_call_that_fails_is_called_once_more_and_fails_only_by_both(
    monkeypatch: pytest.MonkeyPatch,
    results: Sequence[ReplayedCall],
    answers: bool | None,
    cost: bool | None,
    times: int,
) -> None:
    called, left = list[str](), list(results)

    def replayed(_: Any, call: PlannedCall, *__: Any) -> ReplayedCall:
        called.append(call.name)
        return replace(WELL if call.name == "steady" else left.pop(0), name=call.name)

    monkeypatch.setattr(endpoint_calls, "replay", replayed)
    first, second = call_checks(CONTEXT, Validate(comparisons=(), calls=CALLS), {})
    assert (first.ok, second.ok) == (answers, cost)
    assert called == ["steady", *["drawn"] * times]
    doubts = [check.detail for check in (first, second) if check.ok is None and times > 1]
    assert all(detail.startswith("drawn: failed once, and not again: ") for detail in doubts)
