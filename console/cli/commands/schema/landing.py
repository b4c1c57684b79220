"""Migrations of a pipeline's own landing tables: edits of its files, which the planner then sees like any other."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from console.errors import CheckFailed, DataError
from console.text import safe_text

if TYPE_CHECKING:
    from console.runner.schema import Order
    from console.stores.files import Change, Plan, Site


@dataclass(frozen=True, slots=True)
class Edit:
    """One file of the project, as it is and as it is to be. path: below the project's root."""

    path: Path
    before: str
    after: str
    migrations: tuple[str, ...]


def edits(
    root: Path, plan: "Plan", sites: "Sequence[Site]", changes: "Sequence[Change]", order: "Order"
) -> tuple[Edit, ...]:
    """What a phase changes in the files of pipelines that own a store's tables; nothing is written.

    raises  CheckFailed for what may lose something and was not allowed; DataError where a file contradicts a migration
    """
    found: dict[Path, Edit] = {}
    for site in sites:
        for change in changes:
            entry = plan.replication.find(change.migration.schema, change.migration.table)
            if entry is None or change.migration.phase != order.phase:
                continue
            path = Path("plans", site.pipeline, "tables", f"{site.target.place(entry)}.yaml")
            known = found.get(path)
            before = known.before if known else _text(root, path, change)
            if _ring(change):
                _done_by_hand(change, before, path)
                continue
            text = _edited(root, path, known.after if known else before, change)
            names = known.migrations if known else ()
            if text != (known.after if known else before) and change.id not in names:
                _refuse(change, order, path)
                names = (*names, change.id)
            found[path] = Edit(path, before, text, names)
    return tuple(edit for edit in found.values() if edit.after != edit.before)


def write(root: Path, edit: Edit) -> None:
    """Whole, or not at all."""
    part = (root / edit.path).with_suffix(".part")
    part.write_text(edit.after)
    part.replace(root / edit.path)


def lines(edit: Edit) -> list[str]:
    """An edit for people: the file, and its lines that differ."""
    from difflib import unified_diff

    changed = unified_diff(edit.before.splitlines(), edit.after.splitlines(), lineterm="", n=0)
    shown = [f"    {safe_text(line)}" for line in list(changed)[2:] if not line.startswith("@@")]
    return [f"~ {safe_text(edit.path.as_posix())}: {', '.join(map(safe_text, edit.migrations))}", *shown]


def data(edit: Edit) -> dict[str, Any]:
    """For `--output json`."""
    return {"file": edit.path.as_posix(), "migrations": list(edit.migrations), "text": edit.after}


def _text(root: Path, path: Path, change: "Change") -> str:
    from console.project.yaml import read_text

    if not (root / path).is_file():
        raise DataError(
            f"{path.as_posix()} is not there, and {change.id} is about it", hint="name the table as the pipeline does"
        )
    return read_text(root / path, root)


def _edited(root: Path, path: Path, text: str, change: "Change") -> str:
    from console.project.yaml import parse
    from console.propagation.translate.landing import Declared, edited

    document = parse(text, path.as_posix())
    return edited(Declared(text, document.data, document.keys, document.values), change.migration)


def _refuse(change: "Change", order: "Order", path: Path) -> None:
    if change.migration.destructive and not order.allow_destructive:
        raise CheckFailed(
            f"{path.as_posix()}: {change.id} may lose what is stored; nothing was done",
            hint="when that is meant: the same command with --allow-destructive",
            code="E_DESTRUCTIVE",
        )


def _ring(change: "Change") -> bool:
    from console.propagation.migration import SwapColumns

    operation = change.migration.operation
    if not isinstance(operation, SwapColumns):
        return False
    return {old for old, _ in operation.columns} == {new for _, new in operation.columns}


def _done_by_hand(change: "Change", text: str, path: Path) -> None:
    """raises  DataError until a person has seen to it: a file of names cannot say that two of them changed places"""
    from console.propagation.translate.operations import MARK

    line = f"# {MARK}{change.id}"
    if line not in (written.strip() for written in text.splitlines()):
        names = ", ".join(sorted(change.migration.columns))
        raise DataError(
            f"{path.as_posix()}: {change.id} makes {names} change places: rows from before keep the old meaning",
            hint=f"let the queries that read {names} tell older rows apart, or ingest the table anew; then add the line"
            f" `{line}` to that file and apply again",
        )
