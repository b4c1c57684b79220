"""A Delta table written by hand, as another engine's kernel may write it: Parquet by pyarrow, the log as lines of JSON."""

import json
import random
import struct
import urllib.parse
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.worlds.drawn import LOST, Row, World, is_mapped

ARROW = {
    "bigint": pa.int64(), "int": pa.int32(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC"), "date": pa.date32(),
    "boolean": pa.bool_(), "double": pa.float64(), "binary": pa.binary(), "decimal(10,2)": pa.decimal128(10, 2),
}  # fmt: skip
DELTA = {"bigint": "long", "int": "integer"}
NESTED = {
    "s": pa.struct([("a", pa.int32()), ("b", pa.struct([("c", pa.string())]))]),
    "l": pa.list_(pa.struct([("v", pa.string())])),
    "m": pa.map_(pa.string(), pa.struct([("w", pa.int32())])),
}
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def arrow(world: World, rows: list[Row]) -> pa.Table:
    """The rows as Arrow, in the table's own types."""
    schema = pa.schema([(name, NESTED.get(name) or ARROW[kind]) for name, kind in world.columns.items()])
    return pa.Table.from_pylist(
        [{**row, "m": None if row["m"] is None else list(row["m"].items())} for row in rows], schema
    )


class Hand:
    """One table. `mapping`: its files name columns in another way than its log shows them."""

    def __init__(self, place: Path, world: World) -> None:
        self.place, self.world, self.version = place, world, -1
        feature = world.feature
        self.mapping = ("id" if feature == "id" else "name") if is_mapped(feature) else ""
        self._lost = ""
        self._ids = 0
        self._fields = [
            self._field(name, _delta(NESTED.get(name) or ARROW[kind])) for name, kind in world.columns.items()
        ]
        features = (["deletionVectors"] if "vectors" in feature else []) + (["columnMapping"] if self.mapping else [])
        protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
        if feature == "legacy name":  # as tables were before features had names
            protocol = {"minReaderVersion": 2, "minWriterVersion": 5}
        elif features:
            protocol = {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": features,
                "writerFeatures": features,
            }
        self._commit([{"protocol": protocol}, self._metadata()])

    def _metadata(self) -> dict[str, Any]:
        mapped = {"delta.columnMapping.mode": self.mapping, "delta.columnMapping.maxColumnId": str(self._ids)}
        self._id = getattr(self, "_id", None) or str(uuid.UUID(int=self.world.chance.getrandbits(128)))
        return {
            "metaData": {
                "id": self._id, "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": self._fields}),
                "partitionColumns": self.world.by,
                "configuration": (mapped if self.mapping else {}) | ({"delta.enableDeletionVectors": "true"} if "vectors" in self.world.feature else {}),
                "createdTime": 1,
            }
        }  # fmt: skip

    def _field(self, name: str, kind: Any) -> dict[str, Any]:
        self._ids += 1
        number = self._ids
        metadata = (
            {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"col-{number} ü"}
            if self.mapping
            else {}
        )
        return {"name": name, "type": self._inside(kind), "nullable": True, "metadata": metadata}

    def _inside(self, kind: Any) -> Any:
        match kind:
            case {"type": "struct", "fields": fields}:
                return {"type": "struct", "fields": [self._field(f["name"], f["type"]) for f in fields]}
            case {"type": "array", "elementType": element}:
                return {**kind, "elementType": self._inside(element)}
            case {"type": "map", "valueType": value}:
                return {**kind, "valueType": self._inside(value)}
        return kind

    def append(self, rows: list[Row]) -> None:
        """One commit, one file for each value of the partition."""
        groups: dict[Any, list[Row]] = {}
        for row in rows:
            groups.setdefault(tuple(row[name] for name in self.world.by), []).append(row)
        self._commit([{"add": self._file(values, item)} for values, item in groups.items()])

    def act(self, what: str, delete: Iterable[int]) -> None:
        """One change of the table's columns."""
        reports = {field["name"]: field for field in self._fields}
        spare = next((name for name in reports if name.startswith("extra")), "")
        match what:
            case "add column":
                self._fields.append(self._field(f"extra{len(self._fields)}", "string"))
            case "rename column" | "drop column" if not spare:
                self.act("add column", delete)
                return self.act(what, delete)
            case "rename column":
                reports[spare]["name"] = f"renamed {spare} ü"
            case "drop column":
                self._fields.remove(reports[spare])
            case "swap":
                reports["k"]["name"] = f"k before {len(reports)}"
                self._fields.append(self._field("k", "string"))
            case _ if what == LOST:
                reports["k"]["name"] = self._lost = "k lost"
        return self._commit([self._metadata()])

    def _file(self, values: tuple[Any, ...], rows: list[Row]) -> dict[str, Any]:
        feature, chance = self.world.feature, self.world.chance
        name = f"{'_' if feature == 'hidden' else ''}part-{uuid.UUID(int=chance.getrandbits(128))}.parquet"
        if feature == "odd names":
            name = f"a b%41 ü#?[{chance.choice('xyz')}]{{*}}/{name}"
        root = self.place.parent / f"{self.place.name} elsewhere ü" if feature == "elsewhere" else self.place
        place = root / name
        place.parent.mkdir(parents=True, exist_ok=True)
        deleted = "vectors" in feature
        ghost = {**rows[0], "id": -1}
        data = arrow(self.world, [ghost, *rows, ghost] if deleted else rows)
        stored = data.drop_columns(self.world.by)
        if self._lost:
            stored = stored.rename_columns([self._lost if name == "k" else name for name in stored.column_names])
        pq.write_table(
            self._physical(stored),
            place,
            compression=chance.choice(("none", "snappy", "gzip", "zstd")),
            data_page_version=chance.choice(("1.0", "2.0")),
            use_dictionary=chance.random() < 0.5,
            **{"use_deprecated_int96_timestamps": True} if feature == "int96" else {"coerce_timestamps": "us"},
        )
        add = {
            "path": place.as_uri() if feature == "elsewhere" else urllib.parse.quote(name),
            "partitionValues": {self._stored(name): _text(value, chance) for name, value in zip(self.world.by, values, strict=True)},
            "size": place.stat().st_size, "modificationTime": 1, "dataChange": True,
        }  # fmt: skip
        if feature != "uncounted":
            add["stats"] = json.dumps({"numRecords": data.num_rows})
        if deleted:
            inline = _roaring([0, data.num_rows - 1])
            add["deletionVector"] = {
                "storageType": "i",
                "pathOrInlineDv": _z85(inline),
                "sizeInBytes": len(inline),
                "cardinality": 2,
            }
        return add

    def _stored(self, name: str) -> str:
        field = next(field for field in self._fields if field["name"] == name)
        return str(field["metadata"].get("delta.columnMapping.physicalName", name))

    def _physical(self, table: pa.Table) -> pa.Table:
        if not self.mapping:
            return table
        known = {field["name"]: field for field in self._fields}
        fields = [self._renamed(field, known[field.name]) for field in table.schema]
        arrays = [_cast(table.column(at).combine_chunks(), field.type) for at, field in enumerate(fields)]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    def _renamed(self, field: pa.Field, report: dict[str, Any]) -> pa.Field:
        number = report["metadata"]["delta.columnMapping.id"]
        # by number a column is found whatever its name is
        name = f"whatever {number}" if self.mapping == "id" else report["metadata"]["delta.columnMapping.physicalName"]
        return pa.field(name, self._type(field.type, report["type"]), metadata={"PARQUET:field_id": str(number)})

    def _type(self, kind: pa.DataType, report: Any) -> pa.DataType:
        match report:
            case {"type": "struct", "fields": fields}:
                return pa.struct([self._renamed(kind.field(at), inner) for at, inner in enumerate(fields)])
            case {"type": "array", "elementType": element}:
                return pa.list_(self._type(kind.value_type, element))
            case {"type": "map", "valueType": value}:
                return pa.map_(kind.key_type, self._type(kind.item_type, value))
        return kind

    def _commit(self, actions: list[dict[str, Any]]) -> None:
        self.version += 1
        log = self.place / "_delta_log"
        log.mkdir(parents=True, exist_ok=True)
        info = {
            "commitInfo": {
                "timestamp": 1_793_000_000_000 + self.version,
                "operation": "WRITE",
                "operationParameters": {},
            }
        }
        text = "".join(json.dumps(action, ensure_ascii=False) + "\n" for action in [info, *actions])
        fresh = log / ".writing"
        fresh.write_text(text, encoding="utf-8")
        fresh.rename(log / f"{self.version:020}.json")


def _cast(array: Any, kind: pa.DataType) -> Any:
    """The same values under other names of fields."""
    if pa.types.is_struct(kind):
        values = [_cast(array.field(at), kind.field(at).type) for at in range(kind.num_fields)]
        return pa.StructArray.from_arrays(values, fields=list(kind), mask=array.is_null())
    if pa.types.is_list(kind):
        return pa.ListArray.from_arrays(
            array.offsets, _cast(array.values, kind.value_type), type=kind, mask=array.is_null()
        )
    if pa.types.is_map(kind):
        return pa.MapArray.from_arrays(
            array.offsets, array.keys, _cast(array.items, kind.item_type), type=kind, mask=array.is_null()
        )
    return array


def _delta(kind: pa.DataType) -> Any:
    if pa.types.is_struct(kind):
        return {"type": "struct", "fields": [{"name": f.name, "type": _delta(f.type)} for f in kind]}
    if pa.types.is_list(kind):
        return {"type": "array", "elementType": _delta(kind.value_type), "containsNull": True}
    if pa.types.is_map(kind):
        return {
            "type": "map",
            "keyType": _delta(kind.key_type),
            "valueType": _delta(kind.item_type),
            "valueContainsNull": True,
        }
    name = next(name for name, arrow_type in ARROW.items() if arrow_type == kind)
    return DELTA.get(name, name)


def _text(value: Any, chance: random.Random) -> str | None:
    """A partition's value as the protocol spells it; a time has two forms."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case datetime():
            return value.astimezone(UTC).strftime(chance.choice(("%Y-%m-%d %H:%M:%S.%f", "%Y-%m-%dT%H:%M:%S.%fZ")))
        case bytes():
            return value.decode()
        case Decimal():
            return f"{value:f}"
    return str(value)


def _roaring(numbers: list[int]) -> bytes:
    """A RoaringBitmapArray as deletion vectors have it: one bitmap of one container, for numbers below 65536."""
    head = struct.pack("<iq", 1681511377, 1) + struct.pack("<i", 0)
    body = struct.pack("<ii", 12346, 1) + struct.pack("<HH", 0, len(numbers) - 1) + struct.pack("<I", 16)
    return head + body + b"".join(struct.pack("<H", number) for number in numbers)


def _z85(data: bytes) -> str:
    data += b"\0" * (-len(data) % 4)
    text = ""
    for at in range(0, len(data), 4):
        (number,) = struct.unpack(">I", data[at : at + 4])
        text += "".join(_Z85[number // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return text
