"""Output for a CI besides the log; the CI is recognised by its environment variables.

source  GitHub: the file named by GITHUB_STEP_SUMMARY takes Markdown, 1 MiB a step. GitLab has no summary: its log has sections
        that fold, and a report of the kind `annotations` puts links on the job's page; it shows an artifact of HTML in the
        browser.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from console.cli.reports.run_report import RunReport
from console.cli.reports.words import checks_words, headline, release_words
from console.text import safe_text

SUMMARY_BYTES = 900_000  # of GitHub's 1 MiB, which is shared with the step's other output
ANNOTATIONS = ".annotations.json"  # replaces the report's suffix
_SECTION = "console_summary"


@dataclass(frozen=True, slots=True)
class GitHubSummary:
    """A file to which a step appends its summary."""

    path: Path


@dataclass(frozen=True, slots=True)
class GitLabJob:
    """A job of GitLab. url, folder: of the job and of its checkout; "" if the runner does not provide them"""

    url: str
    folder: str


Forge = GitHubSummary | GitLabJob


def forge(environment: Mapping[str, str]) -> Forge | None:
    """The CI that runs this process; None outside these two."""
    if path := environment.get("GITHUB_STEP_SUMMARY", ""):
        return GitHubSummary(Path(path))
    if environment.get("GITLAB_CI", "") == "true":
        return GitLabJob(environment.get("CI_JOB_URL", ""), environment.get("CI_PROJECT_DIR", ""))
    return None


def section(run: RunReport, at: int) -> str:
    """The summary as a collapsible section of GitLab's log. at: seconds since 1970, UTC"""
    lines = []
    for region in run.regions:
        words = (region.verdict.value, release_words(region), f"checks passed: {checks_words(region)}")
        lines.append(f"{region.region}: {'; '.join(filter(None, words))}")
    begin = f"\x1b[0Ksection_start:{at}:{_SECTION}\r\x1b[0K{safe_text(f'console: {headline(run)}')}"
    return "\n".join([begin, *map(safe_text, lines), f"\x1b[0Ksection_end:{at}:{_SECTION}\r\x1b[0K"])


def annotations(job: GitLabJob, run: RunReport, report: Path) -> str:
    """A report of the kind `annotations`: a link from the job's page to the report; "" if the report cannot be an artifact.

    report  absolute path
    """
    folder = Path(job.folder) if job.folder else None
    if not job.url.startswith(("https://", "http://")) or folder is None or not report.is_relative_to(folder):
        return ""
    url = f"{job.url}/artifacts/file/{quote(report.relative_to(folder).as_posix())}"
    label = safe_text(f"{run.pipeline or 'console'}: {headline(run)}", 200)
    return json.dumps({"console": [{"external_link": {"label": label, "url": url}}]}, indent=2) + "\n"
