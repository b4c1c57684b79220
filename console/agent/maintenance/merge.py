"""The partial states of each key of an aggregate's partition, united into one row each (docs/decisions/0029).

Unlike a compaction this changes rows, in a commit without data change, which feeds skip. So the commit names the files that it
read and those that replace them, and is made only once the new files were read back: every key has the value that it had.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from console.agent.errors import MergeDiffers
from console.agent.feeds.checksum import row_sums_per_day
from console.agent.feeds.file_layout import FILE_BYTES, clustered
from console.agent.maintenance.compaction import Crowd
from console.agent.maintenance.merged_values import key_differences, united
from console.agent.maintenance.replaced_files import PartitionFile, partition_files, replace_files
from console.agent.receipts.merges import MergedSums
from console.agent.receipts.step_receipts import sum_definition
from console.agent.rows import appended, log_excerpt
from console.agent.store import commits, log, log_files, spark_files, write_lock
from console.agent.store.file_action import FileAction
from console.agent.store.shape import layout_of
from console.errors import Conflict
from console.model.live import TableState
from console.model.merging import Merging
from console.model.schema import quoted

LOCK_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    """What is to be merged.

    passed  version of the table that every feed below it has passed: files that came later keep their rows
    tasks   upper limit of tasks, so that a slot stays free for live feeds (docs/design.md, rule 10)
    refused called before the commit: why it is not allowed any more, "" if it is
    """

    table: str
    crowd: Crowd
    state: TableState
    merging: Merging
    passed: int
    tasks: int
    refused: Callable[[], str] = lambda: ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """A commit that merged states. files, rows: replaced ones; new_files, new_rows: in their place; version: of the table"""

    files: int
    rows: int
    new_files: int
    new_rows: int
    version: int


def merge(session: Any, wanted: Merge) -> Merged | None:
    """Merge the states of one partition.

    session  a session of its own
    returns  None, with nothing written, if fewer than two of its files may be merged, or no key has several rows in them
    raises   MergeDiffers, E_BUSY or E_DV, with nothing committed; files that were written are left to VACUUM
    """
    commits.own(wanted.table)
    pinned = log.latest_version(wanted.table)
    gone = mergeable_files(wanted, pinned)
    if len(gone) < 2:
        return None
    with log_excerpt.place(wanted.table) as scratch:
        before = _rows(session, wanted, pinned, _added(wanted, gone), scratch)
        one_a_key = united(session, wanted.merging, before)
        rows = one_a_key.coalesce(max(1, min(wanted.tasks, wanted.crowd.bytes // FILE_BYTES + 1)))
        oldest = min(file.modified for file in gone)  # of the rows in them: what was erased elsewhere since is in there
        written = [
            FileAction(name=f.name, bytes=f.bytes, values=f.values, modified=oldest, stats=f.stats)
            for f in spark_files.write(session, clustered(rows, wanted.state), wanted.table)
        ]
        after = _rows(session, wanted, pinned, _added(wanted, written), scratch)
        sums = _compared(session, wanted, pinned, before, after)
    old_rows, new_rows = (sum(total.rows for total in each.values()) for each in (sums.old, sums.new))
    if new_rows >= old_rows:
        return None
    note = {
        "kind": log.MERGE,
        "partition": wanted.crowd.label,
        "files": len(gone),
        "rows": [old_rows, new_rows],
        "sums": sums.noted(),
    }
    version = _commit(wanted, gone, written, note)
    return Merged(files=len(gone), rows=old_rows, new_files=len(written), new_rows=new_rows, version=version)


def mergeable_files(wanted: Merge, pinned: int) -> tuple[PartitionFile, ...]:
    """The partition's files as of a version, without those that hold rows which a feed below has not passed.

    A file that is not in the version that all have passed came later, or holds rows that did.
    """
    files = partition_files(wanted.table, pinned, wanted.crowd.values)
    if wanted.passed >= pinned:
        return files
    if wanted.passed < 0 or not log.covers(wanted.table, wanted.passed):
        return ()
    passed = {file.name for file in partition_files(wanted.table, wanted.passed, wanted.crowd.values)}
    return tuple(file for file in files if file.name in passed)


def _added(wanted: Merge, files: Sequence[PartitionFile | FileAction]) -> tuple[log.AddedFile, ...]:
    root = log_files.root_of(wanted.table)
    values = tuple(sorted(wanted.crowd.values))
    return tuple(log.AddedFile(path=str(root / f.name), rows=-1, bytes=f.bytes, values=values) for f in files)


def _rows(session: Any, wanted: Merge, version: int, files: Sequence[log.AddedFile], scratch: Path) -> Any:
    """The stored rows of exactly these files."""
    rows = appended.rows(session, wanted.table, layout_of(wanted.table, version), files, scratch)
    return rows.selectExpr(*map(quoted, wanted.merging.columns))


def _compared(session: Any, wanted: Merge, version: int, before: Any, after: Any) -> MergedSums:
    """Compare the values of all keys, and measure both sides as receipts do. raises  MergeDiffers"""
    differences = key_differences(session, wanted.merging, before, after)
    if differences:
        raise MergeDiffers(
            f"{wanted.table}: merged states of {wanted.crowd.label} would not have the values of those before: {differences}",
            hint="nothing was changed; report this",
        )
    time, columns = sum_definition(wanted.state, wanted.table, version, wanted.state.table.time)
    old, new = (row_sums_per_day(rows, time, columns) for rows in (before, after))
    return MergedSums(time=time, columns=columns, old=old, new=new)


def _commit(wanted: Merge, gone: Sequence[PartitionFile], written: Sequence[FileAction], note: dict[str, Any]) -> int:
    with write_lock.exclusive(wanted.table, seconds=LOCK_SECONDS) as locked:
        if not locked:
            raise Conflict(f"{wanted.table}: Spark is writing it", hint="console maintain, again", code="E_BUSY")
        if why := wanted.refused():
            raise Conflict(f"{wanted.table}: its states were not merged: {why}", hint="later", code="E_BUSY")
        return replace_files(wanted.table, gone, written, wanted.crowd.values, note)
