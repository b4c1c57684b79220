"""`console adapt`: a table of ours in front of a landing table that others write."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.flags import command, root_of
from console.cli.format import changed_lines
from console.cli.output import Output
from console.cli.wiring import choices, cli_context, open_project
from console.errors import CheckFailed, UsageError
from console.project.names import wrong_name
from console.project.pipeline.folder import split
from console.project.yaml import read_text
from console.text import safe_text

if TYPE_CHECKING:
    from console.model.pipeline import Pipeline
    from console.model.schema import Column, Table

_FOLDERS = ("materializations", "endpoints", "copies", "sinks")


@dataclass(frozen=True, slots=True)
class _Edit:
    """One file, before ("" if it is new) and after the edit. path: below the project's root"""

    path: Path
    before: str
    after: str


@command(
    "adapt",
    examples="console adapt landing --as events --dry-run\nconsole adapt landing --as events && console plan",
)
@click.argument("table", metavar="TABLE")
@click.option("--as", "adapter", required=True, metavar="NAME", help="The adapter's name.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
def adapt(table: str, adapter: str, dry_run: bool) -> int:
    """Put an adapter in front of a landing table that others write.

    Writes tables/NAME.yaml, a landing table with `source: TABLE`, and has every query that is driven by TABLE read NAME
    instead. What `console plan` then shows is rolled out like any change: the adapter is filled from TABLE, and the tables
    below it keep their rows. From then on the adapter can be renamed, retyped and partitioned, which TABLE cannot.
    """
    output, project = Output(cli_context().flags), open_project()
    pipeline = project.pipelines[project.names[0]]
    source = _source(pipeline, table)
    if why := wrong_name(adapter):
        raise UsageError(f"--as: {why}", hint="--as events")
    tables, feeds = pipeline.tables, pipeline.materializations
    ends = (*(node.name for node in pipeline.endpoints), *(node.name for node in pipeline.sinks))
    if adapter in (*(node.name for node in tables), *(node.name for node in feeds), *ends, *_copied(pipeline)):
        raise UsageError(f"--as: {pipeline.name} has `{adapter}` already", hint="choose a name that is free")
    root = root_of(cli_context().flags)
    plans = Path("plans", pipeline.name)
    left: list[str] = []
    edits = [_Edit(plans / "tables" / f"{adapter}.yaml", "", adapter_file(source))]
    edits += _redirected(root, plans, source.name, adapter, left)
    for one in () if dry_run else edits:
        part = (root / one.path).with_suffix(".part")
        part.write_text(one.after, encoding="utf-8")
        part.replace(root / one.path)
    if output.json:
        output.document({"edited": [one.path.as_posix() for one in edits], "left": left, "dry_run": dry_run})
        return 0
    for one in edits:
        output.data("\n".join(_lines(one)))
    for path in left:
        output.info(
            safe_text(
                f"left  {path}: it joins {source.name}, or is not a plain query; edit it by hand if it should not"
            )
        )
    output.info("hint: console plan shows the adapter being filled, and 0 bytes below it")
    return 0


def _source(pipeline: "Pipeline", name: str) -> "Table":
    foreign = [table.name for table in pipeline.tables if table.kind == "landing" and not table.managed]
    table = pipeline.table(name)
    if table is None or table.kind != "landing":
        raise UsageError(f"{name!r} is not a landing table of {pipeline.name}", **choices(foreign, name))
    if table.managed:
        hint = "change its file: columns of a managed landing table change in place"
        raise CheckFailed(f"{name} is managed, and needs no adapter", hint=hint)
    return table


def _copied(pipeline: "Pipeline") -> Iterator[str]:
    for copy in pipeline.copies:
        yield from (copy.name, copy.into)


def adapter_file(source: "Table") -> str:
    """The file of an adapter that passes every column through."""
    lines = [
        f"# in front of {source.name}, which others write: change this file, and leave {source.name}.yaml as it is"
    ]
    lines += ["kind: landing", f"source: {source.name}"]
    lines += [f"time: {json.dumps(source.time, ensure_ascii=False)}"] if source.time else ["time: null"]
    if source.partition_by:
        lines.append(f"partition_by: {json.dumps(list(source.partition_by), ensure_ascii=False)}")
    if source.retention_days is not None:
        lines.append(f"retention: {source.retention_days}d")
    return "\n".join([*lines, "columns:", *map(_column, source.columns), ""])


def _column(column: "Column") -> str:
    return f"  {json.dumps(column.name, ensure_ascii=False)}: {json.dumps(column.type, ensure_ascii=False)}"


def _redirected(root: Path, plans: Path, source: str, adapter: str, left: list[str]) -> Iterator[_Edit]:
    from console.planning.landing.adapter_sql import reading_through, reads

    for path in sorted(path for kind in _FOLDERS for path in (root / plans / kind).glob("*.sql")):
        text, name = read_text(path, root), path.relative_to(root)
        sql = split(text, name.as_posix()).sql
        if (changed := reading_through(sql, source, adapter)) is not None:
            yield _Edit(name, text, changed.join(text.rsplit(sql, 1)))
        elif reads(sql, source):
            left.append(name.as_posix())


def _lines(edit: _Edit) -> list[str]:
    if not edit.before:
        return [f"+ {safe_text(edit.path.as_posix())}", *(f"    {safe_text(line)}" for line in edit.after.splitlines())]
    return [f"~ {safe_text(edit.path.as_posix())}", *changed_lines(edit.before, edit.after)]
