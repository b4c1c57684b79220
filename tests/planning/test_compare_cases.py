"""Expectations of public projects about edits and lineage, replayed; and our own lists of edits with an obvious effect."""

import pytest

from console.planning.compare import compare
from tests.planning.cases import run
from tests.planning.cases.edits import ADDITIONS, HAZARDS, OTHERS, REWRITES, Edit, judged

pytestmark = pytest.mark.slow

RESULTS = run.public()
LISTED = {(one["set"], one["case"]): one for one in run.intended()}


@pytest.mark.parametrize("result", RESULTS, ids=lambda result: f"{result.set}:{result.case}")
def test_a_public_case_comes_out_as_its_project_expects_or_is_listed(result: run.Result) -> None:
    assert result.agrees != ((result.set, result.case) in LISTED), (result.theirs, result.ours)


@pytest.mark.parametrize("result", [r for r in RESULTS if not r.agrees], ids=lambda result: result.case)
def test_a_listed_difference_says_what_both_say(result: run.Result) -> None:
    listed = LISTED[result.set, result.case]
    assert len(listed["why"]) > 20
    if "lineage" not in result.set:
        assert (listed["theirs"], listed["ours"]) == (result.theirs, result.ours)


def test_every_listed_difference_is_one() -> None:
    assert set(LISTED) == {(result.set, result.case) for result in RESULTS if not result.agrees}


@pytest.mark.parametrize("edit", HAZARDS, ids=lambda edit: edit[1])
def test_an_edit_that_changes_rows_is_never_called_harmless(edit: Edit) -> None:
    verdict = judged(edit)
    assert verdict.rows != "same", verdict
    assert verdict.why


@pytest.mark.parametrize("edit", HAZARDS, ids=lambda edit: edit[1])
def test_nor_is_its_undoing(edit: Edit) -> None:
    assert judged((edit[1], edit[0])).rows != "same"


@pytest.mark.parametrize("edit", OTHERS, ids=lambda edit: edit[1])
def test_an_edit_that_changes_a_value_is_never_called_equal(edit: Edit) -> None:
    for old, new in (edit, edit[::-1]):
        assert not judged((old, new)).additive, judged((old, new))
        assert not compare(old, new).additive


@pytest.mark.parametrize("edit", REWRITES, ids=lambda edit: edit[1])
def test_a_pure_rewrite_is_recognised_both_ways(edit: Edit) -> None:
    assert judged(edit).equal, judged(edit)
    assert judged((edit[1], edit[0])).equal


@pytest.mark.parametrize("edit", ADDITIONS, ids=lambda edit: edit[1])
def test_a_column_more_is_additive_and_a_column_less_is_not(edit: Edit) -> None:
    assert judged(edit).additive, judged(edit)
    back = judged((edit[1], edit[0]))
    assert back.rows == "same"
    assert back.additive == (not judged(edit).added)
    assert back.removed == judged(edit).added


@pytest.mark.slow
def test_the_scoreboard_in_the_document_is_the_one_of_today() -> None:
    text = run.PAGE.read_text()
    assert run.page(text) == text
