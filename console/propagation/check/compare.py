"""Compares a store with PostgreSQL: columns, types, nullability and keys, and the migration that fixes each difference."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

from console.propagation.dialects.dialect import Dialect
from console.propagation.migration import (
    STAGED,
    AddColumn,
    ChangeColumn,
    DropColumn,
    Facets,
    Migration,
    Operation,
    default_phase,
)
from console.propagation.observe.classify import change_of_type
from console.propagation.replication import Replicated, Replication, Target
from console.propagation.tables import PgColumn, PgTable, StoreColumn, StoreTable

Kind = Literal["missing_table", "missing", "extra", "wrong_type", "nullability", "key", "looser"]
# reported, but no failure: the store accepts more than PostgreSQL ever sends
NOTES: Final[tuple[Kind, ...]] = ("looser",)
_OWN: Final = "_"  # prefix of the columns that a replication adds for itself


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDifference:
    """One difference between a store and PostgreSQL.

    expected, actual  types in the store's words, or key columns; "" if there is none
    fix               the migration to commit and apply; None if a person must choose
    """

    kind: Kind
    column: str
    expected: str
    actual: str
    message: str
    fix: Migration | None = None

    @property
    def note(self) -> bool:
        return self.kind in NOTES


@dataclass(frozen=True, slots=True)
class TableCheck:
    """One table in one store.

    store  its name in the report: `eu/clickhouse`
    table  PostgreSQL's full name
    place  the name in the store
    """

    store: str
    table: str
    place: str
    differences: tuple[SchemaDifference, ...] = ()

    @property
    def wrong(self) -> tuple[SchemaDifference, ...]:
        return tuple(difference for difference in self.differences if not difference.note)


def compare(
    tables: Iterable[PgTable],
    replication: Replication,
    target: Target,
    stored: Mapping[str, StoreTable],
    store: str = "",
) -> tuple[TableCheck, ...]:
    """Every replicated table against one store.

    tables  PostgreSQL's
    found   the store's tables by the name it knows them under
    store   its name in the report; default: the target's name
    """
    by_name = {(table.schema, table.name): table for table in tables}
    checked = []
    for entry in replication.tables:
        place = target.place(entry)
        table, there = by_name.get((entry.schema, entry.table)), stored.get(place)
        full = f"{entry.schema}.{entry.table}"
        if table is None or there is None:
            where = "PostgreSQL" if table is None else store or target.name
            name = full if table is None else place
            gone = SchemaDifference(
                kind="missing_table", column="", expected=name, actual="", message=f"{where} has no table {name}"
            )
            differences: tuple[SchemaDifference, ...] = (gone,)
        else:
            differences = tuple(_Comparison(entry, table, there, target).differences())
        checked.append(TableCheck(store or target.name, full, place, differences))
    return tuple(checked)


@dataclass(frozen=True, slots=True)
class _Comparison:
    entry: Replicated
    table: PgTable
    there: StoreTable
    target: Target

    def differences(self) -> Iterator[SchemaDifference]:
        known = {column.name: column for column in self.there.columns}
        for column in self.table.columns:
            if column.name in self.entry.ignore or f"{column.name}{STAGED}" in known:
                continue  # the new column waiting for the name is reported instead, and the old one is to be dropped
            if (stored := known.get(column.name)) is None:
                yield self._missing(column)
            else:
                yield from self._column(column, stored)
        ours = {column.name for column in self.table.columns} | self.entry.ignore
        allowed = self.entry.extra | self.target.extra
        for stored in self.there.columns:
            computed = stored.kind in ("ALIAS", "MATERIALIZED") or stored.name.startswith(_OWN)
            if stored.name not in ours and stored.name not in allowed and not computed:
                yield self._extra(stored)
        if self._dialect.keyed and self.table.key:
            yield from self._keys()

    @property
    def _dialect(self) -> Dialect:
        return self.target.dialect

    def _fix(self, operation: Operation) -> Migration:
        return Migration(default_phase(operation), self.table.schema, self.table.name, operation)

    def _missing(self, column: PgColumn) -> SchemaDifference:
        operation = AddColumn(column.name, column.type, column.nullable, column.default)
        message = f"{self.there.name} has no column {column.name}: its values arrive and are not stored"
        return SchemaDifference(
            kind="missing",
            column=column.name,
            expected=self._expected(column),
            actual="",
            message=message,
            fix=self._fix(operation),
        )

    def _extra(self, stored: StoreColumn) -> SchemaDifference:
        name = stored.name.removesuffix(STAGED)
        if name != stored.name and self.table.column(name) is not None:
            message = f"{self.there.name}.{stored.name} waits for the name {name}: console schema apply --phase post"
            return SchemaDifference(
                kind="extra", column=stored.name, expected="", actual=stored.type, message=message
            )  # arriving values are stored there only
        message = f"{self.there.name}.{stored.name} is not a column of {self.table.full}"
        return SchemaDifference(
            kind="extra",
            column=stored.name,
            expected="",
            actual=stored.type,
            message=message,
            fix=self._fix(DropColumn(stored.name)),
        )

    def _expected(self, column: PgColumn, *, nullable: bool | None = None) -> str:
        types = self._dialect.types
        word = types.store_type(column.type).word
        wanted = column.nullable if nullable is None else nullable
        return types.nullable(word) if wanted else word

    def _column(self, column: PgColumn, stored: StoreColumn) -> Iterator[SchemaDifference]:
        types = self._dialect.types
        if not types.fits(stored.type, column.type):
            was = types.generic_type(stored.type)
            facets = Facets(was) if was else Facets()
            classification = change_of_type(was, column.type)
            change = ChangeColumn(column.name, Facets(column.type), facets, classification)
            message = f"{self.there.name}.{column.name} is {stored.type}, which does not hold every {column.postgres}"
            expected = self._expected(column, nullable=stored.nullable)
            yield SchemaDifference(
                kind="wrong_type",
                column=column.name,
                expected=expected,
                actual=stored.type,
                message=message,
                fix=self._fix(change),
            )
        if column.nullable and not stored.nullable and column.name not in self.entry.loose:
            if types.never_null(stored.type):
                return
            change = ChangeColumn(column.name, Facets(nullable=True), Facets(nullable=False), "widening")
            message = f"{self.there.name}.{column.name} takes no NULL: one that arrives becomes the type's default"
            expected = self._expected(column)
            yield SchemaDifference(
                kind="nullability",
                column=column.name,
                expected=expected,
                actual=stored.type,
                message=message,
                fix=self._fix(change),
            )
        if not column.nullable and stored.nullable:
            message = f"{self.there.name}.{column.name} also takes NULL, which PostgreSQL forbids"
            yield SchemaDifference(
                kind="looser", column=column.name, expected=self._expected(column), actual=stored.type, message=message
            )

    def _keys(self) -> Iterator[SchemaDifference]:
        """Rows are identified by the sorting key: without PostgreSQL's key in it, two rows become one."""
        expected, actual = ", ".join(self.table.key), ", ".join(self.there.key)
        if missing := [name for name in self.table.key if name not in self.there.key]:
            message = f"{self.there.name} is not ordered by {', '.join(missing)}, a part of PostgreSQL's primary key"
            yield SchemaDifference(kind="key", column=missing[0], expected=expected, actual=actual, message=message)


@dataclass(frozen=True, slots=True)
class Unreached:
    """A store that did not answer."""

    store: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """One run of `verify`."""

    checked: tuple[TableCheck, ...]
    unreached: tuple[Unreached, ...] = ()

    @property
    def wrong(self) -> int:
        return sum(len(checked.wrong) for checked in self.checked)

    @property
    def exit_code(self) -> int:
        """5 before 1: an unreachable store may be right or wrong."""
        return 5 if self.unreached else 1 if self.wrong else 0
