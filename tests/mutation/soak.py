"""Mutation runs: does some test fail on each small change of the code?

    python -m tests.mutation.soak                     the pure files wholly, and 300 mutants of the others
    python -m tests.mutation.soak --pure [FILE …]     the pure files alone, or these files wholly
    python -m tests.mutation.soak --seed N --count N  which of the others; without a seed, that of the day
    python -m tests.mutation.soak --tests FILE …      those of the others alone whose line these tests pass

A mutant is tried in a copy of the tree, with the tests that pass its line. What was tried stays in `.console/mutation/` and is
not tried again until its file, or a test, changes: a run that is ended goes on where it stood. A mutant on which no test
fails is a survivor, unless `equivalent.jsonl` says why nobody can tell it from the file itself; with survivors the run exits 1.
A whole run, of a file or of the drawn ones, leaves a line in `docs/mutation.jsonl`.
"""

import argparse
import ast
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from tests.mutation.covering import KEPT, Lines, covering, tree
from tests.mutation.mutants import ROOT, Mutant, explained, made, mutants, spots
from tests.mutation.trial import Copy, Outcome

RECORD = ROOT / "docs" / "mutation.jsonl"
RULES = "tests/faults/rules"
FEEDS = "console/agent/feeds"
# file → where its tests are
PURE = {
    "console/model/slices.py": (
        "tests/days/test_slices.py", "tests/days/test_survey.py", "tests/planning/test_halves.py",
        "tests/planning/test_same.py", "tests/faults/test_clocks.py",
    ),
    f"{FEEDS}/ranges.py": ("tests/agent/test_log.py", f"{RULES}/test_commit_kinds.py"),
    f"{FEEDS}/foreign.py": (f"{RULES}/test_foreign.py",),
    f"{FEEDS}/checksum.py": (f"{RULES}/test_checksum.py",),
}  # fmt: skip
OTHERS = ("console/agent/feeds", "console/agent/rollout", "console/agent/maintenance", "console/agent/ingest")
THEIR_TESTS = ("tests/agent", "tests/days", RULES, "tests/faults/test_fence.py", "tests/faults/test_gate.py")
COUNT = 300


VOID = "void"


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
                self._known.pop(entry["key"], None)
                if entry["outcome"] != VOID and (entry["tree"] == self._state or entry["outcome"] != "survived"):
                    self._known[entry["key"]] = entry["outcome"]
        self.new: list[Mutant] = []

    def forget(self) -> None:
        """What this run found says nothing."""
        for mutant in tuple(self.new):
            self.keep(mutant, VOID, 0.0)

    def get(self, mutant: Mutant) -> str | None:
        return self._known.get(mutant.key)

    def keep(self, mutant: Mutant, outcome: str, seconds: float) -> None:
        self._known[mutant.key] = outcome
        self.new.append(mutant)
        entry = {
            "key": mutant.key, "tree": self._state, "outcome": outcome, "seconds": round(seconds, 1), "file": mutant.file,
            "line": mutant.line, "nth": mutant.nth, "operator": mutant.operator, "was": mutant.was, "now": mutant.now,
        }  # fmt: skip
        with self._path.open("a") as out:
            out.write(json.dumps(entry) + "\n")


def passing(mutant: Mutant, lines: Lines) -> list[str]:
    """The tests that pass a mutant's statement; of what is read at import, those that pass its file."""
    by_line = lines.get(mutant.file, {})
    statement, local = around(mutant)
    result = dict.fromkeys(test for line in statement for test in by_line.get(line, ()))
    return list(result) or ([] if local else by_line.get(0, []))


def around(mutant: Mutant) -> tuple[range, bool]:
    """The lines of a mutant's statement, without the body that hangs below it; and whether it stands in a function."""
    tree = ast.parse((ROOT / mutant.file).read_text())
    lines, local = range(mutant.line, mutant.line + 1), False
    todo: list[tuple[ast.AST, bool]] = [(tree, False)]
    while todo:
        node, inside = todo.pop()
        below = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        todo += [(child, below) for child in ast.iter_child_nodes(node)]
        if isinstance(node, ast.stmt) and node.lineno <= mutant.line <= (node.end_lineno or node.lineno):
            body = [child.lineno for child in getattr(node, "body", ()) if isinstance(child, ast.stmt)]
            end = min(body) if body else (node.end_lineno or node.lineno) + 1
            if mutant.line < max(end, node.lineno + 1):
                lines, local = range(node.lineno, max(end, node.lineno + 1)), inside
    return lines, local


def run(chosen: Sequence[Mutant], lines: Lines) -> Counter[str]:
    """Try them one after the other; tells each survivor."""
    tried, reasons, counts = Tried(), explained(), Counter[str]()
    everything = sorted({test for by_line in lines.values() for test in by_line[0]})
    with tempfile.TemporaryDirectory(prefix="console-mutation-") as name:
        copy = Copy(Path(name), sorted(lines), everything)
        try:
            for number, mutant in enumerate(chosen, 1):
                outcome = "equivalent" if mutant.key in reasons else tried.get(mutant)
                if outcome is None:
                    began, tests = time.monotonic(), passing(mutant, lines)
                    outcome = (copy.judged(mutant, tests) if tests else Outcome.SURVIVED).value
                    tried.keep(mutant, outcome, time.monotonic() - began)
                counts[outcome] += 1
                if outcome == "survived":
                    print(f"{mutant.file}:{mutant.line}: {mutant.was}  →  {mutant.now}", flush=True)
                elif number % 50 == 0:
                    print(f"{number} of {len(chosen)}: {dict(counts)}", flush=True)
            if copy.shared:
                copy.control(
                    everything
                )  # what was killed was killed by its change and not by what others left in the JVM
        except SystemExit:
            tried.forget()
            raise
        finally:
            copy.close()
    return counts


def files(places: Iterable[str]) -> list[str]:
    """The Python files of some files and folders; a module may have become a folder."""
    results: list[Path] = []
    for place in places:
        path = ROOT / place
        results += sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return [str(path.relative_to(ROOT)) for path in results if path.is_file()]


def main(words: Sequence[str] | None = None) -> int:
    """returns  1 where a mutant survives that nobody has explained"""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.soak")
    parser.add_argument("--pure", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.strftime("%Y%m%d", time.gmtime())))
    parser.add_argument("--count", type=int, default=COUNT)
    parser.add_argument("--tests", nargs="+", default=())
    parser.add_argument("files", nargs="*")
    asked = parser.parse_args(words)
    began, counts, reports = time.monotonic(), Counter[str](), {}
    for file in asked.files or (() if asked.tests else PURE):
        wholly = tuple(mutants(file))
        counted = run(wholly, covering(PURE.get(file, THEIR_TESTS), [file]))
        reports[file] = dict(counted)
        counts += counted
    if not (asked.pure or asked.files):
        rest = [file for file in files(OTHERS) if file not in PURE]
        every = [(file, *spot) for file in rest for spot in spots(file)]
        drawn = random.Random(asked.seed).sample(every, min(asked.count, len(every)))
        lines = covering(asked.tests or THEIR_TESTS, rest)
        chosen = [result for spot in drawn if (result := made(*spot))]
        if asked.tests:
            chosen = [mutant for mutant in chosen if passing(mutant, lines)]
        counted = run(chosen, lines)
        reports["others"] = dict(counted)
        counts += counted
    entry = {"seed": asked.seed, "minutes": round((time.monotonic() - began) / 60, 1), **reports}
    print(json.dumps(entry))
    if not asked.tests:
        with RECORD.open("a") as out:
            out.write(json.dumps(entry) + "\n")
    return 1 if counts["survived"] else 0


if __name__ == "__main__":
    sys.exit(main())
