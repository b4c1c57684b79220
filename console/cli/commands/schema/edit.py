"""`console schema edit`: migrations written into the landing tables of a pipeline, for the planner to see."""

from pathlib import Path

import click

from console.cli.commands.schema.landing import landing, lines, write
from console.cli.flags import command, root_of
from console.cli.output import Output
from console.cli.wiring import cli_context
from console.errors import DataError, UsageError
from console.propagation.migration_file import read
from console.stores.files import MigrationFile, read_plan
from console.text import safe_text


@command(
    "edit",
    examples="""console schema edit plans/web/migrations/20260102030405_add_issues_title.json --dry-run
    console schema edit plans/web/migrations/*.json && console plan""",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE.json…")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option(
    "--allow-destructive", is_flag=True, help="Include changes that may lose stored values: drops, narrowed types."
)
def edit(files: tuple[str, ...], dry_run: bool, allow_destructive: bool) -> int:
    """Write migrations into the files of landing tables, for stores of replication.yaml that are pipelines.

    As `apply` does for one phase, but no store is contacted. The edited files are changes of the pipeline like any
    other: `console plan` shows their cost, `console apply` rolls them out. Each migration is written once.
    """
    output = Output(cli_context().flags)
    root = root_of(cli_context().flags)
    plan = read_plan(root, cli_context().flags.pipeline)
    owned = [(str(pipeline), store) for store in plan.replication.stores if (pipeline := store.options.get("pipeline"))]
    if not owned:
        raise UsageError(
            f"no store of {plan.file} is a pipeline's", hint="stores: {raw: {kind: delta, pipeline: NAME}}"
        )
    changes = []
    for name in files:
        change = _change(name)
        if why := plan.replication.concerns(change.migration):
            output.info(safe_text(f"ignored  {name}: {why}"))
        else:
            changes.append(change)
    landing_edits = landing(root, plan, owned, changes, allow_destructive=allow_destructive)
    if landing_edits.refusal is not None:
        raise landing_edits.refusal
    for one in () if dry_run else landing_edits.edits:
        write(root, one)
    if output.json:
        output.document({"edited": [one.path.as_posix() for one in landing_edits.edits], "dry_run": dry_run})
    elif landing_edits.edits:
        output.data("\n".join(line for one in landing_edits.edits for line in lines(one)))
    else:
        output.info("the landing tables have these columns already")
    return 0


def _change(name: str) -> "MigrationFile":
    try:
        body = Path(name).read_bytes()
        return MigrationFile(Path(name).stem, read(body), body.decode())
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    except DataError as error:
        raise DataError(f"{name}:1:1: {error}", hint="console schema observe writes such files") from None
