"""The arithmetic of docs/scale.md: costs that runs were made from are found again, and a fleet is their sum."""

from dataclasses import asdict, replace
from pathlib import Path

import pytest

from console import project
from console.model.region import Limits, Prices
from tests.bench.parts import ROOT
from tests.bench.scale import hour, page
from tests.bench.scale.costs import ScaleCosts, ScaleRecord, ScaleRun, SurveyRun, fitted
from tests.bench.scale.hour import HourRecord
from tests.bench.scale.model import HOUR, TB, Fleet, bounds, packed, region_total

COSTS = ScaleCosts(
    row_seconds=1e-5, batch_seconds=0.5, rollout_seconds=4.0, landing_row_bytes=50.0, written_row_bytes=20.0, commits=2.0,
    commit_bytes=700.0, file_bytes=900.0, files_a_day=2.0, batch_bytes=5_000.0, survey_file_seconds=1e-5,
    survey_file_bytes=500.0, tasks=2,
)  # fmt: skip
PRICES = Prices(core_hour=0.05, tb_read=5.0, tb_month=23.0, currency="USD")
FLEET = Fleet(bytes=TB, days=100, cores=64, file_bytes=1e8)
SURVEYS = [SurveyRun(files=n, seconds=0.1 + n * 1e-5, memory=60_000_000 + n * 500) for n in (2_000, 42_000)]


def run(rows: int, batches: int, days: int = 10) -> ScaleRun:
    """As the costs would have it."""
    files, commits = 2 * days, batches + 2
    return ScaleRun(
        rows=rows, batches=batches, seconds=COSTS.seconds(rows, batches), batch_clock=1.0, landing_bytes=50 * rows,
        written=20 * rows, files=files, days=days, commits=commits, log_bytes=700 * commits + 900 * files,
        stored_bytes=3_000 + 5_000 * batches,
    )  # fmt: skip


RUNS = [run(200_000, 1), run(200_000, 10), run(600_000, 2, days=20), run(600_000, 20, days=20)]


def test_costs_are_found_again_from_runs() -> None:
    assert asdict(fitted(RUNS, SURVEYS, 2)) == pytest.approx(asdict(COSTS))


def test_no_cost_is_below_zero() -> None:
    cheaper = [replace(each, seconds=each.seconds - 0.6 * each.batches) for each in RUNS]  # a batch would cost -0.1 s
    costs = fitted(cheaper, SURVEYS, 2)
    assert costs.batch_seconds == 0
    assert costs.row_seconds == pytest.approx(1e-5, rel=0.2)


def test_a_region_takes_the_sum_of_its_rows_batches_and_rollout() -> None:
    total = region_total(COSTS, FLEET, PRICES, Limits())
    assert total.rows == pytest.approx(2e10)
    assert total.batches == 100, "a day of 200 million rows takes 31 s of the 60 that are aimed at: no two fit"
    seconds = 2e10 * 1e-5 + 100 * 0.5 + 4
    assert total.core_hours * HOUR == pytest.approx(seconds)
    assert total.hours * HOUR == pytest.approx(2e10 * 1e-5 / 64 + 54)
    assert total.money == pytest.approx(5 + seconds / HOUR * 0.05)
    assert total.monthly == pytest.approx(0.4 * 23)
    assert (total.commits, total.files) == (102, 6_400)
    assert total.log_bytes == pytest.approx(102 * 700 + 6_400 * 900)
    assert total.survey_seconds == pytest.approx((6_400 + 10_000) * 1e-5)


def test_batches_hold_whole_days_up_to_the_target() -> None:
    assert packed(COSTS, FLEET, 2e9, Limits()) == [19 * 20_000_000] * 5 + [5 * 20_000_000], "384 million rows in 60 s"
    assert max(packed(COSTS, FLEET, 1.5e11, Limits())) == 1_500_000_000, "a day of 234 s"
    assert max(packed(COSTS, FLEET, 1.6e11, Limits())) <= 384_000_000, "one of 250 s is cut into its hours"
    hours = packed(COSTS, FLEET, 2e10, Limits(rows=100_000_000))
    assert max(hours) <= 100_000_000, "a limit cuts a day into its hours"
    assert sum(hours) == pytest.approx(2e10, rel=1e-5)


def test_what_breaks_first_stands_in_front() -> None:
    found = bounds(region_total(COSTS, replace(FLEET, bytes=100 * TB), PRICES, Limits()), Limits())
    assert [bound.share for bound in found] == sorted((bound.share for bound in found), reverse=True)
    assert found[0].share > 1


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    record = ScaleRecord(at="2026-11-29 12:00Z", commit="c", machine="m", runs=tuple(RUNS), costs=COSTS)
    record.write(tmp_path / "record.json")
    assert ScaleRecord.read(tmp_path / "record.json") == record
    text = page.rendered(record, PRICES)
    assert "10.00 µs of processor time" in text
    assert all(line.count("|") > 2 for line in text.splitlines() if line.startswith("|"))


def test_an_hour_is_told_beside_a_day_and_a_longer_measurement_stays(tmp_path: Path) -> None:
    measured = HourRecord(
        at="a",
        commit="c",
        rate=1_000,
        clock=1_800,
        seconds=360.0,
        commits=900,
        log_bytes=10**6,
        compaction_seconds=18.0,
        compaction_bytes=10**6,
    )
    measured.write(tmp_path / "hour.json")
    replace(measured, clock=60, seconds=1.0).write(tmp_path / "hour.json")
    assert HourRecord.read(tmp_path / "hour.json") == measured
    assert dict(measured.over(3_600)) == {
        "rows": "3,600,000",
        "processor time": "0.20 core hours, 20% of a core",
        "commits of the two tables": "1,800",
        "their logs, before the clean-up": "2.0 MB",
    }
    record = ScaleRecord(at="2026-11-29 12:00Z", commit="c", machine="m", runs=tuple(RUNS), costs=COSTS)
    assert "| rows | 3,600,000 | 86,400,000 |" in page.rendered(record, PRICES, measured)
    assert "18 processor seconds and 1.0 MB of the logs" in page.rendered(record, PRICES, measured)
    assert "## Following" not in page.rendered(record, PRICES)


def test_the_page_is_what_its_record_says_and_there_is_none_without() -> None:
    assert page.PAGE.is_file() == page.RECORD.is_file(), "python -m tests.bench.scale"
    if page.RECORD.is_file():
        record, prices = ScaleRecord.read(page.RECORD), project.load(ROOT).region("us").prices
        assert page.PAGE.read_text() == page.rendered(record, prices, hour.known()), "python -m tests.bench.scale"
