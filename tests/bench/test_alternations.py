"""Promotion and rollback in turn, under traffic and before readers: how long until the other release is readable."""

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.bench.alternation_readers import READERS
from tests.bench.alternations_process import TABLES
from tests.bench.parts import ROOT
from tests.bench.report import Measurement, check
from tests.bench.size import sized

pytestmark = pytest.mark.bench
TIMES = sized(20, 200)
READABLE_MS, REBOUND_MS, DRAIN_SECONDS = 300, 40, 3.0
SECONDS = 3_600


def measured(place: Path, rebound: int) -> dict[str, Any]:
    words = [sys.executable, "-m", "tests.bench.alternations_process", str(place), str(TIMES), str(rebound)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def p99(figures: list[float]) -> float:
    return sorted(figures)[min(len(figures) - 1, round(0.99 * len(figures)))]


@pytest.mark.parametrize("rebound", [0, 5])
def test_the_other_release_is_readable_at_once_and_no_read_fails(
    rebound: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = measured(tmp_path, rebound)
    readers = found["readers"]
    assert readers["releases"] == 2, readers
    assert readers["reads"] >= TIMES, readers
    assert (readers["failed"], readers["torn"], found["refused"]) == (0, 0, []), (
        readers["notes"],
        found["refused"][:3],
    )
    readable, drain = ([1000 * each for each in found["readable"]], list(found["drain"]))
    of = f"{TIMES} alternations of {TABLES} tables, {rebound} of them rebound, at 1,000 rows/s"
    goal = READABLE_MS + rebound * REBOUND_MS
    read = f"{readers['reads']:,} reads by {READERS} readers, none failed or torn"
    with capsys.disabled():
        check(
            Measurement(
                what=f"from level feeds to readable, ms, p99 of {of}", figure=p99(readable), limit=goal,
                text=f"p99 {p99(readable):.0f} ms, p50 {statistics.median(readable):.0f} ms; {read}",
            ),
            Measurement(
                what=f"first reads of a release that show fewer rows than its predecessor did, of {of}", figure=readers["behind"],
                limit=0, text=f"{readers['behind']} of {readers['reads']:,} reads" + (f" ({readers['notes'][0]})" if readers["behind"] else ""),
            ),
            Measurement(
                what=f"drain before that, seconds, p99 of {of}", figure=p99(drain), limit=DRAIN_SECONDS,
                text=f"p99 {p99(drain):.2f} s, p50 {statistics.median(drain):.2f} s; a batch of the intake waited {found['wait']:.2f} s (median)",
            ),
        )  # fmt: skip
