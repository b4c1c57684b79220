"""A release that was hashed by other rules: its contents are compared by meaning, and none of its hashes is trusted."""

import hashlib
from dataclasses import replace

import pytest

from console.errors import Problems
from console.model.live import Live, Release
from console.model.pipeline import Pipeline
from console.planning import plan
from tests.planning.edits import EDITS
from tests.planning.evolution import adapt
from tests.planning.test_evolution import BROKEN, REFUSED, region, sides
from tests.planning.world import REGION, actions, live, promoted
from tests.planning.world import pipeline as small

pytestmark = pytest.mark.slow


def salted(release: Release) -> Release:
    """The same release with every hash another, by rules of another name."""

    def hashed(text: str) -> str:
        expression, colon, type = text.partition(":")
        return hashlib.sha256(f"salt {expression}".encode()).hexdigest()[:20] + colon + type

    return replace(
        release,
        rules=hashed("rules"),
        tables=tuple(
            replace(
                state,
                rows=hashed(state.rows),
                values={name: hashed(value) for name, value in state.values.items()},
                version=replace(state.version, content=hashed(state.version.content)),
            )
            for state in release.tables
        ),
    )


def other(survey: Live) -> Live:
    assert survey.release is not None
    return replace(survey, release=salted(survey.release))


def planned(pipeline: Pipeline, survey: Live, allowed: tuple[str, ...] = ()) -> tuple[object, ...]:
    """What a plan does: to each node, in which steps, and of what it warns."""
    try:
        done = plan(pipeline, survey, REGION, "test", allowed=allowed)
    except Problems as error:
        return ("impossible", *map(str, error.problems))
    nodes = [
        (node.kind, node.name, node.action, node.why, node.columns, node.price, node.source) for node in done.nodes
    ]
    return nodes, done.steps, done.problems


def test_an_unchanged_pipeline_plans_nothing_with_every_hash_another() -> None:
    done = plan(small(), other(live()), REGION, "test")
    assert not done.steps
    assert not actions(done)


@pytest.mark.parametrize("name", [name for name, edit in EDITS.items() if edit.survey().release is not None])
def test_an_edit_plans_what_it_plans_by_the_same_rules(name: str) -> None:
    edit = EDITS[name]
    by_these = planned(edit.pipeline(), edit.survey(), edit.allowed)
    assert planned(edit.pipeline(), other(edit.survey()), edit.allowed) == by_these


REAL = [name for name in adapt.load() if name not in {*BROKEN, *REFUSED}]


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.soak) if at % 3 else name for at, name in enumerate(REAL)]
)
def test_so_does_a_real_commit_to_another_peoples_pipeline(name: str) -> None:
    before, after = sides(name)
    try:
        survey = region(before)
    except Problems:
        return  # before the commit it was impossible
    assert planned(after, other(survey)) == planned(after, survey)
    assert not actions(plan(before, other(survey), REGION, "test"))


def test_a_release_names_the_rules_that_it_was_hashed_by_and_is_believed_by_these() -> None:
    start = live()
    made = promoted(plan(small(), start, REGION, "test", planner="a"), start)
    assert made.release is not None
    assert made.release.rules not in ("", "a")
    believed = plan(small(), replace(made, release=replace(made.release, tables=salted(made.release).tables)), REGION, "test", planner="a")  # fmt: skip
    assert believed.changes  # its hashes are other ones, and by the same rules that is a change
    for planner in ("a", "b", ""):
        assert plan(small(), made, REGION, "test", planner=planner).changes == ()


def test_the_new_release_is_hashed_by_these_rules() -> None:
    survey = live()
    changed = replace(small(), tables=tuple(replace(t, description="another") for t in small().tables))
    made = plan(changed, other(survey), REGION, "test").release
    assert survey.release is not None
    assert [(s.rows, s.values) for s in made.tables] == [(s.rows, s.values) for s in survey.release.tables]
