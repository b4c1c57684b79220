"""The list of parts, the commands that run them, and the page that they write: one fits the other."""

import ast
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from console.planning.review.parsing_gain import GAIN
from tests.bench import __main__ as bench
from tests.bench import page
from tests.bench.parts import FOLDER, MOST_MINUTES, PARTS, ROOT, TOPICS, Part, of_size
from tests.bench.record import CHANGED, PAGE, RECORD, Ended, Record
from tests.bench.size import Size
from tests.bench.test_parsing import row_of

BENCH = re.compile(r"^pytestmark = .*\bmark\.bench\b", re.MULTILINE)
GOALS = {Size.SMALL: {1, 2, 5, 6, 7, 8, 9, 10}}


def functions_of(file: Path) -> set[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {
        node.name
        for node in ast.parse(file.read_text()).body
        if isinstance(node, kinds) and node.name.startswith("test_")
    }


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.name)
def test_each_part_names_tests_that_exist(part: Part) -> None:
    for node in part.nodes:
        name, _, test = node.partition("::")
        assert BENCH.search((ROOT / name).read_text()), f"{name} is no bench"
        assert not test or test in functions_of(ROOT / name), node


def test_every_bench_belongs_to_a_part() -> None:
    benches = {file.name for file in (ROOT / FOLDER).glob("test_*.py") if BENCH.search(file.read_text())}
    assert benches - frozenset().union(*(part.files for part in PARTS)) == set()


def test_every_test_of_a_bench_is_run_by_a_part() -> None:
    whole = {test for part in PARTS for test in part.tests if "::" not in test}
    single = {test for part in PARTS for test in part.tests if "::" in test}
    files = {test.partition("::")[0] for test in single} - whole
    missing = [
        f"{name}::{test}"
        for name in sorted(files)
        for test in sorted(functions_of(ROOT / FOLDER / name))
        if f"{name}::{test}" not in single
    ]
    assert missing == []


def test_names_are_used_once_and_topics_exist() -> None:
    assert len({part.name for part in PARTS}) == len(PARTS)
    assert {part.topic for part in PARTS} <= TOPICS.keys()
    assert {part.topic for part in of_size(Size.SMALL)} == GOALS[Size.SMALL]


@pytest.mark.parametrize("size", Size)
def test_all_parts_of_a_size_are_expected_to_end_in_its_time(size: Size) -> None:
    assert sum(part.minutes for part in of_size(size)) <= MOST_MINUTES[size]


def test_the_page_is_what_follows_from_the_record() -> None:
    assert PAGE.read_text() == page.rendered(Record.read(RECORD), page.explanations())


def test_each_miss_on_record_is_explained_and_nothing_else_is() -> None:
    missed = {what for what, row in Record.read(RECORD).rows.items() if row.met is False}
    explained = page.explanations()
    assert sorted(missed - explained.keys()) == [], "say why in tests/bench/misses.yaml"
    assert sorted(explained.keys() - missed) == [], "no miss on record: take it out of tests/bench/misses.yaml"
    assert [what for what, why in explained.items() if len(why) < 20] == []


def test_the_gain_that_console_tells_is_the_one_on_record() -> None:
    rows = Record.read(RECORD).rows
    assert {calls: rows[row_of(calls)].figure for calls in GAIN} == pytest.approx(
        {calls: 1 - gain for calls, gain in GAIN.items()}, abs=0.0005
    )


def test_each_row_belongs_to_a_part_that_there_is() -> None:
    assert {row.part for row in Record.read(RECORD).rows.values()} <= {part.name for part in PARTS}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_the_pages_name_the_commands(name: str) -> None:
    text = (ROOT / name).read_text()
    assert "make bench" in text
    assert "make bench-long" in text


def test_make_runs_them() -> None:
    text = (ROOT / "Makefile").read_text()
    for target, size in (("bench", Size.SMALL), ("bench-long", Size.LONG)):
        assert re.search(rf"^\.PHONY:.* {target}( |$)", text, re.MULTILINE), target
        assert re.search(rf"^{target}: .*\n\t@\$\(BIN\)/python -m tests\.bench {size.value}\n", text, re.MULTILINE), (
            target
        )


def listed(**environment: str) -> "subprocess.CompletedProcess[str]":
    words = (
        [sys.executable, "-m", "tests.bench", "--list"] if not environment else [sys.executable, "-m", "tests.bench"]
    )
    return subprocess.run(words, cwd=ROOT, env={"PATH": "", **environment}, capture_output=True, text=True, check=False)


def test_a_part_that_does_not_exist_is_refused_before_anything_is_run() -> None:
    done = listed(ONLY="backfil,idle")
    assert (done.returncode, done.stderr) == (64, "no part backfil: python -m tests.bench --list names all\n")


def test_the_list_names_each_part() -> None:
    lines = listed().stdout.splitlines()
    assert [line.split()[0] for line in lines] == [part.name for size in Size for part in of_size(size)]


def part(size: Size) -> Part:
    return Part(name="x", topic=1, size=size, minutes=1, tests=("test_x.py",))


@pytest.mark.parametrize(
    ("size", "on_record", "at", "over"),
    [
        (Size.LONG, "abc", "abc", True),
        (Size.LONG, "abc", "def", False),
        (Size.LONG, f"abc{CHANGED}", f"abc{CHANGED}", False),
        (Size.LONG, "", "", False),
        (Size.LONG, None, "abc", False),
        (Size.SMALL, "abc", "abc", False),
    ],
)
def test_a_long_part_is_passed_over_that_ended_in_this_very_tree(
    size: Size, on_record: str | None, at: str, over: bool
) -> None:
    ended = Ended(part="x", commit=on_record or "", machine="A", at="2026-11-23 12:00Z", minutes=1.0)
    record = Record(ended={} if on_record is None else {"x": ended})
    assert bench.passed_over(part(size), record, at) is over


TESTS = """
import pytest; pytestmark = pytest.mark.bench
from tests.bench.report import Measurement, check
def test_missing():
    check(Measurement(what="slow", figure=2.0, limit=1.0, text="2.0 times"))
"""
BEYOND = {
    "": "",
    "def test_rows(): assert 1 == 2": "test_rows failed or was skipped",
    "import unittest\ndef test_gone(): raise unittest.SkipTest('not here')": "test_gone failed or was skipped",
    "import time\ndef test_stuck(): time.sleep(600)": "it did not end within",
}


@pytest.mark.slow
@pytest.mark.parametrize("more", BEYOND, ids=["miss alone", "wrong", "skipped", "stuck"])
def test_a_miss_ends_nothing_and_a_wrong_result_a_skip_or_a_standstill_does(
    more: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a bench in a folder of its own, through pytest in a process of its own."""
    file = tmp_path / "test_x.py"
    file.write_text(TESTS + more)
    monkeypatch.setattr(bench, "RECORD", tmp_path / "benchmarks.jsonl")
    first = replace(part(Size.SMALL), name="console", minutes=0.02 if "sleep" in more else 1, tests=(str(file),))
    second = replace(first, name="keys", minutes=1)
    code = bench.run((first, second), again=True)
    out = capsys.readouterr().out
    assert (code, "keys: 1 minutes are expected" in out) == ((1, False) if more else (0, True)), out
    assert BEYOND[more] in out
    record = Record.read(tmp_path / "benchmarks.jsonl")
    assert sorted(record.ended) == ([] if more else ["console", "keys"])
    if "sleep" not in more:  # else it may be ended before it has measured anything
        assert record.rows["slow"].met is False
        assert "miss  slow: 2.0 times; goal ≤ 1\n" in out
