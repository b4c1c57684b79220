"""The effect of a type change on values: one table for all pairs of types, as Spark's CAST converts them."""

from functools import lru_cache
from typing import Literal

from sqlglot import exp
from sqlglot.errors import SqlglotError

from console.planning.sql.syntax.argument import INTEGERS, decimal
from console.planning.sql.tree import DIALECT

# from lossless to lossy
Kept = Literal["same", "wider", "whole", "may fail", "cut"]
_ORDER: tuple[Kept, ...] = ("same", "wider", "whole", "may fail", "cut")
_DIGITS = dict(zip(INTEGERS, (3, 5, 10, 19), strict=True))  # digits that an integer type may need
_FITS = dict(zip(INTEGERS, (2, 4, 9, 18), strict=True))  # digits that a type always holds
_FLOATS = {"float": 7, "double": 15}  # digits of a whole number that survive a round trip
_EXACT = {"float": ("tinyint", "smallint"), "double": ("tinyint", "smallint", "int")}
_TIMES = ("timestamp", "timestamp_ntz")
_TO_TEXT = ("boolean", *INTEGERS, "float", "double", "date", *_TIMES)
_NESTED = (exp.DataType.Type.ARRAY, exp.DataType.Type.MAP, exp.DataType.Type.STRUCT)


@lru_cache(maxsize=4096)
def kept(old: str, new: str) -> Kept:
    """The effect of a type change on values.

    old, new  as `tree.kind` spells types
    returns   same, or wider: each value is the same number, also if the stored one is cast at read; whole: each value
              converts without loss; may fail: a value that does not convert stops its batch; cut: values are truncated
              without an error, as a double's digits in a cast to int
    """
    if old == new:
        return "same"
    try:
        was, now = (exp.DataType.build(type, dialect=DIALECT) for type in (old, new))
    except SqlglotError:  # a type that sqlglot writes but cannot parse, such as an interval
        return "may fail"
    if was.this in _NESTED and was.this == now.this:
        return _nested(was, now)
    if new == "string" or (old, new) == ("string", "binary"):
        return "whole"
    if _is_number(old):
        return _number(old, new)
    if old in _TIMES and new == "date":
        return "cut"
    if old == "timestamp" and _is_number(new):  # seconds, which only a decimal with six places keeps completely
        return "may fail" if new.startswith("decimal") and decimal(new)[1] >= 6 else "cut"
    return "whole" if old == "date" and new in _TIMES else "may fail"


def read_wider(old: str, new: str) -> bool:
    """Whether each value has one representation in the new type, so that a read may show values of both types in one column."""
    if kept(old, new) == "wider":
        return True
    if new == "string":
        return old in _TO_TEXT or old.startswith("decimal")
    return old == "date" and new in _TIMES


def _is_number(type: str) -> bool:
    return type in INTEGERS or type in _FLOATS or type.startswith("decimal")


def _number(old: str, new: str) -> Kept:
    if new == "boolean":
        return "cut"
    if not _is_number(new):
        return "may fail"
    if new in _FLOATS:
        return _as_float(old, new)
    if old in _FLOATS:
        return "cut"
    if old in INTEGERS and new in INTEGERS:
        return "wider" if INTEGERS.index(old) < INTEGERS.index(new) else "may fail"
    digits, places = (_DIGITS[old], 0) if old in INTEGERS else decimal(old)
    if new in INTEGERS:
        return "cut" if places else "wider" if digits <= _FITS[new] else "may fail"
    room, kept_places = decimal(new)
    if kept_places < places:
        return "cut"
    return "wider" if room - kept_places >= digits - places else "may fail"


def _as_float(old: str, new: str) -> Kept:
    if old in _FLOATS:
        return "wider" if new == "double" else "cut"
    if old in INTEGERS:
        return "wider" if old in _EXACT[new] else "cut"
    digits, places = decimal(old)
    return "cut" if places or digits > _FLOATS[new] else "wider"


def _nested(old: exp.DataType, new: exp.DataType) -> Kept:
    """By elements, keys and values, or fields of the same name; a removed field loses its values."""
    if old.this == exp.DataType.Type.STRUCT:
        kinds = {part.name.lower(): part.args["kind"] for part in new.expressions}
        pairs = [(part.args["kind"], kinds.get(part.name.lower())) for part in old.expressions]
    else:
        pairs = list(zip(old.expressions, new.expressions, strict=True))
    parts = [kept(_spelled(a), _spelled(b)) if b is not None else "cut" for a, b in pairs]
    return max([*parts, "whole"], key=_ORDER.index)


def _spelled(type: exp.Expr) -> str:
    return type.sql(DIALECT).lower().replace(" ", "")
