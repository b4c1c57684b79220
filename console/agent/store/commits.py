"""The agent's commits through deltalake. On a disk the region's lock admits one process; in a bucket each commit is fenced
by the epoch of the region's lease (`agent/lease/fence`, docs/stores.md).
"""

import json
import threading
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Schema, Transaction, write_deltalake
from deltalake.exceptions import TableNotFoundError

from console.agent.lease import fence
from console.agent.lease.lease import Lease
from console.agent.lease.objects import Objects
from console.agent.object_store.object_path import in_bucket
from console.agent.store import log, open_tables
from console.errors import RegionError
from console.model.created import CHECKPOINT_COMMITS

NO_NOTE: Mapping[str, Any] = {}


@dataclass(slots=True, kw_only=True)
class Tenure:
    """The lease that this process holds, and the logs that it has taken over.

    objects  of the warehouse
    """

    objects: Objects
    lease: Lease
    _owned: set[str] = field(default_factory=set)
    _guard: threading.Lock = field(default_factory=threading.Lock)
    # of two threads one waits, where both would otherwise find the other's commit in their way
    _tables: dict[str, threading.RLock] = field(default_factory=lambda: defaultdict(threading.RLock))

    def log(self, table: str) -> fence.FencedLog:
        root = f"{self.objects.address}/"
        if not table.startswith(root):
            raise RegionError(
                f"{table} is not below {self.objects.address}: its lease does not cover it", code="E_NOT_OWNED"
            )
        return fence.FencedLog(objects=self.objects, path=table.removeprefix(root).rstrip("/"))

    def one_at_a_time(self, table: str) -> threading.RLock:
        with self._guard:
            return self._tables[table]

    def own(self, table: str) -> None:
        if table in self._owned:
            return
        with self.one_at_a_time(table):
            fenced = self.log(table)
            if (fenced.open().transaction_version(fence.EPOCHS) or 0) != self.lease.epoch:
                fence.take_over(fenced, self.lease)
            self._owned.add(table)

    def create(self, table: str, schema: Any, partition_by: list[str], settings: Mapping[str, str], note: str) -> None:
        """One put of version 0, which holds the epoch already. raises  whatever deltalake says, of a lost answer too"""
        self.lease.check()
        properties = CommitProperties(
            app_transactions=[Transaction(fence.EPOCHS, self.lease.epoch)],
            custom_metadata={"userMetadata": note} if note else None,
            max_commit_retries=0,
        )
        try:
            DeltaTable.create(
                table, schema, "error", partition_by, configuration=dict(settings), commit_properties=properties
            )
        except Exception:
            if not log.exists(table):
                raise
            # a lost answer, or a former holder's: either way the table that was wanted, which is now taken over


_tenures: list[Tenure] = []  # none or one: a process holds one lease, as it holds one lock


def hold(tenure: Tenure | None) -> None:
    """From now on commits to tables in a bucket are those of this lease; None: of no lease, so that there are none."""
    _tenures[:] = [] if tenure is None else [tenure]


def own(table: str) -> None:
    """Take a log over, if it lies in a bucket: call it before anything is read of which a later commit depends.

    raises  LeaseLost if another process has a later epoch; StoreUnreachable
    """
    if in_bucket(table):
        _tenure(table).own(table)


def commit(
    table: str,
    write: fence.Write,
    *,
    note: Mapping[str, Any] = NO_NOTE,
    numbers: tuple[Transaction, ...] = (),
    more: Mapping[str, str] = NO_NOTE,
) -> int:
    """One commit to an existing table.

    more     further fields of the commit's info

    write    gets the opened table and the properties to commit with; in a bucket it is called again for each try, so that it
             decides by the table that it is given
    returns  a version of the table before the commit
    raises   as `fence.commit` in a bucket; what `write` raises
    """
    if in_bucket(table):
        tenure = _tenure(table)
        tenure.own(table)
        with tenure.one_at_a_time(table):
            return fence.commit(tenure.log(table), tenure.lease, write, note=note, numbers=numbers, more=more) - 1
    with open_tables.opened(table) as opened:
        before = int(opened.version())
        write(opened, _properties(note, numbers, more))
    return before


def hooks(table: DeltaTable) -> PostCommitHookProperties:
    """What deltalake does after a commit of this table that is one of many.

    By itself it looks through the whole log for expired commits each time, which is four fifths of an append to a log of 20,000. Here it
    does so as often as it makes a checkpoint.
    """
    is_due = (int(table.version()) + 1) % CHECKPOINT_COMMITS == 0
    return PostCommitHookProperties(cleanup_expired_logs=None if is_due else False)


def append(table: str, rows: Any, *, note: Mapping[str, Any] = NO_NOTE, numbers: tuple[Transaction, ...] = ()) -> None:
    """Append rows to a table, which is made if it is missing. rows: an Arrow table"""
    if not in_bucket(table):
        properties = _properties(note, numbers) if note or numbers else None
        try:
            with open_tables.opened(table) as opened:
                after = hooks(opened)
                write_deltalake(
                    opened, rows, mode="append", commit_properties=properties, post_commithook_properties=after
                )
        except TableNotFoundError:
            write_deltalake(table, rows, mode="append", commit_properties=properties)
        return
    if not log.exists(table):
        _tenure(table).create(table, Schema.from_arrow(rows.schema), [], {}, "")

    def write(opened: DeltaTable, properties: CommitProperties) -> None:
        write_deltalake(opened, rows, mode="append", commit_properties=properties)

    commit(table, write, note=note, numbers=numbers)


def create(table: str, schema: Schema, partition_by: list[str], settings: Mapping[str, str], note: str) -> None:
    """Make an empty table where there is none."""
    if in_bucket(table):
        _tenure(table).create(table, schema, partition_by, settings, note)
        _tenure(table).own(table)
        return
    properties = CommitProperties(custom_metadata={"userMetadata": note})
    DeltaTable.create(table, schema, "error", partition_by, configuration=dict(settings), commit_properties=properties)


def _properties(
    note: Mapping[str, Any], numbers: tuple[Transaction, ...], more: Mapping[str, str] = NO_NOTE
) -> CommitProperties:
    return CommitProperties(
        custom_metadata={"userMetadata": json.dumps(dict(note)), **more} if note else None,
        app_transactions=list(numbers) or None,
    )


def check_tenure() -> None:
    """Before something is written or deleted in a bucket that is no commit. raises  LeaseLost"""
    for tenure in _tenures:
        tenure.lease.check()


def _tenure(table: str) -> Tenure:
    if not _tenures:
        raise RegionError(f"{table}: only the agent of its region writes it", code="E_NOT_OWNED")
    return _tenures[0]
