"""A generic migration as ClickHouse statements, the materialized views that hang on the table included.

The statements are what is left to do, read off the state the store is in: after a kill they are read off again. Views
are replaced by name: the new one is made beside the old one as `<view>__next`, the two change names in one EXCHANGE, and
the old one goes; so every row meets at least one of them, and a target that merges by key keeps one row.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, assert_never

from console.errors import DataError
from console.propagation.mapping import fits, is_nullable, mapped, meaning, nullable_in_clickhouse
from console.propagation.migration import (
    KEPT,
    AddColumn,
    ChangeColumn,
    DropColumn,
    Migration,
    ReplaceColumn,
    SwapColumns,
)
from console.propagation.sql.constants import EMPTY
from console.propagation.sql.defaults import NOW, unquoted
from console.propagation.tables import Dependent, StoreColumn, StoreTable
from console.propagation.translate.operations import NEXT, Statement, Translation, unreplaced, value_of
from console.propagation.translate.spelling import literal, qualified, quoted
from console.propagation.translate.swap import Swap
from console.propagation.translate.views import View, reads, same
from console.propagation.types import TIMES, Type
from console.propagation.widening import holds

_BOOKKEEPING: Final = "_"  # how the names of columns begin that are the replication's own


def translate(migration: Migration, table: StoreTable, mark: str) -> Translation:
    """What is left to do for a migration.

    table   as it is now, with the views that it feeds (those named `…__next` too)
    mark    the migration's own name, left in comments where the columns alone cannot tell how far it got
    raises  DataError for what cannot be done here without a person
    """
    work = Work(table, mark)
    match migration.operation:
        case AddColumn() as operation:
            steps = list(work.add(operation))
        case DropColumn(name=name):
            steps = list(work.drop(name))
        case SwapColumns(columns=pairs):
            steps = list(Swap(work, dict(pairs)).steps())
        case ChangeColumn() as operation:
            steps = list(work.change(operation))
        case ReplaceColumn() as operation:
            raise unreplaced(table, operation)
        case _:
            assert_never(migration.operation)
    return Translation(tuple(steps), tuple(work.warnings))


def type_of(kind: Type, *, nullable: bool) -> str:
    word = mapped(kind, "clickhouse").type
    return nullable_in_clickhouse(word) if nullable else word


def default_of(default: str, kind: Type) -> str:
    """A generic literal in ClickHouse's words.

    raises  DataError for a literal of another type
    """
    found = value_of(default, kind)
    if kind.name in TIMES and kind.name.startswith("timestamp"):
        return f"parseDateTime64BestEffort({literal(unquoted(found))}, {kind.numbers[0]}, 'UTC')"
    if kind.name == "decimal":
        # a bare number with a point is a Float64 to ClickHouse, which keeps 17 digits of it; a text has PostgreSQL's digits
        text = mapped(kind, "clickhouse").type == "String" and kind.numbers
        return literal(f"{Decimal(found):.{kind.numbers[1]}f}" if text else found)
    return literal(unquoted(found)) if found.startswith("'") else found


@dataclass
class Work:
    """One migration on one table."""

    table: StoreTable
    mark: str

    def __post_init__(self) -> None:
        self.warnings: list[str] = []
        names = {view.name for view in self.table.dependents}
        # what is called `…__next` beside a view of the name is its next query or its former one, else a view like any other
        self.views = [view for view in self.table.dependents if view.name.removesuffix(NEXT) not in names - {view.name}]
        self.next = {view.name: view for view in self.table.dependents if view not in self.views}

    def query(self, view: Dependent, columns: tuple[str, ...] = ()) -> View:
        return View(
            view.select, columns or tuple(column.name for column in self.table.columns if column.kind != "ALIAS")
        )

    def targets(self, views: list[Dependent]) -> Iterator[Dependent]:
        """Each view whose target was not met before: two views may feed one table."""
        met: set[str] = set()
        for view in views:
            if view.target and view.target not in met:
                met.add(view.target)
                yield view

    def add(self, operation: AddColumn) -> Iterator[Statement]:
        name = operation.name
        there = self.table.column(name)
        if there is not None and not fits(there.type, operation.data_type, "clickhouse"):
            raise self._refused(name, there, operation.data_type)
        mirrors = self.mirrors(name)
        for view in self.views:
            if view not in mirrors:
                self.warnings.append(f"the view {view.name} does not hand on every column: {name} stays out of it")
        definition = self._definition(operation)
        for view in self.targets(mirrors):
            in_target = view.column(name)
            if in_target is None:
                why = f"{view.target} gets the column, before its view hands it on"
                yield Statement(f"ALTER TABLE {qualified(view.target)} ADD COLUMN IF NOT EXISTS {definition}", why)
            elif not fits(in_target.type, operation.data_type, "clickhouse"):
                raise self._refused(name, in_target, operation.data_type, view.target)
        if there is None:
            place = qualified(self.table.name)
            yield Statement(
                f"ALTER TABLE {place} ADD COLUMN IF NOT EXISTS {definition}", "metadata, no row is rewritten"
            )
        for view in mirrors:
            query = self.query(view, tuple(c for c in self.query(view).columns if c != name))
            if not query.carried(name):
                yield from self.replaced(view, query.with_column(name))
            else:
                yield from self.replaced(view, view.select)

    def mirrors(self, added: str) -> list[Dependent]:
        """The views that hand on every column, as far as they can know of it."""
        data = [c.name for c in self.table.columns if c.kind in ("", "DEFAULT") and c.name != added]
        data = [column for column in data if not column.startswith(_BOOKKEEPING)]
        return [view for view in self.views if view.target and self.query(view).mirrors(data)]

    def type_to_add(self, operation: AddColumn) -> str:
        """NOT NULL only with a constant that older rows read."""
        constant = operation.default is not None and operation.default != NOW
        return type_of(operation.data_type, nullable=operation.nullable or not constant)

    def _definition(self, operation: AddColumn) -> str:
        constant = operation.default is not None and operation.default != NOW
        loss = mapped(operation.data_type, "clickhouse").lossy
        if loss:
            self.warnings.append(f"{operation.name}: {operation.data_type} in ClickHouse: {loss}")
        found = f"{quoted(operation.name)} {self.type_to_add(operation)}"
        if constant and operation.default != EMPTY:
            found += f" DEFAULT {default_of(str(operation.default), operation.data_type)}"
        return found

    def _refused(self, name: str, there: StoreColumn, kind: Type, table: str = "") -> DataError:
        return DataError(
            f"{table or self.table.name}.{name} is there as {there.type}, which does not hold {kind}",
            hint="change or drop that column first",
        )

    def drop(self, name: str) -> Iterator[Statement]:
        self.free(name)
        affected = [view for view in self.views if self.query(view).reads(name)]
        marked = self.mark_of_drop
        for view in affected:
            query = self.query(view)
            if not query.row_by_row or query.computes_with(name):
                raise DataError(
                    f"the view {view.name} computes with {name}",
                    hint=f"rewrite the view without {name} first, then apply again",
                )
        self.unread(self.table.name, (name,), "dropped")
        for view in self.targets(affected):
            going = {c for other in affected if other.target == view.target for c in self.query(other).carried(name)}
            self.unread(view.target, going, "dropped")
            for column in going:
                if column in view.key:
                    raise DataError(
                        f"{view.target} is ordered or partitioned by {column}",
                        hint="build a new table without it first",
                    )
                if (found := view.column(column)) is not None and found.comment != marked:
                    sql = f"ALTER TABLE {qualified(view.target)} COMMENT COLUMN {quoted(column)} {literal(marked)}"
                    yield Statement(sql, "a mark, so that an interrupted drop is finished")
        for view in self.views:
            query = self.query(view)
            yield from self.replaced(view, query.without(name) if view in affected else view.select)
        for view in self.targets(self.views):
            carried = {c for other in affected if other.target == view.target for c in self.query(other).carried(name)}
            going = {column.name for column in view.columns if column.comment == marked} | carried
            for column in sorted(going & {column.name for column in view.columns}):
                sql = f"ALTER TABLE {qualified(view.target)} DROP COLUMN IF EXISTS {quoted(column)}"
                yield Statement(sql, f"no view writes {column} any more")
        if self.table.column(name) is not None:
            place = qualified(self.table.name)
            yield Statement(f"ALTER TABLE {place} DROP COLUMN IF EXISTS {quoted(name)}", "no view reads it any more")

    @property
    def mark_of_drop(self) -> str:
        """In the comment of a target's column that is to go, once no view reads it any more."""
        return f"drop {self.mark}"

    def free(self, name: str) -> None:
        """raises  DataError for a column that the table's rows are ordered or found by"""
        if name in self.table.key:
            hint = "build a new table and switch to it"
            raise DataError(
                f"{self.table.name} is ordered by {name}, which can be neither dropped nor renamed", hint=hint
            )

    def unread(self, table: str, columns: Collection[str], how: str) -> None:
        """raises  DataError for another view that would fail from then on"""
        # whoever asks a view that writes into a table for its rows reads the table
        names = {table, *(view.name for view in self.table.dependents if view.target == table)}
        for reader in self.table.readers:
            if column := reads(reader.name, reader.select, names, columns):
                raise DataError(
                    f"the view {reader.name} reads {table}.{column}, which is to be {how}",
                    hint=f"make {reader.name} anew without {column} first, then apply again",
                )

    def twin(self, view: Dependent) -> Dependent | None:
        """What stands beside a view while it is replaced: its next query, or its former one."""
        return self.next.get(view.name + NEXT)

    def replaced(self, view: Dependent, select: str) -> Iterator[Statement]:
        """What is left of putting a view with another query in a view's place."""
        twin = view.name + NEXT
        beside = qualified(twin)
        there = self.twin(view)
        if same(view.select, select):
            if there is not None:
                del self.next[twin]
                yield Statement(f"DROP VIEW IF EXISTS {beside}", f"the former query of {view.name} goes")
            return
        if not view.target:
            raise DataError(f"the view {view.name} keeps its rows itself", hint="give it a table of its own: TO …")
        if there is not None and not same(there.select, select):
            yield Statement(f"DROP VIEW IF EXISTS {beside}", "left over from another change")
            there = None
        self.next.pop(twin, None)
        yield from self.exchanged(view, select, made=there is not None)

    @staticmethod
    def exchanged(view: Dependent, select: str, *, made: bool = False) -> Iterator[Statement]:
        """A view with another query in a view's place. made: it stands beside it already"""
        name, beside = qualified(view.name), qualified(view.name + NEXT)
        if not made:
            sql = f"CREATE MATERIALIZED VIEW {beside} TO {qualified(view.target)} AS {select}"
            yield Statement(sql, f"the new query beside the old one, into {view.target} as before")
        yield Statement(f"EXCHANGE TABLES {name} AND {beside}", "the two change names at one instant")
        yield Statement(f"DROP VIEW IF EXISTS {beside}", f"the former query of {view.name} goes")

    def change(self, operation: ChangeColumn) -> Iterator[Statement]:
        name, to = operation.name, operation.to
        there = self.table.column(name)
        if there is None:
            raise DataError(
                f"{self.table.name} has no column {name}", hint="add it first: console schema verify shows how"
            )
        places: list[tuple[str, StoreColumn, tuple[str, ...]]] = []
        for view in self.views:
            carried = self.query(view).carried(name)
            places += [(view.target, c, view.key) for c in view.columns if c.name in carried and view.target]
            if self.query(view).reads(name) and not carried and to.data_type is not KEPT:
                self.warnings.append(f"the view {view.name} computes with {name}: look at its target's types")
        done: set[tuple[str, str]] = set()
        for table, column, key in [*places, (self.table.name, there, self.table.key)]:
            if (table, column.name) not in done:
                done.add((table, column.name))
                yield from self._modified(table, column, key, operation)
        if to.nullable is False and is_nullable(there.type):
            self.warnings.append(f"{name} goes on taking NULL in ClickHouse: rows from before may hold it")

    def _modified(
        self, table: str, column: StoreColumn, key: tuple[str, ...], operation: ChangeColumn
    ) -> Iterator[Statement]:
        place = f"ALTER TABLE {qualified(table)} MODIFY COLUMN {quoted(column.name)}"
        word = self.type_after(column, operation)
        if word != column.type:
            if column.name in key:
                raise DataError(
                    f"{table} is ordered or partitioned by {column.name}", hint="build a new table and switch to it"
                )
            # the store's own type decides, for it may be another than PostgreSQL had
            lossy = not _keeps(word, column.type)
            why = f"{column.type} becomes {word}" + (", which may not hold every value that is stored" if lossy else "")
            yield Statement(f"{place} {word}", why, lossy)
        # a default that changes needs nothing: rows arrive with their values, and those from before the column must go
        # on reading the default that it came with

    @staticmethod
    def type_after(column: StoreColumn, operation: ChangeColumn) -> str:
        """What a column's type becomes; as it is where it takes every new value already."""
        to, takes_null = operation.to, is_nullable(column.type)
        loosened = to.nullable is True and not takes_null and not column.type.startswith("Array(")
        if to.data_type is not KEPT and not fits(column.type, to.data_type, "clickhouse"):
            return type_of(to.data_type, nullable=takes_null or loosened)
        return nullable_in_clickhouse(column.type) if loosened else column.type


def _keeps(word: str, old: str) -> bool:
    """A column of one type holds every value of another; of a type that is not known here nobody can say."""
    new, was = meaning(word, "clickhouse"), meaning(old, "clickhouse")
    return new is not None and was is not None and holds(new, was)
