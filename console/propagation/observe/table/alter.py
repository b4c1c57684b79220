"""ALTER TABLE, action by action: the statements that change what a store must have.

source  PostgreSQL 15 documentation, ALTER TABLE
"""

from collections.abc import Iterator
from dataclasses import replace

from console.propagation.migration import AddColumn, ChangeColumn, DropColumn, Facets, SwapColumns
from console.propagation.observe.create import TABLE_CONSTRAINTS, constrained, definition_of
from console.propagation.observe.events import Event
from console.propagation.observe.scope import STAYS, VIEWS
from console.propagation.observe.table.action import taken
from console.propagation.observe.table.column import ColumnAction
from console.propagation.observe.table.passed import COLUMN_IGNORED, IGNORED, KEY, OF_THE_DATABASE, reason
from console.propagation.sql.columns import GENERATED, IDENTITY, SERIAL, Definition, read_column
from console.propagation.sql.cursor import Cursor, Name


class Alteration(ColumnAction):
    """One ALTER TABLE being read, action by action."""

    def events(self) -> Iterator[Event]:
        """From behind ALTER TABLE.

        raises  NotUnderstood
        """
        cursor = self.cursor
        if cursor.take("all", "in", "tablespace"):
            yield self.ignored(cursor, "storage", OF_THE_DATABASE)
            return
        cursor.take("if", "exists")
        only = cursor.take("only")
        self.name = self.catalog.full(cursor.qualified())
        cursor.take("*")
        if cursor.done:
            raise cursor.wrong("expected what to alter")
        if self.name in self.catalog.views and self.name not in self.catalog.tables:
            yield self.ignored(cursor, "alter_view", VIEWS)
            return
        for part in cursor.parts():
            again = Cursor(part.statement, part.at, part.end)
            yield from self._action(part)
            if not only:
                yield from self._below(again)

    def _below(self, part: Cursor) -> Iterator[Event]:
        """The same action on the tables that inherit from this one, and on those below them."""
        if not _inherits(part):
            return
        for name in self.catalog.below(self.name):
            before = self.catalog.table(name)
            child = Alteration(self.cursor, self.catalog, self.place, name, inherited=True)
            yield from child._action(Cursor(part.statement, part.at, part.end))
            if self.catalog.table(name) != before:
                yield from child._below(part)

    def _action(self, part: Cursor) -> Iterator[Event]:
        whole = Cursor(part.statement, part.at, part.end)
        for words, kind in IGNORED:
            if part.sees(*words):
                self._attach(part)
                yield from self._checks(part, whole)
                yield self.ignored(whole, kind, reason(whole.sees))
                return
        if part.take("rename"):
            yield from self._rename(part, whole)
        elif part.take("set", "schema"):
            yield from self._moved((part.name(), self.name[1]), whole)
        elif part.take("add"):
            yield from self._add(part, whole)
        elif part.take("drop"):
            yield from self._drop(part, whole)
        elif part.take("alter"):
            part.take("column")
            yield from self.alter(part, whole)
        else:
            raise part.wrong("an action of ALTER TABLE that is not understood")
        if not part.done:
            raise part.wrong("expected the end of the action")

    def _attach(self, part: Cursor) -> None:
        """A partition is a table of its own only outside of its parent."""
        for verb in ("attach", "detach"):
            if part.take(verb, "partition"):
                child = self.catalog.table(self.catalog.full(part.qualified()))
                self.catalog.put(replace(child, partition=verb == "attach"))
        if part.sees("inherit") or part.sees("no", "inherit"):
            gone, at = part.take("no"), part.at
            parent = self.catalog.full(Cursor(part.statement, at + 1, part.end).qualified())
            left = tuple(name for name in self.table.parents if name != parent)
            # a column that comes from no parent any more is the table's own
            own = self.table.own | {column.name for column in self.table.columns} if gone else self.table.own
            self.catalog.put(replace(self.table, parents=left if gone else (*left, parent), own=own))

    def _checks(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        """A CHECK that kept columns from being NULL is proven, or goes: then the stores must take NULL."""
        if part.take("validate", "constraint"):
            self.catalog.put(self.table.validated(part.name()))
        elif part.take("drop", "constraint"):
            part.take("if", "exists")
            table, loosened = self.table.unchecked(part.name())
            for name in sorted(loosened):
                to, was = Facets(nullable=True), Facets(nullable=False)
                yield self.change(whole, ChangeColumn(name, to, was, "widening"))
            self.catalog.put(table)

    def _rename(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        if part.take("to"):
            yield from self._moved((self.name[0], part.name()), whole)
            return
        part.take("column")
        old = part.name()
        part.expect("to")
        new = part.name()
        self.must_have(old, whole)
        self.must_lack(new, whole)
        yield self.change(whole, SwapColumns(((old, new),)))
        self.catalog.put(self.table.renamed(old, new))

    def _moved(self, new: Name, whole: Cursor) -> Iterator[Event]:
        table, name = self.table, ".".join(new)
        first = self.catalog.origins.pop(self.name, self.name)
        before = self.catalog.left.pop(new, None)
        if not (table.new or table.temporary):
            self.catalog.left.setdefault(self.name, table)
        self.catalog.origins[new] = first
        self.catalog.tables.pop(self.name, None)
        if before is None or first == new or not self.catalog.concerns(new):
            message = f"stores know it as {'.'.join(self.name)}: rows of {name} need a name in replication.yaml"
            yield self.ignored(whole, "rename_table", message)
            if not (table.new or table.temporary or first == new):
                yield self.remark(whole, message)
        else:
            yield self.ignored(whole, "rename_table", STAYS)
            after = replace(table, schema=new[0], name=new[1])
            yield from taken(before, after, whole.statement.words[whole.at], self.place(whole.at))
            table = replace(table, new=False)
        self.catalog.put(replace(table, schema=new[0], name=new[1]))
        for child in self.catalog.below(self.name):
            below = self.catalog.table(child)
            parents = tuple(new if parent == self.name else parent for parent in below.parents)
            self.catalog.put(replace(below, parents=parents))

    def _add(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        if not part.take("column") and part.sees_any(*TABLE_CONSTRAINTS):
            key = self.table.key
            self.catalog.put(constrained(part, self.table, self.catalog))
            part.at = part.end
            yield self.ignored(
                whole,
                "add_constraint",
                KEY if self.table.key != key or "primary" in str(whole).lower().split() else OF_THE_DATABASE,
            )
            return
        careful = part.take("if", "not", "exists")
        definition = read_column(part, self.catalog.types, self.catalog.schema)
        if (careful or self.inherited) and self.table.column(definition.name) is not None:
            yield self.ignored(whole, "add_column", "the column is there already")
            return
        self.must_lack(definition.name, whole)
        column = definition.column
        yield self.change(whole, AddColumn(column.name, column.type, column.nullable, column.default))
        yield from self._remarks(definition, whole)
        table = self.table.with_column(column)
        self.catalog.put(table if self.inherited else replace(table, own=table.own | {column.name}))

    def _remarks(self, definition: Definition, whole: Cursor) -> Iterator[Event]:
        if self.table.new or self.table.temporary:
            return
        message = definition_of(definition)
        if message:
            yield self.remark(whole, message)
        if why := _left_to_postgres(definition):
            yield self.remark(whole, f"{'.'.join(self.name)}.{definition.name}: {why}")

    def _drop(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        part.take("column")
        careful = part.take("if", "exists")
        name = part.name()
        if not part.take("cascade"):
            part.take("restrict")
        if careful and self.table.whole and self.table.column(name) is None:
            yield self.ignored(whole, "drop_column", "the table has no such column")
            return
        if self.inherited and self._keeps(name):
            yield self.ignored(whole, "drop_column", "the table has the column by itself too, and keeps it")
            return
        self.must_have(name, whole)
        yield self.change(whole, DropColumn(name))
        self.catalog.put(self.table.without(name))

    def _keeps(self, name: str) -> bool:
        """An inherited column that is declared here too, or comes from another parent, is not dropped with a parent's."""
        others = (self.catalog.table(parent).column(name) for parent in self.table.parents)
        return name in self.table.own or any(column is not None for column in others)


def _inherits(part: Cursor) -> bool:
    """An action that reaches the tables below: of columns and of CHECKs, but no identity, key or name of a table."""
    inside = Cursor(part.statement, part.at, part.end)
    if inside.take("add"):
        if inside.take("constraint"):
            inside.name()
        return inside.sees("check") or not inside.sees_any(*TABLE_CONSTRAINTS)
    if inside.take("rename"):
        return not inside.sees_any("to", "constraint")
    if inside.take("alter"):
        inside.take("column")
        inside.at += 1
        return not any(inside.sees(*words) for words in COLUMN_IGNORED)
    return inside.sees("drop") or inside.sees("validate")


def _left_to_postgres(definition: Definition) -> str:
    if definition.computed == GENERATED:
        return "PostgreSQL computes it, and before version 18 does not publish it: rows arrive without it"
    if definition.computed in (SERIAL, IDENTITY):
        return "PostgreSQL numbers the rows that are there and does not publish that: in the stores they have NULL"
    if definition.computed:
        return f"only PostgreSQL can compute {definition.computed[:80]}: older rows have NULL in the stores"
    if definition.default == "now()":
        return "the rows that are there get the moment of the ALTER, which PostgreSQL does not publish"
    if not definition.nullable and definition.default is None:
        return "NOT NULL without a default: PostgreSQL refuses it on a table with rows, older rows have NULL in stores"
    return ""
