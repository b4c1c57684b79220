"""The notation of values in the files: Spark types, durations, sizes, counts, defaults. Pure.

Every function raises ValueError with the expected form; the caller adds the place.
"""

import json
import re
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from console.model.connect_address import connect_address
from console.model.fixture import Tolerance
from console.model.sandbox import MOST_HOURS
from console.model.spark_master import FORMS, spark_master
from console.project.names import Misspelt, Unfit, nearest

_SIMPLE = {
    "boolean": "boolean", "bool": "boolean", "tinyint": "tinyint", "byte": "tinyint", "smallint": "smallint",
    "short": "smallint", "int": "int", "integer": "int", "bigint": "bigint", "long": "bigint", "float": "float",
    "real": "float", "double": "double", "string": "string", "text": "string", "binary": "binary", "date": "date",
    "timestamp": "timestamp", "timestamp_ltz": "timestamp", "timestamp_ntz": "timestamp_ntz",
}  # fmt: skip
_DECIMAL = frozenset(("decimal", "dec", "numeric"))
_NESTED = frozenset(("array", "map", "struct"))
KNOWN_TYPES = tuple(sorted({*_SIMPLE.values(), "decimal", *_NESTED}))
RANGES = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}
_TOKEN = re.compile(r"\s*(`(?:[^`]|``)+`|\w+|[<>(),:])", re.ASCII)
_LEVELS = 16
_NO_TEXT = re.compile(r'-?\d+(\.\d+)?|true|false|null|".*"', re.IGNORECASE | re.DOTALL)

_DURATION = re.compile(r"([0-9]{1,9}) ?([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SIZE = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,3})?) ?(B|kB|KB|MB|GB|TB|KiB|MiB|GiB|TiB)")
_BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}  # fmt: skip
_COUNT = re.compile(r"[0-9]{1,3}(?:_[0-9]{3})+|[0-9]{1,18}")
_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,6})?) ?%")
_LITERAL = re.compile(r"'(?:[^'\\]|\\.)*'", re.DOTALL)


def master(text: str) -> str:
    """A master of Spark; "" for the default."""
    try:
        return spark_master(text).text if text else text
    except ValueError:
        raise Unfit(FORMS) from None


def remote(text: str) -> str:
    """The address of a Spark Connect server; "" for none."""
    try:
        return connect_address(text).text if text else text
    except ValueError as error:
        raise Unfit(str(error).removeprefix("expected ")) from None


def path_on_host(path: str) -> str:
    """A file on the region's host; "" for none."""
    if path and not path.startswith("/"):
        raise Unfit("an absolute path on the region's host")
    return path


def spark_type(text: str) -> str:
    """A Spark type in its normal spelling: `Array< Integer >` is `array<int>`.

    returns  lower case but for the field names of structs, without spaces
    raises   ValueError
    """
    tokens: list[str] = []
    at = 0
    while text[at:].strip():
        token = _TOKEN.match(text, at)
        if not token:
            raise ValueError(f"`{text[at:].strip()[:20]}` has no place in a type")
        tokens.append(token[1])
        at = token.end()
    tokens.append("")
    normal = _type(tokens, 0)
    if tokens[0]:
        raise ValueError(f"`{tokens[0]}` after the end of the type")
    return normal


def _take(tokens: list[str], expected: str) -> None:
    if tokens[0] != expected:
        raise ValueError(
            f"`{expected}` is missing " + (f"before `{tokens[0]}`" if tokens[0] else "at the end of the type")
        )
    tokens.pop(0)


def _type(tokens: list[str], level: int) -> str:
    if level > _LEVELS:
        raise ValueError(f"nested deeper than {_LEVELS} levels")
    word = tokens[0].lower()
    if not word:
        raise ValueError("a type is missing")
    tokens.pop(0)
    if word in _SIMPLE:
        return _SIMPLE[word]
    if word in _DECIMAL:
        return _decimal(tokens)
    if word in _NESTED:
        _take(tokens, "<")
        inner = _inner(word, tokens, level + 1)
        _take(tokens, ">")
        return f"{word}<{inner}>"
    meant = nearest(word, [*_SIMPLE, *_DECIMAL, *_NESTED])
    message = f"`{word[:40]}` is not a Spark type"
    raise Misspelt(message, meant) if meant else ValueError(f"{message}, known: {', '.join(KNOWN_TYPES)}")


def _inner(word: str, tokens: list[str], level: int) -> str:
    if word == "array":
        return _type(tokens, level)
    if word == "map":
        key = _type(tokens, level)
        if key.startswith("map<"):
            raise ValueError("the key of a map cannot be a map")
        _take(tokens, ",")
        return f"{key},{_type(tokens, level)}"
    fields: dict[str, str] = {}
    while not fields or tokens[0] == ",":
        if fields:
            tokens.pop(0)
        name = tokens.pop(0) if tokens[0] else ""
        if not re.fullmatch(r"`.+`|\w+", name):
            raise ValueError("a field of a struct is `name: type`")
        if tokens[0] == ":":
            tokens.pop(0)
        if name.lower() in (known.lower() for known in fields):
            raise ValueError(f"the field `{name.strip('`')}` occurs twice")
        fields[name] = _type(tokens, level)
    return ",".join(f"{name}:{kind}" for name, kind in fields.items())


def _decimal(tokens: list[str]) -> str:
    if tokens[0] != "(":
        return "decimal(10,0)"
    tokens.pop(0)
    numbers = [tokens.pop(0)]
    if tokens[0] == ",":
        tokens.pop(0)
        numbers.append(tokens.pop(0))
    _take(tokens, ")")
    if not all(re.fullmatch("[0-9]{1,2}", number) for number in numbers):
        raise ValueError("a decimal is `decimal(precision, scale)`")
    precision, scale = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0
    if not 1 <= precision <= 38 or scale > precision:
        raise ValueError("a decimal has precision 1 to 38 and a scale not above it")
    return f"decimal({precision},{scale})"


def seconds(value: object) -> float:
    """A duration: `30d`, `72h`, `30m`, `90s`, `2w`.

    raises  ValueError
    """
    parsed = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if not parsed:
        raise Unfit("a duration such as 30d, 72h or 30m")
    return float(int(parsed[1]) * _SECONDS[parsed[2]])


def hours(value: object) -> float:
    return seconds(value) / 3600


def lifetime(value: object) -> float:
    """Hours for which something is kept that expires by itself."""
    if not 0 < (kept := hours(value)) <= MOST_HOURS:
        raise Unfit("a time between a minute and 30d, such as 12h")
    return kept


def is_day(written: str) -> bool:
    """Whether it is a day of the calendar as `2026-12-01`."""
    try:
        return date.fromisoformat(written).isoformat() == written
    except ValueError:
        return False


def delay(value: object) -> float:
    """Seconds, at least one: nothing is quicker than the agent's own rounds."""
    if not (waited := seconds(value)):
        raise Unfit("a time of a second or more, such as 5s")
    return waited


def idle(value: object) -> float | None:
    """Seconds, at least a minute, since a start costs many seconds of processor time; None for `never`."""
    if value == "never":
        return None
    with suppress(Unfit):
        if (waited := seconds(value)) >= 60:
            return waited
    raise Unfit("never, or a time of a minute or more, such as 5m")


def portion(value: object) -> float:
    """`25%` as 0.25: a part that is neither nothing nor more than the whole."""
    written = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if not written or not 1 <= float(written[1]) <= 100:
        raise Unfit("a share from 1% to 100%, such as 25%")
    return float(written[1]) / 100


def days(value: object) -> int:
    """A duration of whole days: rows are kept or dropped by the day.

    raises  ValueError
    """
    total = seconds(value)
    if total % 86_400:
        raise Unfit("whole days, such as 30d or 72h")
    return int(total) // 86_400


def size(value: object) -> int:
    """Bytes: `20 GiB`, `500 MB`, or a number of bytes.

    raises  ValueError
    """
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**18:
        return value
    parsed = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if not parsed or not float(parsed[1]):
        raise Unfit("a size such as 20 GiB or 500 MB")
    return int(Decimal(parsed[1]) * _BYTES[parsed[2]])


def count(value: object) -> int:
    """A positive number, with or without separators: `5_000_000`.

    raises  ValueError
    """
    if isinstance(value, str) and _COUNT.fullmatch(value):
        value = int(value.replace("_", ""))
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 10**18:
        raise Unfit("a number above 0, such as 5_000_000")
    return value


def moment(value: object) -> datetime:
    """A time as `2026-11-07T12:00:00Z`, or a day, which is its midnight; without an offset it is UTC.

    returns  in UTC
    raises   ValueError
    """
    if isinstance(value, str):
        with suppress(ValueError):
            at = datetime.fromisoformat(value)
            return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    raise Unfit("a time such as 2026-11-07T12:00:00Z")


def tolerance(value: object) -> Tolerance:
    """An allowed difference of numbers: `0.1`, or `1%` of the expected one.

    raises  ValueError
    """
    if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0:
        return Tolerance(absolute=float(value))
    if isinstance(value, str) and (share := _PERCENT.fullmatch(value)):
        return Tolerance(relative=float(share[1]) / 100)
    raise Unfit("a number from 0 on, or a share such as 1%")


def rule(value: object) -> object:
    """An expectation written as a text is a SQL condition."""
    return {"sql": value} if isinstance(value, str) else value


def share(text: str) -> float:
    """`50%` as 0.5.

    raises  ValueError
    """
    written = _PERCENT.fullmatch(text.strip())
    if not written:
        raise Unfit("a share such as 50%")
    return float(written[1]) / 100


def literal(kind: str, text: str) -> str:
    """A value as written in a file, as a SQL literal of a simple type.

    kind  as `spark_type` returns it
    text  `unknown`, `0`, `2026-01-31`; a text that is a quoted SQL literal already stays as it is
    raises  ValueError where the text is not a value of that type
    """
    if kind == "string":
        if _LITERAL.fullmatch(text):
            return text
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
    if kind in ("date", "timestamp", "timestamp_ntz"):
        bare = re.sub(r"^(?:date|timestamp|timestamp_ntz) *'(.*)'$", r"\1", text.strip(), flags=re.IGNORECASE)
        check(kind, bare)
        return f"{kind.upper()} '{bare}'"
    check(kind, text)
    return text.strip().lower()


def as_text(written: str) -> str:
    """A variable's value that is written in quotes: in JSON's where it would else be taken for something else than a text."""
    return json.dumps(written, ensure_ascii=False) if _NO_TEXT.fullmatch(written) else written


def check(kind: str, text: str) -> None:
    """Refuse a text that is not a value of a simple type.

    raises  ValueError
    """
    text = text.strip()
    if kind == "string":
        return
    if kind == "boolean" and text.lower() not in ("true", "false"):
        raise Unfit("true or false")
    if kind in RANGES:
        if not re.fullmatch("[-+]?[0-9]{1,19}", text) or not -(2 ** RANGES[kind]) <= int(text) < 2 ** RANGES[kind]:
            raise Unfit(f"a whole number that fits {kind}")
    elif kind in ("float", "double") or kind.startswith("decimal"):
        _number(kind, text)
    elif kind in ("date", "timestamp", "timestamp_ntz"):
        try:
            date.fromisoformat(text) if kind == "date" else datetime.fromisoformat(text)
        except ValueError:
            example = "2026-01-31" if kind == "date" else "2026-01-31T13:00:00"
            raise Unfit(f"a {kind} such as {example}") from None
    elif kind != "boolean":
        raise ValueError(f"a {kind} cannot be written as a simple value")


def _number(kind: str, text: str) -> None:
    try:
        number = Decimal(text) if re.fullmatch("[-+.0-9eE]{1,60}", text) else None
    except InvalidOperation:
        number = None
    if number is None or abs(number.adjusted()) > 400:
        raise Unfit("a number")
    if kind.startswith("decimal"):
        precision, scale = map(int, kind[8:-1].split(","))
        places = max(0, -int(number.normalize().as_tuple().exponent))
        if places > scale or (number and number.adjusted() + 1 > precision - scale):
            raise Unfit(f"a number that fits {kind}")


def zone(value: str) -> str:
    """The name of a time zone."""
    from zoneinfo import ZoneInfo, available_timezones

    if value == "UTC":
        return value
    try:
        ZoneInfo(value)
    except (OSError, ValueError, KeyError):
        # a machine without time zone data has no zones
        if known := {name.lower(): name for name in available_timezones()}:
            meant = known.get(nearest(value, known), "Europe/Madrid")
            raise Unfit("a time zone", meant) from None
    return value
