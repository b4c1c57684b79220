"""`console tune`: limits of running rollouts, changed while they run."""

from typing import TYPE_CHECKING, Any

import click

from console.cli.commands.rollout.confirmed import attached
from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.output import Output, as_data
from console.cli.wiring import OpenProject, cli_context, open_project
from console.errors import ConsoleError, DataError, UsageError
from console.model.codec import encode
from console.model.tuning import KNOBS, Tuning, described, limits, parse_settings
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.region import Region
    from console.runner.fleet import Fleet


@command(
    "tune",
    changes=True,
    examples="""console tune --region eu target_seconds=20
console tune --region eu rows=60000 lag=30 hours=22:00-06:00
console tune --region eu --reset""",
)
@click.argument("settings", nargs=-1, metavar="[NAME=VALUE]...")
@click.option("--reset", is_flag=True, help="Return to the limits of the accepted plan, before these settings.")
def tune(settings: tuple[str, ...], reset: bool) -> int:
    """Change the limits of a running rollout from its next batch on.

    target_seconds, rows and bytes limit one batch; lag (seconds), hours (22:00-06:00) and query must hold before the
    next one begins. `none` lifts a limit. The accepted plan and its digest stay as they are: the region stores who
    changed what, and a restarted agent keeps it. A query is compiled against the region's live release before it is sent.
    """
    change = _parsed(settings)
    if not settings and not reset:
        raise UsageError("nothing to change", hint=f"NAME=VALUE, of {', '.join(KNOBS)}; or --reset")
    project = open_project(need_regions=True)
    return run_interruptible(_tune(project, Output(cli_context().flags), change, reset=reset))


def _parsed(settings: tuple[str, ...]) -> Tuning:
    """raises  UsageError for an unknown setting, one given twice, and a value out of range"""
    try:
        return parse_settings(settings)
    except DataError as error:
        raise UsageError(error.message, hint=error.hint, code=error.code) from None


async def _tune(project: OpenProject, output: Output, change: Tuning, *, reset: bool) -> int:
    entries: list[dict[str, Any]] = []
    errors: list[tuple[str, ConsoleError]] = []
    async with project.fleet() as fleet:
        await attached(fleet, project.names)
        for region in project.regions:
            try:
                entries.append(await _tuned(fleet, region, change, reset=reset))
            except ConsoleError as error:
                errors.append((region.name, error))
    if output.json:
        failed = [{"region": name, "error": as_data(missed)} for name, missed in errors]
        output.document({"regions": [*entries, *failed]})
    else:
        for entry in entries:
            output.data(f"{entry['region']}: {safe_text(entry['change']) or 'as it was'}")
    for name, missed in errors:
        output.print_region_error(name, missed)
    return max((missed.exit_code for _, missed in errors), default=0)


async def _tuned(fleet: "Fleet", region: "Region", change: Tuning, *, reset: bool) -> dict[str, Any]:
    before = fleet.views[region.name]
    status = await fleet.tune(region.name, change, reset=reset)
    plan = before.accepted
    described_change = (
        described(limits(plan, before.status.tuning), limits(plan, status.tuning))
        if plan
        else ", ".join(change.changed)
    )
    entry = {"region": region.name, "rollout": status.rollout, "change": described_change, "plan": status.plan}
    return {**entry, "tuning": {name: value for name, value in encode(status.tuning).items() if name != "type"}}
