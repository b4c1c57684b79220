"""Long runs continue where the record ends, whatever interrupted the last one."""

import argparse
from pathlib import Path

import pytest

from tests import soak


def asked(*words: str) -> argparse.Namespace:
    return soak.arguments("").parse_args(["--minutes", "0", *words])


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "worlds.jsonl"
    monkeypatch.setattr(soak, "WORLDS", path)
    soak.append(path, {"generator": "other", "from": 0, "until": 900, "minutes": 1, "wrong": 0})
    return path


def drawn(run: soak.Soak, wrong: bool = False) -> list[int]:
    results = []
    for seed in run.seeds(5):
        results.append(seed)
        if wrong:
            run.differs(f"seed {seed}")
    return results


def test_a_run_draws_at_least_once_and_the_next_one_goes_on_behind_it(record: Path) -> None:
    for first in (0, 5, 10):
        run = soak.of_worlds(asked(), "mine")
        assert drawn(run) == [first]
        assert run.summary("mine", {"right": 5}) == 0
    messages = [(line["from"], line["until"], line["right"], line["wrong"]) for line in soak.lines(record)[1:]]
    assert messages == [(0, 5, 5, 0), (5, 10, 5, 0), (10, 15, 5, 0)]


def test_what_was_broken_off_is_drawn_again(record: Path) -> None:
    assert drawn(soak.of_worlds(asked(), "mine")) == drawn(soak.of_worlds(asked(), "mine")) == [0]


def test_a_difference_is_on_record_and_ends_the_run_with_1(record: Path) -> None:
    run = soak.of_worlds(asked(), "mine")
    drawn(run, wrong=True)
    assert run.summary("mine", {}) == 1
    assert soak.lines(record)[-1]["wrong"] == 1


def test_what_is_held_against_a_seed_is_counted_on_its_line(record: Path) -> None:
    run = soak.of_worlds(asked(), "mine")
    run.drew("mine", 4, {"drawn": 3}, "one", "", "another")
    run.drew("mine", 5, {"drawn": 3}, "")
    assert [(line["from"], line["drawn"], line["wrong"]) for line in soak.lines(record)[1:]] == [(4, 3, 2), (5, 3, 0)]
    assert run.code() == 1


@pytest.mark.parametrize("seed", [0, 7000])
def test_a_seed_that_was_asked_for_is_drawn_alone_and_leaves_no_line(record: Path, seed: int) -> None:
    run = soak.of_worlds(asked("--seed", str(seed), "--minutes", "60"), "mine")
    assert drawn(run) == [seed]
    run.summary("mine", {})
    assert len(soak.lines(record)) == 1


def test_a_run_may_begin_with_a_seed_that_was_passed_over(record: Path) -> None:
    run = soak.of_worlds(asked("--from", "3"), "other")
    assert drawn(run) == [3]
    run.summary("other", {})
    assert soak.lines(record)[-1]["until"] == 8
    assert drawn(soak.of_worlds(asked(), "other")) == [900]
