"""One migration on one ClickHouse table: the statements for its columns, its views and the tables over it."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Final

from console.errors import DataError
from console.propagation.clickhouse.dependents import checks
from console.propagation.clickhouse.dependents.checks import ColumnEffect
from console.propagation.clickhouse.dependents.column_types import type_after, type_of
from console.propagation.clickhouse.dependents.recreate import exchanged
from console.propagation.clickhouse.quoting import literal, qualified, quoted
from console.propagation.clickhouse.types import TYPES
from console.propagation.clickhouse.views import View, reads, same
from console.propagation.migration import (
    STAGED,
    AddColumn,
    ChangeColumn,
)
from console.propagation.sql.constants import EMPTY
from console.propagation.sql.defaults import NOW, unquoted
from console.propagation.tables import ColumnStorage, Dependent, StoreTable
from console.propagation.translate.operations import NEXT, StoreStatement, value_of
from console.propagation.types import TIMES, Type

_IN_STAR: Final = ("", "DEFAULT")  # the kinds of column that a star includes
_BOOKKEEPING: Final = "_"  # prefix of the replication's own columns


def default_of(default: str, kind: Type) -> str:
    """A generic literal in ClickHouse's syntax.

    raises  DataError for a literal of another type
    """
    value = value_of(default, kind)
    if kind.name in TIMES and kind.name.startswith("timestamp"):
        return f"parseDateTime64BestEffort({literal(unquoted(value))}, {kind.numbers[0]}, 'UTC')"
    if kind.name == "decimal":
        # ClickHouse reads a bare number with a point as a Float64 of 17 digits; a text keeps PostgreSQL's digits
        text = TYPES.store_type(kind).word == "String" and kind.numbers
        return literal(f"{Decimal(value):.{kind.numbers[1]}f}" if text else value)
    return literal(unquoted(value)) if value.startswith("'") else value


@dataclass
class TableMigration:
    """One migration on one table.

    alias     the materialized view that writes into it, if the migration reaches the table through it
    warnings  shared with the tables below
    """

    table: StoreTable
    mark: str
    alias: str = ""
    warnings: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = {view.name for view in self.table.dependents}
        # a view `…__next` beside a view of the name has its next query or its former one; any other is an ordinary view
        self.views = [view for view in self.table.dependents if view.name.removesuffix(NEXT) not in names - {view.name}]
        self.next = {view.name: view for view in self.table.dependents if view not in self.views}

    def query(self, view: Dependent, columns: tuple[str, ...] = ()) -> View:
        return View(view.select, columns or self.in_star)

    @property
    def in_star(self) -> tuple[str, ...]:
        """The columns of `SELECT *`."""
        return tuple(column.name for column in self.table.columns if column.kind in _IN_STAR)

    def under(self, view: Dependent) -> "TableMigration":
        """The same migration on a view's target."""
        below = view.below or StoreTable(name=view.target, columns=view.columns, key=view.key)
        below = replace(below, kept=self.table.kept)
        return TableMigration(below, self.mark, view.name, self.warnings)

    @property
    def names(self) -> set[str]:
        """The names under which the table is read: its own, the views that write into it, and the tables over it."""
        return {self.table.name, *filter(None, [self.alias]), *(over.name for over in checks.following(self.table))}

    def targets(self, views: list[Dependent]) -> Iterator[Dependent]:
        """One view for each target: two views may feed one table."""
        met: set[str] = set()
        for view in views:
            if view.target and view.target not in met:
                met.add(view.target)
                yield view

    def add(self, operation: AddColumn, why: str = "metadata, no row is rewritten") -> Iterator[StoreStatement]:
        name = operation.name
        there = self.table.column(name)
        if there is not None and not TYPES.fits(there.type, operation.data_type):
            raise DataError(
                f"{self.table.name}.{name} is there as {there.type}, which does not hold {operation.data_type}",
                hint="change or drop that column first",
            )
        mirrors = self.mirrors(name)
        for view in self.views:
            if view not in mirrors:
                self.warnings.append(f"the view {view.name} does not pass on every column: {name} is not added to it")
        for view in self.targets(mirrors):
            yield from self.under(view).add(operation, f"{view.target} gets the column before its view passes it on")
        definition = self._definition(operation)
        if there is None:
            place = qualified(self.table.name)
            yield StoreStatement(f"ALTER TABLE {place} ADD COLUMN IF NOT EXISTS {definition}", why)
        for reader in self.table.readers:
            star = View(reader.select, (*self.in_star, name)).outputs_of(name) and not reader.stored
            if star and reads(reader.name, reader.select, self.names, self.in_star):
                self.warnings.append(
                    f"the view {reader.name} keeps the columns that it was created with: {name} is not added to it"
                )
        for over in self.table.overlays:
            if over.engine == "Merge" and over.column(name) is None:
                self.warnings.append(f"the Merge table {over.name} has columns of its own: {name} is not added to it")
        for over in checks.following(self.table):
            if over.column(name) is None:
                sql = f"ALTER TABLE {qualified(over.name)} ADD COLUMN IF NOT EXISTS {definition}"
                yield StoreStatement(sql, f"rows that pass through the {over.engine} have it too")
        for view in mirrors:
            query = self.query(view, tuple(c for c in self.query(view).columns if c != name))
            yield from self.replaced(view, view.select if query.outputs_of(name) else query.with_column(name))

    def mirrors(self, added: str) -> list[Dependent]:
        """The views that pass on every column except the added one and the replication's own."""
        data = [c.name for c in self.table.columns if c.kind in ("", "DEFAULT") and c.name != added]
        data = [column for column in data if not column.startswith(_BOOKKEEPING)]
        return [view for view in self.views if view.target and self.query(view).mirrors(data)]

    def type_to_add(self, operation: AddColumn) -> str:
        """The type of a new column: NOT NULL only with a constant that older rows read."""
        constant = operation.default is not None and operation.default != NOW
        word = type_of(operation.data_type, null=operation.nullable or not constant)
        low = self._kept(operation.name).low_cardinality and not word.startswith(("LowCardinality(", "Array("))
        return f"LowCardinality({word})" if low else word

    def _kept(self, name: str) -> ColumnStorage:
        """The operator's storage settings; a new column that waits for its name has those of that name."""
        wanted = name.removesuffix(STAGED)
        return next((kept for kept in self.table.kept if kept.column in (name, wanted)), ColumnStorage(name))

    def _definition(self, operation: AddColumn) -> str:
        constant = operation.default is not None and operation.default != NOW
        if losses := TYPES.store_type(operation.data_type).losses:
            self.warnings.append(f"{operation.name}: {operation.data_type} in ClickHouse: {'; '.join(losses)}")
        definition = f"{quoted(operation.name)} {self.type_to_add(operation)}"
        if constant and operation.default != EMPTY:
            definition += f" DEFAULT {default_of(str(operation.default), operation.data_type)}"
        codec = self._kept(operation.name).codec
        return f"{definition} CODEC({codec})" if codec else definition

    def drop(self, name: str) -> Iterator[StoreStatement]:
        self.refuse_key(name)
        checks.refuse_used(self.table, name, ColumnEffect.DROPPED)
        checks.refuse_shown(self.table, (name,), ColumnEffect.DROPPED)
        affected = [view for view in self.views if self.query(view).reads(name)]
        marked = self.mark_of_drop
        for view in affected:
            query = self.query(view)
            if not query.row_by_row or query.computes_with(name):
                raise DataError(
                    f"the view {view.name} computes with {name}",
                    hint=f"rewrite the view without {name} first, then apply again",
                )
        self.refuse_read(self.table.name, (name,), "dropped")
        yield from self._marked(affected, name)
        for view in self.views:
            query = self.query(view)
            yield from self.replaced(view, query.without(name) if view in affected else view.select)
        for view in self.targets(self.views):
            carried = {
                c for other in affected if other.target == view.target for c in self.query(other).outputs_of(name)
            }
            going = {column.name for column in view.columns if column.comment == marked} | carried
            for column in sorted(going & {column.name for column in view.columns}):
                yield from self._drop_from_overlays(self.under(view).table, column)
                sql = f"ALTER TABLE {qualified(view.target)} DROP COLUMN IF EXISTS {quoted(column)}"
                yield StoreStatement(sql, f"no view writes {column} any longer")
        yield from self._drop_from_overlays(self.table, name)
        if self.table.column(name) is not None:
            place = qualified(self.table.name)
            yield StoreStatement(
                f"ALTER TABLE {place} DROP COLUMN IF EXISTS {quoted(name)}", "no view reads it any longer"
            )

    def _marked(self, affected: list[Dependent], name: str) -> Iterator[StoreStatement]:
        """Mark the targets' columns that are to be dropped too. raises DataError"""
        marked = self.mark_of_drop
        for view in self.targets(affected):
            going = {c for other in affected if other.target == view.target for c in self.query(other).outputs_of(name)}
            self.refuse_read(view.target, going, "dropped")
            below = self.under(view).table
            checks.refuse_shown(below, going, ColumnEffect.DROPPED)
            for column in sorted(going):
                if column in view.key:
                    raise DataError(
                        f"{view.target} is ordered or partitioned by {column}",
                        hint="build a new table without it first",
                    )
                checks.refuse_used(below, column, ColumnEffect.DROPPED)
                if (stored := view.column(column)) is not None and stored.comment != marked:
                    sql = f"ALTER TABLE {qualified(view.target)} COMMENT COLUMN {quoted(column)} {literal(marked)}"
                    yield StoreStatement(sql, "a mark by which an interrupted drop is finished")

    @staticmethod
    def _drop_from_overlays(table: StoreTable, name: str) -> Iterator[StoreStatement]:
        for over in checks.following(table):
            if over.column(name) is not None:
                sql = f"ALTER TABLE {qualified(over.name)} DROP COLUMN IF EXISTS {quoted(name)}"
                yield StoreStatement(sql, f"the {over.engine} no longer reads it from {table.name}")

    @property
    def mark_of_drop(self) -> str:
        """The mark in the comment of a target's column that will be dropped, set once no view reads it any longer."""
        return f"drop {self.mark}"

    def refuse_key(self, name: str) -> None:
        """raises  DataError for a column of the table's sorting key"""
        if name in self.table.key:
            hint = "build a new table and switch to it"
            raise DataError(
                f"{self.table.name} is ordered by {name}, which can be neither dropped nor renamed", hint=hint
            )

    def refuse_read(self, table: str, columns: Collection[str], how: str) -> None:
        """raises  DataError for another view that would fail afterwards"""
        # a query of a view that writes into a table reads the table
        views = [view for view in self.table.dependents if view.target == table]
        over = [one.name for view in views if view.below is not None for one in checks.following(view.below)]
        names = {table, *(view.name for view in views), *over, *(self.names if table == self.table.name else ())}
        for reader in self.table.readers:
            if column := reads(reader.name, reader.select, names, columns):
                raise DataError(
                    f"the view {reader.name} reads {table}.{column}, which is to be {how}",
                    hint=f"recreate {reader.name} without {column} first, then apply again",
                )

    def twin(self, view: Dependent) -> Dependent | None:
        """The view beside one that is being replaced: with its next query, or its former one."""
        return self.next.get(view.name + NEXT)

    def replaced(self, view: Dependent, select: str, change: ChangeColumn | None = None) -> Iterator[StoreStatement]:
        """The remaining steps of replacing a view by one with another query.

        change  replaced also if the view's own columns still have the types from before this change
        """
        twin = view.name + NEXT
        beside = qualified(twin)
        there = self.twin(view)
        if same(view.select, select) and not self._stale(view, change):
            if there is not None:
                del self.next[twin]
                yield StoreStatement(f"DROP VIEW IF EXISTS {beside}", f"drops the former query of {view.name}")
            return
        if not view.target:
            raise DataError(f"the view {view.name} has no target table", hint="give it a table of its own: TO …")
        if view.fixed:
            raise DataError(
                f"the view {view.name} cannot be replaced: {view.fixed}", hint="move it to an Atomic database"
            )
        if there is not None and (not same(there.select, select) or self._stale(there, change)):
            yield StoreStatement(f"DROP VIEW IF EXISTS {beside}", "left over from another change")
            there = None
        self.next.pop(twin, None)
        yield from exchanged(view, select, made=there is not None)

    def _stale(self, view: Dependent, change: ChangeColumn | None) -> bool:
        """A query of the view would still convert to a column's old type."""
        if change is None:
            return False
        handed_on = self.query(view).outputs_of(change.name)
        return any(type_after(column, change) != column.type for column in view.own if column.name in handed_on)
