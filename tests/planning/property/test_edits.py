"""Is the comparison right? Random pipelines, random edits with a known effect, and rows to check it.

Rows are DuckDB's by the thousand and Spark's by the hundred: nulls, integer division and ANSI casts are Spark's own.

`EDITS` in the environment says how many; `make soak` asks for 50,000, and adds up what its parts print (`tally.py`). Spark answers to one
edit of each kind, in `make soak` to 200.
"""

import os
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from console.drivers.replay import Ran, Replayer
from console.planning.compare import QueryDifference, compare
from tests.planning.property import tally
from tests.planning.property.draw import SEED, drawn
from tests.planning.property.edits import Edit
from tests.planning.property.hazards import HAZARDS
from tests.planning.property.judge import (
    VOLATILE,
    Engine,
    Score,
    confirmed,
    contradicted,
    differing,
    given,
    truth,
    wrong,
)

pytestmark = pytest.mark.slow

MANY = int(os.environ.get("EDITS", "800"))  # every kind of edit is among the first 800
PART = min(MANY, 2000)
PARTS = MANY // PART
PAIRS = 200  # of the longer run on Spark
NUMBER = 1  # the database of seven rows a table


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_no_harmful_edit_is_called_harmless_and_nine_in_ten_harmless_ones_are_known(
    part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    score, engine = Score(), Engine()
    for edit in drawn(PART, SEED + part):
        score.add(edit, engine)
    with capsys.disabled():
        print(f"\n{score.text()}")
    tally.note(part, score.figures())
    assert listed_edits(score.unsafe) == []
    assert not score.suspected or listed_edits(confirmed(score.suspected)) == []
    assert score.recognised >= 0.9
    assert min(score.edits["hazard"], score.edits["harmless"]) >= 0.3 * score.edits.total()
    assert score.edits["value"] == score.precise
    assert score.not_run <= 0.02 * score.edits.total()


def listed_edits(result: list[tuple[Edit, str]]) -> list[str]:
    return [f"{edit.kind}: {why}\n  {edit.old}\n  {edit.new}" for edit, why in result]


def trusting(edit: Edit) -> QueryDifference:
    """The answer of a careless planner: what is still projected is the same."""
    return QueryDifference(rows="same", same=edit.columns)


def test_a_comparison_that_trusts_projections_is_caught_in_every_hazard() -> None:
    caught: Counter[str] = Counter()
    for edit in (edit for edit in drawn(700) if edit.group == "hazard"):
        caught[edit.kind] += bool(wrong(edit, trusting(edit)))
    assert set(HAZARDS) - set(caught) == set()
    assert [kind for kind in HAZARDS if not caught[kind]] == []


@pytest.mark.slow
def test_every_hazard_is_real_on_some_rows() -> None:
    """Were the edits' truth only asserted, a kind that changes nothing would make the score worthless."""
    engine, real = Engine(), Counter[str]()
    for edit in (edit for edit in drawn(1000) if edit.group == "hazard"):
        if not real[edit.kind]:
            real[edit.kind] += bool(
                contradicted(edit, QueryDifference(rows="same", same=edit.columns), engine, every=True)
            )
    assert [kind for kind in HAZARDS if not real[kind]] == []


def test_the_same_seed_draws_the_same_edits() -> None:
    assert [(e.old, e.new) for e in drawn(50)] == [(e.old, e.new) for e in drawn(50)]


def asked(edits: Sequence[Edit]) -> list[tuple[Ran, ...]]:
    """What Spark answers to both sides of each edit."""
    answers, world = [], None
    with Replayer() as spark:
        for edit in edits:
            tables = {} if edit.world is world else given(edit.world, NUMBER)
            world = edit.world
            answers.append(spark.ask(tables, (edit.old, edit.new)))
    return answers


def one_of_each_kind() -> list[Edit]:
    edits: dict[str, Edit] = {}
    for edit in drawn(1000, SEED):
        edits.setdefault(edit.kind, edit)
    assert edits.keys() >= set(HAZARDS)
    return list(edits.values())


def hundreds() -> list[Edit]:
    return list(drawn(PAIRS, SEED))


@pytest.mark.spark
@pytest.mark.parametrize("edits", [one_of_each_kind, pytest.param(hundreds, marks=pytest.mark.soak)])
def test_on_spark_nothing_called_the_same_differs(
    edits: Callable[[], list[Edit]], capsys: pytest.CaptureFixture[str]
) -> None:
    unsafe, untrue, outcomes, pairs = [], [], Counter[str](), edits()
    for edit, (old, new) in zip(pairs, asked(pairs), strict=True):
        outcomes["failed" if old.error or new.error else "ran"] += 1
        outcomes[f"{edit.kind}: {old.error or new.error}"[:160]] += bool(old.error or new.error)
        if any(word in edit.old + edit.new for word in VOLATILE):
            continue
        comparison = compare(edit.old, edit.new, edit.world.tables)
        if shown := differing(edit, comparison, old, new):
            unsafe.append((edit, shown))
        if shown := differing(edit, truth(edit, comparison), old, new):
            untrue.append((edit, shown))
    with capsys.disabled():
        print(f"\n{len(pairs)} pairs on Spark: {outcomes.pop('ran')} ran, {outcomes.pop('failed', 0)} were refused by it; "
              f"unsafe {len(unsafe)}, edits whose truth is not true {len(untrue)}")  # fmt: skip
        for reason, count in (+outcomes).items():
            print(f"  {count} {reason}")
    assert listed_edits(unsafe) == []
    assert listed_edits(untrue) == []
    assert sum(outcomes.values()) <= len(pairs) // 10
