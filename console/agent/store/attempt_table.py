"""Data files written through Spark Connect, where no class of Delta's can be called: by Delta, into a table of one attempt's own.

It lies inside of the real table, so its files are in their final places. Spark commits there and nowhere else; what counts is
the list in that commit, which the agent reads and names in the real table. A job that goes on behind its agent's back ends in a
table of its own, whose files nobody names and VACUUM finds (docs/decisions/0027).
"""

import json
import uuid
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from console.agent.object_store.object_path import ObjectPath
from console.agent.store import commits, log, log_files
from console.agent.store.file_action import FileAction, added_file
from console.errors import RegionError
from console.model import created

PREFIX = "attempt-"
_KEPT = "_kept"  # an object, since in a bucket there is a folder as long as there is one
_STATISTICS = "delta.dataSkipping"  # settings of a table that say which columns of its files have any


def write(rows: Any, table: str) -> tuple[FileAction, ...]:
    """Write rows as files of a table in a bucket, partitioned as it is, and commit nothing there.

    raises  RegionError E_ATTEMPT, E_DV if Delta has written them in another way than the table's files are;
            whatever Spark raises. Files of a failed job are left behind, and named by no log that is read
    """
    metadata = DeltaTable(table).metadata()
    settings = {name: value for name, value in metadata.configuration.items() if name.startswith(_STATISTICS)}
    name = f"{PREFIX}{uuid.uuid4().hex}"
    attempt = log_files.root_of(table) / name
    # Delta makes this folder where it is missing, by an object whose name ends with a slash, which the agent's client cannot delete
    (attempt / "_delta_log" / "_staged_commits" / _KEPT).touch()
    writer = rows.write.format("delta").mode("error").options(**created.OFF, **settings)
    writer.partitionBy(*metadata.partition_columns).save(str(attempt))
    files = _files(table, attempt, name)
    _forget(attempt)
    return files


def _files(table: str, attempt: Path, name: str) -> tuple[FileAction, ...]:
    actions = [json.loads(line) for line in log.action_lines(str(attempt), 0)]
    metadata = next(action["metaData"] for action in actions if "metaData" in action)
    if metadata["configuration"].get("delta.columnMapping.mode", "none") != "none":
        raise RegionError(
            f"{table}: the server maps the columns of new tables, and files with such columns fit no table of console's",
            hint="leave spark.databricks.delta.properties.defaults.columnMapping.mode out of the server's settings",
            code="E_ATTEMPT",
        )
    changes = [action for action in actions if action.keys() & {"add", "remove", "cdc"}]
    return tuple(added_file(table, action, f"{name}/") for action in changes)


def _forget(attempt: Path) -> None:
    """Delete the attempt's log, which no VACUUM of the real table would find."""
    assert isinstance(attempt, ObjectPath)
    below = attempt / "_delta_log"
    assert isinstance(below, ObjectPath)
    below.delete_below(commits.check_tenure)
