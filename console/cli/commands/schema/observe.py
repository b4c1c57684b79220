"""`console schema observe`: what changes in PostgreSQL, as migrations to commit."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from console.cli.commands.schema.migration_files import write
from console.cli.commands.schema.watch import from_dsn
from console.cli.flags import command
from console.cli.output import Output
from console.cli.wiring import cli_context, root_of
from console.errors import DataError, UsageError
from console.propagation.migration import AddColumn, ChangeColumn, DropColumn, ReplaceColumn, SwapColumns
from console.propagation.migration_file import to_data
from console.propagation.observe.read import compare_dumps
from console.stores.files import read_plan
from console.text import safe_text

if TYPE_CHECKING:
    from console.propagation.migration import Migration, Phase
    from console.propagation.observe.events import Observation
    from console.propagation.observe.read import File
    from console.propagation.replication import Replication

_SHOWN = 60  # letters of a default
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


class Destination:
    """Where migrations go, and which tables they may be about.

    folder       of the migrations; None where there is no project, or only printing is asked for
    replication  None: every table counts
    """

    def __init__(self, root: Path, folder: Path | None, replication: "Replication | None") -> None:
        self.root, self.folder, self.replication = root, folder, replication

    @classmethod
    def find(cls, *, every: bool) -> "Destination":
        """raises  UsageError where files are to be written and nobody knows where; Problems for replication.yaml"""
        flags = cli_context().flags
        printing = flags.output != "text"
        try:
            root = root_of(flags)
            pipeline = _pipeline(root, flags.pipeline)
        except UsageError:
            if not printing or flags.project or flags.pipeline:
                raise
            return cls(Path.cwd(), None, None)
        replication = None
        if (root / "plans" / pipeline / "replication.yaml").exists() and not every:
            replication = read_plan(root, pipeline).replication
        return cls(root, None if printing else root / "plans" / pipeline / "migrations", replication)

    def deliver(self, observation: "Observation") -> int:
        """Print or write; returns the exit code."""
        output = Output(cli_context().flags)
        if self.folder is None:
            _print(output, observation)
            return 0
        migrations = [observed.migration for observed in observation.migrations]
        for migration, path, there in write(self.folder, migrations):
            shown = path.relative_to(self.root).as_posix()
            output.data(f"{'.' if there else '+'} {safe_text(shown)}  {describe(migration)}")
            if there:
                output.info(f"{safe_text(shown)} says so already")
        _talk(output, observation)
        return 0


def describe(migration: "Migration") -> str:
    """A migration in one line: `public.issues: add title string (pre)`."""
    table = f"{migration.schema}.{migration.table}"
    match migration.operation:
        case AddColumn() as op:
            what = f"add {op.name} {op.data_type}{'' if op.nullable else ' not null'}"
            what += f" default {_shortened(op.default)}" if op.default is not None else ""
        case DropColumn(name=name):
            what = f"drop {name}"
        case SwapColumns(columns=pairs):
            what = "names " + ", ".join(f"{old} → {new}" for old, new in pairs)
        case ChangeColumn() as op:
            what = f"change {op.name} ({op.classification})"
        case ReplaceColumn(name=name, source=source):
            what = f"{source or 'a new column'} takes the place of {name}"
    return safe_text(f"{table}: {what} ({migration.phase})")


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _talk(output: Output, observation: "Observation") -> None:
    for ignored in observation.ignored:
        about = f" {ignored.table}" if ignored.table else ""
        output.info(safe_text(f"ignored  {ignored.where}: {ignored.kind}{about}: {ignored.reason}"))
    for remark in observation.remarks:
        output.info(safe_text(f"note     {remark.where}: {remark.message}"))
    count = len(observation.migrations)
    output.info(f"{count} migration{'' if count == 1 else 's'}, {len(observation.ignored)} ignored")


def as_data(observation: "Observation") -> dict[str, Any]:
    """An observation for programs; `migrations` are exactly what would be written, `sources` where each was seen."""
    return {
        "migrations": [to_data(observed.migration) for observed in observation.migrations],
        "sources": [observed.where for observed in observation.migrations],
        "ignored": [
            {"where": i.where, "kind": i.kind, "table": i.table, "reason": i.reason, "statement": i.statement}
            for i in observation.ignored
        ],
        "warnings": [{"where": remark.where, "message": remark.message} for remark in observation.remarks],
    }


def _print(output: Output, observation: "Observation") -> None:
    data = as_data(observation)
    if output.flags.output == "json":
        output.document(data)
        return
    for migration, source in zip(data["migrations"], data["sources"], strict=True):
        output.line({"type": "migration", "migration": migration, "where": source})
    for ignored in data["ignored"]:
        output.line({"type": "ignored", **ignored})
    for warning in data["warnings"]:
        output.line({"type": "warning", **warning})


def _pipeline(root: Path, named: str | None) -> str:
    names = sorted(path.parent.name for path in root.glob("plans/*/pipeline.yaml"))
    if named is not None:
        if named not in names:
            raise UsageError(f"no pipeline is named {named}", hint=f"there are: {', '.join(names) or 'none'}")
        return named
    having = [name for name in names if (root / "plans" / name / "replication.yaml").exists()]
    if len(having) == 1 or len(names) == 1:
        return (having or names)[0]
    raise UsageError(f"the project has {len(names)} pipelines", hint=f"--pipeline {' or --pipeline '.join(names)}")


def read_files(names: Sequence[str]) -> "list[File]":
    """SQL files as they are named on the command line; `-` is stdin."""
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
