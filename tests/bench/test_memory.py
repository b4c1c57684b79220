"""The memory needed to follow regions: no more after two million events than after four hundred thousand."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.report import Measurement, check

pytestmark = pytest.mark.bench
ROOT = Path(__file__).resolve().parents[2]
FEW, MANY, RATIO = 400_000, 2_000_000, 1.05


def test_memory_does_not_grow_with_the_number_of_events(capsys: pytest.CaptureFixture[str]) -> None:
    words = [sys.executable, "-m", "tests.bench.memory_process", str(FEW), str(MANY)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    octets = json.loads(done.stdout)
    few, many = octets[str(FEW)], octets[str(MANY)]
    text = f"{many / few:.3f} times that after {FEW:,} ({few >> 20} and {many >> 20} MiB)"
    with capsys.disabled():
        check(Measurement(what=f"memory after {MANY:,} events", figure=many / few, limit=RATIO, text=text))
