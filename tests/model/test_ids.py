"""Ids of rollouts, releases and steps are built and read in one place each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model.rollout_id import newest_rollout, release_id, release_number, rollout_id, rollout_number
from console.model.step import AddColumns, Backfill, CatchUp, CreateTable, Promote, Validate
from console.model.step_id import PROMOTE, VALIDATE, StepId

NAMES = st.text(st.sampled_from("abz_0-9"), min_size=1)
TABLES = st.text(st.sampled_from("abz_09"), min_size=1)


def backfill(materialization: str) -> Backfill:
    return Backfill(
        materialization=materialization,
        source="landing",
        target="requests",
        route="forward",
        sql="",
        time="",
        rows=0,
        bytes=0,
        days=0,
        batches=0,
    )


@pytest.mark.slow
@given(NAMES, st.integers(0, 10**9))
def test_the_number_of_a_rollout_is_the_one_it_was_built_with(pipeline: str, number: int) -> None:
    assert rollout_number(rollout_id(pipeline, number)) == number
    assert release_number(release_id(number)) == number


def test_ids_of_rollouts_are_ordered_by_number() -> None:
    assert (rollout_id("web-2", 7), release_id(7)) == ("web-2-7", "r7")
    assert newest_rollout(["web-9", "web-10", "web-2"]) == "web-10"
    assert newest_rollout([]) == ""


@pytest.mark.slow
@given(TABLES, TABLES)
def test_an_id_of_a_step_is_read_as_it_was_built(table: str, materialization: str) -> None:
    for step in (StepId("create", table), StepId("backfill", table, materialization), VALIDATE, PROMOTE):
        assert StepId.parse(str(step)) == step


@pytest.mark.slow
@given(st.text())
def test_any_text_is_read_as_an_id(text: str) -> None:
    assert StepId.parse(text).kind == text.split("/", maxsplit=1)[0]


def test_stored_ids_of_steps_stay_as_they_are() -> None:
    steps = (CreateTable("t"), AddColumns("t", ()), CatchUp("m", "s", "t", "log"), Validate(()), Promote())
    assert [step.id for step in steps] == ["create/t", "alter/t", "catch-up/t/m", "validate", "promote"]
    assert (backfill("").id, backfill("m").id) == ("backfill/requests", "backfill/requests/m")
    assert [StepId.parse(step.id).subject for step in steps] == ["t", "t", "t", "validate", "promote"]
