"""Mutation runs: does some test fail on each small change of the code?

    python -m tests.mutation.soak                     the pure files wholly, and 300 mutants of the others
    python -m tests.mutation.soak --pure [FILE …]     the pure files alone, or these files wholly
    python -m tests.mutation.soak --seed N --count N  which of the others; without a seed, that of the day

A mutant is tried in a copy of the tree, with the tests that pass its line. What was tried stays in `.console/mutation/` and is
not tried again until its file, or a test, changes: a run that is ended goes on where it stood. A mutant on which no test
fails is a survivor, unless `equivalent.jsonl` says why nobody can tell it from the file itself; with survivors the run exits 1.
A whole run leaves a line in `docs/mutation.jsonl`.
"""

import argparse
import compileall
import json
import os
import py_compile
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from math import inf
from pathlib import Path

import pytest

from console import paths
from tests.mutation.covering import KEPT, Lines, covering, tree
from tests.mutation.mutants import ROOT, Mutant, explained, made, mutants, spots

RECORD = ROOT / "docs" / "mutation.jsonl"
RULES = "tests/faults/rules"
FEEDS = "console/agent/feeds"
# file → where its tests are
PURE = {
    "console/model/slices.py": (
        "tests/days/test_slices.py", "tests/days/test_survey.py", "tests/planning/test_halves.py",
        "tests/planning/test_same.py", "tests/faults/test_clocks.py",
    ),
    f"{FEEDS}/ranges.py": ("tests/agent/test_log.py", f"{RULES}/test_what_flows.py"),
    f"{FEEDS}/foreign.py": ("tests/agent/test_small.py", "tests/agent/test_gate.py", f"{RULES}/test_taking_over.py"),
    f"{FEEDS}/checksum.py": (f"{RULES}/test_batches.py", f"{RULES}/test_keeping.py", f"{RULES}/test_by_hand.py"),
}  # fmt: skip
OTHERS = ("console/agent/feeds", "console/agent/rollout", "console/agent/upkeep", "console/agent/intake")
THEIR_TESTS = ("tests/agent", "tests/days", RULES, "tests/faults/test_fence.py", "tests/faults/test_gate.py")
COUNT = 300
MEMORY = 6 << 30  # bytes of address space that the tests of one mutant may take
SECONDS = 120.0  # that the tests of one mutant may take: more is a loop without an end, which somebody would notice


class Tried:
    """What became of each mutant, one line each, so that a run may end at any moment."""

    def __init__(self) -> None:
        self._path = KEPT / "tried.jsonl"
        self._state = tree()
        self._known: dict[str, str] = {}
        KEPT.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            for line in self._path.read_text().splitlines():
                entry = json.loads(line)
                if entry["tree"] == self._state or entry["outcome"] == "killed":
                    self._known[entry["key"]] = entry["outcome"]

    def get(self, mutant: Mutant) -> str | None:
        return self._known.get(mutant.key)

    def keep(self, mutant: Mutant, outcome: str, seconds: float) -> None:
        self._known[mutant.key] = outcome
        entry = {
            "key": mutant.key, "tree": self._state, "outcome": outcome, "seconds": round(seconds, 1), "file": mutant.file,
            "line": mutant.line, "nth": mutant.nth, "operator": mutant.operator, "was": mutant.was, "now": mutant.now,
        }  # fmt: skip
        with self._path.open("a") as out:
            out.write(json.dumps(entry) + "\n")


def judged(mutant: Mutant, place: Path, lines: Lines) -> str:
    """killed, or survived; tried in the copy at `place`."""
    by_line = lines.get(mutant.file, {})
    # where a line is no statement's first, the one above that is
    above = max((number for number in by_line if 0 < number <= mutant.line), default=0)
    tests = sorted(by_line.get(mutant.line) or by_line.get(above) or by_line.get(0, []), key=_needs_java)
    if not tests:
        return "survived"
    target = place / mutant.file
    whole = target.read_text()
    try:
        target.write_text(mutant.text)
        return "survived" if _passes(tests, place) else "killed"
    finally:
        target.write_text(whole)


@cache
def _needs_java(test: str) -> bool:
    """Whether a test's file starts Spark: such tests come last, for most mutants fail before them."""
    return "mark.spark" in (ROOT / test.partition("::")[0]).read_text()


def _passes(tests: Sequence[str], place: Path, most: float = SECONDS) -> bool:
    """Whether tests pass in a copy: in a fork of this process, which has read the libraries already."""
    words = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
        f"--basetemp={place}/run",
        *tests,
    ]
    child = os.fork()
    if not child:
        code = 2
        try:
            os.setsid()
            os.chdir(place)
            if not any(_needs_java(test) for test in tests):  # a loop without an end may also take memory without one
                resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            quiet = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(quiet, number)
            sys.path.insert(0, str(place))
            os.environ |= {"PYTHONPATH": str(place), "CONSOLE_JARS": str(paths.jars_dir())}
            for name in [name for name in sys.modules if name.partition(".")[0] in ("console", "tests")]:
                del sys.modules[name]
            code = int(pytest.main(words))
        finally:
            os._exit(code)
    until = time.monotonic() + most
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def run(chosen: Sequence[Mutant], lines: Lines) -> Counter[str]:
    """Try them one after the other; tells each survivor."""
    for library in ("deltalake", "hypothesis", "pyarrow.parquet"):
        import_module(library)  # once, for every fork
    tried, reasons, counts = Tried(), explained(), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="console-mutation-") as name:
        place = Path(name)
        for part in ("console", "tests", "docs", "plans", "regions"):
            shutil.copytree(ROOT / part, place / part, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", place)
        compileall.compile_dir(place, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
        sys.dont_write_bytecode = True
        if not _passes(sorted({test for by_line in lines.values() for test in by_line[0]}), place, most=inf):
            raise SystemExit("the tests fail in the copy, on the files as they are")
        for number, mutant in enumerate(chosen, 1):
            outcome = "equivalent" if mutant.key in reasons else tried.get(mutant)
            if outcome is None:
                began = time.monotonic()
                outcome = judged(mutant, place, lines)
                tried.keep(mutant, outcome, time.monotonic() - began)
            counts[outcome] += 1
            if outcome == "survived":
                print(f"{mutant.file}:{mutant.line}: {mutant.was}  →  {mutant.now}", flush=True)
            elif number % 50 == 0:
                print(f"{number} of {len(chosen)}: {dict(counts)}", flush=True)
    return counts


def files(places: Iterable[str]) -> list[str]:
    """The Python files of some files and folders; a module may have become a folder."""
    found: list[Path] = []
    for place in places:
        path = ROOT / place
        found += sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [str(path.relative_to(ROOT)) for path in found if path.is_file()]


def main(words: Sequence[str] | None = None) -> int:
    """returns  1 where a mutant survives that nobody has explained"""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.soak")
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%m%d", time.gmtime())))
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("files", nargs="*")
    asked = parser.parse_args(words)
    began, counts, told = time.monotonic(), Counter[str](), {}
    for file in asked.files or PURE:
        wholly = tuple(mutants(file))
        counted = run(wholly, covering(PURE.get(file, THEIR_TESTS), [file]))
        told[file] = dict(counted)
        counts += counted
    if not (asked.pure or asked.files):
        rest = [file for file in files(OTHERS) if file not in PURE]
        every = [(file, *spot) for file in rest for spot in spots(file)]
        drawn = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
        counted = run([found for spot in drawn if (found := made(*spot))], covering(THEIR_TESTS, rest))
        told["others"] = dict(counted)
        counts += counted
    entry = {"seed": asked.seed, "minutes": round((time.monotonic() - began) / 60, 1), **told}
    print(json.dumps(entry))
    if not asked.files:
        with RECORD.open("a") as out:
            out.write(json.dumps(entry) + "\n")
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
