"""What ClickHouse would refuse, or serve wrongly from then on, said before the first statement."""

from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from typing import Final

from console.errors import DataError
from console.propagation.clickhouse.dependents.room import alike, cramped, type_after
from console.propagation.clickhouse.quoting import qualified, quoted
from console.propagation.migration import ChangeColumn
from console.propagation.tables import Overlay, StoreColumn, StoreTable, Use, UseKind
from console.propagation.translate.operations import between


class Deed(Enum):
    """What is to happen to a column; RETYPED: to a type that expressions treat otherwise."""

    DROPPED = "dropped"
    RENAMED = "renamed"
    WIDENED = "widened"
    RETYPED = "given another type"
    LOOSENED = "let be NULL"


_STOPS: Final[dict[UseKind, frozenset[Deed]]] = {
    "engine": frozenset(Deed),
    "TTL": frozenset((Deed.DROPPED, Deed.RETYPED, Deed.LOOSENED)),
    "skip index": frozenset((Deed.DROPPED, Deed.RETYPED)),
    "projection": frozenset((Deed.DROPPED, Deed.RENAMED, Deed.RETYPED)),
    "constraint": frozenset((Deed.DROPPED, Deed.RETYPED, Deed.LOOSENED)),
    "computed column": frozenset((Deed.DROPPED, Deed.RETYPED)),
}
_CARRIED: Final = ("Buffer", "Distributed")  # what takes an ALTER of its own columns, and is written to


def unused(table: StoreTable, column: str, *deeds: Deed) -> None:
    """raises  DataError naming the part of the table that a column cannot leave, or change under"""
    for use in table.uses:
        mentioned = column in use.columns
        for deed in deeds:
            if mentioned and deed in _STOPS[use.kind]:
                raise _used(table, use, column, deed)
            if use.kind == "projection" and ((use.star and deed is Deed.RENAMED) or (use.grouped and mentioned)):
                raise _used(table, use, column, deed)


def retyped(table: StoreTable, column: StoreColumn, operation: ChangeColumn) -> None:
    """raises  DataError naming what within a table, or over it as a dictionary or Merge table, a changed type would break"""
    word = type_after(column, operation)
    if word == column.type:
        return
    deeds = [] if alike(word, column.type) else [Deed.RETYPED]
    if alike(word, column.type) and operation.to.data_type is not operation.was.data_type:
        deeds.append(Deed.WIDENED)
    deeds += [Deed.LOOSENED] if operation.to.nullable is True and not column.nullable else []
    unused(table, column.name, *deeds)
    for use in table.uses:
        computed = table.column(use.name) if use.kind == "computed column" and column.name in use.columns else None
        if computed is not None and cramped(computed, column, operation):
            raise _used(table, use, column.name, Deed.RETYPED)
    for overlay in table.overlays:
        mine = overlay.column(column.name)
        if overlay.engine not in _CARRIED and mine is not None and cramped(mine, column, operation):
            raise DataError(
                f"the {overlay.engine} {overlay.name} has {column.name} as {mine.type}, and {table.name} is to have it as {word}",
                hint=_anew(overlay),
            )


def unshown(table: StoreTable, columns: Collection[str], deed: Deed) -> None:
    """raises  DataError naming a dictionary or a table over this one that has a column which is to go"""
    for overlay in table.overlays:
        if overlay.engine in _CARRIED and deed is Deed.DROPPED:
            continue
        if shown := sorted(set(columns) & {column.name for column in overlay.columns}):
            how = f"which is to be {deed.value} in {table.name}"
            raise DataError(f"the {overlay.engine} {overlay.name} has {shown[0]}, {how}", hint=_anew(overlay))


def carried(table: StoreTable) -> Iterator[Overlay]:
    """The tables over this one whose columns follow its own."""
    return (overlay for overlay in table.overlays if overlay.engine in _CARRIED)


def stands(table: StoreTable) -> None:
    """raises  DataError where a table has no rows of its own"""
    if table.engine in (*_CARRIED, "Merge", "Dictionary", "View", "MaterializedView"):
        raise DataError(
            f"{table.name} is a {table.engine}, whose columns follow another table's",
            hint="name the table that keeps the rows: targets: {STORE: NAME} of the table in replication.yaml",
        )


def uncomputed(table: StoreTable, names: Iterable[str], how: str) -> None:
    """raises  DataError for a column whose values ClickHouse computes itself"""
    for name in names if not between(table.columns) else ():  # names on their way are aliases of ours
        if (column := table.column(name)) is not None and column.kind in ("ALIAS", "MATERIALIZED", "EPHEMERAL"):
            raise DataError(
                f"{table.name}.{name} is {column.kind} there, and is to be {how}",
                hint=f"ALTER TABLE {qualified(table.name)} DROP COLUMN {quoted(name)} first; verify then shows what is missing",
            )


def _used(table: StoreTable, use: Use, column: str, deed: Deed) -> DataError:
    return DataError(
        f"{use.told} of {table.name} names {column}, which is to be {deed.value}; nothing was done",
        hint=_way_out(table, use),
    )


def _way_out(table: StoreTable, use: Use) -> str:
    place = f"ALTER TABLE {qualified(table.name)}"
    match use.kind:
        case "engine":
            return "build a new table without it and switch to it"
        case "TTL" if use.name:
            done = f"{place} MODIFY COLUMN {quoted(use.name)} REMOVE TTL"
        case "TTL":
            done = f"{place} REMOVE TTL"
        case "computed column":
            column = table.column(use.name)
            stays = column is not None and column.kind == "DEFAULT"
            done = (
                f"{place} MODIFY COLUMN {quoted(use.name)} REMOVE DEFAULT"
                if stays
                else f"{place} DROP COLUMN {quoted(use.name)}"
            )
        case "skip index" | "projection" | "constraint":
            done = f"{place} DROP {use.kind.removeprefix('skip ').upper()} {quoted(use.name)}"
    return f"{done} first, apply again, and make it anew where it is still wanted"


def _anew(overlay: Overlay) -> str:
    kind = "DICTIONARY" if overlay.engine == "Dictionary" else "TABLE"
    return f"DROP {kind} {qualified(overlay.name)}, apply again, and make it anew as it is to be"
