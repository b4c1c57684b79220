"""Migrations of a pipeline's own landing tables: edits of its files, which the planner then sees like any other.

Each file lists its migrations, one comment each: reverting a file removes edit and record
together, and two branches that migrate a table conflict only in that file.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from console.cli.format import changed_lines
from console.errors import CheckFailed, ConsoleError, DataError
from console.project.yaml import parse, read_text
from console.propagation.landing import Declared, edited
from console.propagation.migration import ReplaceColumn, SwapColumns
from console.stores.apply import too_early, waiting
from console.text import safe_text

if TYPE_CHECKING:
    from console.propagation.migration import Phase
    from console.propagation.replication import Target
    from console.stores.files import MigrationFile, ReplicationConfig

_HAS: Final = "# migrated by "


@dataclass(frozen=True, slots=True)
class FileEdit:
    """One file of the project, before and after the edit. path: below the project's root."""

    path: Path
    before: str
    after: str
    migrations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Landing:
    """The edits that migrations make in a project's files. refusal: why some or all are missing."""

    edits: tuple[FileEdit, ...] = ()
    refusal: ConsoleError | None = None


def landing(
    root: Path,
    plan: "ReplicationConfig",
    owned: "Iterable[tuple[str, Target]]",
    changes: "Sequence[MigrationFile]",
    *,
    phase: "Phase | None" = None,
    allow_destructive: bool = False,
    recorded: bool = False,
) -> Landing:
    """The edits of files that do not have these migrations yet; nothing is written.

    owned     (pipeline, store) for each store whose tables are a pipeline's
    phase     None: both
    recorded  only record the migrations, which the files already contain
    """
    by_file: dict[Path, list[MigrationFile]] = {}
    for pipeline, target in owned:
        for change in changes:
            entry = plan.replication.find(change.migration.schema, change.migration.table)
            assert entry is not None, "changes concern the replication"
            mine = by_file.setdefault(Path("plans", pipeline, "tables", f"{target.place(entry)}.yaml"), [])
            if change not in mine:  # a pipeline's files are the same for all its regions
                mine.append(change)
    edits: list[FileEdit] = []
    refusal: ConsoleError | None = None
    try:
        for path, mine in by_file.items():
            if phase is None or any(change.migration.phase == phase for change in mine):
                edit, early = _edit(root, path, mine, phase, allow_destructive=allow_destructive, recorded=recorded)
                edits.append(edit)
                refusal = refusal or early
    except ConsoleError as error:
        return Landing(refusal=error)
    return Landing(tuple(edit for edit in edits if edit.after != edit.before), refusal)


def write(root: Path, edit: FileEdit) -> None:
    """Write all files, or none."""
    part = (root / edit.path).with_suffix(".part")
    part.write_text(edit.after, encoding="utf-8")
    part.replace(root / edit.path)


def lines(edit: FileEdit) -> list[str]:
    """An edit for people: the file, and its lines that differ."""
    return [
        f"~ {safe_text(edit.path.as_posix())}: {', '.join(map(safe_text, edit.migrations))}",
        *changed_lines(edit.before, edit.after),
    ]


def data(edit: FileEdit) -> dict[str, Any]:
    """For `--output json`."""
    return {"file": edit.path.as_posix(), "migrations": list(edit.migrations), "text": edit.after}


def _edit(
    root: Path,
    path: Path,
    changes: "Sequence[MigrationFile]",
    phase: "Phase | None",
    *,
    allow_destructive: bool,
    recorded: bool,
) -> tuple[FileEdit, ConsoleError | None]:
    """One file's edit, and the first migration that must wait for another phase."""
    before = text = _text(root, path, changes[0])
    has = {line.strip().removeprefix(_HAS) for line in text.splitlines() if line.strip().startswith(_HAS)}
    waits = waiting(changes, phase, lambda change: change.id in has) if phase else {}
    names: list[str] = []
    for change in changes:
        if change.id in has or change.id in waits or phase not in (None, change.migration.phase):
            continue
        now = text if recorded else _edited(path, text, change)
        if now != text and change.migration.destructive and not allow_destructive:
            raise CheckFailed(
                f"{path.as_posix()}: {change.id} may lose stored values; nothing was done to the files",
                hint="if that is intended: the same command with --allow-destructive",
                code="E_DESTRUCTIVE",
            )
        text = "\n".join([now.removesuffix("\n"), f"{_HAS}{change.id}", ""])
        names.append(change.id)
    early = next(
        (too_early(path.as_posix(), c, waits[c.id], recorded=recorded) for c in changes if c.id in waits), None
    )
    return FileEdit(path, before, text, tuple(names)), early


def _text(root: Path, path: Path, change: "MigrationFile") -> str:
    if not (root / path).is_file():
        raise DataError(
            f"{path.as_posix()} is not there, and {change.id} is about it", hint="name the table as the pipeline does"
        )
    return read_text(root / path, root)


def _edited(path: Path, text: str, change: "MigrationFile") -> str:
    document = parse(text, path.as_posix())
    if document.data.get("kind") != "landing":
        raise DataError(
            f"{document.place(('kind',))}: only a landing table follows PostgreSQL, and {change.id} is about it",
            hint="name the landing table in replication.yaml",
        )
    if _another_meaning(change):
        names = ", ".join(sorted(change.migration.columns))
        raise DataError(
            f"{path.as_posix()}: {change.id} gives {names} another meaning: rows from before keep the old meaning",
            hint=f"let the queries that read {names} tell older rows apart, or ingest the table again; then add the line"
            f" `{_HAS}{change.id}` to that file and apply again",
        )
    try:
        return edited(Declared(text, document.data, document.keys, document.values), change.migration)
    except DataError as error:
        hint = (
            error.hint
            or f"if the file has it already: console schema apply --phase {change.migration.phase} --recorded"
        )
        raise DataError(f"{document.place(('columns',))}: {change.id}: {error}", hint=hint) from None


def _another_meaning(change: "MigrationFile") -> bool:
    """A list of names cannot express that some of them were swapped, or that one now means another column."""
    operation = change.migration.operation
    if isinstance(operation, ReplaceColumn):
        return True
    if not isinstance(operation, SwapColumns):
        return False
    return {old for old, _ in operation.columns} == {new for _, new in operation.columns}
