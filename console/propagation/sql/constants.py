"""Constants as PostgreSQL prints them as values of a type, where that is certain without a server.

What depends on a session (its time zone, its locale) or on rules that are not written down here is not certain.

source  PostgreSQL 15 documentation, chapter 8 (input and output of each type)
"""

import ipaddress
import json
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from console.propagation.sql.postgres import PRINTED, WrittenType
from console.propagation.types import INTEGERS, TIMES, Type, timed

EMPTY: Final = "[]"
NUMBER: Final = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,4})?", re.ASCII)
_DIGITS: Final = 1100  # more than any numeric that a column can be declared with
_ROUNDS: Final = re.compile(r"^numeric\(\d+, ?-(\d+)\)")  # to tens, hundreds and so on
_LAST_OID: Final = 2**32 - 1
_TRUE: Final = ("t", "true", "y", "yes", "on", "1")
_FALSE: Final = ("f", "false", "n", "no", "off", "0")
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CLOCK: Final = re.compile(r"(\d\d:\d\d)(:\d\d)?(?:\.(\d{1,6}))?(Z|[+-]\d\d(?::?\d\d)?)?", re.ASCII)


def printed(written: WrittenType, text: str) -> str | None:
    """A constant's text as PostgreSQL prints the value; `[]` for an empty array; None if only PostgreSQL knows.

    written  the type; without PostgreSQL's name of it, only the generic type counts
    """
    kind, bare = written.type, text.strip(" \t\r\n")
    if kind.name == "string":
        return _string(written.postgres, text)
    if kind.name == "decimal":
        return _decimal(written, bare)
    if kind.name in INTEGERS:
        return _integer(written, bare)
    if kind.name in TIMES:
        return _moment(kind, bare)
    if kind.name == "text_of":
        return _text_of(written, text)
    return _READERS[kind.name](written, bare if kind.name != "enum" else text)


def plain(number: str) -> str | None:
    """A number as PostgreSQL prints a numeric: no exponent, no zeros in front."""
    if not NUMBER.fullmatch(number):
        return None
    value = Decimal(number)
    if abs(value.adjusted()) > _DIGITS:
        return None
    return f"{value if value else abs(value):f}"  # a numeric has no negative zero


def _integer(written: WrittenType, bare: str) -> str | None:
    if not re.fullmatch(r"[+-]?\d{1,30}", bare, re.ASCII):
        return None
    bound, value = 2 ** INTEGERS[written.type.name], int(bare)
    if written.postgres == "oid" and not 0 <= value <= _LAST_OID:
        return None  # a negative one counts from the end
    return str(value) if -bound <= value < bound else None


def _decimal(written: WrittenType, bare: str) -> str | None:
    digits, kind = plain(bare), written.type
    if digits is None or not kind.numbers:
        return digits
    if (rounds := _ROUNDS.search(written.postgres)) and int(Decimal(digits)) % 10 ** int(rounds[1]):
        return None
    whole, _, fraction = digits.lstrip("-").partition(".")
    fits = len(fraction.rstrip("0")) <= kind.numbers[1] and len(whole.lstrip("0")) <= kind.numbers[0] - kind.numbers[1]
    return digits if fits else None


def _boolean(_: WrittenType, bare: str) -> str | None:
    return "true" if bare.lower() in _TRUE else "false" if bare.lower() in _FALSE else None


def _float(_: WrittenType, bare: str) -> str | None:
    if not NUMBER.fullmatch(bare):
        return None
    return plain(bare) if re.match(r"[+-]?0\d", bare) else bare.removeprefix("+")


def _string(postgres: str, text: str) -> str | None:
    length = re.search(r"\((\d+)\)$", postgres)
    longest = int(length[1]) if length else {"name": 63, '"char"': 1}.get(postgres, len(text))
    if len(text if length else text.encode()) > longest and (length or postgres in ("name", '"char"')):
        return None
    return text.ljust(longest) if postgres.startswith("character(") else text


def _json(written: WrittenType, text: str) -> str | None:
    if written.postgres != "jsonb":
        return text
    try:
        return _as_jsonb(json.loads(text, parse_float=_refuse, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None


def _refuse(number: str) -> Any:
    raise ValueError(number)


def _as_jsonb(value: Any) -> str:
    """Keys by length, then by their bytes; a blank behind each comma and colon."""
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: (len(key.encode()), key.encode()))
        return "{" + ", ".join(f"{_as_jsonb(key)}: {_as_jsonb(value[key])}" for key in keys) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_as_jsonb, value)) + "]"
    if isinstance(value, str) and "\0" in value:
        raise ValueError("PostgreSQL takes no NUL in jsonb")
    return json.dumps(value, ensure_ascii=False)


def _date(_: WrittenType, bare: str) -> str | None:
    """Without the time of day and its offset, which PostgreSQL ignores."""
    moment = _moment(timed("timestamp"), bare)
    return moment and moment[:10]


def _moment(kind: Type, bare: str) -> str | None:
    day, clock = "", bare
    if kind.name.startswith("timestamp"):
        day, clock = bare[:10], bare[11:] or "00:00:00"
        if not _DATE.fullmatch(day) or bare[10:11] not in ("", " ", "T"):
            return None
    match = _CLOCK.fullmatch(clock)
    if match is None or (match[3] and not match[2]):
        return None
    fraction, zone = (match[3] or "").rstrip("0"), match[4] or ""
    if not kind.name.endswith("_tz"):
        zone = ""  # PostgreSQL ignores an offset here
    elif not zone:
        return None  # the session's own zone decides
    if len(fraction) > kind.numbers[0]:
        return None
    time = f"{match[1]}{match[2] or ':00'}{'.' + fraction if fraction else ''}{'+00' if zone == 'Z' else zone}"
    return f"{day} {time}".strip() if _there(f"{day or '2000-01-01'} {match[1]}{match[2] or ''}") else None


def _there(moment: str) -> bool:
    try:
        datetime.fromisoformat(moment)
    except ValueError:
        return False
    return True


def _text_of(written: WrittenType, text: str) -> str | None:
    """Text of a type that no file defines is kept, with a warning; PostgreSQL's own types print in their own way."""
    if not written.postgres or written.type.of not in PRINTED:
        return text
    if written.type.of != "inet":
        return None
    try:
        return text if str(ipaddress.ip_address(text)) == text else None
    except ValueError:
        return None


_READERS: Final[dict[str, Callable[[WrittenType, str], str | None]]] = {
    "boolean": _boolean,
    "float32": _float,
    "float64": _float,
    "array": lambda _, bare: EMPTY if re.fullmatch(r"\{\s*\}", bare) or bare == EMPTY else None,
    "bytes": lambda _, bare: "" if bare in ("", "\\x") else None,
    "interval": lambda _, bare: None,
    "uuid": lambda _, bare: bare.lower() if _UUID.fullmatch(bare) else None,
    "date": _date,
    "json": _json,
    "enum": lambda written, text: text if text in written.type.labels or not written.type.labels else None,
}
