"""Whether a change can lose stored values, and the changes between two states. Anything not proven harmless is destructive."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from console.propagation.migration import AddColumn, ChangeColumn, Classification, DropColumn, Facets, Operation
from console.propagation.sql.cursor import Cursor, Name
from console.propagation.sql.lexer import SqlStatement
from console.propagation.sql.postgres import UserTypes, WrittenType, read_type
from console.propagation.tables import PgColumn
from console.propagation.types import Type
from console.propagation.widening import holds

_NO_LABELS: Final = Type(name="enum")
_LENGTH: Final = re.compile(r"(?:character|bit)\b[^(]*\(\d+\)")


def change_of_type(was: Type | None, to: Type) -> Classification:
    """was: None if the old type is not known"""
    if was is None:
        return "destructive"
    if was == to:
        return "safe"
    return "widening" if holds(to, was) else "destructive"


@dataclass(frozen=True, slots=True, kw_only=True)
class Using:
    """The expression behind USING, and the column's new type.

    table  its full name;  was  PostgreSQL's name of the column's old type, or "" if it is not known
    """

    table: Name
    column: str
    was: str
    to: WrittenType
    types: UserTypes
    schema: str

    def converts(self, using: Cursor) -> bool:
        """Whether it is the column itself or a cast of it to the new type, which PostgreSQL does without USING too."""
        words = using.statement.words[using.at : using.end]
        if not words:
            return True
        inside = Cursor(SqlStatement(words, using.statement.source), 0, len(words))
        return self._read(inside) and inside.done

    def _read(self, cursor: Cursor) -> bool:
        if cursor.sees("("):
            inside = cursor.bracketed()
            harmless = self._read(inside) and inside.done
        elif cursor.take("cast"):
            inside = cursor.bracketed()
            harmless = self._read(inside) and inside.take("as") and self._harmless(inside) and inside.done
        else:
            word = cursor.peek()
            harmless = word is not None and word.kind in ("word", "name") and self._names(cursor)
        while harmless and cursor.take("::"):
            harmless = self._harmless(cursor)
        return harmless

    def _names(self, cursor: Cursor) -> bool:
        parts = [cursor.name()]
        while cursor.take("."):
            parts.append(cursor.name())
        return [*self.table, self.column][-len(parts) :] == parts

    def _harmless(self, cursor: Cursor) -> bool:
        """Whether a cast does no more than the change itself; a cast to a length truncates, where the change would fail."""
        written = read_type(cursor, self.types, self.schema)
        if written.postgres == self.was:
            return True
        if written.type == Type(name="string") and self.to.type.name == "enum":
            return not _LENGTH.match(written.postgres)  # as a text a label is unchanged
        return written.postgres == self.to.postgres and not _LENGTH.match(written.postgres)


def differences(old: Sequence[PgColumn], new: Sequence[PgColumn]) -> Iterator[Operation]:
    """The operations between two lists of columns; a column is identified by its name."""
    before, after = ({column.name: column for column in columns} for columns in (old, new))
    for name in before:
        if name not in after:
            yield DropColumn(name)
    for column in new:
        was = before.get(column.name)
        if was is None:
            yield AddColumn(column.name, column.type, column.nullable, column.default)
        elif changed := _changed(was, column):
            yield changed


def _changed(was: PgColumn, now: PgColumn) -> ChangeColumn | None:
    """The change between two states of a column; enums that differ only in their labels are the same text."""
    to = was_facets = Facets()
    classification: Classification = "safe"
    if was.postgres != now.postgres or unlabelled(was.type) != unlabelled(now.type):
        to, was_facets = replace(to, data_type=now.type), replace(was_facets, data_type=was.type)
        classification = change_of_type(was.type, now.type)
    if was.nullable != now.nullable:
        to, was_facets = replace(to, nullable=now.nullable), replace(was_facets, nullable=was.nullable)
        classification = "widening" if now.nullable and classification == "safe" else classification
    if was.default != now.default:
        to, was_facets = replace(to, default=now.default), replace(was_facets, default=was.default)
    return None if to == Facets() else ChangeColumn(now.name, to, was_facets, classification)


def unlabelled(kind: Type) -> Type:
    if kind.element is not None:
        return replace(kind, element=unlabelled(kind.element))
    return _NO_LABELS if kind.name == "enum" else kind
