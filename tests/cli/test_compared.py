"""The comparison per day on the command line: `status`, `show --days` and `diff`; and shares that do not round up."""

import json
from dataclasses import replace

import pytest

from console.agent.compared.checks import compared_days, day_tally, rows_check
from console.agent.compared.round import WHOLE, portions
from console.cli.reports.words import differing_days
from console.cli.status_text import region_data, status_text
from console.model.compared import PAGE, ROWS, ColumnRange, ComparedColumn, DayExamples, ExampleRows
from console.model.live import Day
from console.model.share import percent_shown, percent_text
from console.model.slices import Slice
from console.model.status import Status
from console.model.step import Comparison
from console.model.step_status import StepStatus
from tests.cli.conftest import World
from tests.cli.test_status_text import views

PLAN = Comparison(table="requests", pairs=(), time="ts")


def records(days: int, wrong: int) -> list[ComparedColumn]:
    """Days of 60 rows, of which the first ones have lost a row."""
    return [
        ComparedColumn(
            table="requests", day=f"2026-{9 + n // 28:02}-{1 + n % 28:02}", column=ROWS, old=60, new=60 - (n < wrong),
            equal=n >= wrong, old_version=7, new_version=2,
        )
        for n in range(days)
    ]  # fmt: skip


def status(days: int, wrong: int) -> Status:
    made = records(days, wrong)
    return replace(views()[-1].status, checks=(rows_check(PLAN, compared_days(made), made),))


def test_status_has_the_tally_the_first_twenty_days_that_differ_and_their_number() -> None:
    view = replace(views()[-1], status=status(100, 31))
    compared = region_data(view)["comparison"]
    assert [{key: value for key, value in each.items() if "_" not in key} for each in compared] == [
        {"table": "requests", "days": 100, "equal": 69, "differing": 31, "quarantined": 0}
    ]
    assert [day["day"] for day in compared[0]["differing_days"]] == [each.day for each in records(20, 0)]
    text = " ".join(status_text([view], {}).split())
    assert "requests: 31 of 100 days differ: 2026-09-01 (60 → 59 rows), 2026-09-02 (60 → 59 rows)" in text
    assert "2026-09-20 (60 → 59 rows) and 11 more; every day: console show web-8 --days" in text
    stored = view.status.checks[0].days
    assert (sum(not day.equal for day in stored), sum(day.equal for day in stored)) == (20, 40)


def test_a_report_names_the_first_days_and_counts_the_others() -> None:
    (check,) = status(100, 31).checks
    *named, rest = differing_days(check)
    assert (len(named), rest) == (20, "and 11 days more")


def test_a_table_whose_days_are_equal_has_no_line() -> None:
    view = replace(views()[-1], status=status(14, 0))
    assert "days differ" not in status_text([view], {})
    assert region_data(view)["comparison"][0]["differing_days"] == []


@pytest.mark.slow
def test_show_reads_every_record_page_by_page(deployed: World) -> None:
    many = [replace(each, table=f"t{n:03}") for n in range(60) for each in records(90, 1)]
    deployed.regions["eu"].compared = {"web-1": tuple(many)}
    assert len(many) > PAGE
    data = json.loads(deployed.call("show", "web-1", "--days", "--region", "eu", "--output", "json").stdout)
    assert [entry["region"] for entry in data["regions"]] == ["eu"]
    assert len(data["regions"][0]["records"]) == len(many)
    assert set(data["regions"][0]["records"][0]) == {
        "table", "day", "column", "old", "new", "equal", "changed", "of", "quarantined", "portion", "old_version", "new_version", "at"
    }  # fmt: skip
    text = deployed.call("show", "web-1", "--days").stdout
    assert "us: web-1: nothing was recorded of a comparison" in text
    assert "eu: web-1: t000, 90 days, 1 of them different (versions 7 and 2)" in text
    assert "  2026-09-01  rows     60   59  DIFFERS" in text


EXAMPLES = DayExamples(
    table="requests",
    day="2026-11-07",
    old_version=7,
    new_version=2,
    differing=ExampleRows((("id", "string"), ("status", "int")), (("e7", 404), ("e8", None)), ()),
    changed=ExampleRows((("id", "string"),), (), ()),
    ranges=(ColumnRange(column="agent", old_least=None, old_greatest=None, new_least="curl", new_greatest="wget"),),
)


@pytest.mark.slow
def test_diff_shows_the_rows_of_each_version(deployed: World) -> None:
    deployed.regions["eu"].examples = {("requests", "2026-11-07"): EXAMPLES}
    words = ("diff", "--table", "requests", "--day", "2026-11-07", "--region", "eu")
    text = deployed.call(*words).stdout
    assert "eu: requests on 2026-11-07 (versions 7 and 2)" in text
    assert "columns that must be equal: 2 only in the old version" in text
    assert "    e8  NULL" in text
    assert "agent: from NULL … NULL to curl … wget" in text
    data = json.loads(deployed.call(*words, "--output", "json").stdout)
    assert data["regions"][0]["differing"]["old"] == [{"id": "e7", "status": 404}, {"id": "e8", "status": None}]
    assert data["regions"][0]["versions"] == {"old": 7, "new": 2}


@pytest.mark.slow
@pytest.mark.parametrize("day", ["yesterday", "2026-11-7", "2026-13-01", ""])
def test_diff_refuses_what_is_no_day(deployed: World, day: str) -> None:
    result = deployed.call("diff", "--table", "requests", "--day", day, "--region", "eu")
    assert (result.exit_code, "is not a day" in result.stderr) == (64, True)


@pytest.mark.parametrize(
    ("share", "digits", "shown"), [(0.9996, 0, 99), (0.99999, 1, 99.9), (1.0, 0, 100), (0.666, 0, 67), (0.0, 0, 0)]
)
def test_a_share_is_a_hundred_percent_only_of_the_whole(share: float, digits: int, shown: float) -> None:
    assert percent_shown(share, digits) == shown


def test_a_step_is_done_at_a_hundred_and_not_before() -> None:
    step = StepStatus(
        id="backfill/requests/parse", state="running", rows_done=60, rows_total=60, slices=3, slices_done=2
    )
    assert (step.percent, replace(step, state="done").percent) == (99, 100)
    assert (percent_text(1, 1000), percent_text(999, 1000), percent_text(0, 0)) == ("under 1 %", "99 %", "0 %")


def days(*rows: int, exact: bool = True) -> list[Day]:
    return [Day(f"2026-11-{n:02}", each, 1, exact) for n, each in enumerate(rows, 1)]


def test_a_portion_is_some_batches_and_a_sixteenth_of_the_table_at_least() -> None:
    def labels(parts: tuple[tuple[Slice, ...], ...]) -> list[int]:
        return [len(part) for part in parts]

    assert labels(portions(days(*[60] * 14), 30)) == [4, 4, 4, 3]  # with the rows without a time
    assert len(portions(days(*[10_000] * 30), 10)) == 16
    assert portions(days(*[60] * 14), None) == (WHOLE,)
    assert portions(days(*[60] * 14, exact=False), 30) == (WHOLE,)
    assert portions([], 30) == (WHOLE,)


def test_rows_that_quarantine_explains_are_counted_in_the_tally() -> None:
    made = [replace(each, quarantined=2) for each in records(3, 0)]
    assert day_tally(compared_days(made), made).quarantined == 6
    assert rows_check(PLAN, compared_days(made), made).detail.endswith("; 6 rows in quarantine are not counted")
