"""Migrations as files: one each, named by the second it was seen, in the order in which they apply."""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from console.errors import DataError

if TYPE_CHECKING:
    from console.propagation.migration import Migration

_STAMP = "%Y%m%d%H%M%S"
_LONGEST = 80


def write(folder: Path, migrations: "Sequence[Migration]") -> "Iterator[tuple[Migration, Path, bool]]":
    """Write each migration that the folder does not have yet as its last word on those columns.

    returns  (migration, its file, whether it was there already), in order
    raises   DataError for a file there that is no migration
    """
    from console.propagation.migration import to_data

    known = _read(folder)
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).replace(microsecond=0)
    last = max((_moment(path) for path, _ in known), default=now - timedelta(seconds=1))
    for migration in migrations:
        there = _said(known, migration)
        if there is not None:
            yield migration, there, True
            continue
        last = max(now, last + timedelta(seconds=1))
        path = folder / f"{last.strftime(_STAMP)}_{_slug(migration.title)}.json"
        with path.open("x", encoding="utf-8") as file:
            file.write(json.dumps(to_data(migration), indent=2, ensure_ascii=False) + "\n")
        known.append((path, migration))
        yield migration, path, False


def _read(folder: Path) -> "list[tuple[Path, Migration]]":
    from console.propagation.migration import read

    found = []
    for path in sorted(folder.glob("*.json")):
        try:
            found.append((path, read(path.read_bytes())))
        except DataError as error:
            raise DataError(f"{path.name}:1:1: {error}", hint="mend or remove the file") from None
    return found


def _said(known: "Sequence[tuple[Path, Migration]]", migration: "Migration") -> Path | None:
    """The file whose operation is this one, if nothing after it touched those columns."""
    for path, other in reversed(known):
        if (other.schema, other.table) == (migration.schema, migration.table) and other.columns & migration.columns:
            return path if other.operation == migration.operation else None
    return None


def _moment(path: Path) -> datetime:
    try:
        return datetime.strptime(path.name[:14], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def _slug(title: str) -> str:
    return re.sub(r"\W+", "_", title, flags=re.ASCII).strip("_").lower()[:_LONGEST] or "change"
