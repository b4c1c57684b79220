"""`--junit`, `--report` and the summaries of CIs: written completely, whatever the outcome of the run."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from console.drivers.fake import Scenario
from tests.cli.conftest import FILES, World
from tests.reports import strict
from tests.reports.test_junit import read

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def outside_of_any_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_STEP_SUMMARY", "GITLAB_CI", "CI_JOB_URL", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


def cases(file: Path) -> dict[tuple[str, str], list[str]]:
    """(region, name) → what is in its case."""
    root = read(file.read_text())
    return {
        (case.attrib["classname"].removeprefix("web."), case.attrib["name"]): [child.tag for child in case]
        for case in root.findall(".//testcase")
    }


def alone(folder: Path) -> set[str]:
    """The files of a folder: nothing half-written is left beside them."""
    return {path.name for path in folder.iterdir() if path.is_file()}


def test_a_run_to_the_gate_exits_3_with_a_case_for_the_region_and_each_check(deployed: World, tmp_path: Path) -> None:
    xml, page = tmp_path / "junit.xml", tmp_path / "r.html"
    result = deployed.call("--headless", "--regions", "us", "--no-input", "--junit", str(xml), "--report", str(page))
    assert result.exit_code == 3, result.output
    assert cases(xml) == {("us", "rollout"): [], ("us", "requests: rows per day"): []}
    text = strict.read(page.read_text()).text
    assert "1 at its gate" in text
    assert "exit code: 3" in text
    assert alone(tmp_path) == {"junit.xml", "r.html"}


def test_a_planted_day_exits_1_and_the_failed_case_names_it(deployed: World, tmp_path: Path) -> None:
    deployed.scripts["us"].differ = ("requests",)
    xml, page = tmp_path / "junit.xml", tmp_path / "r.md"
    result = deployed.call("apply", "--no-input", "--yes", "--junit", str(xml), "--report", str(page))
    assert result.exit_code == 1, result.output
    assert cases(xml) == {
        ("us", "rollout"): ["failure"], ("us", "requests: rows per day"): ["failure"], ("eu", "rollout"): ["skipped"],
    }  # fmt: skip
    failures = [str(each.text) for each in ElementTree.fromstring(xml.read_text()).iter("failure")]
    assert all("2026-01-08" in text for text in failures)
    assert "2026-01-08: 1,204 rows live, 1,203 new" in page.read_text()


def test_regions_that_had_nothing_to_do_pass_without_the_checks_of_earlier_rollouts(
    deployed: World, tmp_path: Path
) -> None:
    assert deployed.call("apply", "--yes").exit_code == 0
    xml = tmp_path / "junit.xml"
    assert deployed.call("apply", "--yes", "--junit", str(xml)).exit_code == 0
    assert cases(xml) == {("us", "rollout"): [], ("eu", "rollout"): []}


def test_an_unreachable_region_fails_the_run_before_it_begins_and_is_named(deployed: World, tmp_path: Path) -> None:
    deployed.regions["eu"].drop_link()
    xml = tmp_path / "junit.xml"
    result = deployed.call("--headless", "--junit", str(xml))
    assert result.exit_code == 5, result.output
    root = read(xml.read_text())
    assert {case.attrib["name"]: [child.tag for child in case] for case in root.findall(".//testcase")}[
        "files and plans"
    ] == ["error"]
    assert "eu" in str(next(iter(root.iter("error"))).text)


def test_files_that_are_wrong_leave_a_report_of_what_is_wrong(world: World, tmp_path: Path) -> None:
    world.write({"plans/web/tables/requests.yaml": FILES["plans/web/tables/requests.yaml"] + "colour: red\n"})
    xml, page = tmp_path / "junit.xml", tmp_path / "r.html"
    result = world.call("--headless", "--junit", str(xml), "--report", str(page))
    assert result.exit_code == 65
    assert "colour" in strict.read(page.read_text()).text
    assert "requests.yaml:" in str(next(iter(read(xml.read_text()).iter("error"))).text)


def test_a_file_that_cannot_be_written_is_refused_before_anything_happens(deployed: World, tmp_path: Path) -> None:
    before = len(deployed.regions["us"].disk.stored)
    result = deployed.call("--headless", "--report", str(tmp_path / "nowhere" / "r.html"))
    assert result.exit_code == 64
    assert "cannot be written" in result.stderr
    assert len(deployed.regions["us"].disk.stored) == before


@pytest.mark.parametrize(
    "words",
    [
        ("--headless", "--report", "r.pdf"),
        ("--report", "r.html"),
        ("--junit", "j.xml", "plan"),
        ("--report", "r.md", "rollback"),
    ],
)
def test_a_report_is_for_those_commands_and_suffixes_alone(deployed: World, words: tuple[str, ...]) -> None:
    result = deployed.call(*words)
    assert result.exit_code == 64
    assert "--report" in result.stderr or "report" in result.stderr


def test_status_reports_the_regions_as_they_stand(deployed: World, tmp_path: Path) -> None:
    assert deployed.call("apply").exit_code == 3
    xml, page = tmp_path / "junit.xml", tmp_path / "r.html"
    assert deployed.call("status", "--junit", str(xml), "--report", str(page)).exit_code == 0
    assert cases(xml) == {
        ("us", "rollout"): [], ("us", "requests: rows per day"): [], ("eu", "rollout"): [],
    }  # fmt: skip
    assert "awaiting-confirmation" in strict.read(page.read_text()).text


def test_github_gets_its_summary_appended_and_gitlab_a_section_and_a_link(
    deployed: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("of another command\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    assert deployed.call("apply").exit_code == 3
    assert summary.read_text().startswith("of another command\n## web: 2 regions: 1 at its gate, 1 skipped\n")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY")
    monkeypatch.setenv("GITLAB_CI", "true")
    monkeypatch.setenv("CI_JOB_URL", "https://gitlab.example/web/-/jobs/7")
    monkeypatch.setenv("CI_PROJECT_DIR", str(tmp_path))
    result = deployed.call("apply", "--report", str(tmp_path / "r.html"))
    assert result.exit_code == 3
    assert "us: at its gate; r1 → r2; checks passed: 1 of 1\n" in result.stderr
    (link,) = json.loads((tmp_path / "r.annotations.json").read_text())["console"]
    assert link["external_link"]["url"] == "https://gitlab.example/web/-/jobs/7/artifacts/file/r.html"


def test_a_summary_that_cannot_be_written_is_a_warning_and_changes_no_exit_code(
    deployed: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "nowhere" / "s.md"))
    result = deployed.call("apply")
    assert result.exit_code == 3
    assert "the summary cannot be written" in result.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_a_run_that_is_ended_from_outside_leaves_a_whole_report(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    xml, page = tmp_path / "junit.xml", tmp_path / "r.html"
    words = ["--headless", "--regions", "us", "--junit", str(xml), "--report", str(page)]
    environment = {**os.environ, "CONSOLE_HOME": str(tmp_path / "home"), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "tests.cli.program", str(tmp_path / "project"), "30", "", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if "backfilling" in line)
        # a killed process has its last state in the file, from its first change on
        deadline = time.monotonic() + 30
        while number is signal.SIGKILL and "r1 → r2" not in page.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == code
    assert cases(xml)["us", "rollout"] == ["error"]
    text = strict.read(page.read_text()).text
    assert "r1 → r2" in text
    assert ("interrupted" if code > 0 else "not finished when this was written") in text
    assert not [name for name in alone(tmp_path) if name.startswith(".")]


def test_a_run_without_these_flags_collects_nothing(deployed: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a report was made")

    monkeypatch.setattr("console.cli.reports.reporter.Reporter.value", refused)
    deployed.scripts["us"] = Scenario()
    assert deployed.call("apply").exit_code == 3
