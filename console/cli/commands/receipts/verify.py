"""`console verify`: a rollout's receipts checked again, with progress; cancelled, it prints the findings so far."""

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import click

from console.cli.commands.receipts import text
from console.cli.commands.receipts.asking import asked, check_known, errors_data, print_errors
from console.cli.flags import command
from console.cli.interrupt import Interrupted, run_interruptible
from console.cli.output import Output
from console.cli.wiring import OpenProject, cli_context, open_project
from console.text import safe_text

if TYPE_CHECKING:
    from console.drivers.protocol import Driver
    from console.errors import ConsoleError
    from console.model.receipt import AuditProgress, Finding

PROGRESS_SECONDS = 1.0  # seconds between two lines about one region


@dataclass(slots=True, kw_only=True)
class _Verification:
    """One rollout, verified in several regions at once.

    reported  what each region has reported while it
    works findings of the regions that have finished
    """

    project: OpenProject
    output: Output
    rollout: str
    reported: "dict[str, list[Finding]]" = field(default_factory=dict)
    findings: "dict[str, tuple[Finding, ...]]" = field(default_factory=dict)
    _last: dict[str, float] = field(default_factory=dict)

    async def run(self, names: list[str]) -> "dict[str, ConsoleError]":
        """Returns the errors of the regions without an answer."""
        self.reported = {name: [] for name in names}
        return (await asked(self.project, self._verify, names))[1]

    async def _verify(self, driver: "Driver") -> None:
        name = driver.region.name
        hear = partial(self._hear, name)
        self.findings[name] = await driver.verify(self.project.pipeline, self.rollout, hear)

    def _hear(self, region: str, progress: "AuditProgress") -> None:
        self.reported[region] += progress.found
        now = time.monotonic()
        if now - self._last.get(region, 0.0) < PROGRESS_SECONDS and progress.number > 1:
            return
        self._last[region] = now
        self.output.info(f"{region}  {progress_text(progress)}")

    @property
    def unfinished(self) -> list[str]:
        return [name for name in self.reported if name not in self.findings]

    def print(self, errors: "dict[str, ConsoleError]") -> None:
        """All findings; for an unfinished region those reported so far."""
        regions = {
            name: self.findings.get(name, tuple(self.reported[name])) for name in self.reported if name not in errors
        }
        stopped = [name for name in self.unfinished if name not in errors]
        if self.output.json:
            entries = [
                text.verified_data(name, findings, stopped=name in stopped) for name, findings in regions.items()
            ]
            self.output.document({"rollout": self.rollout, "regions": entries, "errors": errors_data(errors)})
            return
        blocks = [
            text.verified_text(self.output, name, self.rollout, findings, stopped=name in stopped)
            for name, findings in regions.items()
        ]
        if blocks:
            self.output.data("\n\n".join(blocks))


def progress_text(progress: "AuditProgress") -> str:
    """`3 of 12: backfill/requests/parse source, 40 of 80 tasks`."""
    place = " ".join(part for part in (progress.step or progress.table, progress.what) if part)
    job = progress.job
    tasks = f", {job.done} of {job.tasks} tasks, stage {job.stage} of {job.stages}" if job else ""
    return safe_text(f"{progress.number} of {progress.of}: {place}{tasks}")


@command("verify", examples="console verify --rollout web-7\nconsole verify --rollout web-7 --region eu --output json")
@click.option("--rollout", required=True, metavar="ID", help="As `console history` lists it.")
def verify(rollout: str) -> int:
    """Check a rollout's receipts again, against the tables.

    Reads the recorded versions where these still exist, else today's tables where that is exact, and reports what can
    no longer be checked. Reports the running check on stderr. Ctrl-C cancels it, in the regions too, and prints the
    findings so far. Exits 0 if nothing differs, 1 if something does, 5 if a region is unreachable.
    """
    project, output = open_project(), Output(cli_context().flags)
    histories, errors = run_interruptible(asked(project, lambda driver: driver.history(project.pipeline)))
    known = [
        name for name, history in histories.items() if any(status.rollout == rollout for status in history.rollouts)
    ]
    check_known(rollout, bool(known), histories, errors)
    verification = _Verification(project=project, output=output, rollout=rollout)
    try:
        errors |= run_interruptible(verification.run(known), lambda: _farewell(verification))
    except Interrupted:
        verification.print(errors)
        raise
    verification.print(errors)
    code = print_errors(output, errors)
    differs = any(finding.ok is False for findings in verification.findings.values() for finding in findings)
    return 1 if differs else code


def _farewell(verification: _Verification) -> str:
    names = ", ".join(verification.unfinished)
    again = f"console verify --rollout {verification.rollout}"
    return safe_text(f"cancelled in {names}; {again} starts over" if names else "interrupted")
