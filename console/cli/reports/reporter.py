"""The files of a run for a CI: written before its first step, during the run, and at its end in every case."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from console.cli.flags import MARKDOWN
from console.cli.interrupt import Interrupted
from console.cli.output import Output
from console.cli.reports.files import write_whole
from console.cli.reports.forge import (
    ANNOTATIONS,
    SUMMARY_BYTES,
    Forge,
    GitHubSummary,
    GitLabJob,
    annotations,
    forge,
    section,
)
from console.cli.reports.html import page
from console.cli.reports.junit import junit
from console.cli.reports.markdown import markdown
from console.cli.reports.run_report import (
    RegionReport,
    RunReport,
    RunState,
    planned_report,
    region_report,
    reported,
    status_report,
)
from console.cli.wiring import tool, who
from console.errors import ConsoleError, UsageError

if TYPE_CHECKING:
    from console.cli.wiring import OpenProject
    from console.model.plan import Plan
    from console.model.receipt import Past
    from console.runner.flips import Flips
    from console.runner.view import Cockpit, Outcome, RegionView

EVERY_SECONDS = 10.0  # seconds between two writes during a run
REST = 30  # multiple of a write's duration that has to pass before the next one
PAST_SECONDS = 60.0  # seconds for the regions' receipts, at the end


@dataclass(kw_only=True)
class Reporter:
    """The known state of a run, and the files to which it is written.

    views     the latest of each region;  pasts: its stored events and receipts, asked for at the end
    outcomes  empty until the run has ended
    errors    of regions that a promotion has left;  flips: its outcome, where it was one of several regions
    """

    command: str
    junit: Path | None
    report: Path | None
    forge: Forge | None = None
    began: float = field(default_factory=time.time)
    state: RunState = RunState.RUNNING
    exit_code: int | None = None
    error: ConsoleError | None = None
    pipeline: str = ""
    project: "OpenProject | None" = None
    plans: "dict[str, Plan]" = field(default_factory=dict)
    views: "dict[str, RegionView]" = field(default_factory=dict)
    pasts: "dict[str, Past]" = field(default_factory=dict)
    outcomes: "dict[str, Outcome]" = field(default_factory=dict)
    errors: "dict[str, ConsoleError]" = field(default_factory=dict)
    flips: "Flips | None" = None
    standing: tuple[RegionReport, ...] = ()  # of a command that only reads

    @property
    def wanted(self) -> bool:
        """Whether any file is written; if not, nothing is collected, and a run costs nothing extra."""
        return bool(self.junit or self.report or self.forge)

    def planned(self, project: "OpenProject", plans: "Sequence[Plan]" = ()) -> None:
        """Note that the project is open and, with `plans`, that its regions have answered."""
        self.project, self.pipeline = project, project.pipeline
        self.plans = {plan.region: plan for plan in plans}

    @asynccontextmanager
    async def following(self, cockpit: "Cockpit") -> AsyncIterator[None]:
        """Follow the regions during the body; at its end also request their stored events. After an interrupt nothing is requested."""
        if not self.wanted:
            yield
            return
        task = asyncio.create_task(self._follow(cockpit))
        try:
            yield
            await self._ask(cockpit.views.values(), cockpit.history)
        except asyncio.CancelledError:
            self.views.update(cockpit.views)
            self.state = RunState.INTERRUPTED
            with suppress(ConsoleError):  # immediately: a CI grants seconds, and closing the links may take longer
                self.write()
            raise
        finally:
            task.cancel()
            self.views.update(cockpit.views)
            with suppress(asyncio.CancelledError):
                await task

    async def _follow(self, cockpit: "Cockpit") -> None:
        """Write changes every few seconds, until cancelled: a killed process leaves its last state."""
        changes = cockpit.changes()
        while True:
            await anext(changes)
            self.views.update(cockpit.views)
            began = time.monotonic()
            with suppress(ConsoleError):  # a full disk does not end the run; the last write reports it
                self.write()
            # a page of hundreds of regions takes seconds, during which nothing else is printed: it is written less often
            await asyncio.sleep(max(EVERY_SECONDS, REST * (time.monotonic() - began)))

    async def _ask(self, views: "Iterable[RegionView]", history: "Callable[[str, str], Awaitable[Past]]") -> None:
        """The stored events and receipts of every region that has a rollout. history: (region, rollout) → what it stored"""

        async def ask(view: "RegionView") -> None:
            with suppress(ConsoleError):  # the report mentions that they are missing
                self.pasts[view.region.name] = await history(view.region.name, view.status.rollout)

        reached = [view for view in views if view.status.rollout and view.link != "unreachable"]
        with suppress(TimeoutError):
            async with asyncio.timeout(PAST_SECONDS):
                await asyncio.gather(*map(ask, reached))

    async def look(self, views: "Sequence[RegionView]", errors: "Mapping[str, ConsoleError]") -> None:
        """Report, for a command that runs nothing, the current regions with their stored events. errors: by region"""
        assert self.project is not None
        async with self.project.drivers() as drivers:
            histories = {name: partial(driver.history, self.pipeline) for name, driver in drivers.items()}
            await self._ask(views, lambda name, rollout: histories[name](rollout))
        self.standing = tuple(
            status_report(view, errors.get(view.region.name), self.pasts.get(view.region.name), time.time())
            for view in views
        )

    def value(self) -> RunReport:
        """The run as currently known."""
        return RunReport(
            pipeline=self.pipeline,
            command=self.command,
            by=str(who().name),
            tool=tool(),
            began=self.began,
            at=time.time(),
            state=self.state,
            exit_code=self.exit_code,
            error=reported(self.error) if self.error else None,
            regions=self.standing or tuple(self._regions()),
            flips=self.flips,
        )

    def _regions(self) -> Iterator[RegionReport]:
        for region in self.project.regions if self.project else ():
            name, plan = region.name, self.plans.get(region.name)
            view = self.views.get(name)
            if view is None:
                yield planned_report(name, region.environment, region.wave, plan, self.state)
                continue
            ended = self.state is not RunState.RUNNING
            yield region_report(view, plan, self.outcomes.get(name), self.pasts.get(name), time.time(), ended=ended)

    def write(self) -> None:
        """Write the files.

        raises  DataError for one that cannot be written
        """
        if not (self.junit or self.report):
            return
        run = self.value()
        if self.junit:
            write_whole(self.junit, junit(run))
        if self.report:
            write_whole(self.report, _rendered(self.report, run))

    def summarize(self, output: Output) -> None:
        """Leave the run's summary with the CI. A failure to do so is a warning, not an error."""
        match self.forge:
            case None:
                pass
            case GitHubSummary(path):
                try:
                    with path.open("a", encoding="utf-8") as file:
                        file.write(markdown(self.value(), SUMMARY_BYTES))
                except OSError as error:
                    output.info(f"warning: {path}: the summary cannot be written: {error.strerror}")
            case GitLabJob() as job:
                run = self.value()
                print(section(run, int(run.at)), file=sys.stderr, flush=True)
                if self.report and (text := annotations(job, run, self.report.absolute())):
                    write_whole(self.report.with_suffix(ANNOTATIONS), text)
            case _:
                assert_never(self.forge)


@contextmanager
def reporting(command: str, output: Output, *, summary: bool = True) -> Iterator[Reporter]:
    """Report on the body, whose exit code it sets: at once, while it runs, and after it, however it ends.

    summary  also for the CI itself, where one runs this process
    raises   UsageError for a file that cannot be written, before anything else is done; ConsoleError afterwards
    """
    place = forge(os.environ) if summary else None
    reporter = Reporter(command=command, junit=output.flags.junit, report=output.flags.report, forge=place)
    if not reporter.wanted:
        yield reporter
        return
    _begin(reporter)
    try:
        yield reporter
    except BaseException as error:
        _broken_off(reporter, error)
        try:
            _finish(reporter, output)
        except ConsoleError as other:  # the error that ended the run must be shown last
            output.print_error(other)
        raise
    reporter.state = RunState.ENDED
    _finish(reporter, output)


def _begin(reporter: Reporter) -> None:
    try:
        reporter.write()
    except ConsoleError as error:
        raise UsageError(str(error), hint="name a file in a folder that exists and may be written to") from None


def _broken_off(reporter: Reporter, error: BaseException) -> None:
    match error:
        case ConsoleError():
            reporter.state, reporter.error, reporter.exit_code = RunState.REFUSED, error, error.exit_code
        case Interrupted():
            reporter.state, reporter.exit_code = RunState.INTERRUPTED, error.exit_code
        case _:
            reporter.state, reporter.exit_code = RunState.INTERRUPTED, 1


def _finish(reporter: Reporter, output: Output) -> None:
    try:
        reporter.write()
        reporter.summarize(output)
    except ConsoleError as error:
        raise ConsoleError(
            f"the run has ended (exit code {reporter.exit_code}), but {error}", code="E_REPORT"
        ) from None


def _rendered(path: Path, run: RunReport) -> str:
    return markdown(run) if path.suffix == MARKDOWN else page(run)
