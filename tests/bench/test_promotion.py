"""The command by which a person opens a gate, as a process: from its start to its end, at a region whose agent answers at once."""

import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.bench.report import Measurement, check
from tests.bench.stand_in import REGION, ROOT, AtGate

pytestmark = pytest.mark.bench
RUNS = 15
SECONDS = 0.6


def test_a_promotion_is_a_short_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))  # a longer path is too long for a socket
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)  # an installed console has its modules compiled
    region = AtGate(tmp_path / "project")
    words = [sys.executable, "-m", "console.main", "promote", "--region", REGION, "--yes"]
    processor, seconds = [], []
    for _ in range(1 + RUNS):
        with region.served():
            before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
            done = subprocess.run(words, cwd=region.root, env=os.environ, capture_output=True, text=True, check=False)
            seconds.append(time.monotonic() - began)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 0, done.stderr
        assert f"{REGION}: r1 is live" in done.stdout
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    middle, busy = statistics.median(seconds[1:]), statistics.median(processor[1:])
    text = f"p50 {middle:.2f} s, the longest of {RUNS} {max(seconds[1:]):.2f} s; {busy:.2f} processor seconds"
    with capsys.disabled():
        check(Measurement(what="`console promote`, the process", figure=min(middle, busy), limit=SECONDS, text=text))
