"""Times finer than a microsecond in Parquet files that others wrote: Spark fails at some, and cuts the others without a word.

Told from a file's footer. INT96 alone says nothing, for Spark itself writes microseconds that way: of another writer's file with
such a column the values are looked at.
"""

import json
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from console.agent.store import log
from console.errors import FeedStopped

_BY_SPARK = b"org.apache.spark.version"  # a key of the footer; Spark's times have six digits
# In Thrift's compact protocol: a logical type TIMESTAMP whose unit is NANOS; a schema element of type INT96 (parquet.thrift). The
# same bytes may mean something else, which a look by pyarrow tells; loading that costs a survey more than all the rest.
_SUSPECT = re.compile(rb"\x8c[\x11\x12]\x1c\x3c\x00\x00|\x15\x06(?:\x15.)?\x25[\x00\x02\x04]\x18", re.DOTALL)
_HINT = "have its writer store microseconds and replace those rows there; what hangs below the table is then rebuilt from them"


def finer(files: Iterable[str], columns: Mapping[str, str]) -> tuple[str, str] | None:
    """(file, column) of the first times that would be cut; None where there are none.

    files    their absolute paths; one that is gone or damaged is left to whoever reads its rows
    columns  name in the files → name that the table shows, of those that matter
    """
    for file in files:
        try:
            footer = _footer(Path(file))
            if _BY_SPARK in footer or not _SUSPECT.search(footer):
                continue
            found = _finer(file, columns)
        except (OSError, ValueError):
            continue
        if found:
            return file, found
    return None


def refuse(source: str, files: Iterable[str], columns: Mapping[str, str]) -> None:
    """raises FeedStopped E_NANOSECONDS in front of rows whose times would be cut"""
    if found := finer(files, columns):
        raise FeedStopped(
            f"{source}: {found[1]} holds times finer than a microsecond in {Path(found[0]).name}: they would be cut",
            hint=_HINT,
            code="E_NANOSECONDS",
        )


def files(table: DeltaTable, path: str) -> list[str]:
    """The files of an open table, the newest first."""
    actions, root = table.get_add_actions(flatten=True), log.local(path)
    stamped = zip(actions.column("modification_time").to_pylist(), actions.column("path").to_pylist(), strict=True)
    return [log.absolute_path(root, place) for _, place in sorted(stamped, reverse=True)]


def timed(schema: str, wanted: Iterable[str]) -> dict[str, str]:
    """Columns that may hold a time: name in the files → name that the table shows.

    schema  Delta's JSON
    wanted  names, in any case
    """
    names, found = {name.lower() for name in wanted}, {}
    for field in json.loads(schema)["fields"]:
        if field["name"].lower() in names and "timestamp" in json.dumps(field["type"]):
            found[str(field["metadata"].get("delta.columnMapping.physicalName", field["name"]))] = str(field["name"])
    return found


def _footer(file: Path) -> bytes:
    """raises  OSError, ValueError where there is none"""
    with file.open("rb") as source:
        source.seek(-8, 2)
        length, magic = struct.unpack("<I4s", source.read(8))
        if magic != b"PAR1":
            raise ValueError(f"{file} is no Parquet file")
        source.seek(-8 - length, 2)
        return source.read(length)


def _finer(file: str, columns: Mapping[str, str]) -> str:
    import pyarrow.parquet as pq

    schema = pq.read_metadata(file).schema
    for at in range(len(schema)):
        leaf = schema.column(at)
        # by a dot the path tells the fields of a column, and a name may have one of its own
        shown = next((columns[name] for name in columns if f"{leaf.path}.".startswith(f"{name}.")), None)
        if shown is None:
            continue
        if "nanoseconds" in leaf.logical_type.to_json() or (leaf.physical_type == "INT96" and _cut(file, leaf.path)):
            return shown
    return ""


def _cut(file: str, path: str) -> bool:
    """Whether a column of INT96 has values that a microsecond does not hold."""
    import pyarrow.parquet as pq

    # nanoseconds wrap beyond the year 2262, microseconds do not: what is left of the one above the other is exact
    nanos, micros = (_leaves(pq.ParquetFile(file, coerce_int96_timestamp_unit=unit), path) for unit in ("ns", "us"))
    return bool((nanos != micros * 1000).any())


def _leaves(parquet: Any, path: str) -> Any:
    """All values of one leaf, without NULLs, as numbers."""
    import pyarrow as pa

    columns = parquet.read(columns=[path]).columns
    chunks = [chunk for column in columns for chunk in column.chunks]
    while chunks and not pa.types.is_timestamp(chunks[0].type):
        chunks = [part for chunk in chunks for part in _inside(pa, chunk)]
    numbers = pa.chunked_array([chunk.cast(pa.int64()) for chunk in chunks], pa.int64())
    return numbers.drop_null().to_numpy()


def _inside(pa: Any, held: Any) -> list[Any]:
    if pa.types.is_struct(held.type):
        return list(held.flatten())
    return [held.keys, held.items] if pa.types.is_map(held.type) else [held.flatten()]
