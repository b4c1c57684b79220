"""Which ClickHouse columns take the values that a change of type or of NULL brings."""

import re
from typing import Final

from console.propagation.clickhouse.types import TYPES, is_nullable, never_null, nullable
from console.propagation.migration import KEPT, ChangeColumn
from console.propagation.tables import StoreColumn
from console.propagation.types import INTEGERS, TIMES, Type
from console.propagation.widening import holds

_BITS: Final = {"int16": 16, "int32": 32, "int64": 64}
_UNSIGNED: Final = re.compile(r"U?Int(\d+)")


def type_of(kind: Type, *, null: bool) -> str:
    """A generic type's word. null: it may be NULL"""
    word = TYPES.store_type(kind).word
    return nullable(word) if null else word


def type_after(column: StoreColumn, operation: ChangeColumn) -> str:
    """What a column's type becomes; as it is where it takes every new value already."""
    to, takes_null = operation.to, is_nullable(column.type)
    loosened = to.nullable is True and not takes_null and not never_null(column.type)
    if to.data_type is not KEPT and not TYPES.fits(column.type, to.data_type):
        return type_of(to.data_type, null=takes_null or loosened)
    return nullable(column.type) if loosened else column.type


def keeps(word: str, old: str) -> bool:
    """A column of one type holds every value of another; of a type that is not known here nobody can say."""
    new, was = TYPES.generic_type(word), TYPES.generic_type(old)
    return new is not None and was is not None and holds(new, was)


def alike(one: str, other: str) -> bool:
    """Two types that expressions treat alike: both integers, both floats, both decimals; else the same type."""
    return _family(one) == _family(other)


def cramped(column: StoreColumn, old: StoreColumn, operation: ChangeColumn) -> bool:
    """A column computed from one that changes, of a type like the old one's, which does not hold what is like the new one's."""
    to = operation.to
    if to.nullable is True and not old.nullable and not column.nullable and not never_null(column.type):
        return True
    if to.data_type is KEPT or not alike(column.type, old.type):
        return False
    word = _plain(column.type)
    if TYPES.generic_type(word) is None and (found := _UNSIGNED.fullmatch(word)):
        return int(found[1]) < _BITS.get(to.data_type.name, 0)
    return not TYPES.fits(column.type, to.data_type)


def _plain(word: str) -> str:
    for wrapper in ("LowCardinality(", "Nullable("):
        if word.startswith(wrapper):
            return _plain(word[len(wrapper) : -1])
    return word


def _family(word: str) -> str:
    word = _plain(word)
    found = TYPES.generic_type(word)
    if found is None:
        return "integer" if _UNSIGNED.fullmatch(word) else word
    if found.name in INTEGERS:
        return "integer"
    if found.name in ("float32", "float64"):
        return "float"
    return "time" if found.name in TIMES else found.name
