"""A wider type for a column of a ClickHouse table and of every table that its values reach.

The last table of a chain of views is altered first, so that no value arrives where it does not fit; then the tables over it;
last the views, because a view converts to the types that its columns had when it was created.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from sqlglot import exp

from console.errors import DataError
from console.propagation.clickhouse.dependents import checks, recreate
from console.propagation.clickhouse.dependents.column_types import keeps, same_family, too_narrow, type_after
from console.propagation.clickhouse.quoting import qualified, quoted
from console.propagation.clickhouse.table_migration import TableMigration
from console.propagation.clickhouse.types import is_nullable
from console.propagation.clickhouse.views import View, reads
from console.propagation.migration import ChangeColumn
from console.propagation.tables import Dependent, StoreColumn
from console.propagation.translate.operations import StoreStatement


@dataclass
class Widening:
    """One change of one column of one table.

    done      (table, column) handled already: two views may feed one table
    readings  what plain views are checked against at the end: the names of what they read, and the column there
    """

    work: TableMigration
    operation: ChangeColumn
    done: set[tuple[str, str]] = field(default_factory=set)
    readings: list[tuple[frozenset[str], str]] = field(default_factory=list)

    def steps(self) -> Iterator[StoreStatement]:
        """Everything but the plain views. raises DataError"""
        table, name = self.work.table, self.operation.name
        there = table.column(name)
        if there is None:
            raise DataError(f"{table.name} has no column {name}", hint="add it first: console schema verify shows how")
        checks.refuse_computed(table, (name,), "changed")
        checks.refuse_retyped(table, there, self.operation)
        for view in self.work.views:
            yield from self._below(view, there)
        yield from self._modified(there)
        if self.operation.to.nullable is False and is_nullable(there.type):
            self.work.warnings.append(f"{name} still allows NULL in ClickHouse: older rows may have it")
        for view in self.work.views:
            yield from self.work.replaced(view, view.select, self.operation)
        self.readings.append((frozenset(self.work.names), name))

    def _below(self, view: Dependent, there: StoreColumn) -> Iterator[StoreStatement]:
        query, name = self.work.query(view), self.operation.name
        if not query.reads(name):
            return
        if not view.target and type_after(there, self.operation) != there.type:
            raise DataError(
                f"the view {view.name} has no target table, and reads {name}, which is to be changed",
                hint="give it a table of its own: TO …",
            )
        self._refuse_computing(view.name, query, name, there)
        self._refuse_too_narrow(
            view.name, name, _computed(query, view.columns, name, null=self._null), there, view.target
        )
        below = self.work.under(view)
        for column in query.outputs_of(name):
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
            # the store's own type decides: it may differ from PostgreSQL's
            lossy = not keeps(word, column.type)
            why = f"{column.type} becomes {word}" + (", which may not hold every value that is stored" if lossy else "")
            sql = f"ALTER TABLE {qualified(table.name)} MODIFY COLUMN {quoted(column.name)} {word}"
            yield StoreStatement(sql, why, lossy)
        # a changed default needs nothing: rows arrive with their values, and older rows must keep reading the default that
        # the column was added with
        for over in checks.following(table):
            mine = over.column(column.name)
            if mine is not None and (wide := type_after(mine, self.operation)) != mine.type:
                sql = f"ALTER TABLE {qualified(over.name)} MODIFY COLUMN {quoted(column.name)} {wide}"
                yield StoreStatement(sql, f"rows that pass through the {over.engine} keep their values")

    def plain(self) -> Iterator[StoreStatement]:
        """The plain views, each after the views that it reads. raises DataError"""
        there = self.work.table.column(self.operation.name)
        assert there is not None, "the table was changed"
        fed = set(self._fed(self.work.table.dependents))
        met: set[str] = set()
        for names, column in self.readings:  # grows during the loop
            for reader in self.work.table.readers:
                if reader.name in fed or not reads(reader.name, reader.select, names, (column,)):
                    continue
                query = View(reader.select, tuple(c.name for c in self.work.table.columns if c.kind in ("", "DEFAULT")))
                change = replace(self.operation, name=column)
                plain = query.simple and not reader.stored
                computed = _computed(query, reader.own, column, null=self._null) if plain else reader.own
                self._refuse_computing(reader.name, query, column, there)
                self._refuse_too_narrow(reader.name, column, computed, there)
                handed_on = query.outputs_of(column) if plain else ()
                if reader.name in met:
                    continue
                met.add(reader.name)
                if any(type_after(one, change) != one.type for one in reader.own if one.name in handed_on):
                    yield recreate.retyped(reader)
                self.readings += [(frozenset((reader.name,)), one) for one in handed_on]

    @property
    def _null(self) -> bool:
        return self.operation.to.nullable is True

    def _fed(self, views: Iterable[Dependent]) -> Iterator[str]:
        for view in views:
            yield view.name
            yield from self._fed(view.below.dependents if view.below is not None else ())

    def _refuse_computing(self, view: str, query: View, name: str, there: StoreColumn) -> None:
        """raises  DataError for a query that may become invalid once a column has a type of another family"""
        word = type_after(there, self.operation)
        if same_family(word, there.type) or (query.simple and not query.computes_with(name)):
            return
        raise DataError(
            f"the view {view} computes with {name}, {there.type}, which is to be {word}",
            hint=f"DROP VIEW {qualified(view)}, apply again, and recreate it for the new type",
        )

    def _refuse_too_narrow(
        self, view: str, name: str, columns: Iterable[StoreColumn], there: StoreColumn, target: str = ""
    ) -> None:
        """raises  DataError for a column computed from the changed one that may become too narrow for it"""
        for column in columns:
            if not too_narrow(column, there, self.operation):
                continue
            wanted = type_after(replace(there, name=column.name), self.operation)
            why = f"which is to be {wanted}" if wanted != there.type else "which is changed"
            place = f"{target}.{column.name}" if target else f"its column {column.name}"
            wider = f"ALTER TABLE {qualified(target)} MODIFY COLUMN {quoted(column.name)} to a type with room first"
            raise DataError(
                f"the view {view} computes {place}, {column.type}, with {name}, {why}",
                hint=f"{wider}, and apply again"
                if target
                else f"DROP VIEW {qualified(view)}, apply again, and recreate it",
            )


def _computed(query: View, columns: Iterable[StoreColumn], name: str, *, null: bool) -> Iterator[StoreColumn]:
    """The columns of a view that are computed from a column, and whose types may follow its type. null: it becomes nullable"""
    handed_on = query.outputs_of(name)
    outputs = {out for out, item in query.outputs if _computes(item, name, null=null)}
    return (c for c in columns if c.name not in handed_on and (not query.simple or c.name in outputs))


def _computes(item: exp.Expression, name: str, *, null: bool) -> bool:
    """An output computed from the column, whose type may follow the column's."""
    inner = item.this if isinstance(item, exp.Alias) else item
    if isinstance(inner, exp.Column | exp.Count | exp.Is | exp.Exists):
        return False
    if not null and isinstance(inner, exp.Predicate | exp.Connector | exp.Not):
        return False  # a truth value, regardless of its operands; with NULL it is NULL
    return any(node.name == name for node in inner.find_all(exp.Column))
