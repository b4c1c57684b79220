"""The generic types of a column: PostgreSQL's meaning, independent of any store. Frozen values and their text.

    boolean  int16  int32  int64  float32  float64  decimal  decimal(p,s)  string  bytes  date  time  time(p)  time_tz
    timestamp  timestamp(p)  timestamp_tz  timestamp_tz(p)  interval  uuid  json  array<T>  enum<'a','b'>  text_of<inet>

`text_of<…>` is a PostgreSQL type without a counterpart in any store: its values are transferred as the text that PostgreSQL prints.
"""

import re
from dataclasses import dataclass
from typing import Final

SIMPLE: Final = (
    "boolean", "int16", "int32", "int64", "float32", "float64", "string", "bytes", "date", "interval", "uuid", "json"
)  # fmt: skip
TIMES: Final = ("time", "time_tz", "timestamp", "timestamp_tz")
INTEGERS: Final = {"int16": 15, "int32": 31, "int64": 63}
FRACTION: Final = 6  # digits of a second that PostgreSQL keeps where none are written
_LEVELS: Final = 8
_TOKEN: Final = re.compile(r"\s*(?:('(?:[^']|'')*')|([A-Za-z_]\w*)|(-?\d+)|(.))", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """One generic type.

    name      see the module
    numbers   decimal: (precision, scale), or () for one without limits; times: (digits of a second,)
    element   of an array
    labels    of an enum, in its order
    of        text_of: PostgreSQL's name of it
    """

    name: str
    numbers: tuple[int, ...] = ()
    element: "Type | None" = None
    labels: tuple[str, ...] = ()
    of: str = ""

    def __str__(self) -> str:
        if self.element is not None:
            return f"array<{self.element}>"
        if self.name == "enum":
            return "enum<" + ",".join(_quoted(label) for label in self.labels) + ">"
        if self.name == "text_of":
            return f"text_of<{_quoted(self.of)}>" if re.search(r"[^\w.]", self.of) else f"text_of<{self.of}>"
        if not self.numbers or (self.name in TIMES and self.numbers == (FRACTION,)):
            return self.name
        return f"{self.name}({','.join(map(str, self.numbers))})"


def array(element: Type) -> Type:
    return Type(name="array", element=element)


def decimal(precision: int, scale: int = 0) -> Type:
    return Type(name="decimal", numbers=(precision, scale))


def timed(name: str, digits: int = FRACTION) -> Type:
    """A time of day or a point in time; one with PostgreSQL's own six digits has no number in its text."""
    return Type(name=name, numbers=(digits,))


def parse(text: str) -> Type:
    """A generic type from its text.

    raises  ValueError saying what was expected
    """
    tokens = [match[0].strip() for match in _TOKEN.finditer(text) if match[0].strip()]
    parsed = _type(tokens, 0)
    if tokens:
        raise ValueError(f"`{tokens[0][:20]}` after the end of the type `{parsed}`")
    return parsed


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _take(tokens: list[str], expected: str) -> None:
    if not tokens or tokens[0] != expected:
        raise ValueError(f"`{expected}` is missing in the type")
    tokens.pop(0)


def _type(tokens: list[str], level: int) -> Type:
    if level > _LEVELS:
        raise ValueError(f"a type nested deeper than {_LEVELS} levels")
    name = tokens.pop(0) if tokens else ""
    if name in SIMPLE:
        return Type(name=name)
    if name in TIMES:
        digits = _numbers(tokens) or (FRACTION,)
        if len(digits) != 1 or not 0 <= digits[0] <= 6:
            raise ValueError(f"a {name} has 0 to 6 digits of a second")
        return timed(name, digits[0])
    if name == "decimal":
        numbers = _numbers(tokens)
        if numbers and (len(numbers) != 2 or not 0 <= numbers[1] <= numbers[0] <= 1000 or not numbers[0]):
            raise ValueError("a decimal is `decimal(precision,scale)`, the scale not above the precision, or `decimal`")
        return Type(name=name, numbers=numbers)
    if name not in ("array", "enum", "text_of"):
        known = ", ".join((*SIMPLE, *TIMES, "decimal", "array", "enum", "text_of"))
        raise ValueError(f"`{name[:40]}` is not a generic type; known: {known}")
    _take(tokens, "<")
    if name == "array":
        parsed = array(_type(tokens, level + 1))
    elif name == "enum":
        parsed = Type(name=name, labels=_labels(tokens))
    else:
        parsed = Type(name=name, of=_words(tokens))
    _take(tokens, ">")
    return parsed


def _numbers(tokens: list[str]) -> tuple[int, ...]:
    if not tokens or tokens[0] != "(":
        return ()
    tokens.pop(0)
    numbers: list[int] = []
    while not numbers or tokens[:1] == [","]:
        if numbers:
            tokens.pop(0)
        if not tokens or not re.fullmatch(r"-?\d{1,4}", tokens[0]):
            raise ValueError("a number is missing in the type")
        numbers.append(int(tokens.pop(0)))
    _take(tokens, ")")
    return tuple(numbers)


def _labels(tokens: list[str]) -> tuple[str, ...]:
    labels: list[str] = []
    while tokens and tokens[0] != ">":
        if labels:
            _take(tokens, ",")
        if not tokens or not tokens[0].startswith("'") or len(tokens[0]) < 2:
            raise ValueError("an enum lists its values in quotes")
        labels.append(tokens.pop(0)[1:-1].replace("''", "'"))
    return tuple(labels)


def _words(tokens: list[str]) -> str:
    if tokens and tokens[0].startswith("'") and len(tokens[0]) > 1:
        return tokens.pop(0)[1:-1].replace("''", "'")
    words = ""
    while tokens and tokens[0] != ">":
        words += tokens.pop(0)
    if not words:
        raise ValueError("text_of names a type of PostgreSQL's")
    return words
