"""What a region in a bucket cannot do, and its rollout needs, is refused by its plan."""

from dataclasses import replace

import pytest

from console.errors import Problem
from console.planning import plan
from tests.planning.edits import AGENT, EDITS, Edit
from tests.planning.world import REGION, live


def problems(edit: str, warehouse: str) -> list[Problem]:
    made = plan(EDITS[edit].pipeline(), EDITS[edit].survey(), replace(REGION, warehouse=warehouse), "test")
    return [problem for problem in made.problems if problem.code == "P044"]


@pytest.mark.parametrize("warehouse", ["s3://lake/web", "s3a://lake/web"])
def test_linked_history_is_refused_in_a_bucket_with_the_choice_that_works(warehouse: str) -> None:
    refused = [problem for problem in problems("C118_from_now", warehouse) if problem.severity == "refuse"]
    assert refused
    assert all("history: carry" in problem.hint for problem in refused)
    assert problems("C118_from_now", REGION.warehouse) == []


def test_copies_and_sinks_are_run_in_a_bucket_as_on_a_disk() -> None:
    pipeline = Edit(AGENT).pipeline()
    assert pipeline.copies
    assert pipeline.sinks
    made = plan(pipeline, live(), replace(REGION, warehouse="s3://lake/web"), "test")
    assert not made.refusals
    assert [problem for problem in made.problems if problem.code == "P044"] == []
