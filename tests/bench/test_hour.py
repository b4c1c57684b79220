"""An hour of 1,000 rows a second through two tables, beside a model that is fitted to its first sixth: what grows with a log shows here."""

import os
import statistics
from dataclasses import fields
from pathlib import Path

import pytest

from tests.bench import record, report
from tests.bench.follow_process import MARKS, Mark
from tests.bench.report import Measurement, check
from tests.bench.scale import page
from tests.bench.scale.hour import RECORD, HourRecord
from tests.bench.size import sized
from tests.bench.test_follow import run

pytestmark = pytest.mark.bench
RATE, SECONDS = 1_000, sized(60, 3_600)
LAG = 3.0
OFF = 0.2
# commits of a log: at one a second half a day's
COMMITS, BESIDE_SECONDS, MORE = 50_000, 30, 1.1
NAMES = {"seconds": "processor time", "commits": "commits", "log_bytes": "bytes of their logs"}


def test_following_behind_a_long_log_costs_what_it_costs_behind_a_new_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {
        commits: run(tmp_path / str(commits), RATE, BESIDE_SECONDS, commits=commits, follow_lag_seconds=LAG)
        for commits in (0, COMMITS)
    }
    new, long = (each["cores"] for each in found.values())
    lags = ", ".join(f"{statistics.median(each['lags']):.1f} s" for each in found.values())
    with capsys.disabled():
        check(
            Measurement(
                what=f"processor time of following {RATE:,} rows/s through two tables with logs of {COMMITS:,} commits, beside new ones",
                figure=long / new,
                limit=MORE,
                text=f"{long / new:.1f} times ({long:.0%} of a core and {new:.0%}; p50 of the lag {lags.replace(', ', ' in new ones, ', 1)})",
            )
        )


def test_an_hour_of_rows_takes_six_times_its_first_ten_minutes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = run(tmp_path, RATE, SECONDS, patience=2 * SECONDS + 600, compact=True, follow_lag_seconds=LAG)
    marks = [Mark(**mark) for mark in found["marks"]]
    results = []
    for name in (field.name for field in fields(Mark)):
        begin, sixth, end = (float(getattr(marks[at], name)) for at in (0, 1, MARKS))
        ratio = (end - begin) / ((sixth - begin) * MARKS)
        results.append(
            Measurement(
                what=f"{NAMES[name]} of following {RATE:,} rows/s through two tables for {SECONDS:,} s, beside {MARKS} times the first sixth",
                figure=abs(ratio - 1),
                limit=OFF,
                text=f"{ratio:.2f} × ({end - begin:,.0f})",
            )
        )
    before, after = (Mark(**mark) for mark in found["compaction"])
    compaction, named = after.seconds - before.seconds, after.log_bytes - before.log_bytes
    results.append(
        Measurement(
            what=f"the compaction of two tables after {SECONDS:,} s of {RATE:,} rows/s",
            figure=compaction,
            limit=None,
            text=f"{compaction:.1f} processor seconds; {named:,} bytes of their logs, which name each replaced file",
        )
    )
    with capsys.disabled():
        check(*results)
    if os.environ.get(report.VARIABLE):
        keep(marks[0], marks[-1], before, after)


def keep(first: Mark, last: Mark, before: Mark, after: Mark) -> None:
    """Write the record and the page. first, last: of the following;  before, after: of the compaction"""
    HourRecord(
        at=record.now(),
        commit=record.commit(),
        rate=RATE,
        clock=SECONDS,
        seconds=last.seconds - first.seconds,
        commits=last.commits - first.commits,
        log_bytes=last.log_bytes - first.log_bytes,
        compaction_seconds=after.seconds - before.seconds,
        compaction_bytes=after.log_bytes - before.log_bytes,
    ).write(RECORD)
    page.renew()
