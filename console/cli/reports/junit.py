"""A run as JUnit's XML: a suite for each region, with a case for its rollout and one for each of its checks.

source  the elements that GitLab, GitHub's readers and Jenkins share: testsuites, testsuite, properties, testcase, failure,
        error, skipped (jenkins-junit.xsd)
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import assert_never

from console.cli.reports.run_report import RegionReport, RegionVerdict, ReportedError, RunReport, RunState
from console.cli.reports.words import error_lines, headline, release_words, unlike
from console.markup import Element, element, xml
from console.model.event import Checked

ROLLOUT = "rollout"  # the case of a region's rollout; those of checks have a colon in their names


def junit(run: RunReport) -> str:
    """The whole document. It always has a case: a file without one means that nothing was tested."""
    suites = [_suite(run, region) for region in run.regions]
    if run.error and not any(region.error for region in run.regions):
        suites.append(_whole(run, run.error))
    elif not suites:
        suites.append(_whole(run, None))
    return xml(
        element("testsuites", *suites, name=f"{run.command} {run.pipeline}".strip(), **_sums(suites), time=_took(run))
    )


def _suite(run: RunReport, region: RegionReport) -> Element:
    place = f"{run.pipeline}.{region.region}"
    cases = [_rollout(place, region), *(_check(place, check, region.accepted(check)) for check in region.checks)]
    properties = [
        element("property", name=name, value=value)
        for name, value in (
            ("release", release_words(region)),
            ("rollout", region.rollout),
            ("state", region.state),
            ("environment", region.environment),
            ("plan", region.plan.digest() if region.plan else ""),
        )
        if value
    ]
    return element(
        "testsuite",
        element("properties", *properties),
        *cases,
        name=region.region,
        **_counted(cases),
        time=f"{region.course.busy_seconds:.3f}",
        timestamp=_stamp(run.began),
    )


def _rollout(place: str, region: RegionReport) -> Element:
    attributes: dict[str, str] = {"classname": place, "name": ROLLOUT, "time": f"{region.course.busy_seconds:.3f}"}
    words = f"{region.region}: {region.state}"
    match region.verdict:
        case RegionVerdict.PASSED | RegionVerdict.AT_GATE:
            return element("testcase", **attributes)
        case RegionVerdict.SKIPPED:
            return element("testcase", element("skipped", message=words), **attributes)
        case RegionVerdict.FAILED if region.error:
            return element("testcase", _error("failure", region.error), **attributes)
        case RegionVerdict.FAILED:
            return element("testcase", element("failure", words, message=words, type="failed"), **attributes)
        case RegionVerdict.INCONCLUSIVE | RegionVerdict.UNFINISHED:
            words = f"{words}: {region.verdict.value}"
            text = [*(error_lines(region.error) if region.error else ()), words]
            return element("testcase", element("error", *text, message=text[0], type=region.verdict.name), **attributes)
        case _:
            assert_never(region.verdict)


def _check(place: str, check: Checked, accepted: str) -> Element:
    """A failed check names the differing days and calls; an inconclusive one is an error, never a success, and skipped
    if a person accepted it."""
    attributes = {"classname": place, "name": f"{check.table}: {check.check}"}
    if check.ok is True:
        return element("testcase", **attributes)
    if accepted:
        return element(
            "testcase", element("skipped", message=f"inconclusive, {accepted}: {check.detail}"), **attributes
        )
    kind, word = ("failure", "differs") if check.ok is False else ("error", "inconclusive")
    lines = [check.detail, *unlike(check)]
    return element("testcase", element(kind, *lines, message=check.detail, type=word), **attributes)


def _whole(run: RunReport, error: ReportedError | None) -> Element:
    """The run itself, for outcomes that no region's case shows: invalid files, an unreachable region, an early end."""
    lines = list(error_lines(error)) if error else [headline(run)]
    name = "run" if run.state is not RunState.REFUSED else "files and plans"
    inner = element("error", *lines, message=lines[0], type=error.kind if error else run.state.name)
    case = element("testcase", inner, classname=run.pipeline or "console", name=name, time=_took(run))
    return element("testsuite", case, name=name, **_counted([case]), time=_took(run), timestamp=_stamp(run.began))


def _error(kind: str, error: ReportedError) -> Element:
    lines = list(error_lines(error))
    return element(kind, *lines, message=lines[0], type=error.kind)


def _counted(cases: list[Element]) -> dict[str, int]:
    return {"tests": len(cases), **{f"{kind}s" if kind != "skipped" else kind: _with(cases, kind) for kind in _KINDS}}


_KINDS = ("failure", "error", "skipped")


def _with(cases: list[Element], kind: str) -> int:
    return sum(any(isinstance(child, Element) and child.name == kind for child in case.children) for case in cases)


def _sums(suites: list[Element]) -> dict[str, int]:
    return _counted([case for suite in suites for case in _cases(suite)])


def _cases(suite: Element) -> Iterator[Element]:
    yield from (child for child in suite.children if isinstance(child, Element) and child.name == "testcase")


def _took(run: RunReport) -> str:
    return f"{max(0.0, run.at - run.began):.3f}"


def _stamp(at: float) -> str:
    """UTC, without a zone: the schema has none."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%S}"
