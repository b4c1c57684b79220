"""A live step and a batch beside those of an older commit, in turn: `python -m tests.bench.against COMMIT [ROUNDS]`.

The ratio of processor seconds, appended to docs/costs.jsonl; nothing may cost more than 1.05 times what it did.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from console import paths

ROOT = Path(__file__).resolve().parents[2]
RECORD = ROOT / "docs" / "costs.jsonl"
SCRIPT = "tests/bench/costs.py"
FIRST = "e13cef7"  # its script also runs in the commits before there was one
MOST = 1.05


def main(commit: str, rounds: int = 3) -> int:
    with tempfile.TemporaryDirectory(prefix="console-against-") as folder:
        old = Path(folder) / "tree"
        git("worktree", "add", "--quiet", "--detach", str(old), commit)
        try:
            pairs = [(measured(ROOT), measured(old)) for _ in range(rounds)]
        finally:
            git("worktree", "remove", "--force", str(old))
    found = {"at": f"{datetime.now(UTC):%Y-%m-%d %H:%MZ}", "commit": git("rev-parse", "--short", "HEAD"), "beside": commit, "rounds": rounds, "load": round(os.getloadavg()[2], 1)}  # fmt: skip
    worst = 0.0
    for what in ("live_step", "batch"):
        now, before = (statistics.median(pair[side][what] for pair in pairs) for side in (0, 1))
        worst = max(worst, now / before)
        found[what] = {"now": round(now, 3), "before": round(before, 3), "ratio": round(now / before, 3)}
    with RECORD.open("a") as record:
        record.write(json.dumps(found) + "\n")
    print(json.dumps(found))
    return 0 if worst <= MOST else 1


def measured(tree: Path) -> dict[str, float]:
    """What a tree's own `costs.py` says of it, since that knows the tree's names.

    raises  SystemExit if that fails, or measures other amounts than this tree's
    """
    environment = {**os.environ, "PYTHONPATH": str(tree), "CONSOLE_JARS": str(paths.jars_dir())}
    if not (tree / SCRIPT).is_file():
        (tree / SCRIPT).write_text(git("show", f"{FIRST}:{SCRIPT}"))
    if amounts(tree) != amounts(ROOT):
        raise SystemExit(f"{SCRIPT} measures other amounts there: {amounts(tree)}, here {amounts(ROOT)}")
    done = subprocess.run(
        [sys.executable, "-P", str(tree / SCRIPT)], cwd=tree, env=environment, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def amounts(tree: Path) -> list[str]:
    """How many steps, batches and rows are measured: the script's constants."""
    return re.findall(r"^[A-Z_, ]+ = .*$", (tree / SCRIPT).read_text(), re.MULTILINE)


def git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:3])))
