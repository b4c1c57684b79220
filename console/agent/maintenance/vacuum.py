"""Deletion of files without readers (docs/design.md, rule 7).

Only the table's own `deletedFileRetentionDuration` decides how long a removed file stays. Delta forgets removals after that
time, so `VACUUM … RETAIN` with more hours does not keep files (measured: files removed 30 days ago were deleted by RETAIN 960
HOURS). A table whose older files are still needed is therefore not vacuumed at all.
"""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from console.agent.store import log, write_lock
from console.errors import RegionError

DEFAULT_HOURS = 168.0  # Delta's default
SLACK_HOURS = 1.0  # a removal's timestamp is earlier than its commit's
_HOURS = {"second": 1 / 3600, "minute": 1 / 60, "hour": 1.0, "day": 24.0, "week": 168.0}


@dataclass(frozen=True, slots=True)
class Need:
    """A reader's need for the table as of `version`, or for the files added after it. why: the reader"""

    version: int
    why: str


def blocking_need(table: str, needs: Iterable[Need]) -> Need | None:
    """The first need for a file that VACUUM would delete now, or None.

    A file that is part of a needed version, or was added after it, can only have been removed by a later commit.

    raises  RegionError E_LOG_GONE if such a commit is gone from the log
    """
    oldest = (time.time() - (kept_hours(table) - SLACK_HOURS) * 3600) * 1000
    latest = log.latest_version(table)
    for need in sorted(needs, key=lambda need: need.version):
        for version in range(need.version + 1, latest + 1):
            if any(stamp < oldest for stamp in _removals(table, version)):
                return need
    return None


def vacuum(session: Any, table: str) -> None:
    """Delete the files that belong to no version within the table's own retention.

    session  a session of its own, since the note of a maintenance statement is a session setting
    """
    from delta.tables import DeltaTable as Table

    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", json.dumps({"kind": "vacuum"}))
    session.conf.set("spark.databricks.delta.vacuum.parallelDelete.enabled", "false")
    with write_lock.shared(table):
        Table.forPath(session, table).vacuum()


def _removals(table: str, version: int) -> list[int]:
    """Deletion timestamps (ms since 1970) of the files removed by a commit."""
    lines = log.action_lines(
        table, version, hint="nothing was deleted: the files that are still needed cannot be determined"
    )
    removals = (json.loads(line).get("remove") for line in lines if '"remove"' in line)
    return [int(remove.get("deletionTimestamp") or 0) for remove in removals if remove]


def kept_hours(table: str) -> float:
    """`delta.deletedFileRetentionDuration` in hours.

    raises  RegionError E_RETENTION if it is not a duration
    """
    text = DeltaTable(table).metadata().configuration.get("delta.deletedFileRetentionDuration", "")
    if not text:
        return DEFAULT_HOURS
    words = text.lower().removeprefix("interval ").split()
    try:
        return sum(float(n) * _HOURS[unit.rstrip("s")] for n, unit in zip(words[::2], words[1::2], strict=True))
    except (ValueError, KeyError):
        raise RegionError(
            f"{table}: delta.deletedFileRetentionDuration is {text!r:.60}",
            hint="nothing was deleted",
            code="E_RETENTION",
        ) from None
