"""Migrations as files: one each, named by the time of observation, in the order in which they apply."""

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from console.errors import DataError
from console.propagation.migration_file import read, written

if TYPE_CHECKING:
    from console.propagation.migration import Migration

_STAMP = "%Y%m%d%H%M%S"
_LONGEST = 80


def write(folder: Path, migrations: "Sequence[Migration]") -> "Iterator[tuple[Migration, Path, bool]]":
    """Write the migrations that are not already the folder's latest ones for those columns.

    returns  (migration, its file, whether it was there already), in order
    raises   DataError for a file that is not a migration, or one that cannot be written
    """
    known = _read(folder)
    there = _there(known, migrations)
    folder.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC).replace(microsecond=0)
    last = max((_moment(path) for path, _ in known), default=now - timedelta(seconds=1))
    for index, migration in enumerate(migrations):
        if index in there:
            yield migration, there[index], True
            continue
        last = max(now, last + timedelta(seconds=1))
        path = folder / f"{last.strftime(_STAMP)}_{_slug(migration.title)}.json"
        _put(path, written(migration))
        yield migration, path, False


def _put(path: Path, text: str) -> None:
    """The whole file or none: half a migration, after a full disk or a kill, would stop every later command.

    raises  DataError if it cannot be written, or another console was first
    """
    part = path.with_name(f".{path.stem}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        os.link(part, path)
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror}", hint="the same command again writes what is missing"
        ) from None
    finally:
        part.unlink(missing_ok=True)


def _read(folder: Path) -> "list[tuple[Path, Migration]]":
    files = []
    for path in sorted(folder.glob("*.json")):
        try:
            files.append((path, read(path.read_bytes())))
        except DataError as error:
            raise DataError(f"{path.name}:1:1: {error}", hint="correct or remove the file") from None
    return files


def _there(known: "Sequence[tuple[Path, Migration]]", migrations: "Sequence[Migration]") -> dict[int, Path]:
    """The migrations with which the folder already ends, per group of columns: index → its file."""
    files: dict[int, Path] = {}
    for group in _groups(migrations):
        mine = [migrations[index] for index in group]
        columns = frozenset().union(*(one.columns for one in mine))
        place = (mine[0].schema, mine[0].table)
        before = [(p, m) for p, m in known if (m.schema, m.table) == place and m.columns & columns]
        for count in range(min(len(mine), len(before)), 0, -1):
            tail = before[-count:]
            if [m.operation for _, m in tail] == [one.operation for one in mine[:count]]:
                files |= {index: path for index, (path, _) in zip(group, tail, strict=False)}
                break
    return files


def _groups(migrations: "Sequence[Migration]") -> list[list[int]]:
    """Indexes of migrations that touch the same columns, directly or through other migrations."""
    groups: list[tuple[tuple[str, str], frozenset[str], list[int]]] = []
    for index, one in enumerate(migrations):
        place, columns, members = (one.schema, one.table), one.columns, [index]
        for other in [group for group in groups if group[0] == place and group[1] & columns]:
            groups.remove(other)
            columns, members = columns | other[1], sorted([*other[2], *members])
        groups.append((place, columns, members))
    return [members for _, _, members in groups]


def _moment(path: Path) -> datetime:
    try:
        return datetime.strptime(path.name[:14], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def _slug(title: str) -> str:
    return re.sub(r"\W+", "_", title, flags=re.ASCII).strip("_").lower()[:_LONGEST] or "change"
