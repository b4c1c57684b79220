"""Hundreds of regions that report: followed on one core, in memory that does not grow, with every stored event in the journal."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.report import Measurement, check
from tests.bench.runner_process import REGIONS

pytestmark = pytest.mark.bench
ROOT = Path(__file__).resolve().parents[2]
A_SECOND = 20  # events of each region
FEW, MANY = 400_000, 2_000_000
CORES, MEBIBYTES, RATIO, RESUMED_SECONDS = 1.0, 400, 1.05, 5.0


def test_a_large_fleet_is_followed_on_one_core_and_every_stored_event_is_in_the_journal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [sys.executable, "-m", "tests.bench.runner_process", str(FEW), str(MANY)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    data = json.loads(done.stdout)
    assert data["journal"] == data["stored"] > MANY // 100
    assert data["whole"] == REGIONS
    cores = data["seconds"] * REGIONS * A_SECOND / MANY
    few, many = (data["memory"][str(number)] >> 20 for number in (FEW, MANY))
    fleet = f"{REGIONS} regions at {A_SECOND} events a second each"
    results = [
        Measurement(what=f"{fleet}: parsed, folded, written", figure=cores, limit=CORES, text=f"{cores:.2f} of a core"),
        Measurement(
            what=f"{fleet}: memory after {MANY:,} events", figure=many, limit=MEBIBYTES, text=f"{many} MiB"
        ),
        Measurement(
            what=f"{fleet}: growth of memory", figure=many / few, limit=RATIO, text=f"{many / few:.3f} times that after {FEW:,}"
        ),
        Measurement(
            what=f"{REGIONS} regions taken up by another console", figure=data["resume"], limit=RESUMED_SECONDS,
            text=f"{data['resume']:.1f} processor seconds",
        ),
    ]  # fmt: skip
    with capsys.disabled():
        for result in results:
            check(result)
