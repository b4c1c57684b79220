"""A problem carries its remedy as a value, and its hint is the text of that value."""

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from console.errors import Problem
from console.model import beside
from console.model.codec import BESIDE, decode, encode
from console.planning import PlannerCache
from console.remedy import DropKey, Elsewhere, Flag, KeepLive, SetKey
from tests.closure.edits import Kind
from tests.closure.facts import Facts, deployed
from tests.closure.follow import Attempt, answer
from tests.closure.shapes import WORLD, Fed, World

ROOT = Path(__file__).parents[2]
REMEDIES = (
    SetKey(node="hits", key="default", columns=("a", "b"), effect="which older days then show"),
    DropKey(node="hits", key="history"),
    Flag(flag="--allow-protocol", effect="accepts it"),
)


def test_a_hint_is_the_text_of_the_remedies() -> None:
    problem = Problem(code="C101", message="lost", remedies=REMEDIES)
    assert problem.hint == (
        "`default: …` for a, b which older days then show; or drop `history`; or --allow-protocol accepts it"
    )


def test_remedies_survive_the_way_through_json_and_stand_beside_what_0_1_0_reads() -> None:
    problem = Problem(code="C101", message="lost", remedies=REMEDIES)
    assert decode(Problem, encode(problem)) == problem
    data, rest = beside.split(problem)
    assert "remedies" not in data
    assert [at for at, _ in rest] == [["remedies"]]
    assert "remedies" not in encode(Problem(code="C101", message="lost"))
    field = Problem.__dataclass_fields__["remedies"]
    assert dict(field.metadata) == BESIDE


@pytest.mark.slow
def test_no_problem_of_the_planner_says_its_hint_by_itself() -> None:
    results = []
    for file in sorted((ROOT / "console" / "planning").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem":
                results += [f"{file.name}:{node.lineno}" for word in node.keywords if word.arg == "hint"]
    assert results == []


CACHE = PlannerCache()
LANG = "get_json_object(doc, '$.lang')"


def refused(
    change: Callable[[Fed], Fed], table: str, *, history: str = "", old: World = WORLD, **gone: int
) -> list[Problem]:
    """What is refused of one edited table. gone: table → how many of its oldest days are"""
    edit = Kind(name="an edit", table=table, apply=lambda world: world.with_fed(change(world.table(table))))
    attempt = Attempt(old=old, edits=(edit,), history={table: history} if history else {})
    _, problems = answer(attempt, deployed(old, Facts(gone=gone), CACHE), CACHE)
    return list(problems)


def keys(problem: Problem) -> set[str]:
    return {remedy.key for remedy in problem.remedies if isinstance(remedy, (SetKey, DropKey))}


@pytest.mark.slow
def test_a_loss_offers_a_forward_query_only_where_the_planner_would_take_one() -> None:
    (lost,) = refused(lambda t: t.with_item("lang", "string", LANG), "hits", events=3)
    assert keys(lost) == {"forward_query", "history"}
    other_rows = next(
        p for p in refused(lambda t: replace(t, where=("doc <> ''",)), "hits", events=3) if p.node == "hits"
    )
    assert keys(other_rows) == {"history"}
    assert any(isinstance(remedy, Flag) for remedy in other_rows.remedies)


@pytest.mark.slow
def test_a_default_is_offered_only_where_it_can_stand_for_the_states() -> None:
    (placed,) = refused(lambda t: t.with_item("top", "int", "min(n)"), "hourly", hits=3)
    assert keys(placed) == {"default"}
    (average,) = refused(lambda t: t.with_item("mean", "double", "avg(n * 2)"), "hourly", hits=3)
    assert keys(average) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "keeping"),
    [
        (lambda hits: replace(hits, where=()), {"history"}),
        (lambda hits: hits.with_item("n", "int", f"length({LANG})"), {"history", "forward_query"}),
    ],
    ids=["other rows", "other values"],
)
@pytest.mark.parametrize(("gone", "enough"), [(0, True), (3, False)])
def test_a_warning_offers_to_keep_rows_only_where_these_are_enough_for_the_tables_below(
    change: Callable[[Fed], Fed], keeping: set[str], gone: int, enough: bool
) -> None:
    old = WORLD.with_landing(replace(WORLD.land("events"), retention_days=5))
    edit = Kind(name="an edit", table="hits", apply=lambda world: world.with_fed(change(world.table("hits"))))
    attempt, live = Attempt(old=old, edits=(edit,)), deployed(old, Facts(gone={"hits": gone}), CACHE)
    made, refusals = answer(attempt, live, CACHE)
    assert made is not None
    assert refusals == ()
    (shorter,) = [problem for problem in made.problems if (problem.code, problem.node) == ("C101", "hits")]
    assert keys(shorter) == (keeping if enough else set())
    assert isinstance(shorter.remedies[-1], Elsewhere)
    carried = answer(replace(attempt, history={"hits": "carry"}), live, CACHE)[1]
    assert {problem.node for problem in carried} == (set() if enough else {"busy", "hourly"})


def test_a_stale_forward_query_may_be_dropped_only_where_the_source_still_holds_the_days() -> None:
    stale = WORLD.with_fed(replace(WORLD.table("hits"), forward_query="*, 1 AS agent"))
    (kept,) = refused(lambda t: t.with_item("lang", "string", LANG), "hits", old=stale)[:1]
    assert any(isinstance(remedy, DropKey) for remedy in kept.remedies)
    (lost,) = refused(lambda t: t.with_item("lang", "string", LANG), "hits", old=stale, events=3)[:1]
    assert (kept.code, lost.code) == ("C109", "C109")
    assert not any(isinstance(remedy, DropKey) for remedy in lost.remedies)


@pytest.mark.slow
def test_a_stale_forward_query_may_be_dropped_only_where_the_choice_beside_it_is_possible_without_it() -> None:
    stale = WORLD.with_fed(replace(WORLD.table("hits"), forward_query="*, 1 AS agent"))

    def offered(history: str, *strict: str) -> bool:
        edit = replace(
            WORLD.table("hits").with_item("lang", "string", LANG), forward_query="*, 1 AS agent", strict=strict
        )
        problems = refused(lambda _: edit, "hits", old=stale, history=history)
        (messages,) = [problem for problem in problems if problem.code == "C109"]
        return DropKey(node="hits", key="forward_query") in messages.remedies

    assert offered("carry")
    assert offered("", "lang")
    assert not offered("carry", "lang")


@pytest.mark.slow
def test_a_day_that_cannot_cut_a_table_is_said_before_a_column_that_could_not_be_carried() -> None:
    def strict(table: Fed) -> Fed:
        return replace(table.with_item("low", "int", "min(n)"), strict=("low",))

    (problem,) = refused(strict, "hourly", history="since 2026-11-04")
    assert problem.code == "C140"
    assert keys(problem) == {"history"}


def test_a_table_that_is_dropped_and_read_can_be_kept() -> None:
    gone = Kind(
        name="dropped", table="hits", apply=lambda w: replace(w, fed=tuple(f for f in w.fed if f.name != "hits"))
    )
    attempt = Attempt(old=WORLD, edits=(gone,))
    _, problems = answer(attempt, deployed(WORLD, Facts(), CACHE), CACHE)
    assert {problem.code for problem in problems} == {"C104"}
    assert all(KeepLive(node="hits") in problem.remedies for problem in problems)
