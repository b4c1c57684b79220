"""The rows of a small table in a bucket, asked by SQL as those of one on a disk are.

deltalake's own queries hold the interpreter's lock while they wait for a store: an agent that waited for a slow one would
renew no lease meanwhile. So the files are read by the bucket's client, each once, and SQLite answers.
"""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import lru_cache
from typing import Any

from deltalake import DeltaTable

from console.agent.object_store.object_path import place

READ_AT_ONCE = 8
FILES_KEPT = 4096  # of all tables of the region; one has a commit's rows


def select(table: DeltaTable, query: str) -> list[dict[str, Any]]:
    """The rows of a SELECT over the table, which is named `t` in it."""
    names = [field.name for field in table.schema().fields]
    booleans = {field.name for field in table.schema().fields if field.type.to_json() == '"boolean"'}
    with closing(sqlite3.connect(":memory:")) as database:
        database.execute(f"CREATE TABLE t ({', '.join(map(_quoted, names))})")
        places = ", ".join("?" for _ in names)
        database.executemany(f"INSERT INTO t VALUES ({places})", _rows(table, names))
        found = database.execute(query)
        columns = [column for column, *_ in found.description]
        return [
            {name: bool(value) if name in booleans and value is not None else value for name, value in zip(columns, row, strict=True)}
            for row in found
        ]  # fmt: skip


def _rows(table: DeltaTable, names: list[str]) -> Iterator[tuple[Any, ...]]:
    with ThreadPoolExecutor(READ_AT_ONCE) as pool:
        for rows in pool.map(_file, table.file_uris()):
            yield from (tuple(row.get(name) for name in names) for row in rows)


@lru_cache(maxsize=FILES_KEPT)
def _file(uri: str) -> tuple[dict[str, Any], ...]:
    """The rows of a data file, which never changes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return tuple(pq.read_table(pa.BufferReader(place(uri).read_bytes())).to_pylist())


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
