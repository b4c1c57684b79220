"""An agent that is ready for its first Spark job, beside a bare SparkSession with Delta: processor seconds of each, in a fresh interpreter."""

import os
import statistics
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.parts import ROOT
from tests.bench.report import Measurement, check

pytestmark = pytest.mark.bench
ROUNDS = 3
TIMES = 1.25


def seconds(*words: str) -> float:
    command = [sys.executable, "-m", "tests.bench.start_process", *words]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}  # an installed console has its modules compiled
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return float(done.stdout.splitlines()[-1])


def test_an_agent_is_ready_little_later_than_a_bare_session(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = []
    for number in range(1 + ROUNDS):  # the first one compiles modules and fills the page cache
        place = tmp_path / str(number)
        place.mkdir()
        pairs.append((seconds("agent", str(place)), seconds("bare")))
    ours, bare = (statistics.median(figures) for figures in zip(*pairs[1:], strict=True))
    what = "an agent, from the start of its process to the end of its first Spark job, beside a bare session"
    text = f"{ours / bare:.2f} times ({ours:.1f}/{bare:.1f} processor seconds)"
    with capsys.disabled():
        check(Measurement(what=what, figure=ours / bare, limit=TIMES, text=text))
