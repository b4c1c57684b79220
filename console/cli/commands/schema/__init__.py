"""`console schema`: an application's PostgreSQL schema, applied to every store that its rows replicate to."""

import click

from console.cli.lazy import LazyCommand, LazyGroup

SUBCOMMANDS = {
    "observe": LazyCommand("observe:observe", "Turn a change of the PostgreSQL schema into migrations to commit."),
    "edit": LazyCommand("edit:edit", "Write migrations into the landing tables of a pipeline."),
    "apply": LazyCommand("apply:apply", "Apply the committed migrations of one phase to the stores."),
    "verify": LazyCommand("verify:verify", "Compare the replicated PostgreSQL tables with every store."),
    "rehearse": LazyCommand("rehearse:rehearse", "Try a migration on a copy of each store's newest partition."),
}


@click.group(
    "schema",
    cls=LazyGroup,
    package=__name__,
    sections={"Commands": SUBCOMMANDS},
    invoke_without_command=True,
    epilog="\b\nExamples:\n  console schema observe db/migrate/20260102_add_title.sql\n"
    "  console schema apply --phase pre --store clickhouse --yes\n"
    "  console schema verify --output json",
)
@click.pass_context
def schema(ctx: click.Context) -> int:
    """Apply changes of a PostgreSQL schema to ClickHouse, Iceberg and Delta before their rows arrive.

    `observe` turns a change into migrations, which are files to commit; `apply --phase pre` applies them before the
    application migrates its database, `apply --phase post` afterwards; `verify` checks that nothing was forgotten.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return 0
