"""Rollouts of three sizes beside the model of docs/scale.md, which is fitted to two others, and what `console plan` said of them.

Rows, bytes and batches of a price are exact where batches are cut by rows; its time is by the rate of the region's last batches.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

from console.model.plan import Price
from tests.bench import record, report
from tests.bench.parts import ROOT
from tests.bench.report import Measurement, check
from tests.bench.scale import page
from tests.bench.scale.costs import ScaleCosts, ScaleRecord, ScaleRun, SurveyRun, fitted
from tests.bench.scale.rollout_process import SizedCase
from tests.bench.size import rows, sized

pytestmark = pytest.mark.bench

LARGEST = rows(sized(1_000_000, 10_000_000))
SIZES = (LARGEST // 10, 3 * LARGEST // 10, LARGEST)
FITTED = (LARGEST // 5, 3 * LARGEST // 5)
DAYS = sized(10, 30)
MOST_ROWS = 400_000  # of a batch: the first one of a table has no more, whatever its limit
FILES = (2_000, 42_000)  # of the surveyed tables
OFF, TIME_OFF = 0.2, 1.5
TASKS = 2
COMMITS_BESIDE = 3  # of a new version beside its batches': it is made, and its history and its live feed are opened
SECONDS = 7_200


@dataclass(frozen=True, slots=True)
class PricedRun:
    run: ScaleRun
    price: Price


def cases() -> list[SizedCase]:
    """One that warms the JVM up; those that are fitted, each in few batches and in one a day; then the sizes that are judged."""
    fitting = [SizedCase(rows=count, days=DAYS, limits=(MOST_ROWS, count // DAYS)) for count in FITTED]
    return (
        fitting[:1]
        + fitting
        + [SizedCase(rows=count, days=DAYS, limits=(min(count // 4, MOST_ROWS),)) for count in SIZES]
    )


def printed(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.splitlines()[-1] if done.stdout else ""


def rolled_out(folder: Path) -> list[PricedRun]:
    given = json.dumps([asdict(case) for case in cases()])
    found: list[dict[str, Any]] = json.loads(printed("tests.bench.scale.rollout_process", str(folder), given))
    return [PricedRun(ScaleRun(**each["run"]), Price(**each["price"])) for each in found]


def surveyed(folder: Path, files: int) -> SurveyRun:
    place = folder / str(files)
    place.mkdir()
    for _ in range(2):  # made, then surveyed
        text = printed("tests.bench.scale.survey_process", str(place), str(files))
    return SurveyRun(**json.loads(text))


def test_three_sizes_stay_near_the_model_and_near_their_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = rolled_out(tmp_path)[2:]  # the first ones' JVM still compiles
    fitting, judged = found[: 2 * len(FITTED)], found[2 * len(FITTED) :]
    surveys = [surveyed(tmp_path, files) for files in FILES]
    costs = fitted([each.run for each in fitting], surveys, TASKS)
    for each in judged:
        as_priced(each)
    with capsys.disabled():
        check(*modelled(costs, judged), *timed(judged))
    if os.environ.get(report.VARIABLE):
        keep([each.run for each in found], costs)


def as_priced(each: PricedRun) -> None:
    """raises AssertionError where a price promised another number, or a day has more than a file for each task"""
    run, price = each.run, each.price
    said, was = (price.rows, price.bytes, price.batches), (run.rows, run.landing_bytes, run.batches)
    assert said == was, f"rows, bytes and batches: the plan said {said}, its rollout took {was}"
    assert run.commits == price.batches + COMMITS_BESIDE
    assert run.files <= TASKS * run.days
    assert run.rows in SIZES


def modelled(costs: ScaleCosts, judged: Sequence[PricedRun]) -> Iterable[Measurement]:
    for each in judged:
        wanted = costs.seconds(each.run.rows, each.run.batches)
        ratio = each.run.seconds / wanted
        yield Measurement(
            what=f"a rollout of {each.run.rows:,} rows in {each.run.batches} batches, beside the model of docs/scale.md",
            figure=abs(ratio - 1),
            limit=OFF,
            text=f"{ratio:.2f} × its processor time ({each.run.seconds:.1f}/{wanted:.1f} s)",
        )


def timed(judged: Sequence[PricedRun]) -> Iterable[Measurement]:
    for each in judged:
        ratio = each.run.batch_clock / each.price.seconds
        yield Measurement(
            what=f"time of the batches of {each.run.rows:,} rows, beside the plan's",
            figure=max(ratio, 1 / ratio),
            limit=TIME_OFF,
            text=f"{ratio:.2f} × ({each.run.batch_clock:.1f}/{each.price.seconds:.1f} s); {each.run.written / each.price.written:.2f} × its bytes written",
        )


def keep(runs: Sequence[ScaleRun], costs: ScaleCosts) -> None:
    """Write the record and its page; a record of larger runs stays."""
    if page.RECORD.is_file():
        known = ScaleRecord.read(page.RECORD)
        if max(run.rows for run in known.runs) > max(run.rows for run in runs):
            return
    here = record.this_machine()
    machine = f"{here.cpu}, {here.cores} cores, Spark {here.spark}, Delta {here.delta}"
    kept = ScaleRecord(at=record.now(), commit=record.commit(), machine=machine, runs=tuple(runs), costs=costs)
    kept.write(page.RECORD)
    page.renew()
