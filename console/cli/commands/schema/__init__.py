"""`console schema`: an application's PostgreSQL schema, carried into every store that its rows go to."""

from importlib import import_module

import click

from console.cli.wiring import choices
from console.errors import UsageError

# subcommand → (module beside this one, first line of its help)
SUBCOMMANDS: dict[str, tuple[str, str]] = {
    "observe": ("observe", "Turn a change of the PostgreSQL schema into migrations to commit."),
    "edit": ("edit", "Write migrations into the landing tables of a pipeline."),
    "apply": ("apply", "Carry the committed migrations of one phase into the stores."),
    "verify": ("verify", "Compare the replicated PostgreSQL tables with every store."),
    "rehearse": ("rehearse", "Try a migration on a copy of each store's newest partition."),
}


class SchemaGroup(click.Group):
    """Its subcommands are loaded when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in SUBCOMMANDS:
            return None
        module = import_module(f"{__name__}.{SUBCOMMANDS[cmd_name][0]}")
        found: click.Command = getattr(module, cmd_name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if not args[0].startswith("-") and args[0] not in SUBCOMMANDS:
            raise UsageError(f"no command {args[0]!r} in schema", **choices(list(SUBCOMMANDS), args[0]))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in SUBCOMMANDS.items()])


@click.group(
    "schema",
    cls=SchemaGroup,
    invoke_without_command=True,
    epilog="\b\nExamples:\n  console schema observe db/migrate/20260102_add_title.sql\n"
    "  console schema apply --phase pre --store clickhouse --yes\n"
    "  console schema verify --output json",
)
@click.pass_context
def schema(ctx: click.Context) -> int:
    """Carry changes of a PostgreSQL schema into ClickHouse, Iceberg and Delta before their rows arrive.

    `observe` turns a change into migrations, files to commit; `apply --phase pre` carries them before the application
    migrates its database, `apply --phase post` afterwards; `verify` proves that nothing was forgotten.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
    return 0
