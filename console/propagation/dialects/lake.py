"""A generic migration as operations on a lake's table; all operations of one migration go into one commit."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import assert_never

from console.errors import DataError
from console.propagation.dialects.dialect import Dialect
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
    StoreStatement,
    Translation,
    unprepared,
    value_of,
)


class LakeDialect(Dialect):
    """The common part of Iceberg and Delta; a subclass defines the operations of a change."""

    __slots__ = ()

    @abstractmethod
    def drop(self, name: str, table: StoreTable) -> StoreOperation:
        """The column is dropped."""

    @abstractmethod
    def rename(self, pairs: Mapping[str, str], table: StoreTable) -> StoreOperation:
        """Names pass to other columns in one commit: old → new."""

    @abstractmethod
    def take_name(self, name: str, source: str, table: StoreTable) -> Iterator[StoreOperation]:
        """`source` takes the name of a column, which is dropped."""

    @abstractmethod
    def retype(self, column: StoreColumn, word: str, table: StoreTable, *, loosened: bool) -> Iterator[StoreOperation]:
        """A column of another type, or one that may be NULL from now on.

        word    its type afterwards, possibly the one it has
        raises  DataError for a type to which the store cannot convert it
        """

    def translate(self, migration: Migration, table: StoreTable, mark: str) -> Translation:
        """A swap that closes a ring looks the same before and after: the caller records it in the commit that makes it."""
        match migration.operation:
            case AddColumn() as operation:
                return self._add(operation, table)
            case DropColumn(name=name):
                return self._drop(name, table)
            case SwapColumns(columns=pairs):
                return self._swap(dict(pairs), table)
            case ChangeColumn() as operation:
                return self._change(operation, table)
            case ReplaceColumn() as operation:
                return self._replace(operation, table)
            case _:
                assert_never(migration.operation)

    def after(self, migration: Migration, table: StoreTable, mark: str) -> StoreTable:
        return reduce(_done, self.translate(migration, table, mark).steps, table)

    def _add(self, operation: AddColumn, table: StoreTable) -> Translation:
        there = table.column(operation.name)
        if there is not None:
            if not self.types.fits(there.type, operation.data_type):
                message = (
                    f"{table.name}.{operation.name} is there as {there.type}, which does not hold {operation.data_type}"
                )
                raise DataError(message, hint="change or drop that column first")
            return Translation()
        wanted = self.types.store_type(operation.data_type)
        lossy = f"{operation.name}: {operation.data_type} in {self.title}: {'; '.join(wanted.losses)}"
        warnings = [lossy] if wanted.losses else []
        default = None if operation.default in (None, NOW) else value_of(str(operation.default), operation.data_type)
        if default is None and (operation.default == NOW or not operation.nullable):
            warnings.append(f"{operation.name}: older rows have NULL in {table.name}")
        return Translation((AddField(operation.name, wanted.word, default),), tuple(warnings))

    def _drop(self, name: str, table: StoreTable) -> Translation:
        if table.column(name) is None:
            return Translation()
        _free(name, table)
        return Translation((self.drop(name, table),))

    def _swap(self, pairs: Mapping[str, str], table: StoreTable) -> Translation:
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
        return Translation((self.rename(pairs, table),))

    def _replace(self, operation: ReplaceColumn, table: StoreTable) -> Translation:
        name, source = operation.name, operation.taker
        if table.column(source) is None:
            if operation.source is None:
                raise unprepared(table, operation)  # a commit that completed it carries its mark
            if table.column(name) is None:
                raise DataError(f"{table.name} has no column {source}", hint="console schema verify shows what differs")
            return Translation()
        if table.column(name) is None:
            return self._swap({source: name}, table)
        _free(name, table)
        _free(source, table)
        return Translation(tuple(self.take_name(name, source, table)))

    def _change(self, operation: ChangeColumn, table: StoreTable) -> Translation:
        there = table.column(operation.name)
        if there is None:
            hint = "add it first: console schema verify shows how"
            raise DataError(f"{table.name} has no column {operation.name}", hint=hint)
        warnings: list[str] = []
        kind = operation.to.data_type
        word = there.type
        if kind is not KEPT and not self.types.fits(there.type, kind):
            _free(operation.name, table)
            wanted = self.types.store_type(kind)
            word = wanted.word
            warnings += (
                [f"{operation.name}: {kind} in {self.title}: {'; '.join(wanted.losses)}"] if wanted.losses else []
            )
        loosened = operation.to.nullable is True and not there.nullable
        steps = tuple(self.retype(there, word, table, loosened=loosened))
        if operation.to.nullable is False and there.nullable:
            warnings.append(f"{operation.name} still allows NULL in {table.name}: older rows may have it")
        return Translation(steps, tuple(warnings))


def _free(name: str, table: StoreTable) -> None:
    """raises  DataError for a column that the table's rows are partitioned or ordered by"""
    if name in table.key:
        hint = "build a new table and switch to it"
        raise DataError(f"{table.name} is partitioned or ordered by {name}", hint=hint)


def _done(table: StoreTable, step: StoreOperation) -> StoreTable:
    """The table after one operation."""
    columns = table.columns
    match step:
        case AddField():
            columns = (*columns, StoreColumn(name=step.name, type=step.type))
        case DropField():
            columns = tuple(column for column in columns if column.name != step.name)
        case RenameFields():
            names = dict(step.pairs)
            columns = tuple(replace(column, name=names.get(column.name, column.name)) for column in columns)
        case ChangeField():
            columns = tuple(replace(c, type=step.type) if c.name == step.name else c for c in columns)
        case LoosenField():
            columns = tuple(replace(c, nullable=True) if c.name == step.name else c for c in columns)
        case Rewrite():
            firm = {column.name for column in columns if not column.nullable}
            columns = tuple(
                StoreColumn(name=name, type=word, nullable=source not in firm or name in step.loosens)
                for name, source, word in step.columns
            )
        case StoreStatement():
            raise TypeError("a SQL statement is not for a lake")
        case _:
            assert_never(step)
    return replace(table, columns=columns)
