"""A live step, a batch and planning beside those of an older commit: `python -m tests.bench.against COMMIT [ROUNDS [PART …]]`.

The parts are `spark` (a live step and a batch) and `plan` (a region of 500 tables, five of them edited: with no compiled query at
hand, and with those of what is live), `fleet` (200 regions of 500 tables in 20 live states) and `promotion` (of a region of three
tables, there and back, as its agent and its Spark carry it out); all by default.

The ratio of processor seconds, appended to docs/costs.jsonl; nothing may cost more than 1.05 times what it did.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from console import paths

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "costs.jsonl"
SCRIPT = "tests/bench/costs.py"
FIRST = "e13cef7"  # its script also runs in the commits before there was one
MOST = 1.05
AMOUNTS = re.compile(r"^([A-Z_, ]+) = (.*)$", re.MULTILINE)  # how many steps, batches and rows are measured
METER = "tests/bench/processor_time.py"
# of scripts that have none in a file
OWN_METER = re.compile(r"^def spent\(.*?(?=^def costs\()", re.MULTILINE | re.DOTALL)
PLANNING = """
import json, tempfile
from pathlib import Path
from tests.bench.test_planner import measured
with tempfile.TemporaryDirectory() as folder:
    filled, none = Path(folder) / "compiled.tsv", Path(folder) / "none.tsv"
    measured("fill", filled)
    cold, warm = measured("one", none), min(measured("one", filled)["seconds"] for _ in range(3))
print(json.dumps({"plan_cold": cold["seconds"], "plan_warm": warm}))
"""


FLEET = """
import json, tempfile
from pathlib import Path
from tests.bench.test_planner import measured
with tempfile.TemporaryDirectory() as folder:
    filled = Path(folder) / "compiled.tsv"
    measured("fill", filled)
    print(json.dumps({"plan_fleet": measured("fleet", filled)["seconds"]}))
"""


PROMOTION = """
import asyncio, json, tempfile
from pathlib import Path
from tests.bench.processor_time import of_process
from tests.life.region import ME, LiveRegion
CASE, WARM, TIMES = Path("tests/life/cases/column"), 10, 40
async def turned(region, times):
    for _ in range(times):
        await region.driver.rollback("column", (await region.driver.state("column")).live, ME)
async def main(folder):
    region = LiveRegion(folder, rows=600)
    try:
        for files in ("before", "after"):
            region.install("column", CASE / files)
            await region.roll_out("column")
        agent = json.loads((region.warehouse / "_console" / "agent.lock").read_text())["pid"]
        await turned(region, WARM)
        before = of_process(agent)
        await turned(region, TIMES)
        return (of_process(agent) - before) / TIMES
    finally:
        await region.close()
with tempfile.TemporaryDirectory(prefix="console-turns-") as folder:
    print(json.dumps({"promotion": asyncio.run(main(Path(folder) / "region"))}))
"""


def main(commit: str, rounds: int = 3, *parts: str) -> int:
    measuring = [MEASURED[part] for part in parts or MEASURED]
    with tempfile.TemporaryDirectory(prefix="console-against-") as folder:
        old = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", str(old), commit)
        try:
            pairs = [(everything(ROOT, measuring), everything(old, measuring)) for _ in range(rounds)]
        finally:
            git("worktree", "remove", "--force", str(old))
    results = {"at": f"{datetime.now(UTC):%Y-%m-%d %H:%MZ}", "commit": git("rev-parse", "--short", "HEAD"), "beside": commit, "rounds": rounds, "load": round(os.getloadavg()[2], 1)}  # fmt: skip
    worst = 0.0
    for what in pairs[0][0]:
        now, before = (statistics.median(pair[side][what] for pair in pairs) for side in (0, 1))
        worst = max(worst, now / before)
        results[what] = {"now": round(now, 3), "before": round(before, 3), "ratio": round(now / before, 3)}
    with RECORD.open("a") as record:
        record.write(json.dumps(results) + "\n")
    print(json.dumps(results))
    return 0 if worst <= MOST else 1


def everything(tree: Path, measuring: Iterable[Callable[[Path], dict[str, float]]]) -> dict[str, float]:
    return {what: cost for measure in measuring for what, cost in measure(tree).items()}


def spark(tree: Path) -> dict[str, float]:
    """What a tree's own `costs.py` says of it, since that knows the tree's names, with the amounts and the meter of this tree's.

    raises  SystemExit if that fails, or has other constants than this tree's
    """
    script = tree / SCRIPT
    text = script.read_text() if script.is_file() else git("show", f"{FIRST}:{SCRIPT}")
    ours, theirs = AMOUNTS.findall((ROOT / SCRIPT).read_text()), AMOUNTS.findall(text)
    if [name for name, _ in ours] != [name for name, _ in theirs]:
        raise SystemExit(f"{SCRIPT} has other constants there: {theirs}, here {ours}")
    amounts = dict(ours)
    text = AMOUNTS.sub(lambda line: f"{line[1]} = {amounts[line[1]]}", text)
    (tree / METER).write_text((ROOT / METER).read_text())
    script.write_text(OWN_METER.sub("from tests.bench.processor_time import spent\n\n\n", text))
    return printed(tree, str(script))


def plan(tree: Path) -> dict[str, float]:
    """Planning, as a tree's own `test_planner.py` measures it: each run in a fresh process."""
    return printed(tree, "-c", PLANNING)


def fleet(tree: Path) -> dict[str, float]:
    """As `plan`, of many regions with the compiled queries at hand."""
    return printed(tree, "-c", FLEET)


def promotion(tree: Path) -> dict[str, float]:
    """Of one flip to the other release."""
    (tree / METER).write_text((ROOT / METER).read_text())
    return printed(tree, "-c", PROMOTION)


def printed(tree: Path, *program: str) -> dict[str, float]:
    """The last line that a program prints when it runs in a tree. raises SystemExit if it fails"""
    environment = {**os.environ, "PYTHONPATH": str(tree), "CONSOLE_JARS": str(paths.jars_dir())}
    done = subprocess.run(
        [sys.executable, "-P", *program], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    data: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return data


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


MEASURED = {"spark": spark, "plan": plan, "fleet": fleet, "promotion": promotion}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:3]), *sys.argv[3:]))
