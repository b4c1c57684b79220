"""A file of SQL as events, transaction by transaction.

A file that opens no transaction of its own counts as one, as the tools that run migrations have it; one that holds a
statement which PostgreSQL forbids inside a transaction counts as one a statement.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from console.errors import Problem
from console.propagation.observe.catalog import Catalog, Known
from console.propagation.observe.create import (
    alter_type,
    create_domain,
    create_index,
    create_table,
    create_type,
    create_view,
    guarded,
)
from console.propagation.observe.events import Event, Ignored, Refilled, Remark
from console.propagation.observe.scope import DATA, GONE, NEW, SILENT, STAYS, ignored, updated
from console.propagation.observe.session import chains, follow_path
from console.propagation.observe.table.action import taken
from console.propagation.observe.table.alter import Alteration
from console.propagation.observe.table.passed import OF_THE_DATABASE
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.words import NotUnderstood, Statement, statements

CODE: Final = "S401"
_HINT: Final = "write it so that it is understood, or leave it out of what is observed"
_ALONE: Final = ("vacuum",)
_TYPES: Final = "the columns that have it say so"


@dataclass
class Script:
    """One file being read.

    file  as shown in errors
    """

    text: str
    file: str
    catalog: Catalog
    problems: list[Problem] = field(default_factory=list)

    def transactions(self) -> Iterator[list[Event]]:
        """Events of each committed transaction, in order; what is not understood is added to `problems`."""
        found = self._statements()
        opened = any(_opens(statement) for statement in found)
        each = not opened and any(_stands_alone(statement) for statement in found)
        pending: list[Event] = []
        before = self.catalog.copy()
        inside = not each and not opened
        for statement in found:
            word = statement.words[0].text
            if _opens(statement):
                before, inside = self.catalog.copy(), True
            elif word in ("rollback", "abort") and not _to_savepoint(statement):
                self.catalog.restore(before)
                pending, inside = [], chains(statement)
            elif _to_savepoint(statement) and pending:
                self._refuse(NotUnderstood("what ROLLBACK TO undoes is not followed", statement.line))
            elif word in ("commit", "end"):
                yield self._commit(pending)
                pending, inside = [], chains(statement)
                before = self.catalog.copy()
            else:
                pending += self._read(statement)
                if not inside:
                    yield self._commit(pending)
                    pending = []
        yield self._commit(pending)

    def _commit(self, pending: list[Event]) -> list[Event]:
        self.catalog.settle()
        return pending

    def _statements(self) -> list[Statement]:
        found: list[Statement] = []
        try:
            found.extend(statements(self.text))
        except NotUnderstood as wrong:
            self._refuse(wrong)
        return found

    def _refuse(self, wrong: NotUnderstood) -> None:
        where = f"{self.file}:{wrong.line}:{wrong.column}"
        self.problems.append(Problem(CODE, f"not understood: {wrong}", where, wrong.hint or _HINT))

    def _read(self, statement: Statement) -> list[Event]:
        try:
            return list(self._events(statement))
        except NotUnderstood as wrong:
            self._refuse(wrong)
        return []

    def _events(self, statement: Statement) -> Iterator[Event]:
        cursor = Cursor.over(statement)
        if statement.words[0].kind == "mark":
            yield self._ignored(statement, "way_back", "what stands behind this line undoes the migration")
        elif cursor.take("alter", "table"):
            yield from Alteration(cursor, self.catalog, lambda at: f"{self.file}:{statement.words[at].line}").events()
        elif cursor.take("drop", "table"):
            yield from self._dropped(cursor, statement)
        elif (table := _creates_table(cursor)) is not None:
            yield from self._created(table, statement)
        elif cursor.take("create", "type"):
            create_type(cursor, self.catalog)
            yield self._ignored(statement, "create_type", _TYPES)
        elif cursor.take("create", "domain"):
            create_domain(cursor, self.catalog)
            yield self._ignored(statement, "create_type", _TYPES)
        elif cursor.take("alter", "type"):
            warning = alter_type(cursor, self.catalog)
            yield self._ignored(statement, "alter_type", "the stores keep its values as text")
            if warning:
                yield Remark(f"{self.file}:{statement.line}", warning)
        elif (name := updated(cursor, self.catalog)) is not None:
            yield self._ignored(statement, *DATA, ".".join(name[0]))
            yield Refilled(*name[0], name[1], f"{self.file}:{statement.line}")
        elif kind := guarded(statement, self.catalog):
            yield self._ignored(statement, kind, _TYPES if kind == "create_type" else OF_THE_DATABASE)
        else:
            yield from self._others(cursor, statement)

    def _created(self, table: Cursor, statement: Statement) -> Iterator[Event]:
        created = create_table(table, self.catalog)
        cursor = Cursor.over(statement)
        if any(cursor.sees("create", word) for word in ("temp", "temporary", "local", "global")):
            self.catalog.put(replace(created, temporary=True))
            yield self._ignored(statement, "create_table", "the table is temporary", created.name)
        elif (before := self._before(created)) is not None:
            self.catalog.put(replace(created, new=False))
            yield self._ignored(statement, "create_table", STAYS, created.full)
            yield from taken(before, created, statement.words[0], f"{self.file}:{statement.line}")
        else:
            yield self._ignored(statement, "create_table", NEW, created.name)

    def _before(self, created: Known) -> Known | None:
        """The table that stores know under a new one's name."""
        name = (created.schema, created.name)
        return self.catalog.left.pop(name, None) if created.new and self.catalog.concerns(name) else None

    def _others(self, cursor: Cursor, statement: Statement) -> Iterator[Event]:
        if cursor.sees("alter", "domain") and any(
            statement.words[at].text in ("set", "drop") and statement.words[at + 1].text == "not"
            for at in range(len(statement.words) - 1)
        ):
            raise cursor.wrong("a domain's NOT NULL reaches into columns", "change the columns one by one")
        follow_path(statement, self.catalog)
        create_index(Cursor.over(statement), self.catalog)
        create_view(Cursor.over(statement), self.catalog)
        first = cursor.peek()
        if first is not None and first.kind == "word" and first.text in SILENT:
            return
        known = ignored(cursor)
        if known is None:
            raise cursor.wrong("a statement that is not known here")
        yield self._ignored(statement, *known)

    def _dropped(self, cursor: Cursor, statement: Statement) -> Iterator[Event]:
        cursor.take("if", "exists")
        while True:
            name = self.catalog.full(cursor.qualified())
            gone = self.catalog.tables.pop(name, None)
            if gone is not None and gone.whole and not (gone.new or gone.temporary):
                self.catalog.left.setdefault(name, gone)
            yield self._ignored(statement, "drop_table", GONE, ".".join(name))
            if not cursor.take(","):
                break
        if not (cursor.take("cascade") or cursor.take("restrict") or cursor.done):
            raise cursor.wrong("expected the end of the statement")

    def _ignored(self, statement: Statement, kind: str, reason: str, table: str = "") -> Ignored:
        return Ignored(f"{self.file}:{statement.line}", kind, reason, str(statement)[:200], table)


def _opens(statement: Statement) -> bool:
    words = [word.text for word in statement.words[:2]]
    return words[0] == "begin" or words == ["start", "transaction"]


def _to_savepoint(statement: Statement) -> bool:
    return statement.words[0].text == "rollback" and any(word.text == "to" for word in statement.words[:4])


def _stands_alone(statement: Statement) -> bool:
    """PostgreSQL forbids it inside a transaction."""
    words = [word.text for word in statement.words if word.kind == "word"]
    return bool(words) and (words[0] in _ALONE or (words[0] != "refresh" and "concurrently" in words[:5]))


def _creates_table(cursor: Cursor) -> Cursor | None:
    """The place behind CREATE … TABLE."""
    found = Cursor(cursor.statement, cursor.at, cursor.end)
    if not found.take("create"):
        return None
    for word in ("global", "local", "temporary", "temp", "unlogged"):
        found.take(word)
    return found if found.take("table") else None
