"""`rollout_process.py`, called by the benches of rollouts: a process of its own, so that each has its own JVM."""

import json
import subprocess
import sys
from pathlib import Path

from tests.bench.parts import ROOT

SECONDS = 3_600

Figures = dict[str, float]


def rounds_of(what: str, place: Path, rows: int, days: int, rounds: int = 1) -> list[Figures]:
    """Processor seconds by part, of each round. what: as of `rollout_process`"""
    words = [sys.executable, "-m", "tests.bench.rollout_process", what, str(place), *map(str, (rows, days, rounds))]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    found: list[Figures] = json.loads(done.stdout.splitlines()[-1])
    return found


def seconds(rounds: list[Figures], *parts: str) -> str:
    """The sum of these parts in each round, as text."""
    return "/".join(f"{sum(each[part] for part in parts):.1f}" for each in rounds)
