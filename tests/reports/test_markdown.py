"""Markdown, and the summaries of a run on GitHub and GitLab."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from console.cli.reports.forge import GitHubSummary, GitLabJob, annotations, forge, section
from console.cli.reports.markdown import markdown
from tests.reports.runs import PLANTED, run


def tables(text: str) -> list[list[list[str]]]:
    """Every table as rows of cells, heads first, as a reader of GitHub's Markdown sees them."""
    results: list[list[list[str]]] = []
    for token in MarkdownIt("gfm-like", {"linkify": False}).parse(text):
        if token.type == "table_open":
            results.append([])
        elif token.type == "tr_open":
            results[-1].append([])
        elif token.type == "inline" and results and token.level > 3:
            results[-1][-1].append("".join(child.content for child in token.children or ()))
    return results


def test_a_reader_finds_every_region_and_the_planted_day() -> None:
    heads, *rows = tables(markdown(run()))[0]
    assert heads[:2] == ["region", "verdict"]
    assert [(row[0], row[1]) for row in rows] == [
        ("eu", "❌ failed"),
        ("ap", "❌ failed"),
        ("tr", "❌ failed"),
        ("us", "🔶 at its gate"),
    ]
    days = [row for table in tables(markdown(run())) for row in table if row[0] == PLANTED]
    assert days == [
        [PLANTED, "1,450", "1,449", "differs", "status"],
        [PLANTED, "1,450", "1,450", "equal", ""],
    ]


@pytest.mark.slow
def test_a_summary_that_is_too_long_is_cut_between_lines_and_says_so() -> None:
    given = run()
    long = replace(given, regions=given.regions * 12)
    text = markdown(long, 20_000)
    assert len(text.encode()) <= 20_000
    assert text.endswith("… cut: `console status` shows the rest\n")
    assert markdown(long).startswith(text.rpartition("\n… cut")[0].rpartition("\n")[0])


def test_a_forge_is_recognised_by_its_variables_alone() -> None:
    assert forge({}) is None
    assert forge({"CI": "true"}) is None
    assert forge({"GITHUB_STEP_SUMMARY": "/s.md"}) == GitHubSummary(Path("/s.md"))
    job = {"GITLAB_CI": "true", "CI_JOB_URL": "https://g.example/a/-/jobs/7", "CI_PROJECT_DIR": "/builds/a"}
    assert forge(job) == GitLabJob("https://g.example/a/-/jobs/7", "/builds/a")


def test_gitlabs_section_folds_and_nothing_from_outside_ends_it() -> None:
    given = run()
    evil = replace(given.regions[0], region="us\x1b[0Ksection_end:1:console_summary\r\x1b[0K", release="r\n8")
    text = section(replace(given, regions=(evil,)), 1_795_000_000)
    assert re.fullmatch(
        r"\x1b\[0Ksection_start:1795000000:console_summary\r\x1b\[0K[^\x1b\r\n]+\n[^\x1b\r\n]+\n"
        r"\x1b\[0Ksection_end:1795000000:console_summary\r\x1b\[0K",
        text,
    )


def test_a_report_inside_the_checkout_is_linked_from_the_job_and_one_outside_is_not() -> None:
    job = GitLabJob("https://g.example/a/-/jobs/7", "/builds/a")
    (link,) = json.loads(annotations(job, run(), Path("/builds/a/out/my report.html")))["console"]
    assert link["external_link"]["url"] == "https://g.example/a/-/jobs/7/artifacts/file/out/my%20report.html"
    assert annotations(job, run(), Path("/tmp/report.html")) == ""
    assert annotations(GitLabJob("javascript:alert(1)", "/builds/a"), run(), Path("/builds/a/r.html")) == ""
