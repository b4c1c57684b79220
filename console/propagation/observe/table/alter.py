"""ALTER TABLE, action by action: the statements that change the stores' tables.

source  PostgreSQL 15 documentation, ALTER TABLE
"""

from collections.abc import Iterator
from dataclasses import replace

from console.propagation.migration import AddColumn, DropColumn, SwapColumns
from console.propagation.observe.create import constrained, constraint_is_next, definition_of
from console.propagation.observe.events import Event
from console.propagation.observe.objects.relations import move_view
from console.propagation.observe.scope import STAYS, VIEWS
from console.propagation.observe.table.action import taken
from console.propagation.observe.table.column import ColumnAction
from console.propagation.observe.table.ignored import COLUMN_IGNORED, IGNORED, KEY, OF_THE_DATABASE, reason
from console.propagation.observe.table_state import DdlTable
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
        careful = cursor.take("if", "exists")
        only = cursor.take("only")
        self.name = self.catalog.full(cursor.qualified())
        cursor.take("*")
        if cursor.done:
            raise cursor.wrong("expected what to alter")
        if self.name in self.catalog.views and self.name not in self.catalog.tables:
            yield self.ignored(cursor, "alter_view", VIEWS)
            move_view(cursor, self.name, self.catalog)
            return
        if careful and self.name not in self.catalog.tables and not self._is_there():
            raise cursor.wrong(f"{'.'.join(self.name)} may not exist", "leave IF EXISTS out, or the statement")
        for part in sorted(cursor.parts(), key=_rank):
            again = Cursor(part.statement, part.at, part.end)
            yield from self._action(part)
            if only:
                self._stays_below(again)
            else:
                yield from self._below(again)

    def _stays_below(self, part: Cursor) -> None:
        """A column dropped from a parent with ONLY becomes an own column of the tables below."""
        if part.take("drop") and not part.take("constraint"):
            part.take("column")
            part.take("if", "exists")
            name = part.name()
            for child in map(self.catalog.table, self.catalog.below(self.name)):
                if child.column(name) is not None:
                    self.catalog.put(replace(child, own=child.own | {name}))

    def _is_there(self) -> bool:
        replicated = self.catalog.replicated
        return not self.catalog.learned or (replicated is not None and self.name in replicated)

    def _below(self, part: Cursor) -> Iterator[Event]:
        """The same action on the tables that inherit from this one, directly or not."""
        if not _inherits(part):
            return
        for name in self.catalog.below(self.name):
            before = self.catalog.table(name)
            child = Alteration(cursor=self.cursor, catalog=self.catalog, place=self.place, name=name, inherited=True)
            yield from child._action(Cursor(part.statement, part.at, part.end))
            if self.catalog.table(name) != before:
                yield from child._below(part)

    def _action(self, part: Cursor) -> Iterator[Event]:
        whole = Cursor(part.statement, part.at, part.end)
        for words, kind in IGNORED:
            if part.sees(*words):
                self._attach(part)
                yield self.ignored(whole, kind, reason(whole.sees))
                yield from self._checks(part, whole)
                return
        if part.take("rename"):
            yield from self._rename(part, whole)
        elif part.take("set", "schema"):
            yield from self.moved((part.name(), self.name[1]), whole)
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
        """ATTACH and DETACH: a partition is a separate table only while it is detached."""
        for verb in ("attach", "detach"):
            if part.take(verb, "partition"):
                child = self.catalog.table(self.catalog.full(part.qualified()))
                attached = verb == "attach"
                parents, own = ((self.name,), frozenset[str]()) if attached else ((), frozenset(_names(child)))
                self.catalog.put(replace(child, partition=attached, parents=parents, own=own))
        if part.sees("inherit") or part.sees("no", "inherit"):
            gone, at = part.take("no"), part.at
            parent = self.catalog.full(Cursor(part.statement, at + 1, part.end).qualified())
            left = tuple(name for name in self.table.parents if name != parent)
            # a column without any parent becomes the table's own
            own = self.table.own | _names(self.table) if gone else self.table.own
            self.catalog.put(replace(self.table, parents=left if gone else (*left, parent), own=own))

    def _checks(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        """A CHECK that forbids NULL becomes valid, or is dropped: then the stores must allow NULL."""
        verb = next((word for word in ("validate", "drop", "rename") if part.take(word, "constraint")), "")
        if not verb:
            return
        part.take("if", "exists")
        name, table = part.name(), self.table
        try:
            check = table.check(name)
        except ValueError as error:
            raise part.wrong(str(error), "name the constraints of the table") from None
        if check is None:
            return
        now = None
        if verb == "rename":
            part.expect("to")
            now = replace(check, name=part.name())
        elif verb == "validate":
            now = replace(check, valid=True)
        yield from self.becomes(table.changed(check, now), whole)

    def _rename(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        if part.take("to"):
            yield from self.moved((self.name[0], part.name()), whole)
            return
        part.take("column")
        old = part.name()
        part.expect("to")
        new = part.name()
        self.must_have(old, whole)
        self.must_lack(new, whole)
        yield self.change(whole, SwapColumns(((old, new),)))
        self.catalog.put(self.table.renamed(old, new))

    def moved(self, new: Name, whole: Cursor) -> Iterator[Event]:
        table, name = self.table, ".".join(new)
        first = self.catalog.origins.pop(self.name, self.name)
        before = self.catalog.left.pop(new, None)
        if first == new and first in self.catalog.strayed:
            raise whole.wrong(
                f"{'.'.join(new)} was altered under another name", "alter it before or after it is renamed"
            )
        if not (table.new or table.temporary):
            self.catalog.left.setdefault(self.name, table)
        self.catalog.origins[new] = first
        if self.name in self.catalog.interim:
            self.catalog.passed.add(self.name)
        if before is None and first != new:
            self.catalog.interim.add(new)
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
        self.catalog.moved(table, new)

    def _add(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        if not part.take("column") and constraint_is_next(part):
            key = self.table.key
            yield from self.becomes(constrained(part, self.table, self.catalog), whole)
            yield from self._keyed(whole)
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
        if self.inherited:
            definition.checks = [check for check in definition.checks if not check.own]
        column = definition.column
        yield self.change(whole, AddColumn(column.name, column.type, column.nullable, column.default))
        yield from self._remarks(definition, whole)
        table = self.table.defined(definition)
        self.catalog.put(table if self.inherited else replace(table, own=table.own | {column.name}))

    def _keyed(self, whole: Cursor) -> Iterator[Event]:
        """A primary key also forbids NULL in the tables below, although they do not inherit the key."""
        for name in self.catalog.below(self.name):
            child = Alteration(cursor=self.cursor, catalog=self.catalog, place=self.place, name=name)
            firm = replace(child.table, firm=child.table.firm | set(self.table.key))
            yield from child.becomes(firm.settled(), whole)
            yield from child._keyed(whole)

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
        cascades = part.take("cascade")
        if not cascades:
            part.take("restrict")
        if careful and self.table.whole and self.table.column(name) is None:
            yield self.ignored(whole, "drop_column", "the table has no such column")
            return
        if self.inherited and self._keeps(name):
            yield self.ignored(whole, "drop_column", "the table has the column by itself too, and keeps it")
            return
        self.must_have(name, whole)
        yield self.change(whole, DropColumn(name))
        for generated in self.table.generated_from(name) if cascades else ():
            yield self.change(whole, DropColumn(generated))
            self.catalog.put(self.table.without(generated))
        if cascades and not self.table.whole:
            message = f"columns of {'.'.join(self.name)} that are computed from {name} are dropped too: --schema DUMP names them"
            yield self.remark(whole, message)
        yield from self.becomes(self.table.without(name), whole)

    def _keeps(self, name: str) -> bool:
        """An inherited column that is also declared here, or has another parent, survives a drop in one parent."""
        others = (self.catalog.table(parent).column(name) for parent in self.table.parents)
        return name in self.table.own or any(column is not None for column in others)


def _names(table: DdlTable) -> frozenset[str]:
    return frozenset(column.name for column in table.columns)


def _rank(part: Cursor) -> int:
    """The order in which PostgreSQL runs the actions of one ALTER TABLE, which depends on their kind."""
    inside = Cursor(part.statement, part.at, part.end)
    if inside.take("drop"):
        return 0
    if inside.take("alter"):
        inside.take("column")
        inside.at += 1
        if inside.sees("type") or inside.sees("set", "data"):
            return 1
        return 0 if inside.sees("drop") else 3
    if inside.take("add"):
        return 3 if constraint_is_next(inside) else 2
    return 4


def _inherits(part: Cursor) -> bool:
    """An action that reaches the tables below: on columns and CHECKs, but not on identities, keys or table names."""
    inside = Cursor(part.statement, part.at, part.end)
    if inside.take("add"):
        if not constraint_is_next(inside):
            return True
        if inside.take("constraint"):
            inside.name()
        return inside.sees("check") and inside.statement.words[inside.end - 1].text != "inherit"
    if inside.take("rename"):
        return not inside.sees("to")
    if inside.take("alter"):
        inside.take("column")
        inside.at += 1
        return inside.sees("drop", "expression") or not any(inside.sees(*words) for words in COLUMN_IGNORED)
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
