"""Maintenance of a table in a bucket: the agent's own commits, and its own deletions behind them (docs/decisions/0023).

Neither Spark nor deltalake may do it by itself: Spark commits nothing there, and deltalake's compaction and VACUUM move to
a later version instead of being refused by it.
"""

from collections.abc import Mapping
from datetime import date
from math import ceil
from typing import Any

from deltalake import CommitProperties, DeltaTable

from console import crash
from console.agent.maintenance.replaced_files import named_files
from console.agent.maintenance.vacuum import kept_hours
from console.agent.object_store.object_path import ObjectPath
from console.agent.store import commits, log_files
from console.errors import RegionError


def delete_older(table: str, column: str, keep: date, *, or_null: bool, note: Mapping[str, Any]) -> None:
    """Delete the rows before a day, in one commit.

    or_null  also those without a time
    """
    named = '"' + column.replace('"', '""') + '"'
    older = f"{named} < '{keep.isoformat()}'"  # takes the column's own type: a day is its first moment, in UTC
    which = f"({older} OR {named} IS NULL)" if or_null else older

    def write(opened: DeltaTable, properties: CommitProperties) -> None:
        crash.point("before-commit-retention")
        opened.delete(which, commit_properties=properties)

    commits.commit(table, write, note=note)
    crash.point("after-commit-retention")


def vacuum(table: str) -> int:
    """Delete the files that belong to no version within the table's own retention. Returns their number.

    A commit stands in front of the deletion: a former holder of the lease cannot make it. Killed after it, files are left
    to the next one.
    """
    commits.own(table)
    folder = log_files.root_of(table)
    assert isinstance(folder, ObjectPath)
    opened = DeltaTable(table)
    hours = ceil(kept_hours(table))
    # deltalake only names them, those that are gone already as well: by itself it would delete by a version that may be stale
    unneeded = opened.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True)
    there = {entry.key.removeprefix(f"{folder.key}/") for entry in folder.listed()}
    names = sorted(there.intersection(unneeded) - named_files(opened))
    if not names:
        return 0

    def write(newest: DeltaTable, properties: CommitProperties) -> None:
        if newest.version() != opened.version() and (named := named_files(newest) & set(names)):
            raise RegionError(f"{table}: {len(named)} files are named again; nothing was deleted", code="E_BUSY")
        by = newest.metadata().partition_columns
        crash.point("before-commit-vacuum")
        newest.create_write_transaction([], "append", newest.schema(), by, commit_properties=properties)

    commits.commit(table, write, note={"kind": "vacuum", "files": len(names), "hours": hours})
    crash.point("after-commit-vacuum")
    folder.objects.delete((f"{folder.key}/{name}" for name in names), commits.check_tenure)
    return len(names)
