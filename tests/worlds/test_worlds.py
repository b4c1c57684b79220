"""Landing tables drawn at random through the real agent: history read = live read = the truth in plain Python.

`make soak` draws others for an hour (`python -m tests.worlds.soak`); a seed alone: `python -m tests.worlds.soak --seed 7`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.worlds.drawn import FEATURES, HIVE, PARTS, acts, worlds

ROOT = Path(__file__).resolve().parents[2]
SEED, MANY, READ = (
    os.environ.get(f"WORLDS_{name}", default) for name, default in (("SEED", "12829"), ("MANY", "2"), ("READ", "2"))
)


@pytest.mark.spark
def test_a_drawn_landing_table_is_read_and_copied_row_by_row_whoever_wrote_it_and_however() -> None:
    """In a process of its own: its writer's Spark has other jars than those of the tests beside it."""
    command = [sys.executable, "-m", "tests.worlds.soak", "--seed", SEED, "--many", MANY, "--read", READ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr[-3000:]}"
    line = json.loads(done.stdout.splitlines()[-1])
    assert (str(line["worlds"]), str(line["read"]), line["differences"]) == (MANY, READ, [])


@pytest.mark.slow
def test_every_kind_of_world_is_drawn() -> None:
    results = [world for seed in range(1200) for world in worlds(seed, 9)]
    kinds = [(who, what) for who in FEATURES for what in FEATURES[who]]
    assert {(world.writer, world.feature) for world in results} == set(kinds)
    assert {world.kind for world in results} == {"", *PARTS}
    for after in (False, True):
        drawn = {(each.writer, each.feature, each.after if after else each.before) for each in results}
        assert drawn == {(*kind, act) for kind in kinds for act in acts(*kind, after=after)}


def test_the_truth_is_drawn_by_its_seed_alone() -> None:
    once, again = [[world.draw(5) for world in worlds(7, 9)] for _ in range(2)]
    assert once == again


def test_an_empty_partition_and_hives_word_for_null_are_null() -> None:
    world = next(
        world for seed in range(100) for world in worlds(seed, 9) if world.kind == "string" and world.writer == "spark"
    )
    assert [world.stored({"p": value})["p"] for value in ("", HIVE, "Zürich", None)] == [None, None, "Zürich", None]
