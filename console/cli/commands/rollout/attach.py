"""`console attach`: follow a rollout that another console began, and take it over."""

from typing import TYPE_CHECKING

import click

from console.cli.commands.rollout.status import exit_of, until_still
from console.cli.commands.run import farewell
from console.cli.flags import command, refuse_readonly
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.progress import printing_progress
from console.cli.status_text import status_data, status_text
from console.cli.wiring import OpenProject, cli_context, open_project
from console.errors import AtGate, Conflict
from console.model.event import ENDED
from console.runner.actions import gate

if TYPE_CHECKING:
    from console.runner.fleet import Fleet
    from console.runner.view import RegionView


@command("attach", examples="console attach --region eu\nconsole attach --region eu --take-over --yes")
@click.option(
    "--take-over",
    is_flag=True,
    help="Control the rollout from now on; its previous console is notified, and only watches.",
)
def attach(take_over: bool) -> int:
    """Follow another console's rollout, or take it over.

    Shows the region's events until its rollout ends or stops, and changes nothing. With --take-over, this console
    continues the rollout up to the gate, and with --yes through it where policy and checks allow. Exit codes as for
    `watch`.
    """
    if take_over:
        refuse_readonly(click.get_current_context(), "attach --take-over")
    project = open_project(one=True)
    output = Output(cli_context().flags)
    cli_context().streaming = output.json
    seen: dict[str, RegionView] = {}
    code = run_interruptible(_attached(project, output, seen, take_over), lambda: farewell(seen))
    views = list(seen.values())
    if output.json:
        output.line({"type": "outcome", **status_data(views, {})})
    else:
        output.data(status_text(views, {}))
    return code


async def _attached(project: OpenProject, output: Output, views: "dict[str, RegionView]", take_over: bool) -> int:
    name = project.names[0]
    async with project.fleet(steering=take_over) as fleet:
        try:
            state = await fleet.driver(name).state(project.pipeline)
            if state.status.state in (*ENDED, "none"):
                raise Conflict(
                    f"{name}: nothing is under way", region=name, hint=f"console status --region {name}", code="E_STATE"
                )
            if take_over:
                await fleet.driver(name).take_over(project.pipeline, fleet.who)
                output.info(f"{name}: {state.status.rollout} is yours; {state.status.by} began it")
            async with printing_progress(fleet, output):
                await fleet.refresh([name])
                await until_still(fleet)
                if take_over and fleet.views[name].status.shown == "awaiting-confirmation":
                    await _through_the_gate(fleet, name, output.flags.yes)
        finally:
            views.update(fleet.views)
    return exit_of(fleet.views[name])


async def _through_the_gate(fleet: "Fleet", name: str, yes: bool) -> None:
    """raises  CheckFailed if a check found a difference; a gate that waits for a person is part of the status"""
    closed = gate(fleet.views[name], yes)
    if closed is None:
        await fleet.promote(name)
    elif not isinstance(closed, AtGate):
        raise closed
