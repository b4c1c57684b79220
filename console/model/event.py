"""What happens to one region's rollout, as values. The journal keeps them, `fold` reads them, the faces draw that."""

from dataclasses import dataclass, field
from typing import Literal

from console.model.codec import BESIDE, QUIET
from console.model.fleet import FleetWaves

State = Literal[
    "planned",
    "preparing",
    "backfilling",
    "catching-up",
    "validating",
    "awaiting-confirmation",
    "promoting",
    "live",
    "cancelled",
    "discarded",
    "rolled-back",
    "cleaned",
]
RUNNING: frozenset[str] = frozenset(("planned", "preparing", "backfilling", "catching-up", "validating", "promoting"))
ENDED: frozenset[str] = frozenset(("live", "cancelled", "discarded", "rolled-back", "cleaned"))


@dataclass(frozen=True, slots=True)
class Accepted:
    """The region has stored the plan and carries it on alone.

    steps    (id, estimated rows) in order
    allowed  losses that were accepted by name, `CODE:table`
    attached tied to the console that began it: without a watcher it pauses
    fleet    None where the region was started alone
    """

    release: str
    was: str  # live release it starts from
    plan: str  # digest
    by: str
    host: str
    steps: tuple[tuple[str, int], ...]
    allowed: tuple[str, ...] = ()
    attached: bool = field(default=False, metadata=QUIET)
    fleet: FleetWaves | None = field(default=None, metadata=BESIDE)


@dataclass(frozen=True, slots=True)
class Entered:
    """A new state."""

    state: State


@dataclass(frozen=True, slots=True)
class Fenced:
    """History of a step ends at `version` of `source`; its slices are cut and their order is fixed.

    until  seconds, UTC: after that files of this version may be deleted under the rollout; 0 is not known
    """

    step: str
    source: str
    version: int
    slices: int
    rows: int
    until: float = field(default=0.0, metadata=QUIET)


@dataclass(frozen=True, slots=True)
class StepStarted:
    step: str


@dataclass(frozen=True, slots=True)
class BatchStarted:
    """slices first…last of `of`; label is `2026-11-07 … 2026-11-05`."""

    step: str
    label: str
    first: int
    last: int
    of: int
    rows: int  # estimate


@dataclass(frozen=True, slots=True)
class Progress:
    """Inside a batch or a catch-up; never stored. rows of this batch so far; left: rows to go, -1 unknown.

    batch  label of the batch, by which one that is told late is known; "" in a catch-up
    """

    step: str
    rows: int
    left: int = -1
    batch: str = field(default="", metadata=BESIDE)


@dataclass(frozen=True, slots=True)
class BatchDone:
    """One commit, read back. The receipt of these slices."""

    step: str
    label: str
    position: int  # index of the last slice
    of: int
    rows_in: int
    rows_out: int
    bytes: int
    seconds: float
    version: int  # Delta version of the target, -1 where the slices held nothing
    quarantined: int = field(default=0, metadata=QUIET)  # rows that were set aside, in rows_in and not in rows_out


@dataclass(frozen=True, slots=True)
class StepDone:
    step: str


@dataclass(frozen=True, slots=True)
class Checked:
    """One check of the validation. ok None is inconclusive; `detail` is one line of figures or of what differs.

    commits, rows  of a sample of live commits: how many were computed again, with how many rows of their source
    """

    table: str
    check: str
    ok: bool | None
    detail: str
    commits: int = field(default=0, metadata=BESIDE)
    rows: int = field(default=0, metadata=BESIDE)


@dataclass(frozen=True, slots=True)
class Waiting:
    """Not an error: why nothing moves ("" when it moves again); never stored."""

    why: str


@dataclass(frozen=True, slots=True)
class Ailing:
    """A live feed whose last try failed.

    feed     its materialization;  target  the logical table that it fills;  path  the version of it
    tries    that failed, one after the other
    standing nobody should wait for it: it stopped, or has failed too often to be believed to heal
    below    logical tables that get no rows either, since they hang below the target
    """

    feed: str
    target: str
    path: str
    tries: int
    standing: bool
    why: str
    hint: str = ""
    code: str = ""
    below: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Lagging:
    """How far the feeds are behind their sources, summed, and which of them fail; never stored."""

    commits: int
    rows: int
    seconds: float
    ailing: tuple[Ailing, ...] = field(default=(), metadata=BESIDE)


@dataclass(frozen=True, slots=True)
class Paused:
    by: str


@dataclass(frozen=True, slots=True)
class Expiring:
    """What a rollout reads may soon be deleted under it, or may be already. level 1 … 3 as it grows more urgent."""

    until: float  # seconds, UTC
    level: int
    told: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """Goes on after a pause or, as `retry`, after a failure."""

    by: str


@dataclass(frozen=True, slots=True)
class TakenOver:
    """Another console steers from now on; the one before it only looks."""

    by: str
    host: str
    console: str  # the id of the one that steers


@dataclass(frozen=True, slots=True)
class DriverLost:
    """The region's Spark went away in the middle of a step, which is begun again.

    why  how its JVM ended; "" where it was told by an agent that did not look
    """

    step: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    step: str
    why: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Promoted:
    release: str
    was: str
    by: str
    host: str
    version: int  # of the release table


@dataclass(frozen=True, slots=True)
class RolledBack:
    release: str  # live now
    was: str
    by: str
    host: str
    version: int


@dataclass(frozen=True, slots=True)
class Ended:
    """cancelled, discarded or cleaned, by whom."""

    state: State
    by: str


@dataclass(frozen=True, slots=True)
class Logged:
    """A line for the operator's log pane; never stored."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


Event = (
    Accepted | Entered | Fenced | StepStarted | BatchStarted | Progress | BatchDone | StepDone | Checked | Waiting
    | Lagging | Paused | Expiring | Resumed | DriverLost | Failed | Promoted | RolledBack | Ended | Logged | TakenOver
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorded:
    """One event of one rollout. seq grows by one for stored events and is 0 for the fleeting ones; at: seconds, UTC."""

    rollout: str
    seq: int
    at: float
    event: Event


def fleeting(data: object) -> bool:
    """Whether an event, as it came over a link, is one that is told and never stored: nothing rests on it."""
    return isinstance(data, dict) and data.get("seq") == 0


def point(event: Event) -> str:
    """A name for the moment of an event: `entered-validating`, `StepDone-create-requests`, `BatchDone`."""
    match event:
        case Entered(state):
            return f"entered-{state}"
        case StepStarted(step) | StepDone(step):
            return f"{type(event).__name__}-{step.replace('/', '-')}"
    return type(event).__name__
