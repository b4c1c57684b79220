"""Parameters of a query through Spark Connect.

A server whose sessions have Delta's extension binds none of those that a client sends (Spark 4.2.0, Delta 4.4.0: its parser
takes the place of Spark's, and `UNBOUND_SQL_PARAMETER` follows). EXECUTE IMMEDIATE binds them, to the whole query, by the same
rules: nothing is replaced in its text (docs/decisions/0026).
"""

from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from console.model.schema import quoted, text_literal

_INT = 1 << 31


def statement(sql: str, args: Mapping[str, Any]) -> str:
    """The query as a statement that binds its parameters; the query itself without any.

    args  name → value, as `rows/arguments.arguments` makes them
    """
    if not args:
        return sql
    given = ", ".join(f"{_typed(value)} AS {quoted(name)}" for name, value in args.items())
    return f"EXECUTE IMMEDIATE {text_literal(sql)} USING {given}"


def _typed(value: Any) -> str:
    """A value as SQL, of the type that PySpark gives it."""
    match value:
        case bool():
            return _cast(str(value).lower(), "BOOLEAN")
        case int():
            return _cast(str(value), "INT" if -_INT <= value < _INT else "BIGINT")
        case float():
            return _cast(repr(value), "DOUBLE")
        case Decimal():
            text = f"{value:f}"
            digits, _, places = text.lstrip("-").lstrip("0").partition(".")
            return _cast(text, f"DECIMAL({max(len(digits) + len(places), 1)}, {len(places)})")
        case datetime():
            return _cast(value.isoformat(), "TIMESTAMP")
        case date():
            return _cast(value.isoformat(), "DATE")
    return text_literal(str(value))


def _cast(text: str, kind: str) -> str:
    return f"CAST({text_literal(text)} AS {kind})"
