"""Recorded calls in a report and in `status`: figures of each side, a line for each call that differs, and no value."""

from dataclasses import replace

import pytest

from console.cli.compared_text import calls_data
from console.cli.reports.html import page
from console.cli.reports.junit import junit
from console.cli.reports.markdown import markdown
from console.cli.reports.run_report import RunReport
from console.model.event import Checked
from console.model.recorded_call import CallCost, ReplayedCall
from console.model.status import Status
from tests.reports import strict
from tests.reports.runs import run
from tests.reports.test_junit import read

LOST = "1 of 14 rows only live, 0 of 13 only new"
CALLS = (
    ReplayedCall(
        endpoint="top", name="newest day", same=False, same_cost=True, rows_live=14, rows_new=13, only_live=1,
        live=CallCost(0.125, 2, 4096), new=CallCost(0.25, 14, 40960), runs=4, why=LOST,
    ),
    ReplayedCall(endpoint="top", name="of <all>", same=True, same_cost=True, rows_new=7, new=CallCost(0.5, 3, 512), runs=4),
    ReplayedCall(endpoint="top", name="late", same=None, same_cost=None, why="not run: the calls before it took 120 s"),
)  # fmt: skip
CHECK = Checked(table="top", check="recorded calls: answers", ok=False, detail="newest day differs", calls=CALLS)


def with_calls(given: RunReport) -> RunReport:
    first, *others = given.regions
    return replace(given, regions=(replace(first, checks=(*first.checks, CHECK)), *others))


def test_the_failed_case_has_a_line_for_each_call_that_differs() -> None:
    root = read(junit(with_calls(run())))
    (case,) = [case for case in root.findall(".//testcase") if case.attrib["name"] == "top: recorded calls: answers"]
    (failure,) = case
    assert failure.tag == "failure"
    lines = ["newest day differs", f"newest day: {LOST}", "late: not run: the calls before it took 120 s"]
    assert (failure.text or "").splitlines() == lines


@pytest.mark.slow
def test_the_page_and_the_summary_have_the_figures_of_both_sides() -> None:
    shown = strict.read(page(with_calls(run())))
    (table,) = [table for table in shown.all("table") if "files read" in table.text]
    rows = [[cell.text for cell in row.children] for row in table.all("tr")[1:]]
    assert [cells[2:] for cells in rows] == [
        ["14 → 13", "2 → 14", "4 KiB → 40 KiB", "0.12 s → 0.25 s"],
        ["7", "3", "512 B", "0.50 s"],
        ["–", "–", "–", "–"],
    ]
    assert rows[1][0] == "of <all>"
    assert "2 → 14" in markdown(with_calls(run()))
    assert "of <all>" not in markdown(with_calls(run()))


def test_status_as_data_has_each_call_with_what_it_cost() -> None:
    first, second, late = calls_data(Status(checks=(CHECK,)))
    assert (first["only_live"], first["new"]) == (1, {"seconds": 0.25, "files": 14, "bytes": 40960})
    assert second["live"] is None
    assert (late["same"], late["why"]) == (None, "not run: the calls before it took 120 s")
    assert calls_data(Status()) == []
