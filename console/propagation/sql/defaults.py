"""A column's default as a generic literal, or `Computed` if only PostgreSQL can compute it."""

from dataclasses import dataclass, replace
from typing import Final

from console.propagation.sql.constants import EMPTY, NUMBER, plain, printed
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.lexer import NotUnderstood
from console.propagation.sql.postgres import UserTypes, WrittenType, read_type
from console.propagation.types import INTEGERS, Type

NOW: Final = "now()"
UNKNOWN: Final = Type(name="")  # of a column that no file defines: its default is kept as written
_NOW_CALLS: Final = ("now", "transaction_timestamp", "statement_timestamp", "clock_timestamp")
_NOW_WORDS: Final = ("current_timestamp", "localtimestamp")
_TODAY: Final = "today"
_BARE: Final = (*INTEGERS, "float32", "float64", "decimal", "boolean")  # types whose literals need no quotes
# types whose values PostgreSQL makes texts of as it prints them
_PRINTED_ALIKE: Final = (*INTEGERS, "boolean", "uuid", "enum", "string", "date")


_UNTYPED: Final = WrittenType(postgres="", type=UNKNOWN)


class Computed(Exception):
    """Only PostgreSQL can compute the value; str() is the expression."""


@dataclass(frozen=True, slots=True)
class _Constant:
    """A constant and the casts applied so far.

    text  as written, or as PostgreSQL prints it once it has a type; NOW, "today" or EMPTY
    form  `text`, `number`, `boolean`: of no type yet; `typed`; `moment`: now or today; `array`: the empty one
    """

    text: str
    form: str
    of: WrittenType = _UNTYPED


def literal(expression: Cursor, written: WrittenType, types: UserTypes, schema: str) -> str | None:
    """The default of a column as a migration carries it; None for NULL.

    raises  Computed
    """
    shown = str(expression)
    inside = Cursor(expression.statement, expression.at, expression.end)
    try:
        value = _value(inside, types, schema)
        if value is None and inside.done:
            return None
        if value is None or not inside.done:
            raise Computed(shown)
        return _as_written(value) if written.type == UNKNOWN else _literal(_cast(value, written), written.type)
    except (NotUnderstood, Computed):
        raise Computed(shown) from None


def recast(default: str | None, kind: Type, postgres: str = "") -> str | None:
    """A literal cast to another type as PostgreSQL does; None if only PostgreSQL knows.

    postgres  PostgreSQL's name of the type, if known
    """
    if default is None:
        return None
    if default in (NOW, EMPTY):
        fits = kind.name in ("timestamp", "timestamp_tz", "date") if default == NOW else kind.name == "array"
        return default if fits else None
    text = printed(WrittenType(postgres=postgres, type=kind), unquoted(default))
    return None if text is None else _literal(_Constant(text, "typed"), kind)


def quoted(text: str) -> str:
    """A text as a SQL literal; backslashes are literal."""
    return "'" + text.replace("'", "''") + "'"


def unquoted(literal: str) -> str:
    """The text of a quoted literal of a migration; other literals unchanged."""
    return literal[1:-1].replace("''", "'") if literal.startswith("'") else literal


def _as_written(value: _Constant) -> str:
    if value.form == "moment":
        return NOW
    return quoted(value.text) if value.form in ("text", "typed") else value.text


def _literal(value: _Constant, kind: Type) -> str:
    if value.form == "moment":
        return NOW
    return value.text if kind.name in (*_BARE, "array") else quoted(value.text)


def _cast(value: _Constant, to: WrittenType) -> _Constant:
    """raises  Computed if the resulting value is not certain"""
    text: str | None = value.text
    if value.form == "moment":
        if to.type.name == "date":
            return replace(value, text=_TODAY)
        text = None if value.text == _TODAY or not to.type.name.startswith("timestamp") else NOW
        return _Constant(_certain(text), "moment")
    if value.form == "array":
        return _Constant(_certain(EMPTY if to.type.name == "array" else None), "array")
    if value.form == "number":
        text = plain(value.text) if to.type.name == "string" else value.text
    elif value.form == "boolean":
        text = value.text if to.type.name in ("boolean", "string") else None
    elif value.form == "typed":
        text = _retyped(value, to)
    printed_text = printed(to, _certain(text))
    return _Constant(_certain(printed_text), "typed", to)


def _retyped(value: _Constant, to: WrittenType) -> str | None:
    """A value's text, if reading it as the other type gives the same value as PostgreSQL's cast."""
    was, kind = value.of.type, to.type
    if was.name == "string":
        # a character(n) loses its trailing blanks on the way
        padded = value.of.postgres.startswith("character") and not value.of.postgres.startswith("character v")
        changed = padded and not to.postgres.startswith("character(") and value.text != value.text.rstrip(" ")
        return None if changed else value.text
    if was == kind and value.of.unknown == to.unknown:
        return value.text
    if kind.name == "string":
        exact = was.name in _PRINTED_ALIKE or was == Type(name="decimal")
        return value.text if exact or value.of.unknown else None
    number = was.name in (*INTEGERS, "decimal") and kind.name in _BARE and kind.name != "boolean"
    return value.text if number or (was.name, kind.name) == ("date", "timestamp") else None


def _certain(text: str | None) -> str:
    if text is None:
        raise Computed
    return text


def _value(cursor: Cursor, types: UserTypes, schema: str) -> _Constant | None:
    """A constant with its casts; None for NULL."""
    value = _bare(cursor, types, schema)
    while cursor.take("::"):
        to = read_type(cursor, types, schema)
        value = None if value is None else _cast(value, to)
    return value


def _bare(cursor: Cursor, types: UserTypes, schema: str) -> _Constant | None:
    if cursor.sees("("):
        inside = cursor.bracketed()
        value = _value(inside, types, schema)
        if not inside.done:
            raise inside.wrong("an expression")
        return value
    word = cursor.peek()
    if word is None:
        raise cursor.wrong("expected a default")
    sign = "-" if cursor.take("-") else ""
    if sign or cursor.take("+"):
        word = cursor.peek()
        if word is None or word.kind != "number":
            raise cursor.wrong("expected a number")
    if word.kind == "text":
        cursor.at += 1
        return _Constant(word.text, "text")
    if word.kind == "number":
        cursor.at += 1
        return _Constant(_certain(sign + word.text if NUMBER.fullmatch(word.text) else None), "number")
    for constant in ("true", "false"):
        if cursor.take(constant):
            return _Constant(constant, "boolean")
    return None if cursor.take("null") else _call(cursor, types, schema)


def _call(cursor: Cursor, types: UserTypes, schema: str) -> _Constant | None:
    if cursor.take("cast"):
        inside = cursor.bracketed()
        value = _value(inside, types, schema)
        inside.expect("as")
        to = read_type(inside, types, schema)
        if not inside.done:
            raise inside.wrong("expected the end of the cast")
        return None if value is None else _cast(value, to)
    if cursor.take("array", "[", "]"):
        return _Constant(EMPTY, "array")
    if cursor.take("current_date"):
        return _Constant(_TODAY, "moment")
    for word in _NOW_WORDS:
        if cursor.take(word):
            if cursor.sees("("):
                cursor.bracketed()
            return _Constant(NOW, "moment")
    cursor.take("pg_catalog", ".")
    for word in _NOW_CALLS:
        if cursor.take(word, "(", ")"):
            return _Constant(NOW, "moment")
    to = read_type(cursor, types, schema)  # `date '2026-01-31'`
    return _cast(_Constant(cursor.text(), "text"), to)
