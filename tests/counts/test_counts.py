"""Costs that do not depend on the machine: jobs, commits, files, bytes, reads of logs, calls. A change of one is a diff of
`stored.json` that somebody approves; `python -m tests.counts.counted --keep` writes it.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.counts.calls import calls_of_a_rollout
from tests.counts.counted import CALLS, STORED
from tests.walls.source import ROOT

Figures = dict[str, int]
# Figure → share by which it may differ: Spark reads logs as well, which name times and ids, and a feed may look once more before it is
# told to move.
SHARES = {"bytes_read": 0.01, "log_lists": 0.1}


def differences(part: str, stored: Figures, counted: Figures) -> list[str]:
    pairs = {name: (stored.get(name, 0), counted.get(name, 0)) for name in sorted(stored.keys() | counted.keys())}
    return [
        f"{part}: {name}: {was:,} → {now:,}"
        for name, (was, now) in pairs.items()
        if abs(now - was) > SHARES.get(name, 0.0) * was
    ]


@pytest.mark.parametrize(
    ("counted", "wrong"),
    [
        ({"jobs": 4, "bytes_read": 1_000}, False),
        ({"jobs": 5, "bytes_read": 1_000}, True),
        ({"jobs": 3, "bytes_read": 1_000}, True),
        ({"jobs": 4, "bytes_read": 1_009}, False),
        ({"jobs": 4, "bytes_read": 1_011}, True),
        ({"jobs": 4, "bytes_read": 1_000, "stages": 1}, True),
        ({"bytes_read": 1_000}, True),
    ],
)
def test_what_takes_more_or_less_is_a_difference(counted: Figures, wrong: bool) -> None:
    assert bool(differences("a change", {"jobs": 4, "bytes_read": 1_000}, counted)) is wrong


def stored() -> dict[str, Figures]:
    figures: dict[str, Figures] = json.loads(STORED.read_text())
    return figures


async def test_a_rollout_asks_a_region_no_more_and_no_less_than_before(tmp_path: Path) -> None:
    changed = differences(CALLS, stored()[CALLS], await calls_of_a_rollout(tmp_path))
    assert not changed, "\n".join(changed)


@pytest.mark.spark
def test_a_regions_life_takes_no_more_and_no_less_than_before() -> None:
    """In a process of its own: Spark numbers the jobs of a process, and its reads of logs are counted."""
    command = [sys.executable, "-P", "-m", "tests.counts.counted"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=540)
    assert ran.returncode == 0, ran.stderr[-2000:]
    counted: dict[str, Figures] = json.loads(ran.stdout)
    before = stored()
    assert counted.keys() == before.keys()
    changed = [line for part, figures in counted.items() for line in differences(part, before[part], figures)]
    assert not changed, "\n".join(changed)
