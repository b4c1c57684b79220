"""The generic types that hold every value of another."""

from typing import Final

from console.propagation.types import INTEGERS, TIMES, Type

_DIGITS: Final = {"int16": 5, "int32": 10, "int64": 19}
_MANTISSA: Final = {"float32": 24, "float64": 53}
# PostgreSQL and every store print these the same way, so their texts are equal
_SAME_TEXT: Final = ("int16", "int32", "int64", "uuid", "enum", "text_of")


def holds(wide: Type, narrow: Type) -> bool:
    """Every value of `narrow` is one of `wide`, and a store converts it without help."""
    if narrow == wide:
        return True
    if wide.element is not None and narrow.element is not None:
        return holds(wide.element, narrow.element)
    if narrow.name in INTEGERS:
        return _holds_integer(wide, narrow.name)
    if narrow.name == "float32" and wide.name == "float64":
        return True
    if narrow.name == wide.name == "decimal":
        return not wide.numbers or (bool(narrow.numbers) and _whole(wide) >= _whole(narrow) and _scale(wide, narrow))
    if narrow.name in TIMES:
        return wide.name == narrow.name and wide.numbers >= narrow.numbers
    if narrow.name == "date":
        return wide.name == "timestamp"
    if narrow.name == wide.name == "enum":
        return set(narrow.labels) <= set(wide.labels)
    return wide.name == "string" and narrow.name in _SAME_TEXT


def _holds_integer(wide: Type, narrow: str) -> bool:
    if wide.name in INTEGERS:
        return INTEGERS[wide.name] >= INTEGERS[narrow]
    if wide.name in _MANTISSA:
        return _MANTISSA[wide.name] >= INTEGERS[narrow]
    if wide.name == "decimal":
        return not wide.numbers or _whole(wide) >= _DIGITS[narrow]
    return wide.name == "string"


def _whole(kind: Type) -> int:
    return kind.numbers[0] - kind.numbers[1]


def _scale(wide: Type, narrow: Type) -> bool:
    return wide.numbers[1] >= narrow.numbers[1]
