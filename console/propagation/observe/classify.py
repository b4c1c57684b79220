"""Whether a change of type can lose a stored value. What is not proven harmless counts as destructive."""

from console.propagation.migration import Classification
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.words import Statement
from console.propagation.types import Type
from console.propagation.widening import holds


def change_of_type(was: Type | None, to: Type) -> Classification:
    """was None: nobody knows what it was."""
    if was is None:
        return "destructive"
    if was == to:
        return "safe"
    return "widening" if holds(to, was) else "destructive"


def only_casts(using: Cursor, column: str) -> bool:
    """A USING expression that is the column itself, cast or not: PostgreSQL's conversion, nothing of its own."""
    words = using.statement.words[using.at : using.end]
    if not words:
        return True
    inside = Cursor(Statement(words, using.statement.source), 0, len(words))
    return _casts(inside, column) and inside.done


def _casts(cursor: Cursor, column: str) -> bool:
    if cursor.sees("("):
        inside = cursor.bracketed()
        found = _casts(inside, column) and inside.done
    elif cursor.take("cast"):
        inside = cursor.bracketed()
        found = _casts(inside, column) and inside.sees("as")
    else:
        word = cursor.peek()
        found = word is not None and word.kind in ("word", "name") and cursor.name() == column
    while found and cursor.take("::"):
        cursor.until("::")
    return found
