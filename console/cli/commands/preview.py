"""`console preview`: the pending change as a sandbox beside a region's live release."""

import asyncio
import time
from typing import TYPE_CHECKING

import click

from console.cli.commands.run import plan_and_ground, refused
from console.cli.flags import command, loss_options, refuse_readonly
from console.cli.format import count, table
from console.cli.interrupt import run_interruptible
from console.cli.lifetime import Lifetime
from console.cli.output import Output
from console.cli.wiring import OpenProject, cli_context, open_project, who
from console.errors import RegionError, UsageError
from console.model.codec import encode
from console.model.sandbox import Sandbox, time_left
from console.text import safe_text

if TYPE_CHECKING:
    from console.drivers.protocol import Driver

POLL_SECONDS = 0.5
_DEFAULT = "preview"


@command(
    "preview",
    examples="""console preview --region us
    console preview --region us --name fix-cast --days 3 --live
    console query --region us --release fix-cast "SELECT day, count(*) AS n FROM requests GROUP BY day"
    console preview --region us --list
    console preview --region us --drop fix-cast""",
)
@click.option(
    "--days",
    type=click.IntRange(1, 366),
    default=1,
    show_default=True,
    help="Newest days of each rebuilt table.",
)
@click.option("--name", default=_DEFAULT, show_default=True, metavar="NAME", help="Its name; one per branch, say.")
@click.option(
    "--expires",
    type=Lifetime(),
    metavar="TIME",
    help="Drop it after 90m, 12h, 2d … 30d  [default: the region's policy, else 2d]",
)
@click.option("--live", is_flag=True, help="Rows that arrive later flow into its tables.")
@click.option("--list", "listing", is_flag=True, help="List the region's previews.")
@click.option("--drop", metavar="NAME", help="Drop a preview and its files.")
@loss_options
def preview(*, days: int, name: str, expires: float | None, live: bool, listing: bool, drop: str | None) -> int:
    """Build the pending change as a preview beside a region's live release.

    Unchanged tables are the live release's own; rebuilt ones get their newest days, by the steps from which `apply`
    then continues. Only readers that name it see it: query, endpoint and copy take --release. With --live it is fed like
    a release; without, it holds the rows that were there when its build began.

    Repeating a name replaces the preview if the files have changed, and otherwise extends its expiry, and begins or ends
    its feeding. Exits 1 if its build fails. Ctrl-C detaches: the agent continues building.
    """
    if listing and drop:
        raise UsageError("--list and --drop are two commands", hint="give one of them")
    if not listing:
        refuse_readonly(click.get_current_context(), "preview")
    project = open_project(one=True)
    output = Output(cli_context().flags)
    if listing:
        return _show(output, project, run_interruptible(_sandboxes(project)))
    if drop:
        return _drop(output, project, drop)
    hours = project.regions[0].policy.preview_expires_hours if expires is None else expires
    again = f"it is still being built:  console preview --region {project.names[0]} --list"
    building = _build(project, output, name=name, days=days, hours=hours, live=live)
    sandbox = run_interruptible(building, lambda: again)
    return _show(output, project, (sandbox,) if sandbox else ())


async def _build(
    project: OpenProject, output: Output, *, name: str, days: int, hours: float, live: bool
) -> Sandbox | None:
    """The sandbox once it is ready; None if there is nothing to change.

    raises  RegionError E_PREVIEW_FAILED; errors of the planner, refusals
    """
    plans, _ = await plan_and_ground(project)
    if refusal := refused(list(plans)):
        raise refusal
    (plan,) = plans
    region = project.names[0]
    if not plan.changes:
        output.info(f"{region}: nothing to preview: live is what the files declare")
        return None
    async with project.drivers() as drivers:
        driver = drivers[region]
        sandbox = await driver.preview(plan, who(), name=name, days=days, hours=hours, live=live)
        output.info(f"{region}: building {name} beside {sandbox.beside} …")
        while sandbox.state == "building":
            await asyncio.sleep(POLL_SECONDS)
            sandbox = await _state_of(driver, project.pipeline, name)
    if sandbox.state == "failed":
        message = f"{region}: preview {name} could not be built: {sandbox.why}"
        raise RegionError(message, region=region, hint=sandbox.hint, code="E_PREVIEW_FAILED")
    return sandbox


async def _state_of(driver: "Driver", pipeline: str, name: str) -> Sandbox:
    """raises  RegionError E_NO_PREVIEW if it was dropped meanwhile"""
    for sandbox in (await driver.state(pipeline)).status.sandboxes:
        if sandbox.name == name:
            return sandbox
    region = driver.region.name
    raise RegionError(
        f"{region}: preview {name} was dropped meanwhile", region=region, hint="console preview", code="E_NO_PREVIEW"
    )


async def _sandboxes(project: OpenProject) -> tuple[Sandbox, ...]:
    async with project.drivers() as drivers:
        return (await drivers[project.names[0]].state(project.pipeline)).status.sandboxes


def _drop(output: Output, project: OpenProject, name: str) -> int:
    async def work() -> tuple[str, ...]:
        async with project.drivers() as drivers:
            return await drivers[project.names[0]].drop_preview(project.pipeline, name, who())

    dropped = run_interruptible(work())
    if output.json:
        output.document({"region": project.names[0], "dropped": [*dropped], "preview": name})
    else:
        output.data(f"{safe_text(name)}: dropped, with {count(len(dropped), 'version')}")
    return 0


def _show(output: Output, project: OpenProject, sandboxes: tuple[Sandbox, ...]) -> int:
    if output.json:
        output.document({"region": project.names[0], "previews": [encode(sandbox) for sandbox in sandboxes]})
    elif sandboxes:
        output.data(sandboxes_text(sandboxes, time.time()))
    else:
        output.info(f"{project.names[0]}: no previews")
    return 0


def sandboxes_text(sandboxes: tuple[Sandbox, ...], now: float) -> str:
    """A line for each: its state, contents, the rows and bytes written for it, and its expiry."""
    heads = ["preview", "state", "beside", "days", "slices", "rows", "bytes", "live rows", "tables", "dropped in", "by"]
    rows = [
        [
            sandbox.name,
            sandbox.state,
            sandbox.beside,
            str(sandbox.days),
            f"{sandbox.slices} of {sandbox.of}",
            f"{sandbox.rows:,}",
            f"{sandbox.bytes:,}",
            sandbox.live_rows,
            safe_text(", ".join(sandbox.tables) or "none"),
            time_left(sandbox.expires - now),
            safe_text(sandbox.by),
        ]
        for sandbox in sandboxes
    ]
    return table(heads, rows, right=[3, 5, 6])
