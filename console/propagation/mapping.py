"""Every generic type in every store's words, what is lost on the way, and back again. `docs/types.md` is made from it.

source  ClickHouse, Iceberg (format v2) and Delta documentation of their types
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

from console.propagation.replication import Kind
from console.propagation.types import FRACTION, Type, array, decimal, timed
from console.propagation.widening import holds

AS_TEXT: Final = "kept as the text that PostgreSQL prints"
_NO_INFINITY: Final = "infinity has no place"
_CENTURIES: Final = "only the years 1900 to 2299; infinity has no place"
_NO_NAN: Final = "NaN has no place"
_NULL_ARRAY: Final = "an array that is NULL becomes the empty one"
DIGITS: Final = {"clickhouse": 76, "iceberg": 38, "delta": 38}


@dataclass(frozen=True, slots=True)
class Mapped:
    """A type in a store's words.

    lossy  what does not survive, or ""
    """

    type: str
    lossy: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One generic type: its words in ClickHouse, Iceberg and Delta, `{}` for numbers, and what each loses."""

    clickhouse: str
    iceberg: str
    delta: str
    lost: tuple[str, str, str] = ("", "", "")


ROWS: Final[dict[str, Row]] = {
    "boolean": Row("Bool", "boolean", "boolean"),
    "int16": Row("Int16", "int", "smallint"),
    "int32": Row("Int32", "int", "int"),
    "int64": Row("Int64", "long", "bigint"),
    "float32": Row("Float32", "float", "float"),
    "float64": Row("Float64", "double", "double"),
    "decimal(p,s)": Row("Decimal({})", "decimal({})", "decimal({})", (_NO_NAN, _NO_NAN, _NO_NAN)),
    "decimal": Row("String", "string", "string", (AS_TEXT, AS_TEXT, AS_TEXT)),
    "string": Row("String", "string", "string"),
    "bytes": Row("String", "binary", "binary"),
    "date": Row("Date32", "date", "date", (_CENTURIES, _NO_INFINITY, _NO_INFINITY)),
    "time": Row("String", "time", "string", (AS_TEXT, "24:00:00 has no place", AS_TEXT)),
    "time_tz": Row("String", "string", "string", (AS_TEXT, AS_TEXT, AS_TEXT)),
    "timestamp": Row("DateTime64({}, 'UTC')", "timestamp", "timestamp_ntz", (_CENTURIES, _NO_INFINITY, _NO_INFINITY)),
    "timestamp_tz": Row("DateTime64({}, 'UTC')", "timestamptz", "timestamp", (_CENTURIES, _NO_INFINITY, _NO_INFINITY)),
    "interval": Row("String", "string", "string", (AS_TEXT, AS_TEXT, AS_TEXT)),
    "uuid": Row("UUID", "string", "string"),
    "json": Row("String", "string", "string"),
    "array": Row("Array({})", "list<{}>", "array<{}>", (_NULL_ARRAY, "", "")),
    "enum": Row("LowCardinality(String)", "string", "string"),
    "text_of": Row("String", "string", "string", (AS_TEXT, AS_TEXT, AS_TEXT)),
}  # fmt: skip
_COLUMN: Final[dict[Kind, int]] = {"clickhouse": 0, "iceberg": 1, "delta": 2}


@cache
def mapped(kind: Type, store: Kind) -> Mapped:
    """A generic type in a store's words, nullability left out."""
    row = ROWS["decimal(p,s)" if kind.name == "decimal" and _fits(kind, store) else kind.name]
    word = (row.clickhouse, row.iceberg, row.delta)[_COLUMN[store]]
    lost = row.lost[_COLUMN[store]]
    if kind.element is not None:
        inner = mapped(kind.element, store)
        element = nullable_in_clickhouse(inner.type) if store == "clickhouse" else inner.type
        return Mapped(word.format(element), "; ".join(part for part in (lost, inner.lossy) if part))
    numbers = (", " if store == "clickhouse" else ",").join(map(str, kind.numbers))
    return Mapped(word.format(numbers), lost)


def _fits(kind: Type, store: Kind) -> bool:
    return bool(kind.numbers) and kind.numbers[0] <= DIGITS[store]


def nullable_in_clickhouse(word: str) -> str:
    """A type that may be NULL, in ClickHouse's words; an array cannot be."""
    if word.startswith("Array("):
        return word
    if word.startswith("LowCardinality("):
        return f"LowCardinality(Nullable({word[15:-1]}))"
    return f"Nullable({word})"


def meaning(word: str, store: Kind) -> Type | None:
    """What a store's type holds, nullability left out; None for one that nothing here is mapped to."""
    return _READERS[store](word.strip())


@cache
def fits(word: str, kind: Type, store: Kind) -> bool:
    """A column of this type in a store holds every value of a generic type."""
    actual, expected = meaning(word, store), meaning(mapped(kind, store).type, store)
    if actual is None or expected is None:
        return False
    if actual.name == kind.name == "enum":
        return holds(actual, kind)  # ClickHouse has enums too, though none is made for one
    if actual.element is not None and kind.element is not None and actual.element.name == "enum":
        return holds(actual, kind)
    if actual.name == "string" and expected.name != "string":
        return expected.name in ("uuid", "enum")
    return actual == expected or holds(actual, expected)


def is_nullable(word: str) -> bool:
    """Whether a ClickHouse type takes NULL."""
    return word.removeprefix("LowCardinality(").startswith("Nullable(")


_CLICKHOUSE: Final = {
    "Bool": "boolean", "Int16": "int16", "Int32": "int32", "Int64": "int64", "Float32": "float32",
    "Float64": "float64", "String": "string", "Date32": "date", "UUID": "uuid",
}  # fmt: skip
_ICEBERG: Final = {
    "boolean": "boolean", "int": "int32", "long": "int64", "float": "float32", "double": "float64", "string": "string",
    "binary": "bytes", "date": "date", "uuid": "uuid",
}  # fmt: skip
_DELTA: Final = {
    "boolean": "boolean", "byte": "int16", "tinyint": "int16", "short": "int16", "smallint": "int16", "int": "int32",
    "integer": "int32", "long": "int64", "bigint": "int64", "float": "float32", "double": "float64",
    "string": "string", "binary": "bytes", "date": "date",
}  # fmt: skip
_MOMENTS: Final[dict[Kind, dict[str, str]]] = {
    "clickhouse": {},
    "iceberg": {"time": "time", "timestamp": "timestamp", "timestamptz": "timestamp_tz"},
    "delta": {"timestamp": "timestamp_tz", "timestamp_ntz": "timestamp"},
}


def _read_clickhouse(word: str) -> Type | None:
    for wrapper in ("LowCardinality(", "Nullable("):
        if word.startswith(wrapper):
            return _read_clickhouse(word[len(wrapper) : -1].strip())
    if word in _CLICKHOUSE:
        return Type(_CLICKHOUSE[word])
    if word.startswith("Array("):
        inner = _read_clickhouse(word[6:-1].strip())
        return array(inner) if inner else None
    if found := re.fullmatch(r"Decimal\((\d+)(?:, *(\d+))?\)", word):
        return decimal(int(found[1]), int(found[2] or 0))
    if found := re.fullmatch(r"DateTime64\((\d)(?:, *'[^']*')?\)", word):
        return timed("timestamp", int(found[1]))
    if re.match(r"Enum(8|16)\(", word):
        labels = re.findall(r"'((?:[^'\\]|\\.|'')*)' *=", word)
        return Type("enum", labels=tuple(label.replace("\\'", "'").replace("''", "'") for label in labels))
    return None


def _read_lake(word: str, store: Kind) -> Type | None:
    word = word.lower()
    simple = _ICEBERG if store == "iceberg" else _DELTA
    if word in simple:
        return Type(simple[word])
    if word in _MOMENTS[store]:
        return timed(_MOMENTS[store][word], FRACTION)
    if found := re.fullmatch(r"decimal\((\d+) *, *(\d+)\)", word):
        return decimal(int(found[1]), int(found[2]))
    if found := re.fullmatch(r"(?:list|array)<(.*)>", word):
        inner = _read_lake(found[1].strip(), store)
        return array(inner) if inner else None
    return None


_READERS: Final[dict[Kind, Callable[[str], Type | None]]] = {
    "clickhouse": _read_clickhouse,
    "iceberg": lambda word: _read_lake(word, "iceberg"),
    "delta": lambda word: _read_lake(word, "delta"),
}
