"""Following: from a landing commit to its row two tables further, alone on the machine; and what a region at rest holds."""

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from console.model.region import WAKE_SECONDS
from tests.agent.test_asleep import cycles
from tests.bench.report import Measurement, check

SECONDS = 120
LAG = 3.0  # the goal of p99 at 1,000 rows a second
REST_MIB, REST_CORES = 150.0, 0.0005  # of each of twenty regions that use 1 % of a core together
MIB = 1 << 20

pytestmark = pytest.mark.bench


def run(place: Path, rate: int, seconds: float, **settings: Any) -> dict[str, Any]:
    given = json.dumps({"region": "eu", "master": "local[2]", "tick_seconds": 0.5, **settings})
    command = [sys.executable, "-m", "tests.bench.follow_process", str(place), str(rate), str(seconds), given]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.mark.parametrize("rate", [100, 1000])
@pytest.mark.parametrize("lag", [None, 3.0], ids=["by share", "lag 3s"])
def test_a_row_is_readable_two_tables_further_within_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: int, lag: float | None
) -> None:
    report = run(tmp_path, rate, SECONDS, **({} if lag is None else {"follow_lag_seconds": lag}))
    found = sorted(report["lags"])
    p50, p99 = statistics.median(found), found[min(len(found) - 1, round(0.99 * len(found)))]
    by = "by the default share" if lag is None else f"`follow.lag` {lag:g} s"
    text = f"p99 {p99:.1f} s, p50 {p50:.1f} s, at {report['cores']:.0%} of a core"
    with capsys.disabled():
        check(Measurement(what=f"lag of two tables at {rate:,} rows/s, {by}", figure=p99, limit=LAG, text=text))


def test_a_region_at_rest_holds_little_and_does_little(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = run(tmp_path, 0, 60)
    assert not report["spark"]
    loaded = ", ".join(report["modules"]) or "neither pyspark nor pyarrow"
    mib = report["pss"] / MIB
    with capsys.disabled():
        check(
            Measurement(
                what="an agent at rest: memory", figure=mib, limit=REST_MIB, text=f"{mib:.0f} MiB ({loaded} loaded)"
            )
        )
        text = f"{report['cores']:.2%} of a core, of {os.cpu_count()}"
        check(Measurement(what="an agent at rest: processor", figure=report["cores"], limit=REST_CORES, text=text))


def test_a_region_that_wakes_reads_its_first_row_soon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = cycles(tmp_path, 3)
    wakes = sorted(cycle["wake"] for cycle in report["cycles"])
    text = f"{statistics.median(wakes):.1f} s ({', '.join(f'{wake:.1f}' for wake in wakes)})"
    with capsys.disabled():
        check(Measurement(what="first row of a region that wakes", figure=wakes[1], limit=WAKE_SECONDS, text=text))
