"""The parts of docs/ that are generated from the propagation's code: the table of types, the JSON Schema."""

from collections.abc import Iterator
from typing import Any, Final

from console.propagation.dialects import DIALECTS
from console.propagation.migration import CLASSIFICATIONS, PHASES
from console.propagation.migration_file import DEFAULT, VERSION
from console.propagation.sql.cursor import Cursor
from console.propagation.sql.lexer import statements
from console.propagation.sql.postgres import PRINTED, UserTypes, WrittenType, read_type
from console.propagation.types import Type

# one spelling of each; PostgreSQL's other spellings mean one of these
_SPELLINGS: Final = (
    "boolean", "smallint", "integer", "bigint", "oid", "smallserial", "serial", "bigserial", "real", "double precision",
    "numeric(10,2)", "numeric(50,2)", "numeric(100,2)", "numeric(5,-2)", "numeric", "text", "character varying",
    "character varying(255)", "character(3)", "citext", "name", "bytea", "date", "time", "time(3)",
    "time with time zone", "timestamp", "timestamp(3)", "timestamp with time zone", "interval", "uuid", "json", "jsonb",
    "integer[]", "mood",
)  # fmt: skip
_HEAD: Final = """# Types

Generated from the code (`tools/published.py`); a test keeps it current. Every column of PostgreSQL has a generic type, and every
generic type has a type in each store. ⚠ marks values that do not survive; `console schema` warns about it when a column of such a
type is added.

"""
_RULES: Final = """
`mood` stands for an enum (`CREATE TYPE mood AS ENUM ('ok', 'ill')`). A domain is treated as its base type. PostgreSQL neither stores nor checks the
declared number of an array's dimensions; the stores have one dimension. Types that are not defined in the given files,
and the following types of PostgreSQL, are transferred as the text that PostgreSQL prints (`text_of<…>`): {printed}.

## NULL

A nullable column is `Nullable(…)` in ClickHouse (an array cannot be: NULL becomes `[]`) and optional in Iceberg and
Delta, where every added column is optional. ClickHouse gets `NOT NULL` only together with a constant default, since older rows
have no other value. A valid `CHECK (c IS NOT NULL)` counts as `NOT NULL`.
A store that accepts NULL where PostgreSQL does not is reported as `looser`, which is not a difference.

## Defaults

A default is transferred as a literal: numbers, `true`, `false`, quoted texts, `now()`, `[]`, in PostgreSQL's own
notation. Older rows get it in every store: ClickHouse supplies it when they are read, Iceberg from format 3 on stores it as the
field's initial default, and an older Iceberg table or a Delta table is rewritten with it, in one commit. `console.stores.consumer.defaults` gives a
consumer the value for rows that still arrive without the column. `now()` fills no older row, because a file of SQL does not contain
the moment of its evaluation; `observe --dsn` reads it from the catalog. A default that changes later needs no migration: rows arrive with their values, and older
rows keep the default that the column was added with. Defaults that only PostgreSQL can compute (sequences, identities, generated columns, other expressions) are
omitted, with a warning.

## Changes of type

`safe`: the generic type is the same. `widening`: every old value is a value of the new type, and the stores convert it themselves
(int16 → int32 → int64, float32 → float64, more digits, date → timestamp, integers, uuid and enums → string). `destructive`: everything else, any `USING`
that is more than a cast to the new type (a cast to a length truncates), and any change from an unknown type.
The store's own type counts too: if it differs and the new type does not contain it, applying the change is destructive there.
"""


def types_page() -> str:
    """docs/types.md."""
    rows = [_row(spelling, _read(spelling)) for spelling in _SPELLINGS]
    return (
        _HEAD + _columns() + "".join(rows) + _RULES.format(printed=", ".join(f"`{name}`" for name in sorted(PRINTED)))
    )


def _columns() -> str:
    titles = [f"{one.title}, NULL allowed" if one.nullable_types else one.title for one in DIALECTS.values()]
    cells = ["PostgreSQL", "generic", *titles, "⚠"]
    return f"| {' | '.join(cells)} |\n| {' | '.join('---' for _ in cells)} |\n"


def _read(spelling: str) -> WrittenType:
    types = UserTypes({("public", "mood"): WrittenType(postgres="mood", type=Type(name="enum", labels=("ok", "ill")))})
    [statement] = statements(spelling)
    return read_type(Cursor.over(statement), types, "public")


def _row(spelling: str, written: WrittenType) -> str:
    by_dialect = {dialect: dialect.types.store_type(written.type) for dialect in DIALECTS.values()}
    words = [dialect.types.nullable(there.word) for dialect, there in by_dialect.items()]
    lost: dict[str, list[str]] = {}
    for dialect, there in by_dialect.items():
        for loss in there.losses:
            lost.setdefault(loss, []).append(dialect.kind)
    losses = "; ".join(
        f"{'all' if len(kinds) == len(DIALECTS) else ', '.join(kinds)}: {loss}" for loss, kinds in lost.items()
    )
    cells = [f"`{word}`" for word in (spelling, str(written.type), *words)]
    return f"| {' | '.join(cells)} | {'⚠ ' + losses if losses else ''} |\n"


def migration_schema() -> dict[str, Any]:
    """The JSON Schema of a generic migration: docs/migration.schema.json."""
    name: dict[str, Any] = {"type": "string", "minLength": 1}
    facets: dict[str, Any] = {
        "data_type": {**name, "description": "a generic type, see types.md"},
        "nullable": {"type": "boolean"},
        "default": {
            "type": ["string", "null"],
            "pattern": DEFAULT,
            "description": "a number, true, false, a quoted text, now() or []; null: none, or only PostgreSQL computes it",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Generic migration",
        "description": "One change of one PostgreSQL table, in no store's language. One a file, under plans/<pipeline>/migrations/.",
        **_closed(
            {
                "version": {"const": VERSION},
                "phase": {
                    "enum": list(PHASES),
                    "description": "before the application's own migration, or after it when no old writer is left",
                },
                "schema": name,
                "table": name,
                "operation": {"oneOf": list(_operations(name, facets))},
            }
        ),
    }


def _operations(name: dict[str, Any], facets: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield _closed({"type": {"const": "add_column"}, "name": name, **facets})
    yield _closed({"type": {"const": "drop_column"}, "name": name})
    columns = {
        "type": "object",
        "minProperties": 1,
        "additionalProperties": name,
        "description": "old name: new name; all of them at one instant",
    }
    yield _closed({"type": {"const": "swap_columns"}, "columns": columns})
    was = {
        "type": "object",
        "properties": facets,
        "additionalProperties": False,
        "description": "as far as it was known",
    }
    fixed = {
        "type": {"const": "change_column"},
        "name": name,
        "was": was,
        "classification": {"enum": list(CLASSIFICATIONS)},
    }
    changed = _closed({**fixed, **facets})
    yield {**changed, "required": list(fixed), "anyOf": [{"required": [facet]} for facet in facets]}
    taken = {"type": {"const": "replace_column"}, "name": name}
    source = {**name, "description": "the column that takes the name along with its values, another than name"}
    yield {**_closed({**taken, "from": source, **facets}), "required": [*taken, "from"]}
    yield _closed({**taken, "from": {"type": "null", "description": "a new column"}, **facets})


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
