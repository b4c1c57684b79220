"""`make bench` and `make bench-long`: python -m tests.bench [small|long] [--list]

ONLY=following,idle in the environment runs these parts alone, of either size. Of the long ones, those that are on record at
this commit are passed over; AGAIN=1 runs them as well.

exit code: 0, also with misses; 1 if a part failed, with which the run ends; 64 for a part that does not exist
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tests.bench import page, report
from tests.bench.parts import BY_NAME, ROOT, Part, of_size
from tests.bench.record import CHANGED, RECORD, Ended, Record, Row, commit, now, this_machine
from tests.bench.size import Size

PATIENCE = 4  # times the expected minutes, on a machine that has other things to do
FAILED, USAGE = 1, 64


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="measure, and write docs/benchmarks.md")
    parser.add_argument("size", nargs="?", type=Size, default=Size.SMALL, help="small (the default) or long")
    parser.add_argument("--list", action="store_true", help="name the parts")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(map(described, (*of_size(Size.SMALL), *of_size(Size.LONG)))))
        return 0
    only = [name for name in os.environ.get("ONLY", "").split(",") if name]
    if unknown := [name for name in only if name not in BY_NAME]:
        print(f"no part {', '.join(unknown)}: python -m tests.bench --list names all", file=sys.stderr)
        return USAGE
    return run(tuple(BY_NAME[name] for name in only) or of_size(asked.size), again=bool(os.environ.get("AGAIN")))


def described(part: Part) -> str:
    return f"{part.name:<16} {part.size.value:<6} {part.minutes:>4g} min  {part.topic}: {' '.join(part.tests)}"


def run(parts: Sequence[Part], *, again: bool) -> int:
    """Run part after part, until one fails; then say what they measured."""
    at, began = commit(), now()
    code = 0
    for part in parts:
        if not again and passed_over(part, Record.read(RECORD), at):
            print(f"{part.name}: on record at {at}; AGAIN=1 measures it again", flush=True)
            continue
        print(f"\n{part.name}: {part.minutes:g} minutes are expected", flush=True)
        if why := failure(part, at):
            print(f"{part.name}: FAILED: {why}", flush=True)
            code = FAILED
            break
    names = {part.name for part in parts}
    rows = [row for row in Record.read(RECORD).rows.values() if row.part in names and row.at >= began]
    print("\n" + "\n".join(summary(rows)), flush=True)
    return code


def passed_over(part: Part, record: Record, at: str) -> bool:
    """Whether a long part has come to its end in exactly this tree."""
    ended = record.ended.get(part.name)
    return part.size is Size.LONG and ended is not None and bool(at) and not at.endswith(CHANGED) and ended.commit == at


def failure(part: Part, at: str) -> str:
    """Run one part in a process of its own; returns why it failed, "" if it did not."""
    record = Record.read(RECORD)
    machine = record.on(this_machine())
    record.write(RECORD)
    of = report.Run(part=part.name, commit=at, machine=machine, record=str(RECORD))
    began, started = now(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="console-bench-") as folder:
        junit = Path(folder) / "junit.xml"
        why = (ran(part, {**part.environment, **of.environment}, junit), *unsuccessful(junit))
    if any(why):
        return "; ".join(filter(None, why))
    record = Record.read(RECORD)
    measured = frozenset(row.what for row in record.rows.values() if row.part == part.name and row.at >= began)
    if not measured:
        return "nothing was measured"
    minutes = round((time.monotonic() - started) / 60, 1)
    record.forget_unmeasured(part.name, measured)
    record.ended[part.name] = Ended(part=part.name, commit=at, machine=machine, at=now(), minutes=minutes)
    report.keep(record, RECORD)
    return ""


def ran(part: Part, environment: dict[str, str], junit: Path) -> str:
    """Let pytest run the part's tests; returns why it did not do so, "" otherwise."""
    words = [sys.executable, "-m", "pytest", "-q", "-s", "-m", "bench", f"--junitxml={junit}", *part.nodes]
    seconds = PATIENCE * part.minutes * 60
    with subprocess.Popen(words, cwd=ROOT, env={**os.environ, **environment}, start_new_session=True) as process:
        try:
            code = process.wait(seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # its agents and their JVMs, too
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            return f"it did not end within {seconds / 60:.0f} minutes"
    return "" if code == 0 else f"pytest ended with {code}"


def unsuccessful(junit: Path) -> Iterable[str]:
    """Tests that failed or were skipped: what cannot be measured here is no success."""
    for case in ElementTree.parse(junit).iter("testcase") if junit.exists() else ():
        if any(case.find(kind) is not None for kind in ("failure", "error", "skipped")):
            yield f"{case.get('name')} failed or was skipped"


def summary(rows: Sequence[Row]) -> Iterable[str]:
    missed = [row for row in rows if row.met is False]
    for row in rows:
        yield f"{'miss' if row.met is False else '':<5} {row.what}: {row.text}; goal {page.goal(row.limit, row.at_least)}"
    yield f"{len(rows)} figures, {len(missed)} of them a miss; docs/benchmarks.md has them"
    explained = page.explanations()
    for row in missed:
        if row.what not in explained:
            yield f"not explained yet in {page.EXPLANATIONS.relative_to(ROOT)}: {row.what}"


if __name__ == "__main__":
    sys.exit(main())
