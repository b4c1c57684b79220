"""Times finer than a microsecond in foreign Parquet files: Spark fails on some and silently truncates the others.

They are detected from the file's footer. INT96 alone proves nothing, as Spark writes microseconds that way too: for such a
column of another writer the values are checked.
"""

import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from console.agent.object_store.object_path import place
from console.agent.store import log, log_files
from console.errors import FeedStopped

_BY_SPARK = b"org.apache.spark.version"  # a key of the footer; Spark's times have six digits
# In Thrift's compact protocol: a logical type TIMESTAMP with unit NANOS; a schema element of type INT96 (parquet.thrift). The same
# bytes may mean something else, so pyarrow decides; it is not used on every file since its import costs more than the survey.
_MAYBE_NANOS = re.compile(rb"\x8c[\x11\x12]\x1c\x3c\x00\x00|\x15\x06(?:\x15.)?\x25[\x00\x02\x04]\x18", re.DOTALL)
_HINT = "have its writer store microseconds and replace those rows; then rebuild the tables downstream of it"


def finer(files: Iterable[str], columns: Mapping[str, str]) -> tuple[str, str] | None:
    """(file, column) of the first times that would be truncated; None if there are none.

    files    absolute paths; missing and damaged files are left to the reader of their rows
    columns  physical name → logical name, of the columns to check
    """
    for file in files:
        try:
            footer = _footer(place(file))
            if _BY_SPARK in footer or not _MAYBE_NANOS.search(footer):
                continue
            column = _finer_column(file, columns)
        except (OSError, ValueError):
            continue
        if column:
            return file, column
    return None


def refuse(source: str, files: Iterable[str], columns: Mapping[str, str]) -> None:
    """Check files before they are read. raises FeedStopped E_NANOSECONDS if times in them would be truncated"""
    if finer_column := finer(files, columns):
        raise FeedStopped(
            f"{source}: {finer_column[1]} holds times finer than a microsecond in {Path(finer_column[0]).name}: they would be truncated",
            hint=_HINT,
            code="E_NANOSECONDS",
        )


def files(table: DeltaTable, path: str) -> list[str]:
    """The absolute paths of an open table's files, newest first. path: of the table"""
    actions, root = table.get_add_actions(flatten=True), log_files.root_of(path)
    stamped = zip(actions.column("modification_time").to_pylist(), actions.column("path").to_pylist(), strict=True)
    return [log.absolute_path(root, name) for _, name in sorted(stamped, reverse=True)]


def time_columns(schema: str, wanted: Iterable[str]) -> dict[str, str]:
    """Columns that may contain times: physical name → logical name.

    schema  Delta's schema JSON
    wanted  logical names, in any case
    """
    wanted_names, columns = {name.lower() for name in wanted}, {}
    for field in json.loads(schema)["fields"]:
        if field["name"].lower() in wanted_names and "timestamp" in json.dumps(field["type"]):
            columns[str(field["metadata"].get("delta.columnMapping.physicalName", field["name"]))] = str(field["name"])
    return columns


def _footer(file: Path) -> bytes:
    """A Parquet file's footer. raises OSError, ValueError if there is none"""
    with file.open("rb") as source:
        source.seek(-8, 2)
        length, magic = struct.unpack("<I4s", source.read(8))
        if magic != b"PAR1":
            raise ValueError(f"{file} is not a Parquet file")
        source.seek(-8 - length, 2)
        return source.read(length)


def _finer_column(file: str, columns: Mapping[str, str]) -> str:
    import pyarrow.parquet as pq

    with place(file).open("rb") as source:
        schema = pq.read_metadata(source).schema
    for at in range(len(schema)):
        leaf = schema.column(at)
        # a dot separates a column from its fields, and names may contain dots too
        logical = next((columns[name] for name in columns if f"{leaf.path}.".startswith(f"{name}.")), None)
        if logical is None:
            continue
        if "nanoseconds" in leaf.logical_type.to_json() or (
            leaf.physical_type == "INT96" and _has_nanoseconds(file, leaf.path)
        ):
            return logical
    return ""


def _has_nanoseconds(file: str, path: str) -> bool:
    """Whether a column of INT96 has values finer than a microsecond."""
    import pyarrow.parquet as pq

    # nanoseconds wrap beyond the year 2262, microseconds do not; their difference is still exact
    with place(file).open("rb") as source:
        nanos, micros = (
            _leaves(pq.ParquetFile(source, coerce_int96_timestamp_unit=unit), path) for unit in ("ns", "us")
        )
    return bool((nanos != micros * 1000).any())


def _leaves(parquet: Any, path: str) -> Any:
    """All non-NULL values of one leaf column, as integers."""
    import pyarrow as pa

    columns = parquet.read(columns=[path]).columns
    chunks = [chunk for column in columns for chunk in column.chunks]
    while chunks and not pa.types.is_timestamp(chunks[0].type):
        chunks = [part for chunk in chunks for part in _inner(pa, chunk)]
    numbers = pa.chunked_array([chunk.cast(pa.int64()) for chunk in chunks], pa.int64())
    return numbers.drop_null().to_numpy()


def _inner(pa: Any, values: Any) -> list[Any]:
    if pa.types.is_struct(values.type):
        return list(values.flatten())
    return [values.keys, values.items] if pa.types.is_map(values.type) else [values.flatten()]
