"""Runs all tests, area by area, cheapest first, and says how long each took. A skipped test counts as failing.

AREA=spark,stores in the environment runs these areas alone, SINCE=REF only the files that a change since that commit reaches.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.etree import ElementTree

from affected import ROOT, affected, changed_since

REPORTS = ROOT / ".console" / "tests"
AREAS = {
    "pure": "not (stores or ssh or s3 or cluster or spark or faults or bench or soak)",
    "stores": "stores and not (spark or faults or bench or soak)",
    "ssh": "ssh and not (spark or faults or bench or soak)",
    "s3": "s3 and not (ssh or cluster or spark or faults or bench or soak)",
    "cluster": "cluster and not (faults or bench or soak)",
    "spark": "spark and not (faults or bench or soak)",
    "faults": "faults and not (bench or soak)",
}

NO_TESTS = 5  # pytest's exit code where nothing was to be run

# of each failure, the last lines: what was asserted, and where
LINES = 25

# A region waits often enough, for commits, ticks and processes that start, to leave room for another beside it.
# `tests/conftest.py` keeps together what shares one.
TOGETHER = ("-n", "2", "--dist", "loadscope")
# Without Spark two workers leave 40 % of two cores to screens, links and processes that are waited for.
WORKERS = {
    "pure": ("-n", "3"),
    "stores": ("-n", "2"),
    "ssh": TOGETHER,
    "s3": TOGETHER,
    "cluster": TOGETHER,
    "spark": ("-n", "3", "--dist", "loadscope"),
    "faults": ("-n", "3", "--dist", "loadscope"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one area came to: `failed` has each test that failed or was skipped."""

    ok: bool
    summary: str
    failed: tuple["Failure", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A test that failed, broke or was skipped. name: with the kind in front; text: the last lines of what it said"""

    name: str
    text: str


def failures(suites: Iterable[ElementTree.Element]) -> Iterator[Failure]:
    for suite in suites:
        for case in suite.iter("testcase"):
            for kind in ("failure", "error", "skipped"):
                for result in case.iter(kind):
                    text = (result.text or result.get("message") or "").strip().splitlines()
                    name = f"{kind} {case.get('classname')}::{case.get('name')}"
                    yield Failure(name=name, text="\n".join(f"    {line[:300]}" for line in text[-LINES:]))


def run(area: str, marks: str, files: Sequence[str] = ()) -> Result:
    """files: these alone, and then an area may have no test among them."""
    REPORTS.mkdir(parents=True, exist_ok=True)
    report = REPORTS / f"{area}.xml"
    report.unlink(missing_ok=True)
    started = time.monotonic()
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-m",
        marks,
        f"--junitxml={report}",
        *WORKERS.get(area, ()),
        *files,
    ]
    marked = {} if area == "pure" else {"MARKED": area}
    # compiled modules are kept: many tests start interpreters, whose imports take twice as long without them
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **marked}
    code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
    minutes = (time.monotonic() - started) / 60
    suites = tuple(ElementTree.parse(report).iter("testsuite")) if report.is_file() else ()
    tests = sum(int(suite.get("tests", "0")) for suite in suites)
    failed = tuple(failures(suites))
    ran = (code == 0 and tests > 0) or (code == NO_TESTS and bool(files))
    ok = ran and not failed
    state = "ok" if ok else "FAILED"
    summary = f"{area:<8}{tests:>6} tests{len(failed):>5} failed or skipped{minutes:>8.1f} min  {state}"
    return Result(ok=ok, summary=summary, failed=failed)


def main() -> int:
    areas = [word for word in os.environ.get("AREA", "").split(",") if word] or list(AREAS)
    if unknown := [area for area in areas if area not in AREAS]:
        print(f"no area {', '.join(unknown)}: AREA={','.join(AREAS)}", file=sys.stderr)
        return 64
    files: list[str] = []
    if since := os.environ.get("SINCE", ""):
        files = affected(changed_since(since))
        print(f"{len(files)} test files are reached by what changed since {since}", flush=True)
        if not files:
            return 0
    results = []
    for area in areas:
        results.append(run(area, AREAS[area], files))
        print(results[-1].summary, flush=True)
    failed = [failure for result in results for failure in result.failed]
    # a fixture that fails does so in all of its tests, with one text
    for text, names in groupby(failed, key=lambda failure: failure.text):
        print("\n" + "\n".join(failure.name for failure in names) + f"\n{text}", flush=True)
    # last, since the end of a long log is what is kept of it and read first
    print(
        "\n" + "\n".join([*(failure.name for failure in failed), "", *(result.summary for result in results)]),
        flush=True,
    )
    return 0 if all(result.ok for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
