"""Delta without column mapping: only a new column is metadata; any other change rewrites the table in one commit.

source  docs/design.md, rule 9; the Delta transaction log protocol: schema serialization, primitive types
"""

from collections.abc import Iterator, Mapping
from typing import Final

from console.propagation.dialects.lake import LakeDialect
from console.propagation.store_types import AS_TEXT, NO_INFINITY, NO_NAN, StoreType, StoreTypes, lake_reader
from console.propagation.tables import StoreColumn, StoreTable
from console.propagation.translate.operations import Rewrite, StoreOperation
from console.propagation.widening import holds

TYPES: Final = StoreTypes(
    words={
        "boolean": StoreType("boolean"),
        "int16": StoreType("smallint"),
        "int32": StoreType("int"),
        "int64": StoreType("bigint"),
        "float32": StoreType("float"),
        "float64": StoreType("double"),
        "decimal(p,s)": StoreType("decimal({})", NO_NAN),
        "decimal": StoreType("string", AS_TEXT),
        "string": StoreType("string"),
        "bytes": StoreType("binary"),
        "date": StoreType("date", NO_INFINITY),
        "time": StoreType("string", AS_TEXT),
        "time_tz": StoreType("string", AS_TEXT),
        "timestamp": StoreType("timestamp_ntz", NO_INFINITY),
        "timestamp_tz": StoreType("timestamp", NO_INFINITY),
        "interval": StoreType("string", AS_TEXT),
        "uuid": StoreType("string"),
        "json": StoreType("string"),
        "array": StoreType("array<{}>"),
        "enum": StoreType("string"),
        "text_of": StoreType("string", AS_TEXT),
    },
    digits=38,
    separator=",",
    read=lake_reader(
        {
            "boolean": "boolean", "byte": "int16", "tinyint": "int16", "short": "int16", "smallint": "int16",
            "int": "int32", "integer": "int32", "long": "int64", "bigint": "int64", "float": "float32",
            "double": "float64", "string": "string", "binary": "bytes", "date": "date",
        },
        {"timestamp": "timestamp_tz", "timestamp_ntz": "timestamp"},
    ),
)  # fmt: skip


class DeltaDialect(LakeDialect):
    __slots__ = ()

    def drop(self, name: str, table: StoreTable) -> StoreOperation:
        kept = tuple((column.name, column.name, column.type) for column in table.columns if column.name != name)
        return Rewrite(kept, f"the table is rewritten without {name}")

    def rename(self, pairs: Mapping[str, str], table: StoreTable) -> StoreOperation:
        columns = [(pairs.get(column.name, column.name), column.name, column.type) for column in table.columns]
        if set(pairs) == set(pairs.values()):  # a ring keeps the order of the names, and takes the types along
            by_name = {new: (new, old, kind) for new, old, kind in columns}
            columns = [by_name[column.name] for column in table.columns]
        return Rewrite(tuple(columns), "the table is rewritten under the new names")

    def take_name(self, name: str, source: str, table: StoreTable) -> Iterator[StoreOperation]:
        kept = [column for column in table.columns if column.name != name]
        columns = tuple((name if column.name == source else column.name, column.name, column.type) for column in kept)
        yield Rewrite(columns, f"the table is rewritten with {source} as {name}")

    def retype(self, column: StoreColumn, word: str, table: StoreTable, *, loosened: bool) -> Iterator[StoreOperation]:
        if word == column.type and not loosened:
            return
        columns = tuple((c.name, c.name, word if c.name == column.name else c.type) for c in table.columns)
        old, new = TYPES.generic_type(column.type), TYPES.generic_type(word)
        keeps = word == column.type or (old is not None and new is not None and holds(new, old))
        why = f"the table is rewritten with {column.name} as {word}"
        why += "" if keeps else f", which may not hold every {column.type} that is stored"
        yield Rewrite(columns, why, not keeps, (column.name,) if loosened else ())


DELTA: Final = DeltaDialect(
    kind="delta",
    title="Delta",
    position=3,
    types=TYPES,
    options=frozenset(("root", "pipeline")),
    defaults={"root": "{warehouse}"},
)
