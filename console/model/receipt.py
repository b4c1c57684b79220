"""What a rollout leaves behind for whoever asks later: receipts day by day, and what became of them when checked."""

from dataclasses import dataclass

from console.model.event import Recorded
from console.model.status import Status


@dataclass(frozen=True, slots=True)
class Place:
    """One side of a receipt: rows of one table as of one Delta version, and how they were summed up.

    path     below the warehouse, or absolute;  id  Delta's own of the table
    before   rows that stood there as of this version are not counted; -1: none did
    time     stored column whose UTC day tells the days, "" puts all rows under ""
    columns  (name, Spark type) that the checksum covers
    """

    path: str
    id: str
    version: int
    before: int = -1
    time: str = ""
    columns: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """Both sides of a step's receipts; `since` and `until` cut the source's days as the halves of a hybrid are cut."""

    source: Place
    target: Place
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class Receipt:
    """One day (UTC, "" for rows without a time) that one step carried from its source into its target.

    fence     version of the source up to which its rows were read
    position  what the target's feed had reached: the last slice of a backfill, a source version of a catch-up
    version   of the target
    rows_in, checksum_in    of that day in the source;  rows_out, checksum_out  in the target, by its own time
    days      how many receipts the step has;  how  left out where receipts are only listed
    """

    rollout: str
    step: str
    target: str
    source: str
    day: str
    fence: int
    position: int
    version: int
    rows_in: int
    checksum_in: str
    rows_out: int
    checksum_out: str
    days: int
    at: float = 0.0
    how: Measured | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked again.

    what  decisions · receipts · batches · source · target · since · live
    ok    None: it cannot be checked any more, and `detail` says why
    days  those that differ, or that cannot be checked
    """

    table: str
    step: str
    what: str
    ok: bool | None
    detail: str
    days: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """What a region remembers. rollouts: all of them, oldest first; events and receipts only of the one asked for."""

    rollouts: tuple[Status, ...]
    events: tuple[Recorded, ...] = ()
    receipts: tuple[Receipt, ...] = ()


# what `console query` may read of a region's own tables: name → column → Spark type, as they are stored
LEDGER: dict[str, dict[str, str]] = {
    "ops": {
        "kind": "string", "rollout": "string", "seq": "bigint", "at": "double", "who": "string", "identity": "string",
        "host": "string", "release": "string", "was": "string", "plan": "string", "step": "string", "target": "string",
        "source": "string", "day": "string", "fence": "bigint", "position": "bigint", "version": "bigint",
        "rows_in": "bigint", "checksum_in": "string", "rows_out": "bigint", "checksum_out": "string", "days": "bigint",
        "how": "string", "seal": "string",
    },
    "events": {"rollout": "string", "seq": "bigint", "at": "double", "event": "string"},
    "quarantine": {
        "rollout": "string", "step": "string", "target": "string", "source": "string", "fence": "bigint",
        "position": "bigint", "slices": "string", "key": "string", "reason": "string", "at": "double",
    },
    "releases": {
        "id": "string", "state": "string", "rollout": "string", "at": "double", "by": "string", "host": "string",
    },
}  # fmt: skip
LEDGER_VIEW = "_console_"  # a view's name has no dot: `_console.ops` is registered as `_console_ops`
