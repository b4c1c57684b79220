"""PostgreSQL's types, read from a column's definition.

source  PostgreSQL 15 documentation, chapter 8
"""

from dataclasses import dataclass, field
from typing import Final

from console.propagation.sql.cursor import Cursor, Name
from console.propagation.types import FRACTION, Type, array, decimal, timed

# PostgreSQL's spellings → (its own full name, the generic type)
PLAIN: Final[dict[str, tuple[str, Type]]] = {
    name: (full, Type(name=generic))
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
# the types of pg_catalog by their own names, as far as they differ from what SQL calls them
_CATALOGUED: Final = frozenset(
    (
        "bool", "int2", "int4", "int8", "oid", "float4", "float8", "text", "name", "bytea", "date", "uuid", "json", "jsonb",
        "numeric", "varchar", "bpchar", "char", "interval", "bit", "varbit", *_TIMES, *PRINTED,
    )
)  # fmt: skip
_FIELDS: Final = ("year", "month", "day", "hour", "minute", "second", "to")


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenType:
    """A type as written in a definition.

    postgres  PostgreSQL's own full name of it
    serial    an integer with a sequence behind it
    required  a domain that forbids NULL
    default   a domain's, for columns without their own; computed  the same, if only PostgreSQL can compute it
    unknown   not defined by the files read so far: its values are treated as text
    """

    postgres: str
    type: Type
    serial: bool = False
    required: bool = False
    unknown: bool = False
    default: str | None = None
    computed: str = ""


_INFORMATION: Final = {
    "cardinal_number": WrittenType(postgres="information_schema.cardinal_number", type=Type(name="int32")),
    "character_data": WrittenType(postgres="information_schema.character_data", type=Type(name="string")),
    "sql_identifier": WrittenType(postgres="information_schema.sql_identifier", type=Type(name="string")),
    "time_stamp": WrittenType(postgres="information_schema.time_stamp", type=timed("timestamp_tz", 2)),
    "yes_or_no": WrittenType(postgres="information_schema.yes_or_no", type=Type(name="string")),
}


@dataclass
class UserTypes:
    """Enums, domains and others that the files define; filled in while they are read.

    path  the schemas in which a name without one is looked for
    """

    defined: dict[Name, WrittenType] = field(default_factory=dict)
    path: tuple[str, ...] = ()

    def find(self, name: Name, schema: str) -> WrittenType | None:
        """A type by its name."""
        return self.defined.get(self.full(name, schema))

    def full(self, name: Name, schema: str) -> Name:
        """Where a type is; one written without a schema is looked for along the path, then anywhere."""
        if name[0]:
            return name
        here = [(place, name[1]) for place in (*self.path, schema) if (place, name[1]) in self.defined]
        others = [known for known in self.defined if known[1] == name[1]]
        return here[0] if here else others[0] if len(others) == 1 else (schema, name[1])


def read_type(cursor: Cursor, types: UserTypes, schema: str) -> WrittenType:
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
    return WrittenType(
        postgres=f"{written.postgres}[]", type=array(written.type), serial=written.serial, unknown=written.unknown
    )


def _element(cursor: Cursor, types: UserTypes, schema: str) -> WrittenType:
    start = cursor.peek()
    name = cursor.qualified()
    exact = name[0] == "pg_catalog" or (start is not None and start.kind == "name" and not name[0])
    if name[0] in ("", "pg_catalog"):
        own = _catalogued(cursor, name[1]) if exact else _own(cursor, name[1], types, schema)
        if own is not None:
            return own
    if name[0] == "information_schema" and name[1] in _INFORMATION:
        return _INFORMATION[name[1]]
    if name[1] == "citext" and types.find(name, schema) is None:
        return WrittenType(postgres="citext", type=Type(name="string"))
    modifiers = f"({cursor.bracketed()})" if cursor.sees("(") else ""
    if (known := types.find(name, schema)) is not None:
        return known
    if name[1].startswith("_") and (known := types.find((name[0], name[1][1:]), schema)) is not None:
        return WrittenType(postgres=f"{known.postgres}[]", type=array(known.type))
    full = ".".join(part for part in name if part)
    return WrittenType(postgres=full + modifiers, type=Type(name="text_of", of=full), unknown=True)


def _own(cursor: Cursor, name: str, types: UserTypes, schema: str) -> WrittenType | None:
    """A type of PostgreSQL's own, whose first word has been read; None where it is none."""
    if name.startswith("_") and (element := _catalogued(cursor, name)) is not None:
        return element
    if name in SERIAL:
        full, generic = PLAIN[SERIAL[name]]
        return WrittenType(postgres=full, type=generic, serial=True)
    if name == "double" and cursor.take("precision"):
        return WrittenType(postgres="double precision", type=Type(name="float64"))
    if name == "float":
        digits = _modifiers(cursor)
        single = bool(digits) and digits[0] <= 24
        return (
            WrittenType(postgres="real", type=Type(name="float32"))
            if single
            else WrittenType(postgres="double precision", type=Type(name="float64"))
        )
    if name in ("character", "char", "nchar", "varchar", "bpchar", "national"):
        return _characters(cursor, name)
    if name in ("numeric", "decimal", "dec"):
        return _decimal(cursor)
    if name in _TIMES:
        return _time(cursor, name)
    if name == "interval":
        start = cursor.at
        while cursor.sees_any(*_FIELDS):
            cursor.at += 1
        _modifiers(cursor)
        shown = str(Cursor(cursor.statement, start, cursor.at))
        return WrittenType(postgres=f"interval {shown}".strip(), type=Type(name="interval"))
    if name in PLAIN and name != "citext":
        full, generic = PLAIN[name]
        return WrittenType(postgres=full, type=generic)
    if name in ("bit", "varbit"):
        varying = cursor.take("varying") or name == "varbit"
        full = "bit varying" if varying else "bit"
        digits = _modifiers(cursor)
        return WrittenType(postgres=full + (f"({digits[0]})" if digits else ""), type=Type(name="text_of", of=full))
    return WrittenType(postgres=name, type=Type(name="text_of", of=name)) if name in PRINTED else None


def _catalogued(cursor: Cursor, name: str) -> WrittenType | None:
    """A type by the name that PostgreSQL's catalog has for it, which may differ from SQL's: a quoted one, `_int4`."""
    if name.startswith("_") and name[1:] in _CATALOGUED:
        element = _catalogued(cursor, name[1:])
        return element and WrittenType(postgres=f"{element.postgres}[]", type=array(element.type))
    if name not in _CATALOGUED:
        return None
    if name == "char":
        return WrittenType(postgres='"char"', type=Type(name="string"))
    return _own(cursor, name, UserTypes(), "")


def _characters(cursor: Cursor, name: str) -> WrittenType:
    if name == "national" and not (cursor.take("character") or cursor.take("char")):
        raise cursor.wrong("expected CHARACTER")
    varying = cursor.take("varying") or name == "varchar"
    length = _modifiers(cursor)
    full = "character varying" if varying else "character"
    if not length:
        return WrittenType(postgres=full if varying or name == "bpchar" else "character(1)", type=Type(name="string"))
    return WrittenType(postgres=f"{full}({length[0]})", type=Type(name="string"))


def _decimal(cursor: Cursor) -> WrittenType:
    numbers = _modifiers(cursor)
    if not numbers:
        return WrittenType(postgres="numeric", type=Type(name="decimal"))
    precision, scale = numbers[0], numbers[1] if len(numbers) > 1 else 0
    # PostgreSQL 15 rounds left of the point with a negative scale, and lets a scale exceed the precision
    digits = max(precision - min(scale, 0), scale)
    return WrittenType(postgres=f"numeric({precision},{scale})", type=decimal(digits, max(scale, 0)))


def _time(cursor: Cursor, name: str) -> WrittenType:
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
    return WrittenType(postgres=f"{kind.removesuffix('_tz')}{shown} {zone} time zone", type=timed(kind, fraction))


def _modifiers(cursor: Cursor) -> tuple[int, ...]:
    if not cursor.sees("("):
        return ()
    inside = cursor.bracketed()
    numbers = []
    for part in inside.parts():
        numbers.append(part.number())
        if not part.done:
            raise part.wrong("expected a number")
    return tuple(numbers)
