"""Types of ClickHouse columns after a change of type or nullability, and which columns can hold the new values."""

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
    """The store's name of a generic type. null: it may be NULL"""
    word = TYPES.store_type(kind).word
    return nullable(word) if null else word


def type_after(column: StoreColumn, operation: ChangeColumn) -> str:
    """A column's type after a change; unchanged if it already holds every new value."""
    to, takes_null = operation.to, is_nullable(column.type)
    loosened = to.nullable is True and not takes_null and not never_null(column.type)
    if to.data_type is not KEPT and not TYPES.fits(column.type, to.data_type):
        return type_of(to.data_type, null=takes_null or loosened)
    return nullable(column.type) if loosened else column.type


def keeps(word: str, old: str) -> bool:
    """A column of one type holds every value of another; False for a type without a generic one."""
    new, was = TYPES.generic_type(word), TYPES.generic_type(old)
    return new is not None and was is not None and holds(new, was)


def same_family(one: str, other: str) -> bool:
    """Two types that expressions treat alike: both integers, both floats, both decimals; otherwise the same type."""
    return _family(one) == _family(other)


def too_narrow(column: StoreColumn, old: StoreColumn, operation: ChangeColumn) -> bool:
    """A column computed from one that changes: of the old type's family, without room for values of the new type."""
    to = operation.to
    if to.nullable is True and not old.nullable and not column.nullable and not never_null(column.type):
        return True
    if to.data_type is KEPT or not same_family(column.type, old.type):
        return False
    word = _plain(column.type)
    if TYPES.generic_type(word) is None and (unsigned := _UNSIGNED.fullmatch(word)):
        return int(unsigned[1]) < _BITS.get(to.data_type.name, 0)
    return not TYPES.fits(column.type, to.data_type)


def _plain(word: str) -> str:
    for wrapper in ("LowCardinality(", "Nullable("):
        if word.startswith(wrapper):
            return _plain(word[len(wrapper) : -1])
    return word


def _family(word: str) -> str:
    word = _plain(word)
    kind = TYPES.generic_type(word)
    if kind is None:
        return "integer" if _UNSIGNED.fullmatch(word) else word
    if kind.name in INTEGERS:
        return "integer"
    if kind.name in ("float32", "float64"):
        return "float"
    return "time" if kind.name in TIMES else kind.name
