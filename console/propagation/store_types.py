"""Generic types as a store's types, with the losses of the conversion, and back. `docs/types.md` is generated from them."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from console.propagation.types import FRACTION, Type, array, decimal, timed
from console.propagation.widening import holds

AS_TEXT: Final = ("kept as the text that PostgreSQL prints",)
NO_INFINITY: Final = ("infinity has no place",)
NO_NAN: Final = ("NaN has no place",)
_LAKE_DECIMAL: Final = re.compile(r"decimal\((\d+) *, *(\d+)\)")
_LAKE_ARRAY: Final = re.compile(r"(?:list|array)<(.*)>")


@dataclass(frozen=True, slots=True)
class StoreType:
    """A store's type.

    word    in a table of types with `{}` for the numbers or the element
    losses  what does not survive
    """

    word: str
    losses: tuple[str, ...] = ()


def _same(word: str) -> str:
    return word


def _never(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StoreTypes:
    """The types of one store.

    words        generic type → its word; `decimal` without digits is the one beyond `digits`
    digits       the most that a decimal has
    separator    between the numbers of a type
    read         word → generic type, nullability left out; None for a word that no generic type is mapped to
    nullable     word → the word for the same type with NULL; the word itself where nullability is not part of a type
    never_null   a column of this word cannot be NULL at all
    """

    words: Mapping[str, StoreType]
    digits: int
    separator: str
    read: Callable[[str], Type | None]
    nullable: Callable[[str], str] = _same
    never_null: Callable[[str], bool] = _never

    def store_type(self, kind: Type) -> StoreType:
        """A generic type in this store's words, nullability left out."""
        return _store_type(self, kind)

    def generic_type(self, word: str) -> Type | None:
        """The generic type that a word holds, nullability left out; None for one that no generic type is mapped to."""
        return self.read(word.strip())

    def fits(self, word: str, kind: Type) -> bool:
        """A column of this word holds every value of a generic type."""
        return _fits(self, word, kind)


@cache
def _store_type(types: StoreTypes, kind: Type) -> StoreType:
    exact = kind.name == "decimal" and bool(kind.numbers) and kind.numbers[0] <= types.digits
    there = types.words["decimal(p,s)" if exact else kind.name]
    if kind.element is not None:
        inner = _store_type(types, kind.element)
        losses = tuple(dict.fromkeys((*there.losses, *inner.losses)))
        return StoreType(there.word.format(types.nullable(inner.word)), losses)
    return StoreType(there.word.format(types.separator.join(map(str, kind.numbers))), there.losses)


@cache
def _fits(types: StoreTypes, word: str, kind: Type) -> bool:
    actual, expected = types.generic_type(word), types.generic_type(_store_type(types, kind).word)
    if actual is None or expected is None:
        return False
    if actual.name == kind.name == "enum":
        return holds(actual, kind)  # ClickHouse has enums too, though none is made for one
    if actual.element is not None and kind.element is not None and actual.element.name == "enum":
        return holds(actual, kind)
    if actual.name == "string" and expected.name != "string":
        return expected.name in ("uuid", "enum")
    return actual == expected or holds(actual, expected)


def lake_reader(simple: Mapping[str, str], times: Mapping[str, str]) -> Callable[[str], Type | None]:
    """The parser of Iceberg's and Delta's type names.

    simple  word → generic type;  times  the same for those with fractions of a second
    """

    def read(word: str) -> Type | None:
        word = word.lower()
        if word in simple:
            return Type(name=simple[word])
        if word in times:
            return timed(times[word], FRACTION)
        if match := _LAKE_DECIMAL.fullmatch(word):
            return decimal(int(match[1]), int(match[2]))
        if match := _LAKE_ARRAY.fullmatch(word):
            element = read(match[1].strip())
            return array(element) if element else None
        return None

    return read
