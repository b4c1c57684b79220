"""The lasting record of a rollout: receipts day by day, and the findings of their verification."""

from dataclasses import field

from console.model.codec import BESIDE, needed
from console.model.compared import NO_PAGE, ComparedPage
from console.model.event import Recorded
from console.model.measured import SparkJob
from console.model.status import Status
from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One side of a receipt: rows of one table as of one Delta version, and the definition of their sums.

    path     below the warehouse, or absolute
    id       Delta's id of the table
    before   rows present as of this version are not counted; -1 counts all
    time     stored column that determines the UTC day; "" puts all rows under ""
    columns  (name, Spark type) covered by the checksum
    feed     app id whose commits alone count, where other feeds committed rows between `before` and `version`, as the live
             rows of a preview do before its rollout continues the history; "" counts all rows
    """

    path: str
    id: str
    version: int
    before: int = -1
    time: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    feed: str = field(default="", metadata=needed("0.2.0"))


@dataclass(frozen=True, slots=True)
class Measured:
    """Both sides of a step's receipts; `since` and `until` limit the source's days to one half of a hybrid."""

    source: Place
    target: Place
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """One day (UTC, "" for rows without a time) that one step copied from its source into its target.

    fence     version of the source up to which rows were read
    position  position of the target's feed: the last slice of a backfill, a source version of a catch-up
    version   version of the target
    rows_in, checksum_in    that day in the source
    rows_out, checksum_out  that day in the target, by the target's time column
    days      number of receipts of the step
    how       None if receipts are only listed
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The result of one check.

    what  decisions · limits · receipts · batches · source · target · since · live
    ok    None if the check is no longer possible; `detail` has the reason
    days  the days that differ, or that cannot be checked
    """

    table: str
    step: str
    what: str
    ok: bool | None
    detail: str
    days: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditProgress:
    """Progress of an audit; never stored.

    number, of         the running check, from 1, and their number
    table, step, what  of that check, as in `Finding`
    found              results since the last report
    job                its Spark job; None between two jobs
    """

    number: int
    of: int
    table: str
    step: str
    what: str
    found: tuple[Finding, ...] = ()
    job: SparkJob | None = None


@dataclass(frozen=True, slots=True)
class Past:
    """A region's history. rollouts: all, oldest first; events and receipts: only those of the rollout requested.

    compared  a page of its comparison's records, if one was requested
    """

    rollouts: tuple[Status, ...]
    events: tuple[Recorded, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    compared: ComparedPage = field(default=NO_PAGE, metadata=BESIDE)


# the region's own tables that `console query` may read: name → column → stored Spark type
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
    "comparison": {
        "rollout": "string", "target": "string", "day": "string", "column_name": "string", "old": "bigint", "new": "bigint",
        "equal": "boolean", "changed": "bigint", "changed_of": "bigint", "quarantined": "bigint", "portion": "bigint",
        "old_version": "bigint", "new_version": "bigint", "at": "double",
    },
    "releases": {
        "id": "string", "state": "string", "rollout": "string", "at": "double", "by": "string", "host": "string",
    },
}  # fmt: skip
LEDGER_VIEW = "_console_"  # a view name has no dot: `_console.ops` is registered as `_console_ops`
