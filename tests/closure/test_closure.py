"""Does every change lead to a plan? Pipelines, the contents of their regions, and edits are drawn; the remedies of every refusal are followed.

`PAIRS` in the environment says how many are drawn; `make soak` asks for 5,000.
"""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from console.errors import Problem
from console.model.live import Live
from console.model.plan import Plan
from console.planning import PlannerCache
from console.remedy import AnotherColumn, Edit, Elsewhere, KeepLive, Remedy, RunCommand, Stays, StopReading
from tests.closure.changes import PAGE, page
from tests.closure.draw import Pair, drawn, has_effect, stands_alone
from tests.closure.facts import deployed, promoted
from tests.closure.follow import Attempt, answer, followed
from tests.closure.judge import left, losses, needless

pytestmark = pytest.mark.slow

QUICK, SLOW = 6, 80
STEPS = 8
AUTHORS = (AnotherColumn, StopReading)  # a query is to be changed, which an endpoint's author does
MECHANICAL = (Edit, Elsewhere, RunCommand, Stays)  # all others a program can carry out as they are


class Outcome:
    """What became of the drawn pairs."""

    def __init__(self) -> None:
        self.cache = PlannerCache()
        self.wrong: list[str] = []
        self.ends: Counter[str] = Counter()
        self.changed_again = self.same_table = 0
        self.codes: Counter[str] = Counter()

    def judge(self, pair: Pair, live: Live | None = None) -> None:
        """live: the region as it is, unless it has its first release"""
        live = live or deployed(pair.attempt.old, pair.facts, self.cache)
        attempt, seen = pair.attempt, 0
        while seen < STEPS:
            made, refused = answer(attempt, live, self.cache)
            if not refused:
                assert made is not None
                lost = list(losses(made, attempt.old, attempt.world, attempt.edits, pair.facts))
                self.wrong += [f"{pair}: {word}" for word in lost]
                self.wrong += [f"{pair}: {word}" for word in self._warned(attempt, made, live)]
                self.ends["a plan" if not seen else "a plan, by remedies"] += 1
                if pair.then:
                    self._judge_another(pair, attempt, made, live)
                return
            self.codes.update(problem.code for problem in refused)
            if attempt is pair.attempt and not (attempt.history or attempt.patches or attempt.carried):
                self.wrong += [f"{pair}: for nothing, {p}" for p in refused if needless(p, attempt.edits)]
            for problem in refused:
                self._check_remedies(pair, attempt, problem, refused, live, planned=made is not None)
            after = self._next(attempt, refused, live)
            if after is None:
                if not all(any(isinstance(r, (Stays, Elsewhere)) for r in p.remedies) for p in refused):
                    self.wrong.append(f"{pair}: no way out of {', '.join(map(str, refused))}")
                self.ends["stays refused"] += 1
                return
            attempt, seen = after, seen + 1
        self.wrong.append(f"{pair}: remedies lead in a circle")

    def _judge_another(self, pair: Pair, done: Attempt, plan: Plan, before: Live) -> None:
        """Another change of what the first one left: its tables as they are then, its forward queries still in their files."""
        facts = left(plan, done.world, pair.facts)
        first = done.edits
        edits = tuple(k for k in pair.then if has_effect(k, done.world) and stands_alone(k, first, done.old))
        if edits:
            self.changed_again += 1
            self.same_table += any(edit.table in {kind.table for kind in first} for edit in edits)
            again = Attempt(old=done.world, edits=edits, patches=done.settled(), carried=bool(done.history))
            self.judge(replace(pair, attempt=again, facts=facts, then=()), promoted(plan, before, facts))

    def _warned(self, attempt: Attempt, made: Plan, live: Live) -> Iterator[str]:
        """A warning's remedies lead to plans as well."""
        for problem in made.problems:
            for remedy in problem.remedies:
                after = None if isinstance(remedy, MECHANICAL) else followed(attempt, problem, remedy, live)
                if after is not None and (others := answer(after, live, self.cache)[1]):
                    yield f"`{remedy}` of the warning {problem} leads to {[str(other) for other in others]}"

    def _check_remedies(
        self, pair: Pair, attempt: Attempt, problem: Problem, refused: tuple[Problem, ...], live: Live, *, planned: bool
    ) -> None:
        """No remedy that a program can carry out leads to a refusal that was not there. A query that reads less is its author's: what
        reads it may have to be changed next.
        """
        if not problem.remedies:
            self.wrong.append(f"{pair}: {problem} has no remedy")
        before = {_about(other) for other in refused}
        for remedy in problem.remedies:
            if isinstance(remedy, MECHANICAL):
                continue
            after = followed(attempt, problem, remedy, live)
            if after is None:
                assert isinstance(remedy, AUTHORS), remedy
                continue
            made, others = answer(after, live, self.cache)
            if made is not None and not planned:
                others = tuple(other for other in others if other.node == problem.node)  # the rest was not asked before
            beside = {(p.code, p.node) for p in refused} - {(problem.code, problem.node)}  # with remedies of their own
            others_left = {_about(other) for other in others if (other.code, other.node) not in beside}
            if _about(problem) in others_left:
                self.wrong.append(f"{pair}: `{remedy}` does not help against {problem}")
            elif not isinstance(remedy, StopReading) and (fresh := others_left - before):
                self.wrong.append(
                    f"{pair}: `{remedy}` of {problem} leads to {sorted(fresh)}: {[str(o) for o in others]}"
                )

    def _next(self, attempt: Attempt, refused: tuple[Problem, ...], live: Live) -> Attempt | None:
        """The first remedy that can be carried out, of the first problem that has one; last those that leave more to be changed."""
        choices: list[tuple[Problem, Remedy]] = [(p, remedy) for p in refused for remedy in p.remedies]
        for problem, remedy in sorted(choices, key=lambda choice: isinstance(choice[1], (*MECHANICAL, StopReading))):
            if (after := followed(attempt, problem, remedy, live)) is not None:
                return after
        return None

    def text(self) -> str:
        ends = ", ".join(f"{count} {end}" for end, count in self.ends.most_common())
        return f"{self.ends.total()} pairs: {ends}; {self.changed_again} of them once another change was live, {self.same_table} of these of a table that it had changed; refusals followed: {dict(self.codes.most_common())}"


def _about(problem: Problem) -> tuple[str, str]:
    """What is refused of which node. What its source no longer holds is one thing, whatever is left of it; so is what is read and
    dropped, whoever reads it.
    """
    if kept := [remedy for remedy in problem.remedies if isinstance(remedy, KeepLive)]:
        return problem.code, str(kept[0])
    return "lost" if problem.code in ("C101", "C102") else problem.code, problem.node


def judged(count: int) -> Outcome:
    outcome = Outcome()
    for pair in drawn(count):
        outcome.judge(pair)
    return outcome


def test_the_page_of_changes_is_current() -> None:
    assert PAGE.read_text() == page(), "write it anew: python -m tests.closure.changes --write"


def test_every_change_has_a_way_through() -> None:
    assert judged(QUICK).wrong == []


def test_hundreds_of_changes_have_a_way_through(capsys: pytest.CaptureFixture[str]) -> None:
    outcome = judged(int(os.environ.get("PAIRS", SLOW)))
    with capsys.disabled():
        print(f"\n{outcome.text()}")
    assert outcome.wrong == []
    assert {"C101", "C102", "C103", "C104", "C108", "C111", "C112", "C140"} <= {*outcome.codes}
