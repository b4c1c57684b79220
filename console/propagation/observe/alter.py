"""ALTER TABLE, action by action: the statements that change what a store must have.

source  PostgreSQL 15 documentation, ALTER TABLE
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from console.propagation.migration import KEPT, AddColumn, ChangeColumn, DropColumn, Facets, SwapColumns
from console.propagation.observe.catalog import Catalog, Known
from console.propagation.observe.classify import change_of_type, only_casts
from console.propagation.observe.create import constrained, definition_of
from console.propagation.observe.events import Change, Event, Ignored, Remark
from console.propagation.sql.columns import GENERATED, IDENTITY, SERIAL, Definition, read_column, read_default
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.defaults import UNKNOWN, recast
from console.propagation.sql.postgres import Written, read_type
from console.propagation.sql.words import NotUnderstood
from console.propagation.tables import Column

Place = Callable[[int], str]  # index of a word → `file:line`

_OF_THE_DATABASE: Final = "it concerns PostgreSQL alone"
_CONSTRAINTS: Final = ("constraint", "primary", "unique", "check", "foreign", "exclude")
# the beginning of an action → what it is called; none of them changes a column
_IGNORED: Final[tuple[tuple[tuple[str, ...], str], ...]] = (
    (("drop", "constraint"), "drop_constraint"),
    (("validate", "constraint"), "add_constraint"),
    (("alter", "constraint"), "alter_constraint"),
    (("rename", "constraint"), "rename_constraint"),
    (("owner", "to"), "privilege"),
    (("set", "tablespace"), "storage"),
    (("set", "access", "method"), "storage"),
    (("set", "logged"), "storage"),
    (("set", "unlogged"), "storage"),
    (("set", "without"), "storage"),
    (("set", "with"), "storage"),
    (("set", "("), "storage"),
    (("reset",), "storage"),
    (("cluster",), "storage"),
    (("enable",), "trigger"),
    (("disable",), "trigger"),
    (("force",), "policy"),
    (("no", "force"), "policy"),
    (("no", "inherit"), "inherit"),
    (("inherit",), "inherit"),
    (("not", "of"), "inherit"),
    (("of",), "inherit"),
    (("replica", "identity"), "replica_identity"),
    (("attach", "partition"), "partition"),
    (("detach", "partition"), "partition"),
    (("options",), "storage"),
)
_COLUMN_IGNORED: Final[tuple[tuple[str, ...], ...]] = (
    ("set", "statistics"), ("set", "storage"), ("set", "compression"), ("set", "("), ("reset",), ("options",),
    ("set", "generated"), ("restart",), ("set", "sequence"), ("set", "increment"), ("set", "cache"), ("set", "start"),
    ("set", "minvalue"), ("set", "maxvalue"), ("set", "no"), ("set", "cycle"), ("add", "generated"),
    ("drop", "identity"), ("drop", "expression"), ("set", "expression"),
)  # fmt: skip


@dataclass
class Alteration:
    """One ALTER TABLE being read."""

    cursor: Cursor
    catalog: Catalog
    place: Place

    def events(self) -> Iterator[Event]:
        """From behind ALTER TABLE.

        raises  NotUnderstood
        """
        cursor = self.cursor
        if cursor.take("all", "in", "tablespace"):
            yield self._ignored(cursor, "storage", _OF_THE_DATABASE)
            return
        cursor.take("if", "exists")
        cursor.take("only")
        self.name = self.catalog.full(cursor.qualified())
        cursor.take("*")
        if cursor.done:
            raise cursor.wrong("expected what to alter")
        for part in cursor.parts():
            yield from self._action(part)

    @property
    def table(self) -> Known:
        return self.catalog.table(self.name)

    def _action(self, part: Cursor) -> Iterator[Event]:
        whole = Cursor(part.statement, part.at, part.end)
        for words, kind in _IGNORED:
            if part.sees(*words):
                self._attach(part)
                yield from self._checks(part, whole)
                yield self._ignored(whole, kind, _OF_THE_DATABASE)
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
            yield from self._alter(part, whole)
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

    def _checks(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        """A CHECK that kept columns from being NULL is proven, or goes: then the stores must take NULL."""
        if part.take("validate", "constraint"):
            self.catalog.put(self.table.validated(part.name()))
        elif part.take("drop", "constraint"):
            part.take("if", "exists")
            table, loosened = self.table.unchecked(part.name())
            for name in sorted(loosened):
                to, was = Facets(nullable=True), Facets(nullable=False)
                yield self._change(whole, ChangeColumn(name, to, was, "widening"))
            self.catalog.put(table)

    def _ignored(self, part: Cursor, kind: str, reason: str) -> Ignored:
        table = ".".join(getattr(self, "name", ("", "")))
        return Ignored(self.place(part.at), kind, reason, str(part)[:200], table)

    def _change(self, part: Cursor, operation: AddColumn | DropColumn | SwapColumns | ChangeColumn) -> Event:
        """The change, unless the table is too new or too short-lived for any store to have it."""
        if self.table.temporary:
            return self._ignored(part, "create_table", "the table is temporary")
        if self.table.new:
            return self._ignored(part, "create_table", "the table is created in the same transaction")
        return Change(*self.name, operation, self.place(part.at))

    def _rename(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        if part.take("to"):
            yield from self._moved((self.name[0], part.name()), whole)
            return
        part.take("column")
        old = part.name()
        part.expect("to")
        new = part.name()
        self._must_have(old, whole)
        self._must_lack(new, whole)
        yield self._change(whole, SwapColumns(((old, new),)))
        self.catalog.put(self.table.renamed(old, new))

    def _moved(self, new: tuple[str, str], whole: Cursor) -> Iterator[Event]:
        table = self.table
        message = f"stores know it as {'.'.join(self.name)}: rows of {'.'.join(new)} need a name in replication.yaml"
        yield self._ignored(whole, "rename_table", message)
        if not (table.new or table.temporary):
            yield Remark(self.place(whole.at), message)
        self.catalog.tables.pop(self.name, None)
        self.catalog.put(replace(table, schema=new[0], name=new[1]))

    def _add(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        if not part.take("column") and part.sees_any(*_CONSTRAINTS):
            self.catalog.put(constrained(part, self.table, self.catalog))
            part.at = part.end
            yield self._ignored(whole, "add_constraint", _OF_THE_DATABASE)
            return
        careful = part.take("if", "not", "exists")
        definition = read_column(part, self.catalog.types, self.catalog.schema)
        if careful and self.table.column(definition.name) is not None:
            yield self._ignored(whole, "add_column", "the column is there already")
            return
        self._must_lack(definition.name, whole)
        column = definition.column
        yield self._change(whole, AddColumn(column.name, column.type, column.nullable, column.default))
        yield from self._remarks(definition, whole)
        self.catalog.put(self.table.with_column(column))

    def _remarks(self, definition: Definition, whole: Cursor) -> Iterator[Event]:
        if self.table.new or self.table.temporary:
            return
        message = definition_of(definition)
        if message:
            yield Remark(self.place(whole.at), message)
        if why := _left_to_postgres(definition):
            yield Remark(self.place(whole.at), f"{'.'.join(self.name)}.{definition.name}: {why}")

    def _drop(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        part.take("column")
        careful = part.take("if", "exists")
        name = part.name()
        if not part.take("cascade"):
            part.take("restrict")
        if careful and self.table.whole and self.table.column(name) is None:
            yield self._ignored(whole, "drop_column", "the table has no such column")
            return
        self._must_have(name, whole)
        yield self._change(whole, DropColumn(name))
        self.catalog.put(self.table.without(name))

    def _alter(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        name = part.name()
        self._must_have(name, whole)
        was = self.table.column(name)
        if any(part.sees(*words) for words in _COLUMN_IGNORED):
            self._identity(part, was)
            part.at = part.end
            yield self._ignored(whole, "alter_column", _OF_THE_DATABASE)
        elif part.take("set", "data", "type") or part.take("type"):
            yield from self._type(part, whole, name, was)
        elif part.take("set", "not", "null"):
            yield from self._nullable(whole, name, was, nullable=False)
        elif part.take("drop", "not", "null"):
            yield from self._nullable(whole, name, was, nullable=True)
        elif part.take("set", "default"):
            yield from self._default(part, whole, name, was)
        elif part.take("drop", "default"):
            yield from self._defaulted(whole, Definition(name, _unwritten(was)), was)
        else:
            raise part.wrong("an action of ALTER COLUMN that is not understood")

    def _identity(self, part: Cursor, was: Column | None) -> None:
        if was is not None and part.sees("add", "generated"):
            self.catalog.put(self.table.with_column(replace(was, computed=IDENTITY)))
        elif was is not None and part.sees("drop", "identity"):
            self.catalog.put(self.table.with_column(replace(was, computed="")))

    def _type(self, part: Cursor, whole: Cursor, name: str, was: Column | None) -> Iterator[Event]:
        written = read_type(part, self.catalog.types, self.catalog.schema)
        if part.take("collate"):
            part.qualified()
        own = False
        if part.take("using"):
            own = not only_casts(part, name)
            part.at = part.end
        if was is not None and was.postgres == written.postgres and not own:
            yield self._ignored(whole, "change_type", "the column has this type already")
            return
        found = "destructive" if own else change_of_type(was.type if was else None, written.type)
        facets = Facets(was.type) if was else Facets()
        yield self._change(whole, ChangeColumn(name, Facets(written.type), facets, found))
        if written.unknown:
            yield Remark(self.place(whole.at), definition_of(Definition(name, written)))
        if found == "destructive" and not (self.table.new or self.table.temporary):
            yield Remark(self.place(whole.at), f"{'.'.join(self.name)}.{name}: {_why(was, written, own)}")
        column = was or Column(name, "", written.type)
        default = recast(column.default, written.type, written.postgres)
        column = replace(column, postgres=written.postgres, type=written.type, default=default)
        self.catalog.put(self.table.with_column(column))

    def _nullable(self, whole: Cursor, name: str, was: Column | None, *, nullable: bool) -> Iterator[Event]:
        if not nullable:
            self.catalog.put(self.table.hardened(name))
        if was is not None and was.nullable is nullable:
            already = "NULL is allowed already" if nullable else "NULL is forbidden already"
            yield self._ignored(whole, "drop_not_null" if nullable else "set_not_null", already)
            return
        facets = Facets(nullable=was.nullable) if was else Facets()
        found = ChangeColumn(name, Facets(nullable=nullable), facets, "widening" if nullable else "safe")
        yield self._change(whole, found)
        if was is not None:
            self.catalog.put(self.table.with_column(replace(was, nullable=nullable)))

    def _default(self, part: Cursor, whole: Cursor, name: str, was: Column | None) -> Iterator[Event]:
        definition = Definition(name, _unwritten(was))
        read_default(part, definition, self.catalog.types, self.catalog.schema)
        yield from self._defaulted(whole, definition, was)

    def _defaulted(self, whole: Cursor, definition: Definition, was: Column | None) -> Iterator[Event]:
        kind = "set_default" if definition.default or definition.computed else "drop_default"
        before = was.default if was else KEPT
        if definition.computed and not isinstance(before, str):
            yield self._ignored(whole, kind, "PostgreSQL computes it: rows arrive with their values")
        elif before == definition.default:
            yield self._ignored(whole, kind, "the column has this default already")
        else:
            to, facets = Facets(default=definition.default), Facets(default=before)
            yield self._change(whole, ChangeColumn(definition.name, to, facets, "safe"))
        if was is not None:
            column = replace(was, default=definition.default, computed=definition.computed)
            self.catalog.put(self.table.with_column(column))

    def _must_have(self, name: str, part: Cursor) -> None:
        if self.table.whole and self.table.column(name) is None:
            raise self._contradiction(part, f"{'.'.join(self.name)} has no column {name}")

    def _must_lack(self, name: str, part: Cursor) -> None:
        if self.table.column(name) is not None:
            raise self._contradiction(part, f"{'.'.join(self.name)} has a column {name} already")

    @staticmethod
    def _contradiction(part: Cursor, message: str) -> NotUnderstood:
        word = part.statement.words[part.at]
        return NotUnderstood(message, word.line, word.column, "the files given before this one say so")


def _unwritten(was: Column | None) -> Written:
    return Written(was.postgres, was.type) if was else Written("", UNKNOWN)


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


def _why(was: Column | None, written: Written, own: bool) -> str:
    if own:
        return "USING recomputes the rows that are there, and PostgreSQL does not publish that"
    if was is None:
        return "nobody can prove that nothing is lost: its type before is not known (--schema DUMP tells it)"
    return f"{was.postgres} to {written.postgres} may lose values"
