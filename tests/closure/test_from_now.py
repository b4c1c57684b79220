"""`history: from now`, kind by kind: files that are taken over show what the plan says, and what is refused leads on."""

import random
from pathlib import Path

import pytest

from console.planning import PlannerCache
from console.remedy import SetKey
from tests.closure.deal import OF
from tests.closure.facts import Facts, deployed
from tests.closure.follow import Attempt, answer, followed
from tests.closure.from_now import WORD, carried_from_now
from tests.closure.shapes import world_of

pytestmark = pytest.mark.slow

CACHE = PlannerCache()
NEW, DEFAULT, OTHER = (
    "a column from its source",
    "a column from its source, with a default",
    "another expression over its source",
)
TAKEN_OVER = (
    ("hits", (NEW, "such a column, read from them"), ""),
    ("hits", (DEFAULT,), ""),
    ("hits", (DEFAULT,), " as null"),
    ("hits", (DEFAULT, "a column without NULLs"), ""),
    ("last", (DEFAULT,), " as default"),
    ("hits", ("a wider type", "a filter over its source"), ""),
    ("hits", ("a wider type by a cast", DEFAULT), ""),
    ("hits", (OTHER, "a wider type"), ""),
    ("hits", (OTHER,), " as null"),
    ("hits", ("another expression over its own columns", NEW), ""),
    ("hits", ("a column that is the same for all rows", NEW), ""),
    ("named", (NEW, "a column dropped"), ""),
    ("named", ("a column renamed", OTHER), ""),
    ("last", (NEW, "a column dropped"), ""),
    ("last", (DEFAULT, "a column renamed"), ""),
    ("last", (DEFAULT, "its key renamed"), ""),
    ("last", (NEW, "a wider type"), ""),
    ("last", (OTHER,), " as null"),
    ("once", (NEW,), ""),
    ("once", ("a column dropped",), ""),
    ("once", ("a column renamed", "a filter over its source"), ""),
    ("hourly", ("a measure", "a measure dropped"), ""),
    ("hourly", ("a measure", "a measure renamed"), ""),
    ("hourly", ("a measure", "a measure of states that it keeps"), ""),
    ("hourly", ("a measure", "another expression over the same states"), ""),
    ("hourly", ("a filter over its source", "a measure dropped"), ""),
)
REFUSED = (
    ("hits", ("another partition_by", NEW), "its rows need another layout"),
    ("once", ("a wider type",), "equal rows"),
    ("once", ("a column that is the same for all rows",), "equal rows"),
    ("hourly", ("a measure", "another measure under the name"), "do not merge"),
)


@pytest.mark.parametrize(("table", "names", "word"), TAKEN_OVER)
def test_files_that_are_taken_over_show_what_their_rows_are(
    table: str, names: tuple[str, ...], word: str, tmp_path: Path
) -> None:
    kinds = [OF[table, name] for name in names]
    outcome = carried_from_now(kinds, word, tmp_path, random.Random(7), CACHE)
    assert (outcome.refused, outcome.without_effect, outcome.difference) == ("", False, "")


@pytest.mark.parametrize(("table", "names", "says"), REFUSED)
def test_what_files_cannot_show_is_refused_with_what_can(table: str, names: tuple[str, ...], says: str) -> None:
    world = world_of(table)
    live = deployed(world, Facts(), CACHE)
    attempt = Attempt(old=world, edits=tuple(OF[table, name] for name in names), history={table: WORD})
    _, (problem,) = answer(attempt, live, CACHE)
    assert says in problem.message
    first = problem.remedies[0]
    after = followed(attempt, problem, first, live)
    assert after is not None
    assert answer(after, live, CACHE)[1] == ()
    assert isinstance(first, SetKey) == (says != "do not merge")
