"""NDJSON lines as rows of a table, strictly: what does not fit its column is refused by the file's line, never nulled,
rounded or cut.
"""

import json
import math
import re
import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from deltalake import DeltaTable

from console.errors import DataError

Read = Callable[[Any], Any]  # a JSON value as its column wants it; raises one of MISFITS
MISFITS = (ValueError, TypeError, KeyError, ArithmeticError, RecursionError)
# Delta reads the first as NULL; Hive's word for NULL, the second, is one to Spark as well.
NO_PARTITION = ("", "__HIVE_DEFAULT_PARTITION__")
_LONG = 1e200
NOTHING_WRITTEN = "all of these lines were refused; nothing was written"


class _Twice(ValueError):
    """A key that stands twice in one object; its last value would win without a word."""


class _TooFine(ValueError):
    """A time finer than a microsecond; what Delta stores would be cut."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _Twice(next(key for key in found if keys.count(key) > 1))
    return found


def _no_number(token: str) -> Any:
    raise ValueError(token)


# Fractions stay as they are written: a float in between would change them before anybody has seen the column's type.
_JSON = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_unique)


def parse_lines(
    lines: Sequence[str], columns: Sequence[str], numbers: Sequence[int] | None = None
) -> list[dict[str, Any]]:
    """NDJSON lines as objects with known keys only; numbers with a fraction or an exponent as Decimals.

    numbers  each line's own in its file; 1, 2, 3 … without
    raises   DataError with the line's number
    """
    known = set(columns)
    rows = []
    for number, line in zip(numbers or range(1, len(lines) + 1), lines, strict=True):
        try:
            row = _JSON.decode(line)
        except _Twice as error:
            raise DataError(f"line {number}: {str(error)!r:.60} stands twice in one object: {line[:60]!r}") from None
        except (ValueError, ArithmeticError, RecursionError):
            raise DataError(f"line {number} is no JSON: {line[:60]!r}") from None
        if not isinstance(row, dict):
            raise DataError(f"line {number} is no JSON object: {line[:60]!r}")
        if strange := [key for key in row if key not in known]:
            raise DataError(
                f"line {number} has the key {strange[0]!r:.60}, the table has {', '.join(columns)}",
                hint="lines are matched by column name",
            )
        rows.append(row)
    return rows


def typed(table: DeltaTable, rows: Sequence[Mapping[str, Any]], numbers: Sequence[int] | None = None) -> Any:
    """Rows as Arrow in the table's schema.

    numbers  each row's line in its file
    raises   DataError naming line and column of the first value, column by column, that does not fit
    """
    import pyarrow as pa

    numbers = numbers or range(1, len(rows) + 1)
    schema, partitions = pa.schema(table.schema().to_arrow()), table.metadata().partition_columns
    arrays = []
    for field in schema:
        values = _values(rows, numbers, field.name, _reader(pa, field.type), str(field.type))
        if field.name in partitions:
            _kept_apart(values, numbers, field.name, pa.types.is_binary(field.type))
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            at = next(n for n, value in enumerate(values) if not _fits(pa, value, field.type))
            raise _unfit(numbers[at], field.name, rows[at][field.name], str(field.type)) from None
    return pa.Table.from_arrays(arrays, schema=schema)


def _values(rows: Sequence[Mapping[str, Any]], numbers: Sequence[int], column: str, read: Read, kind: str) -> list[Any]:
    values = []
    for number, row in zip(numbers, rows, strict=True):
        value = row.get(column)
        try:
            values.append(None if value is None else read(value))
        except _TooFine as error:
            raise DataError(
                f"line {number}: {column}: {str(error)!r:.60} is finer than a microsecond: it would be cut",
                hint=f"at most six digits after the second; {NOTHING_WRITTEN}",
                code="E_NANOSECONDS",
            ) from None
        except MISFITS:
            raise _unfit(number, column, value, kind) from None
    return values


def _kept_apart(values: Sequence[Any], numbers: Sequence[int], column: str, raw: bool) -> None:
    """raises DataError for a value that the partition would not give back. raw: the column holds bytes"""
    for number, value in zip(numbers, values, strict=True):
        if value is not None and (instead := _given_back(value, raw)):
            raise DataError(
                f"line {number}: {column}: {value!r:.60} cannot be kept in a column by which the table is partitioned: it"
                f" would be {instead}",
                hint=f"null, or another value; {NOTHING_WRITTEN}",
                code="E_PARTITION_VALUE",
            )


def _given_back(value: Any, raw: bool) -> str:
    """What deltalake's spelling of a partition value makes of it, "" where it is the same: -1.25 is `-1.-25`, bytes are
    `\\u0061`, and a double has all its digits in the name of a folder."""
    match value:
        case str() if raw:
            return "other bytes"
        case str() if value in NO_PARTITION:
            return "read as NULL"
        case datetime() if not _in_calendar(value):
            return "outside the years 0001 to 9999 in UTC"
        case Decimal() if value < 0 and value != value.to_integral_value():
            return "no number"
        case int() | float() if value and not 1 / _LONG < abs(value) < _LONG:
            return "too long for a folder's name"
    return ""


def _in_calendar(at: datetime) -> bool:
    """Whether its UTC day has a name; an offset may lead out of the years that Python has."""
    try:
        at.astimezone(UTC)
    except OverflowError:
        return False
    return True


def _fits(pa: Any, value: Any, kind: Any) -> bool:
    try:
        pa.array([value], kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True


def _reader(pa: Any, kind: Any) -> Read:
    """How a JSON value is read for a column of this type. Arrow itself would round, cut off or count from 1970."""
    is_a = pa.types
    plain: tuple[tuple[Callable[[Any], bool], Read], ...] = (
        (is_a.is_string, _text), (is_a.is_large_string, _text), (is_a.is_string_view, _text), (is_a.is_boolean, _truth),
        (is_a.is_integer, _whole), (is_a.is_float32, _single), (is_a.is_floating, _real), (is_a.is_decimal, _decimal),
        (is_a.is_timestamp, _time), (is_a.is_date, _day),
    )  # fmt: skip
    if read := next((read for test, read in plain if test(kind)), None):
        return read
    if is_a.is_struct(kind):
        fields = {field.name: _or_null(_reader(pa, field.type)) for field in kind}
        return lambda value: {name: fields[name](held) for name, held in _object(value).items()}
    if is_a.is_map(kind):
        key, item = _reader(pa, kind.key_type), _or_null(_reader(pa, kind.item_type))
        return lambda value: [(key(name), item(held)) for name, held in _object(value).items()]
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        element = _or_null(_reader(pa, kind.value_type))
        return lambda value: [element(held) for held in _array(value)]
    return _bytes


def _or_null(read: Read) -> Read:
    return lambda value: None if value is None else read(value)


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _array(value: Any) -> Sequence[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _text(value: Any) -> str:
    """Text as it is; an object or a list as its JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return _said(value)
    raise TypeError


def _bytes(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _whole(value: Any) -> int:
    if type(value) is int:
        return value
    # compared first: to write out 1e999999 takes all memory
    if isinstance(value, Decimal) and abs(value) < 1 << 64 and value == value.to_integral_value():
        return int(value)
    raise TypeError


def _real(value: Any) -> float | int:
    if type(value) is int:
        return value
    if not isinstance(value, Decimal):
        raise TypeError
    found = float(value)
    if not math.isfinite(found) or (not found and value):
        raise OverflowError
    return found


def _single(value: Any) -> float | int:
    found = _real(value)
    struct.pack("<f", found)  # raises where four bytes would hold infinity
    return found


def _decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if type(value) not in (int, str) or (isinstance(value, str) and "_" in value):
        raise TypeError
    found = Decimal(value)
    if not found.is_finite():
        raise ValueError
    return found


# fromisoformat cuts such digits off, wherever they stand
_FINER = re.compile(r"[.,]\d{6}0*[1-9]")


def _time(value: Any) -> datetime:
    """ISO 8601, UTC where no offset stands. A number is none: seconds, milliseconds and microseconds look alike."""
    if not isinstance(value, str):
        raise TypeError
    at = datetime.fromisoformat(value)
    if _FINER.search(value):
        raise _TooFine(value)
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _day(value: Any) -> date:
    if not isinstance(value, str):
        raise TypeError
    return date.fromisoformat(value)


def _said(value: Any) -> str:
    """A parsed value as JSON again, its numbers digit by digit."""
    try:
        return json.dumps(value)
    except TypeError:  # a Decimal somewhere in it
        return _exact(value)


def _exact(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join([f"{json.dumps(key)}: {_exact(held)}" for key, held in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([_exact(held) for held in value]) + "]"
    return json.dumps(value)


def _unfit(number: int, column: str, value: Any, kind: str) -> DataError:
    try:
        shown = repr(value) if isinstance(value, str | int) else _said(value)
    except RecursionError:
        shown = "what is nested that deeply"
    return DataError(f"line {number}: {column}: {shown:.60} is no {kind}", hint=NOTHING_WRITTEN)
