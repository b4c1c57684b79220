"""NDJSON lines as rows of a table, strictly: a value that does not fit its column is refused with its line number,
never set to NULL, rounded or truncated.
"""

import json
import math
import re
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from deltalake import DeltaTable

from console.agent.ingest.shape import Place, Reading, Shape, spread
from console.errors import DataError

Read = Callable[[Any], Any]  # converts a JSON value to its column's type; raises one of MISFITS
MISFITS = (ValueError, TypeError, KeyError, ArithmeticError, RecursionError)
# Delta reads the first as NULL; the second is Hive's name for NULL, which Spark reads as NULL too.
NO_PARTITION = ("", "__HIVE_DEFAULT_PARTITION__")
_LONG = 1e200
NOTHING_WRITTEN = "all of these lines were refused; nothing was written"


class _DuplicateKey(ValueError):
    """A key that occurs twice in one object; its last value would win silently."""


class _TooFine(ValueError):
    """A time finer than a microsecond, which Delta would truncate."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        keys = [key for key, _ in pairs]
        raise _DuplicateKey(next(key for key in unique if keys.count(key) > 1))
    return unique


def _no_number(token: str) -> Any:
    raise ValueError(token)


# Fractions are kept as written: conversion to float would change them before the column's type is known.
_JSON = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_number, object_pairs_hook=_unique)


def parse_lines(
    lines: Sequence[str],
    columns: Sequence[str],
    numbers: Sequence[int] | None = None,
    *,
    shown: Sequence[str] | None = None,
    ended: Collection[str] = (),
    until: str = "",
) -> list[dict[str, Any]]:
    """NDJSON lines as objects with known keys only; numbers with a fraction or an exponent as Decimals.

    numbers  line numbers in the file; 1, 2, 3 … by default
    shown    the columns that an error lists, if not all
    ended    keys that were accepted until a day
    raises   DataError with the line's number
    """
    known = set(columns)
    rows = []
    for number, line in zip(numbers or range(1, len(lines) + 1), lines, strict=True):
        try:
            row = _JSON.decode(line)
        except _DuplicateKey as error:
            raise DataError(f"line {number}: {str(error)!r:.60} occurs twice in one object: {line[:60]!r}") from None
        except (ValueError, ArithmeticError, RecursionError):
            raise DataError(f"line {number} is not valid JSON: {line[:60]!r}") from None
        if not isinstance(row, dict):
            raise DataError(f"line {number} is not a JSON object: {line[:60]!r}")
        if unknown := [key for key in row if key not in known]:
            if unknown[0] in ended:
                raise DataError(
                    f"line {number} has the key {unknown[0]!r:.60}, which was taken until {until}; the columns are {', '.join(shown or columns)}",
                    hint="send it under its new name, or move `accepts_until:` in the table's file",
                )
            raise DataError(
                f"line {number} has the unknown key {unknown[0]!r:.60}; the columns are {', '.join(shown or columns)}",
                hint="lines are matched by column name",
            )
        rows.append(row)
    return rows


def typed(
    table: DeltaTable,
    rows: Sequence[Mapping[str, Any]],
    numbers: Sequence[int] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Any:
    """Rows as Arrow in the table's schema.

    numbers  line number of each row in the file
    labels   stored column → its name in lines, if different
    raises   DataError naming line and column of the first value that does not fit, column by column
    """
    import pyarrow as pa

    numbers, labels = numbers or range(1, len(rows) + 1), labels or {}
    schema, partitions = pa.schema(table.schema().to_arrow()), table.metadata().partition_columns
    arrays = []
    for field in schema:
        label = labels.get(field.name, field.name)
        values = _values(rows, numbers, (field.name, label), _reader(pa, field.type), str(field.type))
        if field.name in partitions:
            _check_partition(values, numbers, label, pa.types.is_binary(field.type))
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            at = next(n for n, value in enumerate(values) if not _fits(pa, value, field.type))
            raise _unfit(numbers[at], label, rows[at][field.name], str(field.type)) from None
    return pa.Table.from_arrays(arrays, schema=schema)


def spread_over(table: DeltaTable, shape: Shape) -> Place:
    """Selects, among the columns in which a name may be stored, those that store a value."""
    import pyarrow as pa

    types = {field.name: field.type for field in pa.schema(table.schema().to_arrow())}

    def reading(place: str) -> Reading:
        read, type = _reader(pa, types[place]), types[place]

        def convert(value: Any) -> Any:
            try:
                converted = read(value)
            except MISFITS:
                return None
            return converted if _fits(pa, converted, type) else None

        return Reading(convert, bool(pa.types.is_float32(type)))

    readings = {places: [reading(place) for place in places] for places in shape.stored.values() if len(places) > 1}

    def place(places: tuple[str, ...], value: Any) -> dict[str, Any]:
        takes = spread(value, readings[places])
        if not any(takes) or (shape.until and readings[places][-1].read(value) is None):
            return {places[-1]: value}  # refused there, by its type
        return {name: value for name, taken in zip(places, takes, strict=True) if taken}

    return place


def _values(
    rows: Sequence[Mapping[str, Any]], numbers: Sequence[int], names: tuple[str, str], read: Read, kind: str
) -> list[Any]:
    """names: the stored column, its name in lines"""
    stored, column = names
    values = []
    for number, row in zip(numbers, rows, strict=True):
        value = row.get(stored)
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


def _check_partition(values: Sequence[Any], numbers: Sequence[int], column: str, raw: bool) -> None:
    """raises DataError for a value that a partition would not return as written. raw: the column holds bytes"""
    for number, value in zip(numbers, values, strict=True):
        if value is not None and (instead := _changed_to(value, raw)):
            raise DataError(
                f"line {number}: {column}: {value!r:.60} cannot be stored in a partition column: it would be {instead}",
                hint=f"null, or another value; {NOTHING_WRITTEN}",
                code="E_PARTITION_VALUE",
            )


def _changed_to(value: Any, raw: bool) -> str:
    """A partition value in deltalake's encoding, "" if unchanged: -1.25 becomes `-1.-25`, bytes become
    `\\u0061`, and a double has all its digits in the folder name."""
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
    """Whether its UTC day can be named; the offset may move it outside of Python's years 1 to 9999."""
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
    """The conversion of a JSON value to this type. Arrow itself would round, truncate, or take numbers for times."""
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
        return lambda value: {name: fields[name](item_value) for name, item_value in _object(value).items()}
    if is_a.is_map(kind):
        key, item = _reader(pa, kind.key_type), _or_null(_reader(pa, kind.item_type))
        return lambda value: [(key(name), item(item_value)) for name, item_value in _object(value).items()]
    if is_a.is_list(kind) or is_a.is_large_list(kind):
        element = _or_null(_reader(pa, kind.value_type))
        return lambda value: [element(item_value) for item_value in _array(value)]
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
    """Text unchanged; an object or a list as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return _as_json(value)
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
    # compared first: converting 1e999999 would exhaust memory
    if isinstance(value, Decimal) and abs(value) < 1 << 64 and value == value.to_integral_value():
        return int(value)
    raise TypeError


def _real(value: Any) -> float | int:
    if type(value) is int:
        return value
    if not isinstance(value, Decimal):
        raise TypeError
    number = float(value)
    if not math.isfinite(number) or (not number and value):
        raise OverflowError
    return number


def _single(value: Any) -> float | int:
    number = _real(value)
    struct.pack("<f", number)  # raises if the value overflows to infinity in four bytes
    return number


def _decimal(value: Any) -> Decimal:
    if isinstance(value, Decimal):
        return value
    if type(value) not in (int, str) or (isinstance(value, str) and "_" in value):
        raise TypeError
    number = Decimal(value)
    if not number.is_finite():
        raise ValueError
    return number


# fromisoformat truncates such digits silently
_FINER = re.compile(r"[.,]\d{6}0*[1-9]")


def _time(value: Any) -> datetime:
    """ISO 8601, UTC without an offset. Numbers are refused: seconds, milliseconds and microseconds look alike."""
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


def _as_json(value: Any) -> str:
    """A parsed value as JSON again, with the digits of its numbers."""
    try:
        return json.dumps(value)
    except TypeError:  # a Decimal somewhere in it
        return _exact(value)


def _exact(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join([f"{json.dumps(key)}: {_exact(item)}" for key, item in value.items()]) + "}"
    if isinstance(value, list):
        return "[" + ", ".join([_exact(item) for item in value]) + "]"
    return json.dumps(value)


def _unfit(number: int, column: str, value: Any, kind: str) -> DataError:
    try:
        shown = repr(value) if isinstance(value, str | int) else _as_json(value)
    except RecursionError:
        shown = "a value nested that deeply"
    return DataError(f"line {number}: {column}: {shown:.60} is not a valid {kind}", hint=NOTHING_WRITTEN)
