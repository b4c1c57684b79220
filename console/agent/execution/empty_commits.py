"""Commits without rows. The first write of Spark's to a table takes seconds, for which the senders of a landing table wait:
deltalake's takes milliseconds.
"""

import json
from collections.abc import Sequence
from typing import Any

from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake

from console.agent.feeds import commit, exact_appends
from console.agent.object_store.object_path import in_bucket
from console.agent.store import commits, log, open_tables, write_lock
from console.model.schema import Column, quoted


def append_nothing(session: Any, path: str, note: str, columns: Sequence[Column] = ()) -> int:
    """Commit no rows, and columns that the table lacks; Spark does it where deltalake does not write the table as Spark would.

    note     userMetadata of the commit
    returns  a version of the table that has the commit
    """
    fields = json.loads(open_tables.schema_json(path))["fields"] + _fields(session, columns)
    plain = exact_appends.supports_small_appends(path) and exact_appends.is_plain({"type": "struct", "fields": fields})
    if plain or in_bucket(path):
        version = _by_deltalake(path, note, fields)
        if version is not None:
            return version
    with write_lock.shared(path):
        rows = commit.empty_rows(session, path)  # with the existing columns: a write must name the partition columns
        for column in columns:
            rows = rows.selectExpr("*", _missing(column))
        writer = rows.write.format("delta").mode("append").option("mergeSchema", str(bool(columns)).lower())
        writer.option("userMetadata", note).save(path)
        return log.latest_version(path)


def _by_deltalake(path: str, note: str, fields: Sequence[Any]) -> int | None:
    """None, with nothing written, where Spark continues to write the table."""
    import pyarrow as pa

    with write_lock.exclusive(path, seconds=commit.LOCK_SECONDS) as locked:
        if not locked:
            return None
        schema = pa.schema(Schema.from_json(json.dumps({"type": "struct", "fields": fields})).to_arrow())

        def write(table: DeltaTable, properties: CommitProperties) -> None:
            nothing = schema.empty_table()
            write_deltalake(table, nothing, mode="append", schema_mode="merge", commit_properties=properties)

        commits.commit(path, write, note=json.loads(note))
        return log.latest_version(path)


def _fields(session: Any, columns: Sequence[Column]) -> list[Any]:
    """The columns as Delta's schema JSON has them. Spark reads their types, and runs nothing."""
    if not columns:
        return []
    result: list[Any] = json.loads(session.sql(f"SELECT {', '.join(map(_missing, columns))}").schema.json())["fields"]
    return result


def _missing(column: Column) -> str:
    return f"CAST(NULL AS {column.type}) AS {quoted(column.name)}"
