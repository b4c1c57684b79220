"""Names, types, defaults and expressions to draw from, the odd ones included."""

from collections.abc import Sequence
from random import Random

LONG = "a_name_that_goes_on_and_on_until_it_is_longer_than_what_a_server_keeps_of_it"
FRESH = (
    *("a", "b", "c", "d", "e", "f1", "g", "h", "k"), *("a", "b", "c", "d", "n", "m", "title", "state"), "UPPER", "Mixed", "x$y", "_x", '"Quoted Name"',
    '"a""b"', '"with.dot"', '"select"', '"ÄPFEL"', "ÄPFEL", "äpfel", "naïve", "ÑandÚ", "日本語", "İstanbul", "a\u00a0b", "été", '"drop"', "type", "value", "name",
    "key", "exclude", "storage", "options", "cascade", "restrict", "if", "set", "rename", "identity", "generated", "always", "columns", "no", "only_x",
    LONG, LONG.upper(), f'"{LONG}"', LONG[:62] + "é", f'"{LONG[:62]}éé"', LONG[:61] + "日本", "é" * 40, "x" * 63, "x" * 64, '" "', '"x;y"', '"--"', "date", "text", "timestamp", "comment", "view", "index",
)  # fmt: skip
TYPES = (
    *("int", "integer", "bigint", "text", "varchar(20)", "numeric(10,2)", "boolean", "timestamptz", "date", "uuid", "jsonb"),
    "int2", "smallint", "INT8", "int4", '"int4"', '"text"', "pg_catalog.int8", "real", "double precision", "float(10)", "float(40)", "float", "decimal(8)",
    "numeric", "numeric(3,-2)", "dec(5,1)", "char", "char(3)", "character varying", "character varying ( 7 )", "bpchar", "bpchar(4)", '"char"', "name",
    "national character varying(9)", "nchar(2)", "bytea", "time", "time(3)", "timetz(2)", "timestamp(3)", "timestamp with time zone", "timestamp (0) without time zone",
    "interval", "interval day to second(3)", "interval(2)", "json", "int[]", "text[][]", "int array[3]", "integer array", "varchar(3)[]", "_int4", "_text", "numeric(4,1)[]",
    "bit", "bit(3)", "bit varying(5)", "varbit", "inet", "cidr", "macaddr", "point", "box", "tsvector", "tsquery", "int4range", "tstzrange", "daterange[]", "money", "xml",
    "oid", "regclass", "pg_lsn", '"timestamptz"', '"varchar"(5)', "pg_catalog.varchar(8)", 'pg_catalog."numeric"(6,2)', "information_schema.cardinal_number",
    "information_schema.sql_identifier", "pg_catalog.timestamptz", '"bool"', "serial", "bigserial", "smallserial", '"_varchar"', "jsonpath", "xid", "int4multirange",
)  # fmt: skip
# (a type, what fits it)
DEFAULTED = (
    ("int", "5"), ("int", "-7"), ("int", "'12'"), ("int", "(3)"), ("int", "'4'::int"), ("int", "1 + 1"), ("int", "b'101'::int"), ("bigint", "9000000000"),
    ("text", "'x'"), ("text", "'it''s'"), ("text", "E'a\\nb'"), ("text", "$$dollar$$"), ("text", "'a' || 'b'"), ("text", "'a'\n  'b'"), ("text", "N'nat'"),
    ("text", "'é'::text"), ("text", "NULL"), ("text", "''"), ("varchar(3)", "'abc'"), ("char(4)", "'ab'"), ("numeric(6,2)", "1.50"), ("numeric(6,2)", "2"),
    ("numeric", "1e3"), ("numeric", ".5"), ("real", "1.5"), ("double precision", "'1e10'"), ("boolean", "true"), ("boolean", "'t'"), ("boolean", "NOT true"), ("bool", "'off'::bool"),
    ("date", "'2024-02-29'"), ("date", "current_date"), ("timestamptz", "now()"), ("timestamptz", "'2024-01-01 00:00+02'"), ("timestamp", "'2024-01-01T10:00'"), ("timestamp", "current_timestamp"),
    ("timestamp(0)", "localtimestamp"), ("uuid", "gen_random_uuid()"), ("uuid", "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"), ("jsonb", "'{\"b\": 1, \"a\":[1,2]}'"),
    ("jsonb", "'{}'::jsonb"), ("json", "'{ }'"), ("int[]", "'{}'"), ("int[]", "ARRAY[]::int[]"), ("text[]", "'{a,b}'"), ("bytea", "'\\x'"), ("bytea", "'\\xdead'"), ("interval", "'1 day'"), ("inet", "'10.0.0.1'"),
    ("time", "'12:30'"), ("bit(3)", "B'101'"), ("int", "length('abc')"), ("float8", "'NaN'"), ("int", "DATE '2024-01-01' - DATE '2023-12-31'"), ("smallint", "1::smallint"),
    ("numeric(5,1)", "2.25"), ("timestamp(3)", "'2024-01-01 00:00:00.123'"), ("text", "5"), ("text", "true::text"), ("varchar", "1.50::numeric(5,1)::text"), ("text", "current_user"),
)  # fmt: skip
CHECKS = (
    "CHECK ({c} IS NOT NULL)", "CONSTRAINT {k} CHECK ({c} IS NOT NULL)", "CHECK (({c}) IS NOT NULL AND ({c} IS NOT NULL))", "CHECK (1 = 1)", "CHECK ({c} IS NOT NULL OR true)",
    "CHECK (NOT ({c} IS NULL))", "CHECK ({c} IS NOT NULL) NO INHERIT",
)  # fmt: skip


def spelled(r: Random, name: str) -> str:
    """A name that is there, as one may write it."""
    quoted = '"' + name.replace('"', '""') + '"'
    plain = name.isascii() and name.isidentifier() and name == name.lower()
    bare = all(ch == "_" or ch.isdigit() or ch.islower() or ord(ch) > 127 for ch in name) and not name[0].isdigit()
    if len(name.encode()) == 63 and r.random() < 0.5:
        return (name if bare else quoted[:-1]) + "xyz" + ("" if bare else '"')
    if plain and r.random() < 0.7:
        return r.choice((name, name, name.upper(), name.title()))
    return name if bare and r.random() < 0.6 else quoted


def listed(r: Random, items: Sequence[str], most: int = 3) -> str:
    return ", ".join(r.sample(items, min(len(items), r.randint(1, most))))
