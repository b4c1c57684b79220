"""`console history` and `show`: past rollouts of the regions."""

import click

from console.cli.commands.receipts import text
from console.cli.commands.receipts.asking import asked, check_known, errors_data, print_errors
from console.cli.commands.receipts.days import days_data, days_text, every_record
from console.cli.flags import command
from console.cli.interrupt import run_interruptible
from console.cli.output import Output
from console.cli.wiring import OpenProject, cli_context, open_project


@command("history", examples="console history\nconsole history --region eu --output json")
def history() -> int:
    """List the rollouts that the regions remember.

    Newest first: when, by whom, from which release to which, how it ended and who decided that. Reads the regions' own
    tables and starts nothing.
    """
    project, output = open_project(), Output(cli_context().flags)
    histories, errors = run_interruptible(asked(project, lambda driver: driver.history(project.pipeline)))
    if output.json:
        output.document({"rollouts": text.history_data(histories), "errors": errors_data(errors)})
    else:
        output.data(text.history_text(histories))
    return print_errors(output, errors)


@command("show", examples="console show web-7\nconsole show web-7 --days --region eu --output json")
@click.argument("rollout", metavar="ID")
@click.option("--days", is_flag=True, help="Every day and column of its comparison instead.")
def show(rollout: str, days: bool) -> int:
    """Show one rollout in full: who decided it, its batches and its receipts.

    Each region numbers its own rollouts: without --region, every rollout with this ID is shown. With --days, what the
    comparison of old and new recorded: counts of each day and column, and no value (console diff fetches some rows).
    """
    project, output = open_project(), Output(cli_context().flags)
    if days:
        return _show_days(project, output, rollout)
    histories, errors = run_interruptible(asked(project, lambda driver: driver.history(project.pipeline, rollout)))
    known = {region: history for region, history in histories.items() if history.events}
    check_known(rollout, bool(known), histories, errors)
    if output.json:
        output.document(
            {
                "regions": [text.rollout_data(name, history) for name, history in known.items()],
                "errors": errors_data(errors),
            }
        )
    else:
        output.data("\n\n".join(text.rollout_text(name, history) for name, history in known.items()))
    return print_errors(output, errors)


def _show_days(project: OpenProject, output: Output, rollout: str) -> int:
    regions, errors = run_interruptible(asked(project, lambda driver: every_record(driver, project.pipeline, rollout)))
    if output.json:
        output.document({**days_data(rollout, regions), "errors": errors_data(errors)})
    elif regions:
        output.data(days_text(rollout, regions))
    return print_errors(output, errors)
