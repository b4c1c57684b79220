"""JUnit's XML: a case for each region's rollout and for each of its checks, and none that passes in silence."""

from collections import Counter
from dataclasses import replace
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import pytest

from console.cli.reports.junit import junit
from console.cli.reports.run_report import RegionVerdict, ReportedError, RunReport, RunState, planned_report
from console.errors import Problem, Problems
from console.model.compared import TOGETHER
from console.model.event import Checked, ComparedDay
from tests.cli import sample
from tests.reports.runs import PLANTED, documents, run

# what Jenkins' schema allows, in its order
CHILDREN = {
    "testsuites": ["testsuite"], "testsuite": ["properties", "testcase"], "properties": ["property"],
    "testcase": ["skipped", "error", "failure"], "property": [], "skipped": [], "error": [], "failure": [],
}  # fmt: skip
ATTRIBUTES = {
    "testsuites": {"name", "time", "tests", "failures", "errors", "skipped"}, "properties": set(), "property": {"name", "value"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time", "timestamp"}, "testcase": {"name", "classname", "time"},
    "skipped": {"message"}, "error": {"message", "type"}, "failure": {"message", "type"},
}  # fmt: skip


def read(text: str) -> Element:
    """The document, once it keeps to the schema and counts what it holds."""
    root = ElementTree.fromstring(text.encode())
    for element in root.iter():
        order = [CHILDREN[element.tag].index(child.tag) for child in element]
        assert order == sorted(order), element.tag
        assert set(element.attrib) <= ATTRIBUTES[element.tag], element.tag
        if element.tag in ("testsuite", "testsuites"):
            cases = element.findall(".//testcase")
            kinds = Counter(child.tag for case in cases for child in case)
            counts = [int(element.attrib[name]) for name in ("tests", "failures", "errors", "skipped")]
            assert counts == [len(cases), kinds["failure"], kinds["error"], kinds["skipped"]]
    names = [(case.attrib["classname"], case.attrib["name"]) for case in root.findall(".//testcase")]
    assert len(names) == len(set(names)), "a CI keeps only the first of two with one name"
    assert names, "a file without a case says that nothing was tested"
    return root


def cases(given: RunReport) -> dict[tuple[str, str], Element]:
    """(region, name) → its case."""
    root = read(junit(given))
    return {
        (case.attrib["classname"].removeprefix("web."), case.attrib["name"]): case
        for case in root.findall(".//testcase")
    }


def test_every_region_has_a_case_for_its_rollout_and_one_for_each_check() -> None:
    checks = ("requests: rows per day", "requests: unchanged columns")
    assert list(cases(run())) == [
        ("us", "rollout"), *(("us", check) for check in checks), ("eu", "rollout"), *(("eu", check) for check in checks),
        ("ap", "rollout"), ("tr", "rollout"),
    ]  # fmt: skip


def test_the_failed_case_names_the_planted_day_and_the_columns_that_differ() -> None:
    case = cases(run())["eu", "requests: rows per day"]
    (failure,) = case
    assert failure.tag == "failure"
    assert PLANTED in failure.attrib["message"]
    assert failure.text == f"{PLANTED}: 1,450 → 1,449\n{PLANTED}: 1,450 rows live, 1,449 new; columns: status"
    assert [len(each) for name, each in cases(run()).items() if name[0] == "us"] == [0, 0, 0]


def test_a_day_whose_columns_are_equal_one_by_one_is_named_by_its_rows_in_every_report() -> None:
    day = ComparedDay(day=PLANTED, old=40, new=40, columns=(TOGETHER,))
    check = Checked(table="requests", check="rows per day", ok=False, detail="", days=(day,))
    xml, page, summary = documents((check,))
    assert all("columns: rows of equal columns" in text for text in (xml, page, summary))
    assert "columns: *" not in xml + page + summary
    assert "<td>*</td>" not in page


def test_a_rollout_at_its_gate_has_passed_and_one_that_failed_or_cannot_be_reached_has_not() -> None:
    results = {
        region: [child.tag for child in case] for (region, name), case in cases(run()).items() if name == "rollout"
    }
    assert results == {"us": [], "eu": ["failure"], "ap": ["failure"], "tr": ["failure"]}


def test_a_check_without_a_result_is_an_error_and_no_success() -> None:
    given = run()
    doubtful = Checked(table="requests", check="rows", ok=None, detail="not compared: a feed has stopped")
    us = replace(given.regions[0], checks=(doubtful,), verdict=RegionVerdict.INCONCLUSIVE)
    result = cases(replace(given, regions=(us,)))
    assert [child.tag for child in result["us", "requests: rows"]] == ["error"]
    assert [child.tag for child in result["us", "rollout"]] == ["error"]


@pytest.mark.parametrize("state", [RunState.REFUSED, RunState.INTERRUPTED, RunState.RUNNING])
def test_a_run_that_ended_before_its_regions_has_a_case_that_says_so(state: RunState) -> None:
    error = None
    if state is RunState.REFUSED:
        problems = (
            Problem(code="P011", message="no region is declared", where="regions/:1:1", hint="write regions/eu.yaml"),
        ) * 2
        error = ReportedError(kind="Problems", message="wrong", problems=problems)
    (case,) = cases(replace(run(), regions=(), state=state, error=error)).values()
    (child,) = case
    assert child.tag == "error"
    if state is RunState.REFUSED:
        assert str(child.text).count("regions/:1:1: no region is declared [P011]") == 2


def test_a_region_that_was_not_begun_is_skipped_and_one_whose_plan_is_refused_has_failed() -> None:
    refused = replace(sample.plans()[0], problems=(replace(sample.SHORT, severity="refuse"),))
    regions = (
        planned_report("us", "prod", 1, refused, RunState.REFUSED),
        planned_report("eu", "prod", 1, sample.plans()[0], RunState.REFUSED),
        planned_report("ap", "prod", 2, None, RunState.INTERRUPTED),
    )
    error = ReportedError(kind=Problems.__name__, message="refused")
    result = cases(replace(run(), regions=regions, state=RunState.REFUSED, error=error))
    assert {region: case[0].tag for (region, _), case in result.items()} == {
        "us": "failure",
        "eu": "skipped",
        "ap": "error",
    }
    assert "landing keeps 9 days" in str(result["us", "rollout"][0].text)
