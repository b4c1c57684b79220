"""Iceberg, format 2 and later: fields are known by their ids, so most changes are metadata.

source  the Iceberg table specification: primitive types, schema evolution
"""

from collections.abc import Iterator, Mapping
from typing import Final

from console.errors import DataError
from console.propagation.dialects.lake import LakeDialect
from console.propagation.store_types import AS_TEXT, NO_INFINITY, NO_NAN, StoreType, StoreTypes, lake_reader
from console.propagation.tables import StoreColumn, StoreTable
from console.propagation.translate.operations import ChangeField, DropField, LoosenField, RenameFields, StoreOperation

# changes of a field's type that need metadata alone
_PROMOTED: Final = (("int", "long"), ("float", "double"))
TYPES: Final = StoreTypes(
    words={
        "boolean": StoreType("boolean"),
        "int16": StoreType("int"),
        "int32": StoreType("int"),
        "int64": StoreType("long"),
        "float32": StoreType("float"),
        "float64": StoreType("double"),
        "decimal(p,s)": StoreType("decimal({})", NO_NAN),
        "decimal": StoreType("string", AS_TEXT),
        "string": StoreType("string"),
        "bytes": StoreType("binary"),
        "date": StoreType("date", NO_INFINITY),
        "time": StoreType("time", ("24:00:00 has no place",)),
        "time_tz": StoreType("string", AS_TEXT),
        "timestamp": StoreType("timestamp", NO_INFINITY),
        "timestamp_tz": StoreType("timestamptz", NO_INFINITY),
        "interval": StoreType("string", AS_TEXT),
        "uuid": StoreType("string"),
        "json": StoreType("string"),
        "array": StoreType("list<{}>"),
        "enum": StoreType("string"),
        "text_of": StoreType("string", AS_TEXT),
    },
    digits=38,
    separator=",",
    read=lake_reader(
        {
            "boolean": "boolean", "int": "int32", "long": "int64", "float": "float32", "double": "float64",
            "string": "string", "binary": "bytes", "date": "date", "uuid": "uuid",
        },
        {"time": "time", "timestamp": "timestamp", "timestamptz": "timestamp_tz"},
    ),
)  # fmt: skip


class IcebergDialect(LakeDialect):
    __slots__ = ()

    def drop(self, name: str, table: StoreTable) -> StoreOperation:
        return DropField(name)

    def rename(self, pairs: Mapping[str, str], table: StoreTable) -> StoreOperation:
        return RenameFields(tuple(sorted(pairs.items())))

    def take_name(self, name: str, source: str, table: StoreTable) -> Iterator[StoreOperation]:
        yield DropField(name)
        yield RenameFields(((source, name),))

    def retype(self, column: StoreColumn, word: str, table: StoreTable, *, loosened: bool) -> Iterator[StoreOperation]:
        if word != column.type:
            if not _promotes(column.type, word):
                hint = "add a new column, fill it, and swap the two"
                raise DataError(f"{table.name}.{column.name}: Iceberg cannot make {column.type} a {word}", hint=hint)
            yield ChangeField(column.name, word)
        if loosened:
            yield LoosenField(column.name)


def _promotes(old: str, new: str) -> bool:
    if (old.lower(), new) in _PROMOTED:
        return True
    was, wanted = TYPES.generic_type(old), TYPES.generic_type(new)
    if (
        was is None
        or wanted is None
        or not was.name == wanted.name == "decimal"
        or not (was.numbers and wanted.numbers)
    ):
        return False
    return was.numbers[1] == wanted.numbers[1] and was.numbers[0] <= wanted.numbers[0]


ICEBERG: Final = IcebergDialect(
    kind="iceberg",
    title="Iceberg",
    position=2,
    types=TYPES,
    options=frozenset(("catalog", "namespace")),
    defaults={"namespace": "console"},
)
