"""`console schema edit`: migrations written into the landing tables of a pipeline, for the planner to see."""

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from console.cli.flags import command
from console.cli.voice import Voice
from console.cli.wiring import root_of, session
from console.errors import DataError, UsageError
from console.text import safe_text

if TYPE_CHECKING:
    from console.propagation.migration import Migration


@command(
    "edit",
    examples="""console schema edit plans/web/migrations/20260102030405_add_issues_title.json --dry-run
    console schema edit plans/web/migrations/*.json && console plan""",
)
@click.argument("files", nargs=-1, required=True, metavar="FILE.json…")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
def edit(files: tuple[str, ...], dry_run: bool) -> int:
    """Write migrations into the landing tables they are about, where a store of replication.yaml is a pipeline's.

    The edited files are changes of the pipeline like any other: `console plan` shows what they cost, `console apply`
    carries them. What a file says already is left alone; a swap of names is written each time it is asked for.
    """
    from console.stores.files import read_plan

    voice = Voice(session().flags)
    root = root_of(session().flags)
    plan = read_plan(root, session().flags.pipeline)
    targets = [target for target in plan.replication.stores if target.options.get("pipeline")]
    if not targets:
        raise UsageError(
            f"no store of {plan.file} is a pipeline's", hint="stores: {raw: {kind: delta, pipeline: NAME}}"
        )
    texts: dict[Path, tuple[str, str]] = {}
    for name in files:
        migration = _migration(name)
        entry = plan.replication.find(migration.schema, migration.table)
        if entry is None or plan.replication.concerns(migration):
            voice.talk(safe_text(f"ignored  {name}: {plan.replication.concerns(migration)}"))
            continue
        for target in targets:
            path = root / "plans" / str(target.options["pipeline"]) / "tables" / f"{target.place(entry)}.yaml"
            before, now = texts.get(path) or (_text(path, root),) * 2
            texts[path] = (before, _edited(now, path, root, migration))
    return _deliver(voice, root, texts, dry_run)


def _deliver(voice: Voice, root: Path, texts: dict[Path, tuple[str, str]], dry_run: bool) -> int:
    changed = {path: pair for path, pair in texts.items() if pair[0] != pair[1]}
    names = [path.relative_to(root).as_posix() for path in changed]
    if not dry_run:
        for path, (_, text) in changed.items():
            beside = path.with_name(f".{path.name}.new")
            beside.write_text(text, encoding="utf-8")
            os.replace(beside, path)
    if voice.json:
        voice.document({"edited": names, "dry_run": dry_run})
        return 0
    for name, (before, now) in zip(names, changed.values(), strict=True):
        lines = difflib.unified_diff(before.splitlines(), now.splitlines(), name, name, n=1, lineterm="")
        voice.data("\n".join(safe_text(line) for line in lines))
    if not names:
        voice.talk("the landing tables say so already")
    return 0


def _migration(name: str) -> "Migration":
    from console.propagation.migration import read

    try:
        return read(Path(name).read_bytes())
    except OSError as error:
        raise UsageError(f"{name} cannot be read: {error.strerror}") from None
    except DataError as error:
        raise DataError(f"{name}:1:1: {error}", hint="console schema observe writes such files") from None


def _text(path: Path, root: Path) -> str:
    from console.project.yaml import read_text

    return read_text(path, root)


def _edited(text: str, path: Path, root: Path, migration: "Migration") -> str:
    from console.project.yaml import parse
    from console.propagation.translate.landing import Declared, edited

    shown = path.relative_to(root).as_posix()
    document = parse(text, shown)
    if document.data.get("kind") != "landing":
        raise DataError(
            f"{document.place(('kind',))}: only a landing table follows PostgreSQL", hint="see replication.yaml"
        )
    try:
        return edited(Declared(text, document.data, document.keys, document.values), migration)
    except DataError as error:
        raise DataError(f"{document.place(('columns',))}: {error}", hint=error.hint) from None
