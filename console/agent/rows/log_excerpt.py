"""An excerpt of a table's log: some of its files as a separate Delta table, to be read by Delta itself.

It is needed if a Parquet reader fails: deletion vectors, hidden file names, columns of type void. It costs a snapshot,
ten times as much as reading a small range (docs/decisions/0012); no data file is copied.
"""

import base64
import json
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from console.agent.object_store.object_path import ObjectPath, in_bucket
from console.agent.rows.snapshot import blank_is_null
from console.agent.store import log, log_files
from console.agent.store.shape import TableLayout
from console.errors import ConsoleError, RegionError

FOLDER = "_excerpts"  # in a managed version: hidden from VACUUM, and dropped with the version
_FEATURES = ("columnMapping", "deletionVectors", "timestampNtz", "typeWidening", "variantType")
_Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_used: set[Path] = set()  # scratch folders in which an excerpt was put
_ID = 20  # characters of a deletion vector's id, after the prefix of its folder


@contextmanager
def place(version: str) -> Iterator[Path]:
    """Path of a scratch folder, created on use and removed afterwards; where the version is, which every Spark of it reaches.

    version  path of a managed version; a process that dies leaves one file there, which is dropped with the version
    """
    scratch = log_files.root_of(version) / FOLDER / uuid.uuid4().hex
    try:
        yield scratch
    finally:
        if not isinstance(scratch, ObjectPath):
            shutil.rmtree(scratch, ignore_errors=True)
        elif scratch in _used:  # a live step without an excerpt asks the bucket nothing
            _used.discard(scratch)
            with suppress(ConsoleError):  # the rows are read, and what is left is dropped with the version
                scratch.delete_below()


def rows(session: Any, source: str, layout: TableLayout, files: Sequence[log.AddedFile], scratch: Path) -> Any:
    """The rows of these files in the table's columns. scratch: folder that must exist until they are read"""
    log_folder = scratch / uuid.uuid4().hex / "_delta_log"
    log_folder.mkdir(parents=True)
    if isinstance(scratch, ObjectPath):
        _used.add(scratch)
    schema = json.loads(layout.schema)
    mapped = {"delta.columnMapping.mode": layout.mapping, "delta.columnMapping.maxColumnId": layout.columns}
    protocol = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": list(_FEATURES),
        "writerFeatures": list(_FEATURES),
    }
    meta = {
        "id": str(uuid.uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(_without_writer_metadata(schema)),
        "partitionColumns": list(layout.partition_by),
        "configuration": {} if layout.mapping == "none" else {name: value for name, value in mapped.items() if value},
        "createdTime": 0,
    }
    actions = [{"protocol": protocol}, {"metaData": meta}, *({"add": _add(source, file)} for file in files)]
    (log_folder / f"{0:020}.json").write_text(
        "".join(f"{json.dumps(action)}\n" for action in actions), encoding="utf-8"
    )
    return blank_is_null(session.read.format("delta").load(str(log_folder.parent)), layout.texts)


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
        add["deletionVector"] = _absolute_vector(source, vector)
    return add


def _absolute_vector(source: str, vector: dict[str, Any]) -> dict[str, Any]:
    """A deletion vector with an absolute path. source: the Delta protocol, section *Deletion Vectors*"""
    match vector["storageType"]:
        case "i" | "p":
            return vector
        case "u":
            encoded = vector["pathOrInlineDv"]
            raw = base64.b85decode(encoded[-_ID:].translate(str.maketrans(_Z85, _B85)))
            name = log_files.root_of(source) / encoded[:-_ID] / f"deletion_vector_{uuid.UUID(bytes=raw)}.bin"
            return {**vector, "storageType": "p", "pathOrInlineDv": name.as_uri()}
        case other:
            raise RegionError(f"{source}: a deletion vector is stored as {other!r:.20}", code="E_DV")


def _uri(path: str) -> str:
    if in_bucket(path):
        return quote(path, safe=":/")
    return Path(path).as_uri() if path.startswith("/") else path


def _without_writer_metadata(kind: Any) -> Any:
    """A type without metadata for writers: defaults, generated columns, identities."""
    match kind:
        case {"type": "struct", "fields": fields}:
            return {**kind, "fields": [_reader_field(field) for field in fields]}
        case {"type": "array", "elementType": element}:
            return {**kind, "elementType": _without_writer_metadata(element)}
        case {"type": "map", "keyType": key, "valueType": value}:
            return {**kind, "keyType": _without_writer_metadata(key), "valueType": _without_writer_metadata(value)}
    return kind


def _reader_field(field: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in field["metadata"].items() if name.startswith("delta.columnMapping.")}
    return {**field, "type": _without_writer_metadata(field["type"]), "nullable": True, "metadata": kept}
