"""ALTER COLUMN: its type, nullability and default."""

from collections.abc import Iterator
from dataclasses import replace

from console.propagation.migration import KEPT, ChangeColumn, Facets
from console.propagation.observe.classify import Using, change_of_type
from console.propagation.observe.create import definition_of
from console.propagation.observe.events import Event
from console.propagation.observe.table.action import Action
from console.propagation.observe.table.ignored import COLUMN_IGNORED, OF_THE_DATABASE
from console.propagation.sql.columns import IDENTITY, Definition, read_default
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.defaults import UNKNOWN, recast
from console.propagation.sql.postgres import WrittenType, read_type
from console.propagation.tables import PgColumn


class ColumnAction(Action):
    """The actions behind ALTER COLUMN."""

    def alter(self, part: Cursor, whole: Cursor) -> Iterator[Event]:
        name = part.name()
        self.must_have(name, whole)
        was = self.table.column(name)
        if any(part.sees(*words) for words in COLUMN_IGNORED):
            self._identity(part, was)
            part.at = part.end
            yield self.ignored(whole, "alter_column", OF_THE_DATABASE)
        elif part.take("set", "data", "type") or part.take("type"):
            yield from self._type(part, whole, name, was)
        elif part.take("set", "not", "null"):
            yield from self._nullable(whole, name, was, nullable=False)
        elif part.take("drop", "not", "null"):
            yield from self._nullable(whole, name, was, nullable=True)
        elif part.take("set", "default"):
            yield from self._default(part, whole, name, was)
        elif part.take("drop", "default"):
            yield from self._defaulted(whole, Definition(name=name, written=_unwritten(was)), was)
        else:
            raise part.wrong("an action of ALTER COLUMN that is not understood")

    def _identity(self, part: Cursor, was: PgColumn | None) -> None:
        if was is not None and part.sees("add", "generated"):
            self.catalog.put(self.table.with_column(replace(was, computed=IDENTITY)))
        elif was is not None and part.sees("drop", "identity"):
            self.catalog.put(self.table.with_column(replace(was, computed="")))
        elif was is not None and part.sees("drop", "expression"):
            reads = tuple(entry for entry in self.table.reads if entry[0] != was.name)
            self.catalog.put(replace(self.table.with_column(replace(was, computed="")), reads=reads))

    def _type(self, part: Cursor, whole: Cursor, name: str, was: PgColumn | None) -> Iterator[Event]:
        written = read_type(part, self.catalog.types, self.catalog.schema)
        if part.take("collate"):
            part.qualified()
        own = False
        if part.take("using"):
            using = Using(
                table=self.name,
                column=name,
                was=was.postgres if was else "",
                to=written,
                types=self.catalog.types,
                schema=self.catalog.schema,
            )
            own = not using.converts(part)
            part.at = part.end
        if was is not None and was.postgres == written.postgres and not own:
            yield self.ignored(whole, "change_type", "the column has this type already")
            return
        classification = "destructive" if own else change_of_type(was.type if was else None, written.type)
        facets = Facets(was.type) if was else Facets()
        yield self.change(whole, ChangeColumn(name, Facets(written.type), facets, classification))
        if written.unknown:
            yield self.remark(whole, definition_of(Definition(name=name, written=written)))
        if classification == "destructive" and not (self.table.new or self.table.temporary):
            yield self.remark(whole, f"{'.'.join(self.name)}.{name}: {_why(was, written, own)}")
        if was is None:
            return
        default = recast(was.default, written.type, written.postgres)
        table = self.table.with_column(replace(was, postgres=written.postgres, type=written.type, default=default))
        bound = table.bound | {name} if written.required else table.bound - {name}
        yield from self.becomes(replace(table, bound=bound).settled(), whole)

    def _nullable(self, whole: Cursor, name: str, was: PgColumn | None, *, nullable: bool) -> Iterator[Event]:
        if was is not None:
            firm = self.table.firm - {name} if nullable else self.table.firm | {name}
            self.catalog.put(replace(self.table, firm=firm).settled())
        now = self.table.column(name)
        if was is not None and now is not None and was.nullable is now.nullable:
            already = "NULL is allowed already" if nullable else "NULL is forbidden already"
            yield self.ignored(whole, "drop_not_null" if nullable else "set_not_null", already)
            return
        facets = Facets(nullable=was.nullable) if was else Facets()
        changed = ChangeColumn(name, Facets(nullable=nullable), facets, "widening" if nullable else "safe")
        yield self.change(whole, changed)

    def _default(self, part: Cursor, whole: Cursor, name: str, was: PgColumn | None) -> Iterator[Event]:
        definition = Definition(name=name, written=_unwritten(was))
        read_default(part, definition, self.catalog.types, self.catalog.schema)
        yield from self._defaulted(whole, definition, was)

    def _defaulted(self, whole: Cursor, definition: Definition, was: PgColumn | None) -> Iterator[Event]:
        kind = "set_default" if definition.default or definition.computed else "drop_default"
        before = was.default if was else KEPT
        name = definition.name
        if definition.computed and not isinstance(before, str) and name not in self.table.defaulted:
            yield self.ignored(whole, kind, "PostgreSQL computes it: rows arrive with their values")
        elif before == definition.default:
            yield self.ignored(whole, kind, "the column has this default already")
        else:
            to, facets = Facets(default=definition.default), Facets(default=before)
            yield self.change(whole, ChangeColumn(name, to, facets, "safe"))
        if was is not None:
            column = replace(was, default=definition.default, computed=definition.computed)
            self.catalog.put(self.table.with_column(column))
        elif (definition.default is not None) is not (name in self.table.defaulted):
            self.catalog.put(replace(self.table, defaulted=self.table.defaulted ^ {name}))


def _unwritten(was: PgColumn | None) -> WrittenType:
    return WrittenType(postgres=was.postgres, type=was.type) if was else WrittenType(postgres="", type=UNKNOWN)


def _why(was: PgColumn | None, written: WrittenType, own: bool) -> str:
    if own:
        return "USING recomputes the rows that are there, and PostgreSQL does not publish that"
    if was is None:
        return "values may be lost: its old type is not known (--schema DUMP has it)"
    return f"{was.postgres} to {written.postgres} may lose values"
