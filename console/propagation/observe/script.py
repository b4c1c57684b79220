"""A file of SQL as events, transaction by transaction.

A file that opens no transaction of its own counts as one, as the tools that run migrations have it; one that holds a
statement which PostgreSQL forbids inside a transaction counts as one a statement.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from console.errors import Problem
from console.propagation.observe.alter import Alteration
from console.propagation.observe.catalog import Catalog
from console.propagation.observe.create import alter_type, create_domain, create_index, create_table, create_type
from console.propagation.observe.events import Event, Ignored, Remark
from console.propagation.observe.scope import GONE, NEW, SILENT, ignored
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.words import NotUnderstood, Statement, statements

CODE: Final = "S401"
_HINT: Final = "write it so that it is understood, or leave it out of what is observed"
_ALONE: Final = ("vacuum",)


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
                self.catalog.tables, self.catalog.types = before.tables, before.types
                pending, inside = [], False
            elif _to_savepoint(statement) and pending:
                self._refuse(NotUnderstood("what ROLLBACK TO undoes is not followed", statement.line))
            elif word in ("commit", "end"):
                yield self._commit(pending)
                pending, inside = [], False
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
        if cursor.take("alter", "table"):
            yield from Alteration(cursor, self.catalog, lambda at: f"{self.file}:{statement.words[at].line}").events()
        elif cursor.take("drop", "table"):
            yield from self._dropped(cursor, statement)
        elif (table := _creates_table(cursor)) is not None:
            created = create_table(table, self.catalog)
            temporary = any(cursor.sees("create", word) for word in ("temp", "temporary", "local", "global"))
            if temporary:
                self.catalog.put(replace(created, temporary=True))
            yield self._ignored(statement, "create_table", "the table is temporary" if temporary else NEW, created.name)
        elif cursor.take("create", "type"):
            create_type(cursor, self.catalog)
            yield self._ignored(statement, "create_type", "the columns that have it say so")
        elif cursor.take("create", "domain"):
            create_domain(cursor, self.catalog)
            yield self._ignored(statement, "create_type", "the columns that have it say so")
        elif cursor.take("alter", "type"):
            warning = alter_type(cursor, self.catalog)
            yield self._ignored(statement, "alter_type", "the stores keep its values as text")
            if warning:
                yield Remark(f"{self.file}:{statement.line}", warning)
        else:
            yield from self._others(cursor, statement)

    def _others(self, cursor: Cursor, statement: Statement) -> Iterator[Event]:
        if cursor.sees("alter", "domain") and any(
            statement.words[at].text in ("set", "drop") and statement.words[at + 1].text == "not"
            for at in range(len(statement.words) - 1)
        ):
            raise cursor.wrong("a domain's NOT NULL reaches into columns", "change the columns one by one")
        _path(cursor, self.catalog)
        create_index(Cursor.over(statement), self.catalog)
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
            self.catalog.tables.pop(name, None)
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


def _path(cursor: Cursor, catalog: Catalog) -> None:
    """`SET search_path TO app, public`: names without a schema are looked for there."""
    found = Cursor(cursor.statement, cursor.at, cursor.end)
    if not found.take("set"):
        return
    if not found.take("local"):
        found.take("session")
    if found.take("search_path") and (found.take("=") or found.take("to")):
        word = found.peek()
        if word is not None and word.text not in ("default", "", "pg_catalog") and word.text != "$user":
            catalog.schema = word.text
