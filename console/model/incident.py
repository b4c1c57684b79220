"""Content of stored log lines, as values: failed tries, waits, Spark's return, changed limits, notes, declarations
at the gate, and failures of the checks after a promotion. Added after 0.1.0, which reads only the line."""

from console.model.breach import Breached, WatchEnded, WatchSteered
from console.model.consent import Approved, CheckAccepted, TicketNamed
from console.model.note import Noted
from console.model.tuning import Tuned
from console.record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TryFailed:
    """A try of a batch that failed. Its time ends at its event.

    label        of the batch: `2026-11-07 … 2026-11-05`
    first, last  its slices
    cause        the kind of the failure: memory, day, value, gone, drift, passing, final; later versions may add others
    number, of   number of the try, and the number in a row that fails the rollout
    rows         estimated rows of the batch
    rows_next    row limit of the next try; 0: unchanged, or no next try
    """

    step: str
    label: str
    first: int
    last: int
    cause: str
    why: str
    number: int
    of: int
    rows: int
    rows_next: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitBegan:
    """The rollout has been waiting since `since` (seconds since 1970, UTC), without an error.

    cause  pause, hours, lag, query, alignment; later versions may add others
    """

    step: str
    cause: str
    why: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEnded:
    """The wait that was open is over."""

    step: str
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkBack:
    """Spark responds again after a loss. seconds: since the loss was recorded"""

    step: str
    seconds: float


Incident = (
    TryFailed
    | WaitBegan
    | WaitEnded
    | SparkBack
    | Tuned
    | Noted
    | CheckAccepted
    | Approved
    | TicketNamed
    | Breached
    | WatchSteered
    | WatchEnded
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicedDay:
    """Consecutive slices of a fence that share a day, newest day first.

    label   the day as `model/slices` names it; `2026-11-03 … 2026-11-05` if there are too many days to list
    rows    estimate
    slices  their number: 24 for a day that is cut into hours
    """

    label: str
    rows: int
    slices: int = 1
