"""A migration's literal as a value of a lake's column: the default that older rows have in PostgreSQL."""

import re
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal
from typing import Any, Final

from console.errors import DataError

_DIGITS: Final = Context(prec=76)  # of any decimal that pyarrow has; Python's own context ends at 28
_SHORT_ZONE: Final = re.compile(r"[+-]\d\d$")


def scalar(default: str, kind: Any) -> Any:
    """A pyarrow scalar. kind: pyarrow's type. raises DataError for a literal of another type"""
    import pyarrow

    try:
        return pyarrow.scalar(_value(default, kind), type=kind)
    except (ValueError, ArithmeticError, pyarrow.ArrowException) as error:
        raise DataError(
            f"the default {default:.60} is not a value of {kind}: {error}",
            hint="write one of that type into the migration, or null: rows arrive with their values",
        ) from None


def _value(default: str, kind: Any) -> Any:
    from pyarrow import types

    if default == "[]":
        return []
    text = default[1:-1].replace("''", "'") if default.startswith("'") else default
    if types.is_boolean(kind):
        return {"true": True, "false": False}[text]
    if types.is_integer(kind):
        return int(text)
    if types.is_floating(kind):
        return float(text)
    if types.is_decimal(kind):
        return Decimal(text).quantize(Decimal(1).scaleb(-kind.scale), context=_DIGITS)
    if types.is_date(kind):
        return date.fromisoformat(text)
    if types.is_time(kind):
        return time.fromisoformat(text)
    if types.is_timestamp(kind):
        moment = datetime.fromisoformat(f"{text}:00" if _SHORT_ZONE.search(text[10:]) else text)
        if kind.tz is None:
            return moment.replace(tzinfo=None)
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if types.is_binary(kind) or types.is_large_binary(kind):
        return bytes.fromhex(text.removeprefix("\\x"))
    return text


def filled(rows: Any, name: str, default: str, schema: Any) -> Any:
    """Rows with a new column. schema: pyarrow's, of the rows afterwards"""
    import pyarrow

    value = scalar(default, schema.field(name).type)
    columns = [
        pyarrow.repeat(value, rows.num_rows) if field.name == name else rows.column(field.name).cast(field.type)
        for field in schema
    ]
    return type(rows).from_arrays(columns, schema=schema)
