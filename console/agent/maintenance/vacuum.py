"""Files that nobody can want any more are deleted, and no other (docs/design.md, rule 7).

How long a removed file stays is the table's own `deletedFileRetentionDuration` and nothing else: Delta forgets that a
file was ever removed once that time is over, so `VACUUM … RETAIN` with more hours spares nothing (measured: files
removed 30 days ago were deleted by RETAIN 960 HOURS). So where somebody still needs an older one, a table is left alone.
"""

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from deltalake import DeltaTable

from console.agent.store import log, write_lock
from console.errors import RegionError

DELTAS_HOURS = 168.0  # where the table says nothing
SLACK_HOURS = 1.0  # a removal is stamped some time before its commit
_HOURS = {"second": 1 / 3600, "minute": 1 / 60, "hour": 1.0, "day": 24.0, "week": 168.0}


@dataclass(frozen=True, slots=True)
class Need:
    """Somebody still reads the table as of `version`, or what its commits after it added."""

    version: int
    why: str


def in_the_way(table: str, needs: Iterable[Need]) -> Need | None:
    """Who would miss a file that VACUUM deletes now; None if nobody would.

    A file that was live at a needed version, or was added after it, is only ever removed by a commit after it.

    raises  RegionError E_LOG_GONE if the log no longer tells of such a commit
    """
    oldest = (time.time() - (kept_hours(table) - SLACK_HOURS) * 3600) * 1000
    latest = log.latest_version(table)
    for need in sorted(needs, key=lambda need: need.version):
        for version in range(need.version + 1, latest + 1):
            if any(stamp < oldest for stamp in _removals(table, version)):
                return need
    return None


def vacuum(session: Any, table: str) -> None:
    """Delete the files that no version within the table's own retention has.

    session  one of its own: the note of a maintenance statement is a setting of the session
    """
    from delta.tables import DeltaTable as Table

    session.conf.set("spark.databricks.delta.commitInfo.userMetadata", json.dumps({"kind": "vacuum"}))
    session.conf.set("spark.databricks.delta.vacuum.parallelDelete.enabled", "false")
    with write_lock.shared(table):
        Table.forPath(session, table).vacuum()


def _removals(table: str, version: int) -> list[int]:
    """When (ms since 1970) the files that a commit removed were stamped as removed."""
    lines = log.action_lines(
        table, version, hint="nothing was deleted: nobody can tell which files its readers still need"
    )
    found = (json.loads(line).get("remove") for line in lines if '"remove"' in line)
    return [int(remove.get("deletionTimestamp") or 0) for remove in found if remove]


def kept_hours(table: str) -> float:
    """`delta.deletedFileRetentionDuration` in hours.

    raises  RegionError E_RETENTION if it says something else than a length of time
    """
    text = DeltaTable(table).metadata().configuration.get("delta.deletedFileRetentionDuration", "")
    if not text:
        return DELTAS_HOURS
    words = text.lower().removeprefix("interval ").split()
    try:
        return sum(float(n) * _HOURS[unit.rstrip("s")] for n, unit in zip(words[::2], words[1::2], strict=True))
    except (ValueError, KeyError):
        raise RegionError(
            f"{table}: delta.deletedFileRetentionDuration is {text!r:.60}",
            hint="nothing was deleted",
            code="E_RETENTION",
        ) from None
