"""PostgreSQL's types, read from a column's definition.

source  PostgreSQL 15 documentation, chapter 8
"""

from dataclasses import dataclass, field
from typing import Final

from console.propagation.sql.cursor import Cursor, Name
from console.propagation.types import FRACTION, Type, array, decimal, timed

# PostgreSQL's spellings → (its own full name, the generic type)
PLAIN: Final[dict[str, tuple[str, Type]]] = {
    name: (full, Type(generic))
    for full, generic, names in (
        ("boolean", "boolean", ("boolean", "bool")),
        ("smallint", "int16", ("smallint", "int2")),
        ("integer", "int32", ("integer", "int", "int4")),
        ("bigint", "int64", ("bigint", "int8")),
        ("oid", "int64", ("oid",)),
        ("real", "float32", ("real", "float4")),
        ("double precision", "float64", ("float8",)),
        ("text", "string", ("text",)),
        ("name", "string", ("name",)),
        ("citext", "string", ("citext",)),
        ("bytea", "bytes", ("bytea",)),
        ("date", "date", ("date",)),
        ("uuid", "uuid", ("uuid",)),
        ("json", "json", ("json",)),
        ("jsonb", "json", ("jsonb",)),
    )
    for name in names
}
SERIAL: Final = {
    "smallserial": "smallint", "serial2": "smallint", "serial": "integer", "serial4": "integer",
    "bigserial": "bigint", "serial8": "bigint",
}  # fmt: skip
# types whose values travel as the text that PostgreSQL prints
PRINTED: Final = (
    "bit", "bit varying", "box", "cidr", "circle", "datemultirange", "daterange", "inet", "int4multirange",
    "int4range", "int8multirange", "int8range", "jsonpath", "line", "lseg", "macaddr", "macaddr8", "money",
    "nummultirange", "numrange", "path", "pg_lsn", "point", "polygon", "tsmultirange", "tsquery", "tsrange",
    "tstzmultirange", "tstzrange", "tsvector", "xml",
)  # fmt: skip
_TIMES: Final = {"time": "time", "timetz": "time_tz", "timestamp": "timestamp", "timestamptz": "timestamp_tz"}
_FIELDS: Final = ("year", "month", "day", "hour", "minute", "second", "to")


@dataclass(frozen=True, slots=True)
class Written:
    """A type as a definition has it.

    postgres  PostgreSQL's own full spelling
    serial    an integer with a sequence behind it
    required  a domain that forbids NULL
    unknown   a type that nothing read so far defines: its values are taken as text
    """

    postgres: str
    type: Type
    serial: bool = False
    required: bool = False
    unknown: bool = False


@dataclass
class UserTypes:
    """Enums, domains and others that the files define; filled in while they are read."""

    found: dict[Name, Written] = field(default_factory=dict)

    def find(self, name: Name, schema: str) -> Written | None:
        """A type by its name; one written without a schema is looked for in the current one, then anywhere."""
        if name[0]:
            return self.found.get(name)
        here = self.found.get((schema, name[1]))
        others = [written for known, written in self.found.items() if known[1] == name[1]]
        return here or (others[0] if len(others) == 1 else None)


def read_type(cursor: Cursor, types: UserTypes, schema: str) -> Written:
    """The type that is next, arrays included.

    raises  NotUnderstood
    """
    written = _element(cursor, types, schema)
    dimensions = 0
    if cursor.take("array"):
        dimensions = 1
        if cursor.take("["):
            cursor.number()
            cursor.expect("]")
    while cursor.take("["):
        if not cursor.sees("]"):
            cursor.number()
        cursor.expect("]")
        dimensions += 1
    if dimensions and written.serial:
        raise cursor.wrong("an array of a serial type")
    if not dimensions:
        return written
    # PostgreSQL neither keeps nor checks how many dimensions were written
    return Written(f"{written.postgres}[]", array(written.type), written.serial, written.required, written.unknown)


def _element(cursor: Cursor, types: UserTypes, schema: str) -> Written:
    start = cursor.peek()
    name = cursor.qualified()
    quoted = start is not None and start.kind == "name"
    if name[0] in ("", "pg_catalog") and not (quoted and not name[0]):
        if (own := _own(cursor, name[1], types, schema)) is not None:
            return own
    elif (name == ("pg_catalog", "char") or (quoted and name == ("", "char"))) and not cursor.sees("("):
        return Written('"char"', Type("string"))
    if name[1] == "citext":
        return Written("citext", Type("string"))
    modifiers = f"({cursor.bracketed()})" if cursor.sees("(") else ""
    if (known := types.find(name, schema)) is not None:
        return known
    full = ".".join(part for part in name if part)
    return Written(full + modifiers, Type("text_of", of=full), unknown=True)


def _own(cursor: Cursor, name: str, types: UserTypes, schema: str) -> Written | None:
    """A type of PostgreSQL's own, whose first word has been read; None where it is none."""
    if types.find(("", name), schema) is not None and name not in ("char", "character", "time", "timestamp"):
        return None
    if name in SERIAL:
        full, generic = PLAIN[SERIAL[name]]
        return Written(full, generic, serial=True)
    if name == "double" and cursor.take("precision"):
        return Written("double precision", Type("float64"))
    if name == "float":
        digits = _modifiers(cursor)
        single = bool(digits) and digits[0] <= 24
        return Written("real", Type("float32")) if single else Written("double precision", Type("float64"))
    if name in ("character", "char", "nchar", "varchar", "bpchar", "national"):
        return _characters(cursor, name)
    if name in ("numeric", "decimal", "dec"):
        return _decimal(cursor)
    if name in _TIMES:
        return _time(cursor, name)
    if name == "interval":
        while cursor.sees_any(*_FIELDS):
            cursor.at += 1
        _modifiers(cursor)
        return Written("interval", Type("interval"))
    if name in PLAIN:
        return Written(*PLAIN[name])
    if name in ("bit", "varbit"):
        varying = cursor.take("varying") or name == "varbit"
        full = "bit varying" if varying else "bit"
        digits = _modifiers(cursor)
        return Written(full + (f"({digits[0]})" if digits else ""), Type("text_of", of=full))
    return Written(name, Type("text_of", of=name)) if name in PRINTED else None


def _characters(cursor: Cursor, name: str) -> Written:
    if name == "national" and not (cursor.take("character") or cursor.take("char")):
        raise cursor.wrong("expected CHARACTER")
    varying = cursor.take("varying") or name == "varchar"
    length = _modifiers(cursor)
    full = "character varying" if varying else "character"
    if not length:
        return Written(full if varying or name == "bpchar" else "character(1)", Type("string"))
    return Written(f"{full}({length[0]})", Type("string"))


def _decimal(cursor: Cursor) -> Written:
    numbers = _modifiers(cursor)
    if not numbers:
        return Written("numeric", Type("decimal"))
    precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    # PostgreSQL 15 rounds left of the point with a negative scale, and lets a scale exceed the precision
    digits = max(precision - min(scale, 0), scale)
    return Written(f"numeric({precision},{scale})", decimal(digits, max(scale, 0)))


def _time(cursor: Cursor, name: str) -> Written:
    digits = _modifiers(cursor)
    kind = _TIMES[name]
    if name in ("time", "timestamp"):
        if cursor.take("with", "time", "zone"):
            kind += "_tz"
        else:
            cursor.take("without", "time", "zone")
    zone = "with" if kind.endswith("_tz") else "without"
    fraction = min(digits[0], FRACTION) if digits else FRACTION
    shown = f"({fraction})" if digits else ""
    return Written(f"{kind.removesuffix('_tz')}{shown} {zone} time zone", timed(kind, fraction))


def _modifiers(cursor: Cursor) -> tuple[int, ...]:
    if not cursor.sees("("):
        return ()
    inside = cursor.bracketed()
    found = []
    for part in inside.parts():
        found.append(part.number())
        if not part.done:
            raise part.wrong("expected a number")
    return tuple(found)
