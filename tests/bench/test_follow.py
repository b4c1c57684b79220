"""Following: from a landing commit to its row two tables further, alone and beside a backfill; and after a rest."""

import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from console.model.region import WAKE_SECONDS
from tests.agent.test_asleep import cycles
from tests.bench import beside_process
from tests.bench.report import Measurement, check
from tests.bench.rollouts import rounds_of, seconds
from tests.bench.size import SIZE, Size, rows, sized

SECONDS = sized(40, 120)
# rows a second, and `follow.lag` in seconds; None for the default share of a core
LONG = tuple((rate, lag) for lag in (None, 3.0) for rate in (100, 1_000, 10_000))
RATES: Mapping[Size, Sequence[tuple[int, float | None]]] = {Size.SMALL: ((1_000, 3.0),), Size.LONG: LONG}
RATE, LAG, LAG_BESIDE = 1_000, 3.0, 5.0  # at that rate, the goals of p99 in seconds: alone, and beside a backfill
BUILT_ROWS = rows(300_000)
BACKLOG_ROWS, BACKLOG = sized(300_000, 1_000_000), 0.5  # of the plain INSERT's throughput

pytestmark = pytest.mark.bench


def distribution(of: str, lags: list[float], limit: float | None, more: str) -> list[Measurement]:
    """Rows of p99, with its goal, and of p50."""
    found = sorted(lags)
    p50, p99 = statistics.median(found), found[min(len(found) - 1, round(0.99 * len(found)))]
    return [
        Measurement(what=f"lag of {of}: p99", figure=p99, limit=limit, text=f"{p99:.1f} s of {len(found)} commits, {more}"),
        Measurement(what=f"lag of {of}: p50", figure=p50, limit=None, text=f"{p50:.1f} s"),
    ]  # fmt: skip


def run(
    place: Path,
    rate: int,
    seconds: float,
    patience: float = 600,
    commits: int = 0,
    compact: bool = False,
    **settings: Any,
) -> dict[str, Any]:
    """commits: of each table, before rows land;  compact: measure a compaction after that"""
    given = json.dumps({"region": "eu", "master": "local[2]", "tick_seconds": 0.5, **settings})
    command = [
        sys.executable,
        "-m",
        "tests.bench.follow_process",
        str(place),
        str(rate),
        str(seconds),
        given,
        str(commits),
        str(int(compact)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=patience)
    assert done.returncode == 0, done.stderr[-3000:]
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


@pytest.mark.parametrize(("rate", "lag"), RATES[SIZE])
def test_a_row_is_readable_two_tables_further_within_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: int, lag: float | None
) -> None:
    report = run(tmp_path, rate, SECONDS, **({} if lag is None else {"follow_lag_seconds": lag}))
    by = "by the default share" if lag is None else f"`follow.lag` {lag:g} s"
    of = f"two tables at {rate:,} rows/s for {SECONDS} s, {by}"
    goal = LAG if rate == RATE and lag is not None else None
    with capsys.disabled():
        check(*distribution(of, report["lags"], goal, f"at {report['cores']:.0%} of a core"))


def test_a_row_is_readable_soon_beside_a_backfill(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [sys.executable, "-m", beside_process.__name__, str(tmp_path), str(BUILT_ROWS), str(RATE)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=3_600)
    assert done.returncode == 0, done.stderr[-3000:]
    report = json.loads(done.stdout.splitlines()[-1])
    of = f"two tables at {RATE:,} rows/s beside a rebuild of both from {BUILT_ROWS:,} rows, `follow.lag` {beside_process.LAG:g} s"
    with capsys.disabled():
        check(*distribution(of, report["lags"], LAG_BESIDE, f"in {report['seconds']:.0f} s"))


def test_a_backlog_drains_at_half_the_throughput_of_the_bare_insert(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rounds_of("backlog", tmp_path, BACKLOG_ROWS, 1, 2)
    times = statistics.median(each["bare"] / each["drained"] for each in found)
    text = f"{times:.2f} times ({seconds(found, 'drained')} and {seconds(found, 'bare')} processor seconds)"
    what = f"throughput of following a backlog of {BACKLOG_ROWS:,} rows, beside the plain INSERT"
    with capsys.disabled():
        check(Measurement(what=what, figure=times, limit=BACKLOG, text=text, at_least=True))


def test_a_region_that_wakes_reads_its_first_row_soon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = cycles(tmp_path, 3)
    wakes = sorted(cycle["wake"] for cycle in report["cycles"])
    text = f"{statistics.median(wakes):.1f} s ({', '.join(f'{wake:.1f}' for wake in wakes)})"
    with capsys.disabled():
        check(Measurement(what="first row of a region that wakes", figure=wakes[1], limit=WAKE_SECONDS, text=text))
