"""`console accept-until`: moves the day until which regions accept lines of older shapes, without a rollout."""

from typing import Any

from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.output import Output, as_data
from console.cli.wiring import OpenProject, cli_context, open_project
from console.cli.wiring import who as operator
from console.errors import ConsoleError
from console.text import safe_text


@command(
    "accept-until",
    changes=True,
    examples="console accept-until --region eu\nconsole accept-until --regions all",
)
def accept_until() -> int:
    """Give regions the days until which landing tables take lines of older shapes, as the files say.

    Only the key `accepts_until` of a table's file is sent to the live release; nothing is planned or promoted. The region's
    notes record who moved the day.
    """
    project = open_project(need_regions=True)
    return run_interruptible(_move(project, Output(cli_context().flags)))


async def _move(project: OpenProject, output: Output) -> int:
    moved: list[dict[str, Any]] = []
    errors: list[tuple[str, ConsoleError]] = []
    async with project.drivers() as drivers:
        for name in project.names:
            try:
                live = await drivers[name].survey(project.pipeline, project.landing(name))
                days = _days(project, name, live.release)
                answer = {}
                if days and live.release is not None:
                    answer = await drivers[name].accept_until(project.pipeline, live.release.id, days, operator())
                moved.append({"region": name, "days": answer})
            except ConsoleError as error:
                errors.append((name, error))
    if output.json:
        failed = [{"region": name, "error": as_data(missed)} for name, missed in errors]
        output.document({"regions": [*moved, *failed]})
    else:
        for entry in moved:
            shown = ", ".join(f"{table} until {day or 'the cleanup'}" for table, day in sorted(entry["days"].items()))
            output.data(safe_text(f"{entry['region']}: {shown or 'as it was'}"))
    for name, missed in errors:
        output.print_region_error(name, missed)
    return max((missed.exit_code for _, missed in errors), default=0)


def _days(project: OpenProject, region: str, live: Any) -> dict[str, str]:
    """Table → day, for managed landing tables whose day in the live release is another one."""
    days = {}
    for table in project.pipelines[region].tables:
        state = live.table(table.name) if live is not None else None
        if state is not None and table.managed and state.table.accepts_until != table.accepts_until:
            days[table.name] = table.accepts_until
    return days
