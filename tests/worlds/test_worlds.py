"""Landing tables drawn at random through the real agent: history read = live read = the truth in plain Python.

`make soak` draws others for an hour (`python -m tests.worlds.soak`); a seed alone: `python -m tests.worlds.soak --seed 7`.
"""

import os
from pathlib import Path

import pytest

from console.agent.session import Settings, Spark
from tests.life.region import SHORT_LIVED
from tests.worlds.carried import carry
from tests.worlds.drawn import FEATURES, HIVE, PARTS, acts, worlds
from tests.worlds.soak import writing

SEED = int(os.environ.get("WORLDS_SEED", "1"))
MANY = 6


@pytest.mark.faults
@pytest.mark.soak
def test_a_drawn_landing_table_is_copied_row_by_row_whoever_wrote_it_and_however(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    spark = Spark(Settings("worlds", "local[2]", SHORT_LIVED), -1)
    try:
        done = carry(SEED, MANY, tmp_path, writing(spark))
    finally:
        spark.stop()
    assert done.differences == []


def test_every_kind_of_world_is_drawn() -> None:
    found = [world for seed in range(1200) for world in worlds(seed, 9)]
    kinds = [(who, what) for who in FEATURES for what in FEATURES[who]]
    assert {(world.writer, world.feature) for world in found} == set(kinds)
    assert {world.kind for world in found} == {"", *PARTS}
    for after in (False, True):
        drawn = {(each.writer, each.feature, each.after if after else each.before) for each in found}
        assert drawn == {(*kind, act) for kind in kinds for act in acts(*kind, after=after)}


def test_the_truth_is_drawn_by_its_seed_alone() -> None:
    once, again = [[world.draw(5) for world in worlds(7, 9)] for _ in range(2)]
    assert once == again


def test_an_empty_partition_and_hives_word_for_null_are_null() -> None:
    world = next(
        world for seed in range(100) for world in worlds(seed, 9) if world.kind == "string" and world.writer == "spark"
    )
    assert [world.stored({"p": value})["p"] for value in ("", HIVE, "Zürich", None)] == [None, None, "Zürich", None]
