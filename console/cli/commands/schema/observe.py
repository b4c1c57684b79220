"""`console schema observe`: PostgreSQL's changes as migrations to commit."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.commands.schema.destination import Destination
from console.cli.commands.schema.watch import from_dsn
from console.cli.flags import command
from console.errors import DataError, UsageError
from console.propagation.observe.read import compare_dumps

if TYPE_CHECKING:
    from console.propagation.migration import Phase
    from console.propagation.observe.read import File

_MOST_BYTES = 64 * 1024 * 1024


@command(
    "observe",
    examples="""console schema observe db/migrate/20260102_add_title.sql
    console schema observe --schema db/structure.sql change.sql --output json
    console schema observe --before old.sql --after new.sql --all
    console schema observe --dsn env:DATABASE_URL --watch""",
)
@click.argument("files", nargs=-1, metavar="[FILE.sql]…")
@click.option("--before", multiple=True, metavar="FILE", help="The old schema: a dump, or CREATE TABLE statements.")
@click.option("--after", multiple=True, metavar="FILE", help="The new schema.")
@click.option(
    "--schema", "known", multiple=True, metavar="FILE", help="The schema before FILE.sql, with the old types."
)
@click.option(
    "--phase", type=click.Choice(["pre", "post"]), help="The migrations' phase, instead of each change's default."
)
@click.option(
    "--dsn", metavar="DSN", help="A running PostgreSQL: read what console's event trigger has recorded there."
)
@click.option("--watch", is_flag=True, help="With --dsn: continue until interrupted, then remove the event trigger.")
@click.option("--remove", is_flag=True, help="With --dsn: remove the event trigger.")
@click.option("--all", "every", is_flag=True, help="Every table, not only those of replication.yaml.")
def observe(
    files: tuple[str, ...],
    before: tuple[str, ...],
    after: tuple[str, ...],
    known: tuple[str, ...],
    *,
    phase: "Phase | None",
    dsn: str | None,
    watch: bool,
    remove: bool,
    every: bool,
) -> int:
    """Turn a change of the PostgreSQL schema into migrations, one file each, ready to commit.

    Reads the SQL that makes the change, two dumps, or a running PostgreSQL, where an event trigger of console's records
    the DDL by transaction. Statements that change no column are listed as ignored; a statement that is not understood
    is refused by file and line, and then nothing is written. With --output json it prints instead of writing.
    """
    from console.propagation.observe.read import observe as observed

    if dsn is not None:
        if files or before or after or known:
            raise UsageError("--dsn observes a running PostgreSQL, not files", hint="leave the files out")
        return from_dsn(Destination.find(every=every), dsn, phase, watch=watch, remove=remove)
    if watch or remove:
        raise UsageError(
            "--watch and --remove need --dsn", hint="console schema observe --dsn env:DATABASE_URL --watch"
        )
    if bool(before) != bool(after) or bool(files) == bool(before) or (before and known):
        hint = "console schema observe FILE.sql, or --before OLD.sql --after NEW.sql"
        raise UsageError("observe needs either files of SQL, or --before and --after", hint=hint)
    destination = Destination.find(every=every)
    if before:
        observation = compare_dumps(read_files(before), read_files(after), destination.replication, phase)
    else:
        observation = observed(read_files(files), read_files(known), destination.replication, phase)
    return destination.deliver(observation)


def read_files(names: Sequence[str]) -> "list[File]":
    """The SQL files named on the command line; `-` is stdin."""
    return [(_shown(name), _text(name)) for name in names]


def _shown(name: str) -> str:
    return "stdin" if name == "-" else name


def _text(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if len(data) > _MOST_BYTES:
        raise DataError(
            f"{name}: larger than {_MOST_BYTES // 1024 // 1024} MiB", hint="give a dump of the schema alone"
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{_shown(name)}:{line}: not UTF-8", hint="save it as UTF-8") from None
