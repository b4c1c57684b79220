"""The destination of observed migrations: the project's files, or stdout for programs."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.cli.commands.schema.migration_files import write
from console.cli.flags import root_of
from console.cli.output import Output
from console.cli.wiring import cli_context
from console.errors import UsageError
from console.propagation.migration import AddColumn, ChangeColumn, DropColumn, ReplaceColumn, SwapColumns
from console.propagation.migration_file import to_data
from console.stores.files import read_plan
from console.text import safe_text

if TYPE_CHECKING:
    from console.propagation.migration import Migration
    from console.propagation.observe.events import Observation
    from console.propagation.replication import Replication

_SHOWN = 60  # letters of a default


class Destination:
    """The destination of migrations, and the tables that they may concern.

    folder       of the migrations; None if there is no project, or only printing is requested
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
                output.info(f"{safe_text(shown)} has it already")
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
