"""A generic migration as operations on an Iceberg or a Delta table. All of one migration's go into one commit.

Iceberg keeps fields by id: names, order and the types that the format promotes are metadata. Delta without column mapping
(docs/design.md, rule 9) only adds columns by metadata; whatever else changes what is stored is one commit that rewrites.
"""

from collections.abc import Mapping
from typing import Final, Literal, assert_never

from console.errors import DataError
from console.propagation.mapping import fits, mapped, meaning
from console.propagation.migration import (
    KEPT,
    AddColumn,
    ChangeColumn,
    DropColumn,
    Migration,
    ReplaceColumn,
    SwapColumns,
)
from console.propagation.sql.defaults import NOW
from console.propagation.tables import StoreColumn, StoreTable
from console.propagation.translate.operations import (
    AddField,
    ChangeField,
    DropField,
    LoosenField,
    RenameFields,
    Rewrite,
    StoreOperation,
    Translation,
    unprepared,
    value_of,
)
from console.propagation.widening import holds

Lake = Literal["iceberg", "delta"]
# Iceberg v2: what a field's type may become by metadata
_PROMOTED: Final = (("int", "long"), ("float", "double"))


def translate(migration: Migration, table: StoreTable, lake: Lake) -> Translation:
    """What is left to do, seen from the table as it is.

    A swap that closes a ring looks the same before and after: the caller records it in the commit that makes it.

    raises  DataError for what cannot be done here without a person
    """
    match migration.operation:
        case AddColumn() as operation:
            return _add(operation, table, lake)
        case DropColumn(name=name):
            return _drop(name, table, lake)
        case SwapColumns(columns=pairs):
            return _swap(dict(pairs), table, lake)
        case ChangeColumn() as operation:
            return _change(operation, table, lake)
        case ReplaceColumn() as operation:
            return _replace(operation, table, lake)
        case _:
            assert_never(migration.operation)


def _add(operation: AddColumn, table: StoreTable, lake: Lake) -> Translation:
    there = table.column(operation.name)
    if there is not None:
        if not fits(there.type, operation.data_type, lake):
            message = (
                f"{table.name}.{operation.name} is there as {there.type}, which does not hold {operation.data_type}"
            )
            raise DataError(message, hint="change or drop that column first")
        return Translation()
    word = mapped(operation.data_type, lake)
    warnings = [f"{operation.name}: {operation.data_type} in {lake.title()}: {word.lossy}"] if word.lossy else []
    default = None if operation.default in (None, NOW) else value_of(str(operation.default), operation.data_type)
    if default is None and (operation.default == NOW or not operation.nullable):
        warnings.append(f"{operation.name}: rows from before have NULL in {table.name}")
    return Translation((AddField(operation.name, word.type, default),), tuple(warnings))


def _drop(name: str, table: StoreTable, lake: Lake) -> Translation:
    if table.column(name) is None:
        return Translation()
    _free(name, table)
    if lake == "iceberg":
        return Translation((DropField(name),))
    kept = tuple((column.name, column.name, column.type) for column in table.columns if column.name != name)
    return Translation((Rewrite(kept, f"the table is written anew without {name}"),))


def _swap(pairs: Mapping[str, str], table: StoreTable, lake: Lake) -> Translation:
    names = {column.name for column in table.columns}
    ring = set(pairs) == set(pairs.values())
    if not ring and not set(pairs) <= names and set(pairs.values()) <= names:
        return Translation()
    if missing := sorted(set(pairs) - names):
        raise DataError(f"{table.name} has no column {missing[0]}", hint="console schema verify shows what differs")
    if taken := sorted((set(pairs.values()) - set(pairs)) & names):
        raise DataError(f"{table.name} has a column {taken[0]} already", hint="drop or rename it first")
    for name in pairs:
        _free(name, table)
    if lake == "iceberg":
        return Translation((RenameFields(tuple(sorted(pairs.items()))),))
    columns = [(pairs.get(column.name, column.name), column.name, column.type) for column in table.columns]
    if ring:  # a ring keeps the order of the names, and takes the types along
        by_name = {new: (new, old, kind) for new, old, kind in columns}
        columns = [by_name[column.name] for column in table.columns]
    return Translation((Rewrite(tuple(columns), "the table is written anew under the new names"),))


def _replace(operation: ReplaceColumn, table: StoreTable, lake: Lake) -> Translation:
    name, source = operation.name, operation.taker
    if table.column(source) is None:
        if operation.source is None:
            raise unprepared(table, operation)  # where it is done, the commit that did it says so
        if table.column(name) is None:
            raise DataError(f"{table.name} has no column {source}", hint="console schema verify shows what differs")
        return Translation()
    if table.column(name) is None:
        return _swap({source: name}, table, lake)
    _free(name, table)
    _free(source, table)
    if lake == "iceberg":
        return Translation((DropField(name), RenameFields(((source, name),))))
    kept = [column for column in table.columns if column.name != name]
    columns = tuple((name if column.name == source else column.name, column.name, column.type) for column in kept)
    return Translation((Rewrite(columns, f"the table is written anew with {source} as {name}"),))


def _change(operation: ChangeColumn, table: StoreTable, lake: Lake) -> Translation:
    there = table.column(operation.name)
    if there is None:
        hint = "add it first: console schema verify shows how"
        raise DataError(f"{table.name} has no column {operation.name}", hint=hint)
    steps: list[StoreOperation] = []
    warnings: list[str] = []
    kind = operation.to.data_type
    word = there.type
    if kind is not KEPT and not fits(there.type, kind, lake):
        _free(operation.name, table)
        found = mapped(kind, lake)
        word = found.type
        warnings += [f"{operation.name}: {kind} in {lake.title()}: {found.lossy}"] if found.lossy else []
        if lake == "iceberg":
            if not _promotes(there, word):
                hint = "add a new column, fill it, and swap the two"
                raise DataError(f"{table.name}.{operation.name}: Iceberg cannot make {there.type} a {word}", hint=hint)
            steps.append(ChangeField(operation.name, word))
    loosened = operation.to.nullable is True and not there.nullable
    if lake == "iceberg" and loosened:
        steps.append(LoosenField(operation.name))
    if lake == "delta" and (word != there.type or loosened):
        columns = tuple((c.name, c.name, word if c.name == operation.name else c.type) for c in table.columns)
        old, new = meaning(there.type, lake), meaning(word, lake)
        keeps = word == there.type or (old is not None and new is not None and holds(new, old))
        why = f"the table is written anew with {operation.name} as {word}"
        why += "" if keeps else f", which may not hold every {there.type} that is stored"
        steps.append(Rewrite(columns, why, not keeps, (operation.name,) if loosened else ()))
    if operation.to.nullable is False and there.nullable:
        warnings.append(f"{operation.name} goes on taking NULL in {table.name}: rows from before may hold it")
    return Translation(tuple(steps), tuple(warnings))


def _promotes(there: StoreColumn, word: str) -> bool:
    if (there.type.lower(), word) in _PROMOTED:
        return True
    old, new = meaning(there.type, "iceberg"), meaning(word, "iceberg")
    if old is None or new is None or not old.name == new.name == "decimal" or not (old.numbers and new.numbers):
        return False
    return old.numbers[1] == new.numbers[1] and old.numbers[0] <= new.numbers[0]


def _free(name: str, table: StoreTable) -> None:
    if name in table.key:
        hint = "build a new table and switch to it"
        raise DataError(f"{table.name} is partitioned or ordered by {name}", hint=hint)
