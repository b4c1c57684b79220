"""A file of SQL as events, transaction by transaction.

A file that opens no transaction of its own counts as one, as the tools that run migrations have it; one that holds a
statement which PostgreSQL forbids inside a transaction counts as one a statement.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from console.errors import Problem
from console.propagation.observe.catalog import Catalog
from console.propagation.observe.create import create_index, create_table, guarded, selected_into
from console.propagation.observe.events import Event, Ignored, Refilled, Remark
from console.propagation.observe.functions.calls import refuse_hidden, remember
from console.propagation.observe.objects.relations import alter_view, altered, create_schema, create_view, drop_view
from console.propagation.observe.objects.types import (
    alter_domain,
    alter_type,
    create_domain,
    create_type,
    drop_type,
    rename_type,
)
from console.propagation.observe.scope import DATA, GONE, NEW, SILENT, STAYS, ignored, updated
from console.propagation.observe.session import chains, executed, follow_path
from console.propagation.observe.table.action import taken
from console.propagation.observe.table.alter import Alteration
from console.propagation.observe.table.ignored import OF_THE_DATABASE
from console.propagation.observe.table_state import DdlTable
from console.propagation.sql.cursor import Cursor, Name
from console.propagation.sql.lexer import NotUnderstood, SqlStatement, statements

CODE: Final = "S401"
_HINT: Final = "rewrite the statement, or leave it out of the observed files"
_ALONE: Final = ("vacuum",)
_TYPES: Final = "the columns that have it say so"


@dataclass(frozen=True)
class Savepoint:
    """A savepoint: the catalog at that moment, and the number of events."""

    name: str
    catalog: Catalog
    events: int


@dataclass
class SqlScript:
    """One file being read.

    file  as shown in errors
    """

    text: str
    file: str
    catalog: Catalog
    problems: list[Problem] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._explicit = False  # inside a transaction opened by the file

    def transactions(self) -> Iterator[list[Event]]:
        """Events of each committed transaction, in order; statements that are not understood become `problems`."""
        read = self._statements()
        opened = any(_opens(statement) for statement in read)
        each = not opened and any(_stands_alone(statement) for statement in read)
        pending: list[Event] = []
        saved: list[Savepoint] = []
        before = self.catalog.copy()
        inside = not each and not opened
        self._explicit = False
        for statement in read:
            word = statement.words[0].text
            if _opens(statement):
                if not self._explicit:
                    before, inside, self._explicit = self.catalog.copy(), True, True
            elif word == "savepoint" and inside:
                saved.append(Savepoint(_last_name(statement), self.catalog.copy(), len(pending)))
            elif word == "release" or _to_savepoint(statement):
                saved = self._saved(statement, saved, pending, undoes=word != "release")
            elif word in ("rollback", "abort"):
                self._rolled_back(statement, pending, before)
                inside = self._explicit = self._explicit and chains(statement)
                pending, saved, before = [], [], self.catalog.copy()
            elif word in ("commit", "end"):
                yield self._commit(pending)
                self._explicit = self._explicit and chains(statement)
                inside = self._explicit or not (each or opened)
                pending, saved, before = [], [], self.catalog.copy()
            else:
                pending += self._read(statement)
                if not inside:
                    yield self._commit(pending)
                    pending = []
        yield self._commit(pending)

    def _rolled_back(self, statement: SqlStatement, pending: list[Event], before: Catalog) -> None:
        if self._explicit:
            self.catalog.restore(before)
        elif pending:
            hint = "write BEGIN before the statements that it undoes"
            self._refuse(NotUnderstood("ROLLBACK outside of a transaction of the file", statement.line, hint=hint))

    def _saved(
        self, statement: SqlStatement, saved: list[Savepoint], pending: list[Event], *, undoes: bool
    ) -> list[Savepoint]:
        """RELEASE and ROLLBACK TO the innermost savepoint of that name. returns  the savepoints that remain"""
        name = _last_name(statement)
        at = next((rank for rank in reversed(range(len(saved))) if saved[rank].name == name), None)
        if at is None:
            self._refuse(NotUnderstood(f"no savepoint {name} is open", statement.line))
            return saved
        if not undoes:
            return saved[:at]
        self.catalog.restore(saved[at].catalog)
        del pending[saved[at].events :]
        return saved[: at + 1]

    def _commit(self, pending: list[Event]) -> list[Event]:
        self.catalog.settle()
        return pending

    def _statements(self) -> list[SqlStatement]:
        read: list[SqlStatement] = []
        try:
            read.extend(statements(self.text))
        except NotUnderstood as wrong:
            self._refuse(wrong)
        return read

    def _refuse(self, wrong: NotUnderstood) -> None:
        where = f"{self.file}:{wrong.line}:{wrong.column}"
        self.problems.append(
            Problem(code=CODE, message=f"not understood: {wrong}", where=where, hint=wrong.hint or _HINT)
        )

    def _read(self, statement: SqlStatement) -> list[Event]:
        try:
            return list(self._events(statement))
        except NotUnderstood as wrong:
            self._refuse(wrong)
        return []

    def _events(self, statement: SqlStatement) -> Iterator[Event]:
        cursor = Cursor.over(statement)
        if statement.words[0].kind == "mark":
            yield self._ignored(statement, "way_back", "the part behind this line undoes the migration")
            return
        if (explained := executed(statement)) is not None:
            yield from self._events(explained)
            return
        refuse_hidden(statement, self.catalog)
        if (table := altered(cursor, self.catalog)) is not None or cursor.take("alter", "table"):
            yield from Alteration(cursor=table or cursor, catalog=self.catalog, place=self._place(statement)).events()
        elif cursor.take("alter", "schema"):
            yield from self._schema(cursor, statement)
        elif cursor.take("drop", "table"):
            yield from self._dropped(cursor, statement)
        elif (made := _creates_table(cursor)) is not None:
            yield from self._created(made, statement)
        elif (name := selected_into(cursor, self.catalog)) is not None:
            yield from self._made(self.catalog.table(name), statement)
        elif self._of_types(cursor):
            yield self._ignored(statement, "create_type", _TYPES)
        elif cursor.take("alter", "type"):
            warning = alter_type(cursor, self.catalog)
            yield self._ignored(statement, "alter_type", "the stores keep its values as text")
            if warning:
                yield Remark(f"{self.file}:{statement.line}", warning)
        elif (refilled := updated(cursor, self.catalog)) is not None:
            yield self._ignored(statement, *DATA, ".".join(refilled[0]))
            yield Refilled(*refilled[0], refilled[1], f"{self.file}:{statement.line}")
        elif kind := guarded(statement, self.catalog):
            yield self._ignored(statement, kind, _TYPES if kind == "create_type" else OF_THE_DATABASE)
        else:
            yield from self._others(cursor, statement)

    def _of_types(self, cursor: Cursor) -> bool:
        if cursor.take("create", "type"):
            create_type(cursor, self.catalog)
        elif cursor.take("create", "domain"):
            create_domain(cursor, self.catalog)
        else:
            return False
        return True

    def _place(self, statement: SqlStatement) -> Callable[[int], str]:
        return lambda at: f"{self.file}:{statement.words[min(at, len(statement.words) - 1)].line}"

    def _schema(self, cursor: Cursor, statement: SqlStatement) -> Iterator[Event]:
        """ALTER SCHEMA: a new name renames every table in it."""
        old = cursor.name()
        if not cursor.take("rename", "to"):
            yield self._ignored(statement, "alter_schema", OF_THE_DATABASE)
            return
        new = cursor.name()
        yield self._ignored(statement, "rename_schema", OF_THE_DATABASE)
        for name in [name for name in self.catalog.tables if name[0] == old]:
            move = Alteration(cursor=cursor, catalog=self.catalog, place=self._place(statement), name=name)
            yield from move.moved((new, name[1]), Cursor.over(statement))
        yield Remark(
            f"{self.file}:{statement.line}", f"stores know the tables of {old} as {old}.…: their rows need new names"
        )
        self.catalog.schemas = (self.catalog.schemas - {old}) | {new}
        self.catalog.views = {(new, name) if schema == old else (schema, name) for schema, name in self.catalog.views}
        for kind in [kind for kind in self.catalog.types.defined if kind[0] == old]:
            rename_type(kind, (new, kind[1]), self.catalog)

    def _created(self, table: Cursor, statement: SqlStatement) -> Iterator[Event]:
        head = [word.text for word in statement.words[:4] if word.kind == "word"]
        temporary = "temp" in head or "temporary" in head
        there = dict(self.catalog.tables)
        created = create_table(table, self.catalog, temporary=temporary)
        if there.get(created.place) is created:
            yield self._ignored(statement, "create_table", "the table is there already", created.full)
        else:
            hides = self.catalog.made(("", created.name)) in self.catalog.tables
            if created.fleeting and hides and not self._explicit:
                raise table.wrong(
                    "a table that goes with a transaction that the file does not open", "write BEGIN … COMMIT"
                )
            yield from self._made(created, statement)

    def _made(self, created: DdlTable, statement: SqlStatement) -> Iterator[Event]:
        if created.temporary:
            yield self._ignored(statement, "create_table", "the table is temporary", created.name)
        elif (before := self._before(created)) is not None:
            self.catalog.put(replace(created, new=False))
            yield self._ignored(statement, "create_table", STAYS, created.full)
            yield from taken(before, created, statement.words[0], f"{self.file}:{statement.line}")
        else:
            yield self._ignored(statement, "create_table", NEW, created.name)

    def _before(self, created: DdlTable) -> DdlTable | None:
        """The table that stores know under the name of a new one."""
        name = (created.schema, created.name)
        return self.catalog.left.pop(name, None) if created.new and self.catalog.concerns(name) else None

    def _others(self, cursor: Cursor, statement: SqlStatement) -> Iterator[Event]:
        if cursor.sees("alter", "domain"):
            alter_domain(Cursor(statement, 2, cursor.end), self.catalog)
        follow_path(statement, self.catalog, inside=self._explicit)
        create_index(Cursor.over(statement), self.catalog)
        first = cursor.peek()
        if first is not None and first.kind == "word" and first.text in SILENT:
            return
        known = ignored(cursor, self.catalog)
        if known is None:
            raise cursor.wrong("a statement that is not known here")
        create_view(Cursor.over(statement), self.catalog)
        create_schema(cursor, self.catalog)
        alter_view(cursor, self.catalog)
        drop_view(cursor, self.catalog)
        remember(statement, self.catalog)
        if cursor.sees("drop", "type") or cursor.sees("drop", "domain"):
            drop_type(Cursor(statement, 2, cursor.end), self.catalog)
        yield self._ignored(statement, *known)

    def _dropped(self, cursor: Cursor, statement: SqlStatement) -> Iterator[Event]:
        cursor.take("if", "exists")
        names = []
        while True:
            names.append(self.catalog.full(cursor.qualified()))
            if not cursor.take(","):
                break
        cascades = cursor.take("cascade")
        if not (cascades or cursor.take("restrict") or cursor.done):
            raise cursor.wrong("expected the end of the statement")
        for name in names:
            yield from self._gone(name, cursor, statement)

    def _gone(self, name: Name, cursor: Cursor, statement: SqlStatement) -> Iterator[Event]:
        """A table is dropped with the tables that inherit from it; refused if a column has its rows for values."""
        gone = self.catalog.tables.pop(name, None)
        if gone is not None and gone.whole and not (gone.new or gone.temporary):
            self.catalog.left.setdefault(name, gone)
        if name in self.catalog.interim or (gone is not None and gone.born):
            self.catalog.passed.add(name)
        users = (t for t in self.catalog.tables.values() for c in t.columns if _row_type(c.postgres) == name[1])
        if (user := next(users, None)) is not None and user.place != name:
            raise cursor.wrong(
                f"rows of {name[1]} may be values of a column of {user.full}", "drop that column by its name first"
            )
        yield self._ignored(statement, "drop_table", GONE, ".".join(name))
        for child in self.catalog.below(name):
            yield from self._gone(child, cursor, statement)

    def _ignored(self, statement: SqlStatement, kind: str, reason: str, table: str = "") -> Ignored:
        return Ignored(
            where=f"{self.file}:{statement.line}", kind=kind, reason=reason, statement=str(statement)[:200], table=table
        )


def _opens(statement: SqlStatement) -> bool:
    words = [word.text for word in statement.words[:2]]
    return words[0] == "begin" or words == ["start", "transaction"]


def _row_type(postgres: str) -> str:
    return postgres.removesuffix("[]").rpartition(".")[2]


def _last_name(statement: SqlStatement) -> str:
    return statement.words[-1].text


def _to_savepoint(statement: SqlStatement) -> bool:
    return statement.words[0].text == "rollback" and any(word.text == "to" for word in statement.words[:4])


def _stands_alone(statement: SqlStatement) -> bool:
    """PostgreSQL forbids it inside a transaction."""
    words = [word.text for word in statement.words if word.kind == "word"]
    return bool(words) and (words[0] in _ALONE or (words[0] != "refresh" and "concurrently" in words[:5]))


def _creates_table(cursor: Cursor) -> Cursor | None:
    """A cursor behind CREATE … TABLE."""
    ahead = Cursor(cursor.statement, cursor.at, cursor.end)
    if not ahead.take("create"):
        return None
    for word in ("global", "local", "temporary", "temp", "unlogged"):
        ahead.take(word)
    return ahead if ahead.take("table") else None
