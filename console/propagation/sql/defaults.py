"""A column's default as a generic literal, or the finding that only PostgreSQL can compute it."""

import re
from typing import Final

from console.propagation.sql.cursor import Cursor
from console.propagation.sql.postgres import UserTypes, read_type
from console.propagation.sql.words import NotUnderstood
from console.propagation.types import INTEGERS, TIMES, Type

NOW: Final = "now()"
EMPTY: Final = "[]"
UNKNOWN: Final = Type("")  # of a column that no file defines: its default is carried as it is written
_NOW_CALLS: Final = ("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp")
_NOW_WORDS: Final = ("current_timestamp", "localtimestamp", "current_date", "current_time", "localtime")
_TRUE: Final = ("t", "true", "y", "yes", "on", "1")
_FALSE: Final = ("f", "false", "n", "no", "off", "0")
_NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?)?")
_CLOCK: Final = re.compile(r"\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d(?::?\d\d)?)?")


class Computed(Exception):
    """The value is PostgreSQL's to compute; str() is the expression."""


def literal(expression: Cursor, kind: Type, types: UserTypes, schema: str) -> str | None:
    """The default as a migration carries it; None for NULL.

    raises  Computed
    """
    shown = str(expression)
    inside = Cursor(expression.statement, expression.at, expression.end)
    try:
        value = _value(inside, types, schema)
        if not inside.done:
            raise Computed(shown)
    except (NotUnderstood, Computed):
        raise Computed(shown) from None
    if value is None or value in (NOW, EMPTY):
        return value if value is None or _fits(value, kind) else _refuse(shown)
    if kind == UNKNOWN:
        return quoted(value[1:]) if value[0] == "'" else value[1:]
    found = _as(kind, value[1:])
    return _refuse(shown) if found is None else found


def _refuse(shown: str) -> str:
    raise Computed(shown)


def _fits(value: str, kind: Type) -> bool:
    if kind == UNKNOWN:
        return True
    if value == NOW:
        return kind.name in ("timestamp", "timestamp_tz", "date")
    return kind.name == "array"


def _value(cursor: Cursor, types: UserTypes, schema: str) -> str | None:
    """A constant behind `'` (written as a text) or `=`, NOW, EMPTY, or None for NULL; casts behind it are passed."""
    found = _bare(cursor, types, schema)
    while cursor.take("::"):
        read_type(cursor, types, schema)
    return found


def _bare(cursor: Cursor, types: UserTypes, schema: str) -> str | None:
    if cursor.sees("("):
        inside = cursor.bracketed()
        found = _value(inside, types, schema)
        if not inside.done:
            raise inside.wrong("an expression")
        return found
    word = cursor.peek()
    if word is None:
        raise cursor.wrong("expected a default")
    sign = "-" if cursor.take("-") else ""
    if sign or cursor.take("+"):
        word = cursor.peek()
        if word is None or word.kind != "number":
            raise cursor.wrong("expected a number")
    if word.kind in ("number", "text"):
        cursor.at += 1
        return f"'{word.text}" if word.kind == "text" else f"={sign}{word.text}"
    for constant, value in (("true", "=true"), ("false", "=false"), ("null", None)):
        if cursor.take(constant):
            return value
    return _call(cursor, types, schema)


def _call(cursor: Cursor, types: UserTypes, schema: str) -> str | None:
    if cursor.take("cast"):
        inside = cursor.bracketed()
        found = _value(inside, types, schema)
        inside.expect("as")
        read_type(inside, types, schema)
        return found
    if cursor.take("array", "[", "]"):
        return EMPTY
    for word in _NOW_WORDS:
        if cursor.take(word):
            if cursor.sees("("):
                cursor.bracketed()
            return NOW
    cursor.take("pg_catalog", ".")
    for word in _NOW_CALLS:
        if cursor.take(word, "(", ")"):
            return NOW
    read_type(cursor, types, schema)  # `date '2026-01-31'`
    return "'" + cursor.text()


def _as(kind: Type, text: str) -> str | None:
    """A constant's text as a literal of a generic type; None where it is none that every store would read alike."""
    bare = text.strip()
    if kind.name == "boolean":
        word = bare.lower()
        return "true" if word in _TRUE else "false" if word in _FALSE else None
    if kind.name in INTEGERS:
        return str(int(bare)) if re.fullmatch(r"[+-]?\d{1,19}", bare) else None
    if kind.name in ("float32", "float64", "decimal"):
        return bare.removeprefix("+") if _NUMBER.fullmatch(bare) else None
    if kind.name == "array":
        return EMPTY if re.fullmatch(r"\{\s*\}", bare) else None
    if kind.name == "bytes":
        return "''" if bare in ("", "\\x") else None
    if kind.name == "interval":
        return None
    if kind.name == "uuid":
        return (
            quoted(bare.lower()) if re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", bare) else None
        )
    if kind.name == "date" or kind.name in TIMES:
        pattern = _CLOCK if kind.name.startswith("time") and not kind.name.startswith("timestamp") else _MOMENT
        return quoted(bare) if pattern.fullmatch(bare) else None
    return quoted(text)


def recast(default: str | None, kind: Type) -> str | None:
    """A default after its column has got another type, as PostgreSQL casts it; None where only PostgreSQL can tell."""
    if default is None or default in (NOW, EMPTY):
        return default if default is None or _fits(default, kind) else None
    return _as(kind, unquoted(default))


def quoted(text: str) -> str:
    """A text as a SQL literal; its backslashes mean themselves."""
    return "'" + text.replace("'", "''") + "'"


def unquoted(literal: str) -> str:
    """What a quoted literal of a migration says; others as they are."""
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal
