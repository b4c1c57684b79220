"""The base of every action of ALTER TABLE: its table, and the events that it yields."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from console.propagation.migration import ChangeColumn, Facets, Operation
from console.propagation.observe.catalog import Catalog
from console.propagation.observe.classify import differences
from console.propagation.observe.events import Event, Firm, Ignored, ObservedChange, Remark
from console.propagation.observe.table_state import DdlTable
from console.propagation.sql.cursor import Cursor, Name
from console.propagation.sql.lexer import NotUnderstood, Token

Place = Callable[[int], str]  # index of a word → `file:line`


@dataclass(kw_only=True)
class Action:
    """One ALTER TABLE being read.

    name       the table's full name, once it is read
    inherited  the action is a parent's and reaches this table by inheritance
    """

    cursor: Cursor
    catalog: Catalog
    place: Place
    name: Name = ("", "")
    inherited: bool = False

    @property
    def table(self) -> DdlTable:
        return self.catalog.table(self.name)

    def ignored(self, part: Cursor, kind: str, reason: str) -> Ignored:
        table = ".".join(filter(None, self.name))
        return Ignored(where=self.place(part.at), kind=kind, reason=reason, statement=str(part)[:200], table=table)

    def remark(self, part: Cursor, message: str) -> Remark:
        return Remark(self.place(part.at), message, ".".join(self.name))

    def change(self, part: Cursor, operation: Operation) -> Event:
        """The change, unless no store can have the table yet, or ever: it is new or temporary."""
        if self.table.temporary:
            return self.ignored(part, "create_table", "the table is temporary")
        if self.table.new:
            return self.ignored(part, "create_table", "the table is created in the same transaction")
        named = self.catalog.replicated is not None and self.name in self.catalog.replicated
        if self.table.partition and not named:
            return self.ignored(part, "partition", "it is a partition: the table that it is part of says what changes")
        if (first := self.catalog.origins.get(self.name)) is not None:
            self.catalog.strayed.add(first)
        return ObservedChange(*self.name, operation, self.place(part.at))

    def becomes(self, table: DdlTable, part: Cursor, but: str = "") -> Iterator[Event]:
        """Replace the table's state; columns that are no longer NOT NULL are reported, `but` one.

        So are those that something keeps from it now: what let them be NULL earlier in the transaction is undone.
        """
        before = self.table
        self.catalog.put(table)
        for column in table.columns:
            was = before.column(column.name)
            if column.nullable and was is not None and not was.nullable and column.name != but:
                to, facets = Facets(nullable=True), Facets(nullable=False)
                yield self.change(part, ChangeColumn(column.name, to, facets, "widening"))
        firm = [
            now.name for now in table.columns if not now.nullable and (was := before.column(now.name)) and was.nullable
        ]
        if firm:
            yield Firm(*self.name, frozenset(firm))

    def must_have(self, name: str, part: Cursor) -> None:
        if self.table.whole and self.table.column(name) is None:
            raise self.contradiction(part, f"{'.'.join(self.name)} has no column {name}")

    def must_lack(self, name: str, part: Cursor) -> None:
        if self.table.column(name) is not None:
            raise self.contradiction(part, f"{'.'.join(self.name)} has a column {name} already")

    @staticmethod
    def contradiction(part: Cursor, message: str) -> NotUnderstood:
        word = part.statement.words[part.at]
        return NotUnderstood(message, word.line, word.column, "the files given before this one say so")


def taken(before: DdlTable, after: DdlTable, word: Token, where: str) -> Iterator[Event]:
    """Another table takes a name that stores know: for them it is the same table with other columns.

    word, where  the place, for errors and events
    raises       NotUnderstood if the differing columns are not known
    """
    if not (before.whole and after.whole):
        raise NotUnderstood(
            f"another table takes the name {after.full}, and not all columns of both are known",
            word.line,
            word.column,
            "give the schema that there was (--schema DUMP), or compare two dumps (--before, --after)",
        )
    message = f"{after.full} is another table from here on: its rows arrive once it is published under that name"
    yield Remark(where, message, after.full)
    for operation in differences(before.columns, after.columns):
        yield ObservedChange(after.schema, after.name, operation, where)
