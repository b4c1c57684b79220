"""The generic types as ClickHouse types, and back.

source  ClickHouse's documentation of its types
"""

import re
from typing import Final

from console.propagation.store_types import AS_TEXT, NO_INFINITY, NO_NAN, StoreType, StoreTypes
from console.propagation.types import Type, array, decimal, timed

_CENTURIES: Final = ("only the years 1900 to 2299", *NO_INFINITY)
_READ: Final = {
    "Bool": "boolean", "Int16": "int16", "Int32": "int32", "Int64": "int64", "Float32": "float32",
    "Float64": "float64", "String": "string", "Date32": "date", "UUID": "uuid",
}  # fmt: skip
_WRAPPERS: Final = ("LowCardinality(", "Nullable(")


def nullable(word: str) -> str:
    """A type that may be NULL; an array cannot be."""
    if never_null(word):
        return word
    if word.startswith("LowCardinality("):
        return f"LowCardinality(Nullable({word[15:-1]}))"
    return f"Nullable({word})"


def is_nullable(word: str) -> bool:
    """Whether a type takes NULL."""
    return word.removeprefix("LowCardinality(").startswith("Nullable(")


def never_null(word: str) -> bool:
    return word.startswith("Array(")


def _read(word: str) -> Type | None:
    for wrapper in _WRAPPERS:
        if word.startswith(wrapper):
            return _read(word[len(wrapper) : -1].strip())
    if word in _READ:
        return Type(name=_READ[word])
    if word.startswith("Array("):
        element = _read(word[6:-1].strip())
        return array(element) if element else None
    if match := re.fullmatch(r"Decimal\((\d+)(?:, *(\d+))?\)", word):
        return decimal(int(match[1]), int(match[2] or 0))
    if match := re.fullmatch(r"DateTime64\((\d)(?:, *'[^']*')?\)", word):
        return timed("timestamp", int(match[1]))
    if re.match(r"Enum(8|16)\(", word):
        labels = re.findall(r"'((?:[^'\\]|\\.|'')*)' *=", word)
        return Type(name="enum", labels=tuple(label.replace("\\'", "'").replace("''", "'") for label in labels))
    return None


TYPES: Final = StoreTypes(
    words={
        "boolean": StoreType("Bool"),
        "int16": StoreType("Int16"),
        "int32": StoreType("Int32"),
        "int64": StoreType("Int64"),
        "float32": StoreType("Float32"),
        "float64": StoreType("Float64"),
        "decimal(p,s)": StoreType("Decimal({})", NO_NAN),
        "decimal": StoreType("String", AS_TEXT),
        "string": StoreType("String"),
        "bytes": StoreType("String"),
        "date": StoreType("Date32", _CENTURIES),
        "time": StoreType("String", AS_TEXT),
        "time_tz": StoreType("String", AS_TEXT),
        "timestamp": StoreType("DateTime64({}, 'UTC')", _CENTURIES),
        "timestamp_tz": StoreType("DateTime64({}, 'UTC')", _CENTURIES),
        "interval": StoreType("String", AS_TEXT),
        "uuid": StoreType("UUID"),
        "json": StoreType("String"),
        "array": StoreType("Array({})", ("an array that is NULL becomes the empty one",)),
        "enum": StoreType("LowCardinality(String)"),
        "text_of": StoreType("String", AS_TEXT),
    },
    digits=76,
    separator=", ",
    read=_read,
    nullable=nullable,
    never_null=never_null,
)
