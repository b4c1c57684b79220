"""A column that takes more from now on, in a ClickHouse table and in everything that its values reach.

The last table of a chain of views comes first, so that no value arrives where it does not fit; then the tables over it, and
at last the views, each of which converts to the types that its columns had when it was made.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from console.errors import DataError
from console.propagation.clickhouse.dependents import anew, checks
from console.propagation.clickhouse.dependents.room import alike, cramped, keeps, type_after
from console.propagation.clickhouse.quoting import qualified, quoted
from console.propagation.clickhouse.types import is_nullable
from console.propagation.clickhouse.views import View, reads
from console.propagation.migration import ChangeColumn
from console.propagation.tables import Dependent, StoreColumn
from console.propagation.translate.operations import StoreStatement

if TYPE_CHECKING:
    from console.propagation.clickhouse.statements import TableMigration


@dataclass
class Widening:
    """One change of one column of one table.

    done      (table, column) that were met before: two views may feed one table
    readings  what plain views are asked about at the end: the names of what they read, and the column there
    """

    work: "TableMigration"
    operation: ChangeColumn
    done: set[tuple[str, str]] = field(default_factory=set)
    readings: list[tuple[frozenset[str], str]] = field(default_factory=list)

    def steps(self) -> Iterator[StoreStatement]:
        """All but the plain views. raises DataError"""
        table, name = self.work.table, self.operation.name
        there = table.column(name)
        if there is None:
            raise DataError(f"{table.name} has no column {name}", hint="add it first: console schema verify shows how")
        checks.uncomputed(table, (name,), "changed")
        checks.retyped(table, there, self.operation)
        for view in self.work.views:
            yield from self._below(view, there)
        yield from self._modified(there)
        if self.operation.to.nullable is False and is_nullable(there.type):
            self.work.warnings.append(f"{name} goes on taking NULL in ClickHouse: rows from before may hold it")
        for view in self.work.views:
            yield from self.work.replaced(view, view.select, self.operation)
        self.readings.append((frozenset(self.work.names), name))

    def _below(self, view: Dependent, there: StoreColumn) -> Iterator[StoreStatement]:
        query, name = self.work.query(view), self.operation.name
        if not query.reads(name):
            return
        if not view.target and type_after(there, self.operation) != there.type:
            raise DataError(
                f"the view {view.name} keeps its rows itself, and reads {name}, which is to be changed",
                hint="give it a table of its own: TO …",
            )
        self._legal(view.name, query, name, there)
        self._roomy(view.name, name, _computed(query, view.columns, name, null=self._null), there, view.target)
        below = self.work.under(view)
        for column in query.carried(name):
            if below.table.column(column) is None or (view.target, column) in self.done:
                continue
            self.done.add((view.target, column))
            deeper = Widening(below, replace(self.operation, name=column), self.done, self.readings)
            yield from deeper.steps()

    def _modified(self, column: StoreColumn) -> Iterator[StoreStatement]:
        table = self.work.table
        word = type_after(column, self.operation)
        if word != column.type:
            if column.name in table.key:
                raise DataError(
                    f"{table.name} is ordered or partitioned by {column.name}",
                    hint="build a new table and switch to it",
                )
            # the store's own type decides, for it may be another than PostgreSQL had
            lossy = not keeps(word, column.type)
            why = f"{column.type} becomes {word}" + (", which may not hold every value that is stored" if lossy else "")
            sql = f"ALTER TABLE {qualified(table.name)} MODIFY COLUMN {quoted(column.name)} {word}"
            yield StoreStatement(sql, why, lossy)
        # a default that changes needs nothing: rows arrive with their values, and those from before the column must go
        # on reading the default that it came with
        for over in checks.carried(table):
            mine = over.column(column.name)
            if mine is not None and (wide := type_after(mine, self.operation)) != mine.type:
                sql = f"ALTER TABLE {qualified(over.name)} MODIFY COLUMN {quoted(column.name)} {wide}"
                yield StoreStatement(sql, f"rows that pass the {over.engine} keep their values")

    def plain(self) -> Iterator[StoreStatement]:
        """The plain views, each after those that it reads. raises DataError"""
        there = self.work.table.column(self.operation.name)
        assert there is not None, "the table was changed"
        fed = set(self._fed(self.work.table.dependents))
        met: set[str] = set()
        for names, column in self.readings:  # grows while it is gone through
            for reader in self.work.table.readers:
                if reader.name in fed or not reads(reader.name, reader.select, names, (column,)):
                    continue
                query = View(reader.select, tuple(c.name for c in self.work.table.columns if c.kind in ("", "DEFAULT")))
                change = replace(self.operation, name=column)
                plain = query.simple and not reader.stored
                computed = _computed(query, reader.own, column, null=self._null) if plain else reader.own
                self._legal(reader.name, query, column, there)
                self._roomy(reader.name, column, computed, there)
                handed_on = query.carried(column) if plain else ()
                if reader.name in met:
                    continue
                met.add(reader.name)
                if any(type_after(one, change) != one.type for one in reader.own if one.name in handed_on):
                    yield anew.retyped(reader)
                self.readings += [(frozenset((reader.name,)), one) for one in handed_on]

    @property
    def _null(self) -> bool:
        return self.operation.to.nullable is True

    def _fed(self, views: Iterable[Dependent]) -> Iterator[str]:
        for view in views:
            yield view.name
            yield from self._fed(view.below.dependents if view.below is not None else ())

    def _legal(self, view: str, query: View, name: str, there: StoreColumn) -> None:
        """raises  DataError for a query that may be none any more once a column is of a type that expressions treat otherwise"""
        word = type_after(there, self.operation)
        if alike(word, there.type) or (query.simple and not query.computes_with(name)):
            return
        raise DataError(
            f"the view {view} computes with {name}, {there.type}, which is to be {word}",
            hint=f"DROP VIEW {qualified(view)}, apply again, and make it anew for the new type",
        )

    def _roomy(
        self, view: str, name: str, columns: Iterable[StoreColumn], there: StoreColumn, target: str = ""
    ) -> None:
        """raises  DataError for what a view computes with a column and puts where it may not fit any more"""
        for column in columns:
            if not cramped(column, there, self.operation):
                continue
            wanted = type_after(replace(there, name=column.name), self.operation)
            why = f"which is to be {wanted}" if wanted != there.type else "which is changed"
            place = f"{target}.{column.name}" if target else f"its column {column.name}"
            wider = f"ALTER TABLE {qualified(target)} MODIFY COLUMN {quoted(column.name)} to a type with room first"
            raise DataError(
                f"the view {view} computes {place}, {column.type}, with {name}, {why}",
                hint=f"{wider}, and apply again"
                if target
                else f"DROP VIEW {qualified(view)}, apply again, and make it anew",
            )


def _computed(query: View, columns: Iterable[StoreColumn], name: str, *, null: bool) -> Iterator[StoreColumn]:
    """Those of a view's columns whose types may follow a column's, without being it. null: NULL is what it takes from now on"""
    handed_on = query.carried(name)
    outputs = {out for out, item in query.outputs if _computes(item, name, null=null)}
    return (c for c in columns if c.name not in handed_on and (not query.simple or c.name in outputs))


def _computes(item: exp.Expression, name: str, *, null: bool) -> bool:
    """An output that is more than the column, and whose type may follow the column's."""
    inner = item.this if isinstance(item, exp.Alias) else item
    if isinstance(inner, exp.Column | exp.Count | exp.Is | exp.Exists):
        return False
    if not null and isinstance(inner, exp.Predicate | exp.Connector | exp.Not):
        return False  # a truth value, whatever is compared; with NULL it is NULL
    return any(node.name == name for node in inner.find_all(exp.Column))
