"""Commits that a stale holder of the lease cannot make, on every kind of Delta log that an agent writes.

A new holder first takes each log over by an empty commit with its epoch. Every commit of ours is one put of exactly
N+1, after a look at version N: the newest epoch there must be the writer's own. A stale holder's commit therefore lies
before the take-over, where the successor reads it, or wants the version of the take-over or a later one, and is refused.
"""

import json
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import DeltaError, DeltaProtocolError, SchemaMismatchError

from console.agent.errors import StoreUnreachable
from console.agent.lease.lease import Lease
from console.agent.lease.objects import Objects
from console.errors import RegionError

EPOCHS = "lease"  # the app id whose number in a log is the epoch of the lease that owns it
ATTEMPT = "consoleAttempt"  # in a commit's info: which call wrote it
TRIES = 8
NOTHING: Mapping[str, Any] = {}
_BEFORE_THE_PUT = (SchemaMismatchError, DeltaProtocolError)  # of deltalake's errors; any other may follow a commit

# Commits once, by these properties, from the version at which the table is opened.
Write: TypeAlias = Callable[[DeltaTable, CommitProperties], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedLog:
    """The log of one table.

    path     of the table, below the address of `objects`
    options  deltalake's, for the same store
    """

    objects: Objects
    path: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        return f"{self.objects.address}/{self.path}"

    def open(self) -> DeltaTable:
        return DeltaTable(self.address, storage_options=dict(self.options))

    def commit_at(self, version: int) -> list[dict[str, Any]] | None:
        """The actions of one commit; None if there is none yet. raises  StoreUnreachable"""
        text = self.objects.read(f"{self.path}/_delta_log/{version:020}.json")
        return None if text is None else [json.loads(line) for line in text.splitlines()]


def take_over(log: FencedLog, lease: Lease) -> int:
    """Make the log this holder's: an empty commit with its epoch. Returns the version; whatever lies before it is final.

    raises  as `commit`
    """

    def empty(table: DeltaTable, properties: CommitProperties) -> None:
        by = table.metadata().partition_columns
        table.create_write_transaction([], "append", table.schema(), by, commit_properties=properties)

    note = {"kind": "lease", "epoch": lease.epoch}
    return _commit(log, lease, empty, _Owned.NOT_YET, _info(note, NOTHING), (Transaction(EPOCHS, lease.epoch),))


def commit(
    log: FencedLog,
    lease: Lease,
    write: Write,
    *,
    note: Mapping[str, Any],
    numbers: tuple[Transaction, ...] = (),
    more: Mapping[str, str] = NOTHING,
) -> int:
    """One commit to a log that was taken over, exactly once. Returns its version, read back from the log.

    A refusal or a lost answer is not believed. The call looks for its own mark in the log, and only where it is missing
    writes again, from the newest version: of two tries for one version the store lets one pass, so none lands twice.

    write    is called again for each try, and decides by the table that it is given
    note     ours, in the commit's info; none if it is empty;  more: further fields there
    numbers  of feeds and batches, committed with it; the caller has checked that they are greater than those in the log
    raises   LeaseLost, and nothing was written; StoreUnreachable if the outcome is unknown;
             RegionError E_NOT_OWNED for a log that this holder did not take over; whatever `write` raises before its put
    """
    return _commit(log, lease, write, _Owned.YES, _info(note, more), numbers)


def _info(note: Mapping[str, Any], more: Mapping[str, str]) -> dict[str, str]:
    return {**({"userMetadata": json.dumps(dict(note))} if note else {}), **more}


class _Owned(Enum):
    YES = auto()
    NOT_YET = auto()


def _commit(
    log: FencedLog,
    lease: Lease,
    write: Write,
    owned: _Owned,
    info: Mapping[str, str],
    numbers: tuple[Transaction, ...],
) -> int:
    attempt = uuid.uuid4().hex
    properties = CommitProperties(
        max_commit_retries=0,
        app_transactions=list(numbers),
        custom_metadata={**info, ATTEMPT: attempt},
    )
    lease.check()
    table = log.open()
    first = table.version()
    failure: Exception | None = None
    for _ in range(TRIES):
        if failure is not None:
            table = log.open()
            # after the table was opened: it may have arrived late, in front of a take-over that the table shows
            if (version := _landed(log, attempt, first)) is not None:
                return version
        _check_epoch(log, lease, table, owned)
        try:
            write(table, properties)
        except Exception as error:  # said of a commit that landed, too: a lost answer, a table that then cannot be read
            failure = error
        if (version := _landed(log, attempt, first)) is not None:
            return version
        if failure is None or isinstance(failure, _BEFORE_THE_PUT) or not isinstance(failure, (DeltaError, OSError)):
            break
    if isinstance(failure, (DeltaError, OSError)) and not isinstance(failure, _BEFORE_THE_PUT):
        raise StoreUnreachable(f"{log.address}: {TRIES} commits failed, the last one with: {failure}") from failure
    if failure is not None:
        raise failure
    raise RegionError(f"{log.address}: a commit is not in the log", hint="console doctor", code="E_NO_COMMIT")


def _check_epoch(log: FencedLog, lease: Lease, table: DeltaTable, owned: _Owned) -> None:
    newest = table.transaction_version(EPOCHS) or 0
    if newest > lease.epoch:
        raise lease.fenced({"host": f"the holder of epoch {newest}"})
    if owned is _Owned.YES and newest < lease.epoch:
        raise RegionError(
            f"{log.address}: written by epoch {lease.epoch} of the lease, taken over by {newest}",
            hint="report it: the agent takes over each log before it writes there",
            code="E_NOT_OWNED",
        )


def _landed(log: FencedLog, attempt: str, after: int) -> int | None:
    """The version of an attempt's commit; None if none after `after` is it."""
    version = after + 1
    while (actions := log.commit_at(version)) is not None:
        if any(action.get("commitInfo", {}).get(ATTEMPT) == attempt for action in actions):
            return version
        version += 1
    return None
