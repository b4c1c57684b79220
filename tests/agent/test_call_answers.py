"""The comparison of a call's two answers, and the gate's verdict on figures: pure, judged by multisets and by hand."""

import math
import random
from collections import Counter
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from console.agent.calls import replay
from console.agent.calls.difference import PAIRED, CallAnswer, Difference, difference
from console.agent.calls.verdict import ANSWERS, COST, checks_of, judge_answers, judge_cost
from console.model.recorded_call import (
    NO_BUDGET,
    AnswerForm,
    CallBudget,
    CallCost,
    CallQuery,
    PlannedCall,
    ReplayedCall,
)

FORM = AnswerForm()
QUERY = CallQuery("SELECT 1", ())
CALL = PlannedCall(endpoint="top", name="call 1", new=QUERY, live=QUERY, form=FORM)
OLD = CallCost(1.0, 10, 10_000_000)
STEADY = ((1.0, 1.0, 1.1, 1.0),) * 2
ONE_ROW_LOST = Difference(only_live=1)
ROWS = st.lists(st.tuples(st.sampled_from([None, "a", "b"]), st.integers(0, 2)), max_size=8)


def answer(*rows: tuple[Any, ...], kinds: str = "string bigint") -> CallAnswer:
    return CallAnswer(tuple((f"c{i}", kind) for i, kind in enumerate(kinds.split(" "))), rows)


@pytest.mark.slow
@settings(max_examples=200)
@given(ROWS, ROWS, st.randoms())
def test_rows_are_compared_as_multisets_in_any_order(
    old: list[tuple[Any, ...]], new: list[tuple[Any, ...]], rng: random.Random
) -> None:
    shuffled = rng.sample(new, len(new))
    differs = difference(answer(*old), answer(*shuffled), FORM)
    before, after = Counter(old), Counter(new)
    assert (differs.only_live, differs.only_new) == ((before - after).total(), (after - before).total())
    assert differs.equal == (before == after)


@pytest.mark.slow
@pytest.mark.parametrize("number", [3, PAIRED + 50])
@settings(max_examples=20)
@given(st.data())
def test_doubles_are_near_and_a_lost_row_is_one_row(number: int, data: st.DataObject) -> None:
    rng = random.Random(data.draw(st.integers()))
    old = [("x", rng.uniform(1, 1e6)) for _ in range(number)]
    near = [(name, value * (1 + rng.uniform(-4e-10, 4e-10))) for name, value in old]
    lost = data.draw(st.sampled_from([old.index(max(old)), old.index(min(old)), rng.randrange(number)]))
    kinds = "string double"
    assert difference(answer(*old, kinds=kinds), answer(*rng.sample(near, number), kinds=kinds), FORM).equal
    differs = difference(answer(*old, kinds=kinds), answer(*near[:lost], *near[lost + 1 :], kinds=kinds), FORM)
    assert (differs.only_live, differs.only_new) == (1, 0)


@pytest.mark.parametrize(
    ("old", "new", "kind", "equal"),
    [
        (1.0, 1.0 + 1e-6, "double", False),
        (math.nan, math.nan, "double", True),
        (math.nan, None, "double", False),
        (math.inf, 1e308, "double", False),
        (-0.0, 0.0, "double", True),
        (None, 0, "bigint", False),
        (0, False, "boolean", False),
        ("", None, "string", False),
        ([1, 2], [2, 1], "array<int>", False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "map<string,int>", True),
        (b"a", b"b", "binary", False),
    ],
)
def test_values_are_equal_as_spark_has_them(old: Any, new: Any, kind: str, equal: bool) -> None:
    assert difference(answer((old,), kinds=kind), answer((new,), kinds=kind), FORM).equal is equal


def test_the_order_counts_as_far_as_the_query_names_it() -> None:
    rows = (("a", 3), ("b", 2), ("c", 2))
    ordered = AnswerForm(order=("c1",))
    assert difference(answer(*rows), answer(rows[0], rows[2], rows[1]), ordered).equal
    swapped = answer(rows[1], rows[0], rows[2])
    assert difference(answer(*rows), swapped, ordered).reordered
    assert difference(answer(*rows), swapped, FORM).equal


def test_of_rows_of_one_order_at_the_end_of_a_limited_answer_either_may_stand_there() -> None:
    limited = AnswerForm(order=("c1",), limited=True)
    old, other = answer(("a", 3), ("b", 2)), answer(("a", 3), ("c", 2))
    assert difference(old, other, limited).tied
    assert not difference(old, answer(("x", 3), ("b", 2)), limited).tied
    assert not difference(old, answer(("a", 3)), limited).tied
    assert not difference(old, other, AnswerForm(order=("c1",))).tied


def test_volatile_columns_are_left_out_estimates_have_a_tolerance_and_columns_go_by_name() -> None:
    old = CallAnswer((("at", "timestamp"), ("p95", "double"), ("n", "bigint")), ((1, 100.0, 5),))
    new = CallAnswer(
        (("n", "bigint"), ("more", "string"), ("p95", "double"), ("at", "timestamp")), ((5, "x", 107.0, 2),)
    )
    form = AnswerForm(volatile=("at",), estimates=("p95",))
    assert difference(old, new, form).equal
    assert not difference(old, new, replace(form, estimates=())).equal
    assert not difference(old, replace(new, rows=((5, "x", 113.0, 2),)), form).equal
    fewer = CallAnswer((("n", "string"), ("p95", "double")), (("5", 100.0),))
    assert (difference(old, fewer, form).lacking, difference(old, fewer, form).retyped) == (("at",), ("n",))


def verdict(call: PlannedCall, differs: Difference = ONE_ROW_LOST) -> bool | None:
    return judge_answers(call, differs, (14, 13))[0]


def test_a_difference_fails_unless_it_is_expected_and_declared() -> None:
    assert verdict(CALL, Difference()) is True
    assert verdict(CALL) is False
    assert verdict(replace(CALL, differs="wanted")) is False  # nothing that it means has changed
    assert verdict(replace(CALL, changed="its query changed")) is None
    assert verdict(replace(CALL, changed="its query changed", differs="wanted")) is True
    assert verdict(replace(CALL, form=AnswerForm(doubt="joined as now"))) is None
    assert verdict(CALL, replace(ONE_ROW_LOST, only_new=1, tied=True)) is None
    assert verdict(CALL, Difference(lacking=("n",), tied=True)) is False
    why = judge_answers(CALL, ONE_ROW_LOST, (14, 13))[1]
    assert why == "1 of 14 rows only live, 0 of 13 only new"


@pytest.mark.parametrize(
    ("new", "budget", "ok"),
    [
        (OLD, NO_BUDGET, True),
        (CallCost(1.0, 20, 20_000_000), NO_BUDGET, True),
        (CallCost(1.0, 21, 10_000_000), NO_BUDGET, False),
        (CallCost(1.0, 10, 20_000_001), NO_BUDGET, False),
        (CallCost(1.0, 50, 50_000_000), CallBudget(files=50, bytes=50_000_000), True),
        (CallCost(1.0, 11, 10_000_000), CallBudget(files=10), False),
        (CallCost(1.0, 1, 10_000_001), CallBudget(bytes=10_000_000), False),
    ],
)
def test_files_and_bytes_decide(new: CallCost, budget: CallBudget, ok: bool) -> None:
    assert judge_cost(OLD, new, budget, STEADY)[0] is ok


def test_a_few_files_more_are_no_loss_and_a_call_that_live_cannot_take_has_its_budget_alone() -> None:
    assert judge_cost(CallCost(1.0, 1, 100), CallCost(1.0, 5, 1 << 20), NO_BUDGET, STEADY)[0] is True
    assert judge_cost(CallCost(1.0, 1, 100), CallCost(1.0, 6, 100), NO_BUDGET, STEADY)[0] is False
    assert judge_cost(None, CallCost(9.0, 999, 1 << 40), NO_BUDGET, STEADY)[0] is True
    assert judge_cost(None, CallCost(9.0, 999, 1), CallBudget(files=998), STEADY) == (
        False,
        "999 files, 998 at most by its budget",
    )


@pytest.mark.parametrize(
    ("after", "ok"),
    [
        ((1.0, 1.1, 1.0, 1.1), True),  # as slow as the slowest one of live
        ((1.3, 1.4, 1.3, 1.9), None),
        ((2.1, 2.2, 2.1, 2.3), False),
        ((1.0, 2.2, 2.1, 2.3), True),  # one run was as fast: the host was busy
        ((2.1, 2.2), True),  # too few to say
        ((3.2, 3.3), None),  # … unless they are seconds slower
        ((16.4,), False),  # so slow that no other run began
        ((1.05,), True),
        ((1.12, 1.13, 1.12, 1.12), True),
    ],
)
def test_time_alone_decides_from_twice_as_slow_and_is_inconclusive_below(
    after: tuple[float, ...], ok: bool | None
) -> None:
    before = (1.0, 1.0, 1.1, 1.0)
    new = CallCost(sorted(after)[len(after) // 2], 10, 10_000_000)
    assert judge_cost(OLD, new, NO_BUDGET, (before, after))[0] is ok


def test_milliseconds_are_no_loss() -> None:
    old, new = CallCost(0.01, 1, 1), CallCost(0.06, 1, 1)
    assert judge_cost(old, new, NO_BUDGET, ((0.01,) * 4, (0.06,) * 4)) == (True, "")


@pytest.mark.parametrize("forgotten", [("live",), ("new",), ("live", "new")])
def test_a_run_of_which_spark_has_forgotten_the_stages_is_no_fault_of_an_answer(forgotten: tuple[str, ...]) -> None:
    sides = {
        name: replay._Runs(
            called=cast(Any, None),
            query=QUERY,
            answer=answer(("a", 1)),
            first=1.0,
            seconds=[1.0, 1.0, 1.1, 1.0],
            read=None if name in forgotten else (10, 10_000_000),
        )
        for name in ("live", "new")
    }
    judged = replay._judged(CALL, sides["live"], sides["new"])
    assert (judged.same, judged.same_cost) == (True, None)
    answers, cost = checks_of("top", [judged])
    assert (answers.ok, cost.ok) == (True, None)
    assert (
        cost.detail
        == "call 1: not measured: Spark has forgotten, or through Spark Connect does not tell, what a run has read"
    )


def test_an_endpoint_has_two_checks_which_name_the_calls_that_differ() -> None:
    fine = ReplayedCall(endpoint="top", name="a", same=True, same_cost=True, rows_new=7, live=OLD, new=OLD, runs=4)
    odd = replace(fine, name="b", same=None, same_cost=False, why="1 of 2 rows only live", why_cost="2 → 14 files")
    answers, cost = checks_of("top", [fine, odd])
    assert (answers.table, answers.check, answers.ok, answers.detail) == (
        "top",
        ANSWERS,
        None,
        "b: 1 of 2 rows only live",
    )
    assert (cost.check, cost.ok, cost.detail) == (COST, False, "b: 2 → 14 files")
    assert [call.name for call in answers.calls] == ["a", "b"]
    answers, cost = checks_of("top", [fine, fine])
    assert (answers.ok, answers.detail) == (True, "2 calls, 14 rows: the answers are equal")
    assert cost.detail == "2 calls: 20 → 20 files, 20,000,000 → 20,000,000 bytes, 2.00 s → 2.00 s"
