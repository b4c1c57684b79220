"""A run of a copy in a bucket: Spark writes its rows as files, and the agent adds them, or replaces the others by them, in one commit."""

import json
from collections.abc import Mapping
from typing import Any

from deltalake import CommitProperties, DeltaTable, Schema, Transaction
from deltalake.transaction import AddAction

from console import crash
from console.agent.store import commits, log, open_tables, spark_files
from console.agent.store.file_action import nullable
from console.errors import RegionError

_UNFIT = " ,;{}()\n\t="  # in a column's name, which Delta refuses in its own commits
_NEEDS_FEATURE = '"timestamp_ntz"'


def run(session: Any, rows: Any, path: str, *, replaces: bool, app_id: str, note: Mapping[str, Any]) -> None:
    """Commit the rows of a run under its app id, once. The table is made if it is missing, empty until this commit.

    replaces  the rows and columns that are there; otherwise the rows are added
    raises    RegionError E_COLUMNS for columns that the table cannot take, and then nothing was committed
    """
    text = json.dumps(nullable(json.loads(rows.schema.json())))
    schema = Schema.from_json(text)
    _check_names(path, schema)
    if not log.exists(path):
        commits.create(path, schema, [], {}, json.dumps({"kind": "create"}))
    elif replaces:
        _check_types(path, text)
    files = spark_files.write(session, rows, path, text if replaces else "")
    adds = [AddAction(f.name, f.bytes, dict(f.values), f.modified, True, f.stats) for f in files]

    def write(table: DeltaTable, properties: CommitProperties) -> None:
        if table.transaction_version(app_id) is not None:
            raise RegionError(f"{path}: the run is committed already", hint="run it again", code="E_BUSY")
        crash.point("before-commit-copy")
        how, columns = ("overwrite", schema) if replaces else ("append", table.schema())
        table.create_write_transaction(adds, how, columns, [], commit_properties=properties)

    commits.commit(path, write, note=note, numbers=(Transaction(app_id, 1),))
    crash.point("after-commit-copy")


def _check_names(path: str, schema: Schema) -> None:
    if unfit := [field.name for field in schema.fields if set(field.name) & set(_UNFIT)]:
        raise RegionError(
            f"{path}: no Delta table has a column named {unfit[0]!r:.60}",
            hint="name it in the copy's query, with AS",
            code="E_COLUMNS",
        )


def _check_types(path: str, wanted: str) -> None:
    """A feature that a type needs is recorded where the table is made: deltalake adds none when it replaces the columns."""
    if _NEEDS_FEATURE in wanted and _NEEDS_FEATURE not in open_tables.schema_json(path):
        raise RegionError(
            f"{path}: its columns cannot be replaced by one of type timestamp_ntz",
            hint="cast it to timestamp in the copy's query, or give the copy another table",
            code="E_COLUMNS",
        )
