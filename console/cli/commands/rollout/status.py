"""`console status` and `console watch`."""

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.commands.rollout.overview import overview_data, overview_text
from console.cli.commands.rollout.regions_read import samples_of, views_of, with_measured
from console.cli.commands.run import farewell
from console.cli.commands.schema.unstored import arriving, arriving_data, arriving_text
from console.cli.flags import command, report_options
from console.cli.history_text import history_data, history_text
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.progress import printing_progress
from console.cli.reports.reporter import Reporter, reporting
from console.cli.status_text import status_data, status_text
from console.cli.wiring import OpenProject, cli_context, open_project, recorded
from console.errors import ConsoleError, FeedStopped, RegionError
from console.model.event import RUNNING
from console.model.measured import KEPT_HOURS, FeedSample
from console.runner.exit_codes import worst
from console.runner.together.readiness import split_waves
from console.runner.view import RegionView
from console.runner.watch import under_way
from console.runner.waves import queued_regions

if TYPE_CHECKING:
    from console.runner.view import Cockpit


class Hours(click.ParamType[float]):
    """A length of time before now: `90s`, `30m`, `1h`, `24h`, in hours."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        if isinstance(value, float):
            return value
        text = str(value).strip()
        number, unit = text[:-1], {"s": 1 / 3600, "m": 1 / 60, "h": 1.0, "d": 24.0}.get(text[-1:])
        if unit is None or not number.isdecimal() or not 0 < int(number) * unit <= KEPT_HOURS:
            self.fail(f"{text!r:.40} is not a time up to {KEPT_HOURS:.0f}h, as 30m or 1h", param, ctx)
        return int(number) * unit


@command("status", examples="console status\nconsole status --history 1h\nconsole status --region eu --output json")
@click.option("--history", "hours", type=Hours(), metavar="TIME", help="With rates and lag of the last 1h, 30m … 24h.")
@report_options
def status(hours: float | None) -> int:
    """Show the state of each region's rollout and of its live feeds.

    Exits 1 if a feed has stopped, or if rows wait in front of it and no agent runs. The reason and the remedy
    are printed below the table, and so is what needs you, by when, and between when running rollouts are expected at
    their gates.

    Reads the regions and starts nothing. Also lists columns that arrive in the stores of replication.yaml and are not
    stored there.
    """
    output = Output(cli_context().flags)
    summary = bool(output.flags.junit or output.flags.report)  # otherwise reading the regions leaves nothing behind
    with reporting("console status", output, summary=summary) as reporter:
        project = open_project()
        reporter.planned(project)
        reporter.exit_code = _status(project, output, hours, reporter)
        return reporter.exit_code


def _status(project: OpenProject, output: Output, hours: float | None, reporter: Reporter) -> int:
    views, errors = run_interruptible(views_of(project))
    texts = {name: str(error) for name, error in errors.items()}
    samples: dict[str, tuple[FeedSample, ...]] = {}
    if hours is not None:
        samples, missed = run_interruptible(
            samples_of(project, hours, [v.region.name for v in views if v.region.name not in errors])
        )
        errors |= missed
    now = time.time()
    views = run_interruptible(with_measured(project, views))
    named, desired = (
        {view.region.name: view for view in views},
        {n: project.pipelines[n].digest() for n in project.names},
    )
    waits, splits = queued_regions(named, desired), tuple(dict.fromkeys(split_waves(named, desired).values()))
    if not output.json:
        output.data(status_text(views, texts, now, waits=waits))  # printed first: the stores may take a while
        output.data(f"\n{overview_text(views, now, splits)}")
        if hours is not None:
            output.data(f"\n{history_text(samples, hours, now)}")
    left_out = arriving(project.files.root, project.pipeline, project.regions)
    if output.json:
        data = {**status_data(views, texts, waits=waits), **overview_data(views, now, splits)}
        for region in data["regions"] if hours is not None else ():
            region["history"] = history_data(samples.get(region["region"], ()), hours or 0.0)
        output.document({**data, "arriving_but_not_stored": arriving_data(left_out)})
    elif text := arriving_text(left_out):
        output.data(f"\n{text}")
    for name, error in errors.items():
        output.print_region_error(name, error)
    if reporter.wanted:
        run_interruptible(reporter.look(views, {**_feed_errors(views), **errors}))
    return worst([*errors.values(), *_feed_errors(views).values()])


def _feed_errors(views: "Sequence[RegionView]") -> "dict[str, ConsoleError]":
    return {view.region.name: error for view in views if (error := feed_error(view))}


def feed_error(view: "RegionView") -> FeedStopped | None:
    """The error for a region's stopped feeds."""
    feeds = view.status.standing
    if not feeds:
        return None
    names = ", ".join(feed.feed for feed in feeds)
    return FeedStopped(
        f"{view.region.name}: no live rows through {names}",
        region=view.region.name,
        hint=feeds[0].hint,
        code=feeds[0].code,
    )


@command(
    "watch", examples="console watch\nconsole watch --regions eu --output json\nconsole watch --record night.jsonl"
)
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Stop watching after this time.")
@click.option(
    "--record",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Record in a new file what is received, until every rollout has ended, for `console playback`.",
)
def watch(timeout: float | None, record: Path | None) -> int:
    """Follow the rollouts under way until they end or wait at the gate.

    With --record it also waits through gates, pauses and failures, until every rollout has ended, Ctrl-C or --timeout.

    Exits 0 when all have ended, 3 when one waits at the gate or is paused, 1 when one has failed, a live feed has
    stopped or --timeout has passed, 5 when a region is unreachable. Ctrl-C stops watching; the agents continue.
    """
    project = open_project()
    output = Output(cli_context().flags)
    cli_context().streaming = output.json
    seen: dict[str, RegionView] = {}
    run_interruptible(_until_still(project, output, seen, timeout, record), lambda: farewell(seen))
    views = list(seen.values())
    errors = {view.region.name: view.link_why for view in views if view.link == "unreachable"}
    if output.json:
        output.line({"type": "outcome", **status_data(views, errors)})
    else:
        output.data(status_text(views, errors))
    return max((exit_of(view) for view in views), key=_BADNESS.index, default=0)


_BADNESS = (0, 3, 5, 1)


def exit_of(view: "RegionView") -> int:
    """The exit code of a command that only watched."""
    if view.link == "unreachable":
        return 5
    if view.status.held == "failed" or view.status.standing:
        return 1
    return 3 if view.status.held or view.status.state == "awaiting-confirmation" else 0


def _moving(view: "RegionView") -> bool:
    return view.status.state in RUNNING and not view.status.held


async def until_still(cockpit: "Cockpit", *, ended: bool = False) -> None:
    """Return when nothing is running any more; unreachable regions count as running, since their agents may be working.

    ended  return only when no rollout is under way any more
    """
    changes = cockpit.changes()
    while any(under_way(view.status) if ended else _moving(view) for view in cockpit.views.values()):
        await anext(changes)


async def _until_still(
    project: OpenProject, output: Output, seen: "dict[str, RegionView]", timeout: float | None, record: Path | None
) -> None:
    async with project.fleet(remember=record is not None) as fleet:
        try:
            with recorded(fleet, record):
                async with printing_progress(fleet, output):
                    await fleet.refresh(project.names)
                    await asyncio.wait_for(until_still(fleet, ended=record is not None), timeout)
        except TimeoutError:
            raise RegionError(
                f"still under way after {timeout:g} s; the agents continue", hint="console watch", code="E_TIMEOUT"
            ) from None
        finally:
            seen.update(fleet.views)
