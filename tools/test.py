"""Runs all tests, area by area, cheapest first, and says how long each took. A skipped test counts as failing."""

import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / ".console" / "tests"
AREAS = {
    "pure": "not (stores or ssh or spark or faults or bench or soak)",
    "stores": "stores and not (spark or faults or bench or soak)",
    "ssh": "ssh and not (spark or faults or bench or soak)",
    "spark": "spark and not (faults or bench or soak)",
    "faults": "faults and not (bench or soak)",
}

# Spark fills the machine by itself; a region under fire waits often enough to leave room for others beside it.
# `tests/conftest.py` keeps together what shares one.
TOGETHER = ("-n", "2", "--dist", "loadscope")
WORKERS = {
    "pure": ("-n", "2"),
    "stores": ("-n", "2"),
    "ssh": TOGETHER,
    "faults": TOGETHER,
}


def run(area: str, marks: str) -> tuple[bool, str]:
    """(did all pass, one line about it)"""
    REPORTS.mkdir(parents=True, exist_ok=True)
    report = REPORTS / f"{area}.xml"
    report.unlink(missing_ok=True)
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-m", marks, f"--junitxml={report}", *WORKERS.get(area, ())]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    minutes = (time.monotonic() - started) / 60
    suites = ElementTree.parse(report).iter("testsuite") if report.is_file() else ()
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite in suites:
        for key in counts:
            counts[key] += int(suite.get(key, "0"))
    bad = counts["failures"] + counts["errors"] + counts["skipped"]
    ok = code == 0 and counts["tests"] > 0 and not bad
    return (
        ok,
        f"{area:<8}{counts['tests']:>6} tests{bad:>5} failed or skipped{minutes:>8.1f} min  {'ok' if ok else 'FAILED'}",
    )


def main() -> int:
    results = []
    for area, marks in AREAS.items():
        results.append(run(area, marks))
        print(results[-1][1], flush=True)
    print("\n" + "\n".join(line for _, line in results), flush=True)
    return 0 if all(ok for ok, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
