"""Every crash point of the package is armed by some test, or this folder says by which one elsewhere."""

import re
from pathlib import Path

import pytest

from tests.faults import points, report
from tests.soak import lines

pytestmark = pytest.mark.slow

PACKAGE = Path(__file__).resolve().parent.parent.parent / "console"
CALL = re.compile(r'crash\.point\(f?"([^"]+)"\)')
TIDYING = (*points.TIDYING, *points.REST_TIDYING)
ARMED = (*points.AGENT, *points.BACK, *points.CONSOLE, *TIDYING, "console-before-plan-file", "console-plan-file")


def named() -> dict[str, str]:
    """Every point as it is spelled in the package → the file it is in."""
    return {name: path.name for path in PACKAGE.rglob("*.py") for name in CALL.findall(path.read_text())}


def test_no_write_has_a_crash_point_that_nobody_arms() -> None:
    result = named()
    assert len(result) > 30
    for name, file in result.items():
        pattern = re.compile(".+".join(re.escape(part) for part in re.split(r"\{[^}]*\}", name)))
        armed = any(pattern.fullmatch(point) for point in ARMED) or any(part in name for part in points.ELSEWHERE)
        assert armed, f"{file}: {name}"


def test_the_readme_lists_every_planted_bug_with_what_became_of_it() -> None:
    assert report.README.read_text() == report.planted(lines(report.RESULTS)), "python -m tests.faults.report"
    assert report.PAGE.read_text() == report.page(lines(report.RUNS), lines(report.RESULTS))


def test_every_point_that_is_armed_is_in_the_package() -> None:
    patterns = [re.compile(".+".join(re.escape(part) for part in re.split(r"\{[^}]*\}", name))) for name in named()]
    assert [point for point in ARMED if not any(pattern.fullmatch(point) for pattern in patterns)] == []
