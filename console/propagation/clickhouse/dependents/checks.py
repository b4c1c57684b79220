"""Refusals before the first statement: changes that ClickHouse would reject halfway, or that would make it return wrong rows."""

from collections.abc import Collection, Iterable, Iterator
from enum import Enum
from typing import Final

from console.errors import DataError
from console.propagation.clickhouse.dependents.column_types import same_family, too_narrow, type_after
from console.propagation.clickhouse.quoting import qualified, quoted
from console.propagation.migration import ChangeColumn
from console.propagation.tables import Overlay, StoreColumn, StoreTable, Use, UseKind
from console.propagation.translate.operations import between


class ColumnEffect(Enum):
    """The effect of a migration on a column. RETYPED: to a type of another family (`same_family`)"""

    DROPPED = "dropped"
    RENAMED = "renamed"
    WIDENED = "widened"
    RETYPED = "given another type"
    LOOSENED = "let be NULL"


_STOPS: Final[dict[UseKind, frozenset[ColumnEffect]]] = {
    "engine": frozenset(ColumnEffect),
    "TTL": frozenset((ColumnEffect.DROPPED, ColumnEffect.RETYPED, ColumnEffect.LOOSENED)),
    "skip index": frozenset((ColumnEffect.DROPPED, ColumnEffect.RETYPED)),
    "projection": frozenset((ColumnEffect.DROPPED, ColumnEffect.RENAMED, ColumnEffect.RETYPED)),
    "constraint": frozenset((ColumnEffect.DROPPED, ColumnEffect.RETYPED, ColumnEffect.LOOSENED)),
    "computed column": frozenset((ColumnEffect.DROPPED, ColumnEffect.RETYPED)),
}
# engines that take an ALTER of their own columns, and inserts
_FOLLOWING: Final = ("Buffer", "Distributed")


def refuse_used(table: StoreTable, column: str, *effects: ColumnEffect) -> None:
    """raises  DataError naming the part of the table whose expression uses a column and does not survive its change"""
    for use in table.uses:
        mentioned = column in use.columns
        for effect in effects:
            if mentioned and effect in _STOPS[use.kind]:
                raise _used(table, use, column, effect)
            if use.kind == "projection" and (
                (use.star and effect is ColumnEffect.RENAMED) or (use.grouped and mentioned)
            ):
                raise _used(table, use, column, effect)


def refuse_retyped(table: StoreTable, column: StoreColumn, operation: ChangeColumn) -> None:
    """raises  DataError naming the part of a table, the dictionary or the Merge table that a changed type would break"""
    word = type_after(column, operation)
    if word == column.type:
        return
    effects = [] if same_family(word, column.type) else [ColumnEffect.RETYPED]
    if same_family(word, column.type) and operation.to.data_type is not operation.was.data_type:
        effects.append(ColumnEffect.WIDENED)
    effects += [ColumnEffect.LOOSENED] if operation.to.nullable is True and not column.nullable else []
    refuse_used(table, column.name, *effects)
    for use in table.uses:
        computed = table.column(use.name) if use.kind == "computed column" and column.name in use.columns else None
        if computed is not None and too_narrow(computed, column, operation):
            raise _used(table, use, column.name, ColumnEffect.RETYPED)
    for overlay in table.overlays:
        mine = overlay.column(column.name)
        if overlay.engine not in _FOLLOWING and mine is not None and too_narrow(mine, column, operation):
            raise DataError(
                f"the {overlay.engine} {overlay.name} has {column.name} as {mine.type}, and {table.name} is to have it as {word}",
                hint=_recreated(overlay),
            )


def refuse_shown(table: StoreTable, columns: Collection[str], effect: ColumnEffect) -> None:
    """raises  DataError naming a dictionary, or a table over this one, that has a column which is dropped or renamed"""
    for overlay in table.overlays:
        if overlay.engine in _FOLLOWING and effect is ColumnEffect.DROPPED:
            continue
        if shown := sorted(set(columns) & {column.name for column in overlay.columns}):
            how = f"which is to be {effect.value} in {table.name}"
            raise DataError(f"the {overlay.engine} {overlay.name} has {shown[0]}, {how}", hint=_recreated(overlay))


def following(table: StoreTable) -> Iterator[Overlay]:
    """The tables over this one whose columns are altered together with its own."""
    return (overlay for overlay in table.overlays if overlay.engine in _FOLLOWING)


def refuse_overlay(table: StoreTable) -> None:
    """raises  DataError if a table has no rows of its own"""
    if table.engine in (*_FOLLOWING, "Merge", "Dictionary", "View", "MaterializedView"):
        raise DataError(
            f"{table.name} is a {table.engine}, whose columns follow another table's",
            hint="name the table that keeps the rows: targets: {STORE: NAME} of the table in replication.yaml",
        )


def refuse_computed(table: StoreTable, names: Iterable[str], how: str) -> None:
    """raises  DataError for a column whose values ClickHouse computes itself"""
    for name in names if not between(table.columns) else ():  # in a swap: our own aliases
        if (column := table.column(name)) is not None and column.kind in ("ALIAS", "MATERIALIZED", "EPHEMERAL"):
            raise DataError(
                f"{table.name}.{name} is {column.kind} there, and is to be {how}",
                hint=f"ALTER TABLE {qualified(table.name)} DROP COLUMN {quoted(name)} first; verify then shows what is missing",
            )


def _used(table: StoreTable, use: Use, column: str, effect: ColumnEffect) -> DataError:
    return DataError(
        f"{use.label} of {table.name} names {column}, which is to be {effect.value}; nothing was done",
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
    return f"{done} first, apply again, and recreate it where it is still wanted"


def _recreated(overlay: Overlay) -> str:
    kind = "DICTIONARY" if overlay.engine == "Dictionary" else "TABLE"
    return f"DROP {kind} {qualified(overlay.name)}, apply again, and recreate it with the new column"
