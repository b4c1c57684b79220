"""`console handover`: the state of all regions for the next shift, as Markdown."""

import asyncio
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from console.cli.commands.rollout.regions_read import stored_events, views_of
from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.wiring import OpenProject, cli_context, open_project, who
from console.errors import ConsoleError
from console.model.codec import encode
from console.runner.exit_codes import worst
from console.runner.handover.facts import handover as facts_of
from console.runner.handover.markdown import markdown
from console.runner.waves import queued_regions

if TYPE_CHECKING:
    from console.drivers.protocol import Driver
    from console.runner.view import RegionView


@command("handover", forms=("markdown",), examples="console handover\nconsole handover --regions eu,us > handover.md")
def handover() -> int:
    """Print a summary for the next shift, as Markdown.

    Open decisions and their dates, running and waiting rollouts with the reasons, notes, and how to stop. Reads the regions, or
    their logs if no agent runs, and starts nothing. Contains no secrets. Exits 5 if a region is unreachable; the
    others are printed all the same.
    """
    project, output = open_project(), Output(cli_context().flags)
    views, errors = run_interruptible(_views(project))
    named = {view.region.name: view for view in views}
    queued = queued_regions(named, {name: project.pipelines[name].digest() for name in project.names})
    given = facts_of(project.pipeline, named, queued, str(who().name), time.time())
    if output.json:
        output.document(_plain(encode(given)))
    else:
        output.data(markdown(given))
    for name, error in errors.items():
        output.print_region_error(name, error)
    return worst([*errors.values()])


async def _views(project: OpenProject) -> "tuple[list[RegionView], dict[str, ConsoleError]]":
    """Every region's state, with the stored events of its rollout."""
    views, errors = await views_of(project)
    async with project.drivers() as drivers:
        return list(await asyncio.gather(*(_whole(drivers[v.region.name], project.pipeline, v) for v in views))), errors


async def _whole(driver: "Driver", pipeline: str, view: "RegionView") -> "RegionView":
    if view.link == "unreachable":
        return view
    _, events = await stored_events(driver, pipeline, view)
    return replace(view, heard=time.time(), events=events)


def _plain(data: Any) -> Any:
    """Without the names of classes."""
    match data:
        case dict():
            return {key: _plain(value) for key, value in data.items() if key != "type"}
        case list():
            return [_plain(value) for value in data]
    return data
