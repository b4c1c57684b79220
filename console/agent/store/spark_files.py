"""Data files that Spark writes and the agent commits: the way of rows into a table in a bucket (docs/decisions/0024).

In a JVM of the agent's own Delta's file writer is used, without its commit; through Spark Connect `attempt_table`. Tasks write under names of their own in their final places,
nothing is renamed, and what counts is the list that the driver received from the tasks that it let commit: a file of a
lost or late task is in no list, and nobody's row.
"""

import json
from typing import Any

from console.agent.store import attempt_table, open_tables
from console.agent.store.file_action import FileAction, added_file, check_columns


def write(session: Any, rows: Any, table: str, schema: str = "") -> tuple[FileAction, ...]:
    """Write rows as files of a table, and commit nothing.

    rows    DataFrame with the table's stored columns
    schema  of the rows, as Delta's JSON, if they are to replace the table's rows and columns: they may be other ones then
    raises  RegionError E_COLUMNS if it has other ones; whatever Spark raises. Files of a failed job are left behind, and named
            by no log
    """
    from pyspark.sql import SparkSession

    if not schema:
        check_columns(table, json.loads(open_tables.schema_json(table)), json.loads(rows.schema.json()))
    if not isinstance(session, SparkSession):  # that of Spark Connect is another class
        return attempt_table.write(rows, table)
    delta = session._jvm.org.apache.spark.sql.delta.DeltaLog
    transaction = delta.forTable(session._jsparkSession, table).startTransaction()
    if schema:
        was = transaction.metadata()
        own = (was.id(), was.name(), was.description(), was.format())
        fresh = was.copy(*own, schema, was.partitionColumns(), was.configuration(), was.createdTime())
        transaction.updateMetadataForTableOverwrite(fresh)
    written = transaction.writeFiles(rows._jdf)
    return tuple(added_file(table, json.loads(written.apply(at).json())) for at in range(written.size()))
