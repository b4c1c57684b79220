"""An excerpt of a table's log: some of its files as a Delta table of their own, which Delta itself then reads.

For what no Parquet reader can tell: which rows a deletion vector leaves, files with hidden names, columns of type void.
It costs a snapshot, ten times the reading of a small range (docs/decisions/0012); no file is copied.
"""

import base64
import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from console.agent.rows.snapshot import blank_is_null
from console.agent.store import log
from console.agent.store.shape import TableLayout
from console.errors import RegionError

FOLDER = "_excerpts"  # below a version of ours: hidden from VACUUM, and dropped with the version
_FEATURES = ("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "variantType")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_ID = 20  # characters of a deletion vector's id, behind the prefix of its folder


@contextmanager
def place(version: str) -> Iterator[Path]:
    """A folder, made when it is needed and gone afterwards.

    version  a table of ours; whoever died in here leaves one file, which goes with the version
    """
    scratch = log.local(version) / FOLDER / uuid.uuid4().hex
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def rows(session: Any, source: str, shape: TableLayout, files: Sequence[log.AddedFile], scratch: Path) -> Any:
    """The rows of these files, in the table's columns, as long as the scratch folder is there."""
    held = scratch / uuid.uuid4().hex / "_delta_log"
    held.mkdir(parents=True)
    schema = json.loads(shape.schema)
    mapped = {"delta.columnMapping.mode": shape.mapping, "delta.columnMapping.maxColumnId": shape.columns}
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(_FEATURES),
        "writerFeatures": list(_FEATURES),
    }
    meta = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(_bare(schema)),
        "partitionColumns": list(shape.partition_by),
        "configuration": {} if shape.mapping == "none" else {name: value for name, value in mapped.items() if value},
        "createdTime": 0,
    }
    actions = [{"protocol": protocol}, {"metaData": meta}, *({"add": _add(source, file)} for file in files)]
    (held / f"{0:020}.json").write_text("".join(f"{json.dumps(action)}\n" for action in actions), encoding="utf-8")
    return blank_is_null(session.read.format("delta").load(str(held.parent)), shape.texts)


def _add(source: str, file: log.AddedFile) -> dict[str, Any]:
    vector = json.loads(file.vector) if file.vector else None
    add: dict[str, Any] = {
        "path": _uri(file.path),
        "partitionValues": dict(file.values),
        "size": file.bytes,
        "modificationTime": 0,
        "dataChange": True,
    }
    if file.rows >= 0:
        add["stats"] = json.dumps({"numRecords": file.rows + (vector["cardinality"] if vector else 0)})
    if vector:
        add["deletionVector"] = _absolute(source, vector)
    return add


def _absolute(source: str, vector: dict[str, Any]) -> dict[str, Any]:
    """A deletion vector that is found from anywhere. source: the Delta protocol, section *Deletion Vectors*"""
    match vector["storageType"]:
        case "i" | "p":
            return vector
        case "u":
            told = vector["pathOrInlineDv"]
            raw = base64.b85decode(told[-_ID:].translate(str.maketrans(_Z85, _B85)))
            name = log.local(source) / told[:-_ID] / f"deletion_vector_{uuid.UUID(bytes=raw)}.bin"
            return {**vector, "storageType": "p", "pathOrInlineDv": name.as_uri()}
        case other:
            raise RegionError(f"{source}: a deletion vector is stored as {other!r:.20}", code="E_DV")


def _uri(path: str) -> str:
    return Path(path).as_uri() if path.startswith("/") else path


def _bare(kind: Any) -> Any:
    """A type without what is for writers: defaults, generated columns, identities."""
    match kind:
        case {"type": "struct", "fields": fields}:
            return {**kind, "fields": [_field(field) for field in fields]}
        case {"type": "array", "elementType": element}:
            return {**kind, "elementType": _bare(element)}
        case {"type": "map", "keyType": key, "valueType": value}:
            return {**kind, "keyType": _bare(key), "valueType": _bare(value)}
    return kind


def _field(field: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in field["metadata"].items() if name.startswith("delta.columnMapping.")}
    return {**field, "type": _bare(field["type"]), "nullable": True, "metadata": kept}
