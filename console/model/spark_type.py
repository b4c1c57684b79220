"""Spark types as values, parsed from text such as `array<struct<a:int>>`."""

from dataclasses import field

from console.errors import DataError
from console.record import dataclass


@dataclass(frozen=True, slots=True)
class SparkType:
    """A type by name; nested ones have inner types, and a struct the names of its fields."""

    name: str
    inner: tuple["SparkType", ...] = ()
    fields: tuple[str, ...] = ()
    scale: tuple[int, int] = field(default=(10, 0))


_PLAIN = {
    "tinyint", "smallint", "int", "bigint", "float", "double", "string", "boolean", "date", "timestamp",
    "timestamp_ntz", "binary",
}  # fmt: skip
_ALSO = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "bool": "boolean",
    "timestamp_ltz": "timestamp", "timestampntz": "timestamp_ntz", "dec": "decimal", "numeric": "decimal",
}  # fmt: skip


def parse_type(text: str) -> SparkType:
    """raises  DataError if no rows of this type can be made"""
    normal = " ".join(text.lower().split())
    head, _, rest = normal.partition("<")
    head = head.strip()
    if rest and normal.endswith(">"):
        parts = _split(rest[:-1])
        if head == "array" and len(parts) == 1:
            return SparkType("array", (parse_type(parts[0]),))
        if head == "map" and len(parts) == 2:
            return SparkType("map", (parse_type(parts[0]), parse_type(parts[1])))
        if head == "struct":
            named = [_field(part) for part in parts]
            return SparkType("struct", tuple(parse_type(of) for _, of in named), tuple(name for name, _ in named))
    base, _, arguments = normal.partition("(")
    base = _ALSO.get(base.strip(), base.strip())
    if base == "decimal":
        digits = [int(part) for part in arguments.rstrip(") ").split(",") if part.strip().isdigit()]
        return SparkType("decimal", scale=(digits[0] if digits else 10, digits[1] if len(digits) > 1 else 0))
    if base in ("varchar", "char"):
        return SparkType("string")
    if base in _PLAIN:
        return SparkType(base)
    raise DataError(f"no rows can be made for the type {text}", hint="leave the column out of the query", code="E_KIND")


def _field(text: str) -> tuple[str, str]:
    cut = min((at for at in (text.find(":"), text.find(" ")) if at > 0), default=-1)
    return (text[:cut].strip("` "), text[cut + 1 :].strip()) if cut > 0 else (text, "")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()]
