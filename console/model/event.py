"""The events of one region's rollout, as values. They are stored, folded into a status, and shown by the faces."""

from dataclasses import field
from typing import Literal

from console.model.breach import WatchProgress
from console.model.codec import BESIDE, QUIET
from console.model.compared import ColumnSummary, DayTally
from console.model.erased import ErasedRows
from console.model.fleet import FleetWaves
from console.model.following import Following
from console.model.held_release import HeldRelease
from console.model.incident import Incident, SlicedDay
from console.model.measured import FeedSample, SparkJob
from console.model.recorded_call import ReplayedCall
from console.model.sandbox import Sandbox
from console.model.soak import SoakProgress
from console.model.watcher import Watcher
from console.model.way_back import WayBackProof
from console.record import dataclass

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The region has stored the plan and executes it on its own.

    steps    (id, estimated rows) in order
    allowed  losses that were accepted by name, `CODE:table`
    attached tied to the console that started it: it pauses without a watcher
    fleet    None if the region was started alone
    taken_back  the last release that the agent rolled back, if no person has promoted since; "" for none
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
    taken_back: str = field(default="", metadata=BESIDE)


@dataclass(frozen=True, slots=True)
class Entered:
    """A new state.

    by  who opened the gate, of `promoting`; "" from older agents, and of all other states
    """

    state: State
    by: str = field(default="", kw_only=True, metadata=BESIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fenced:
    """The history of a step ends at `version` of `source`; its slices and their order are fixed.

    until  seconds since 1970, UTC: files of this version may be deleted after that; 0 if unknown
    days   the slices, day by day; () from older agents
    """

    step: str
    source: str
    version: int
    slices: int
    rows: int
    until: float = field(default=0.0, metadata=QUIET)
    days: tuple[SlicedDay, ...] = field(default=(), metadata=BESIDE)


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A step begins, or begins again.

    away_since  if an agent continues the rollout of another: when that one was last known to run (seconds since 1970,
                UTC); else 0
    """

    step: str
    away_since: float = field(default=0.0, metadata=BESIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStarted:
    """slices first…last of `of`; label is `2026-11-07 … 2026-11-05`."""

    step: str
    label: str
    first: int
    last: int
    of: int
    rows: int  # estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress within a batch or a catch-up; never stored.

    rows   of this batch so far;  left  remaining rows, -1 if unknown
    batch  label of the batch, by which late reports are recognised; "" in a catch-up
    job    Spark's job; None if the report has none; the last one is then kept
    """

    step: str
    rows: int
    left: int = -1
    batch: str = field(default="", metadata=BESIDE)
    job: SparkJob | None = field(default=None, metadata=BESIDE)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchDone:
    """A committed batch, read back: the receipt of its slices."""

    step: str
    label: str
    position: int  # index of the last slice
    of: int
    rows_in: int
    rows_out: int
    bytes: int
    seconds: float
    version: int  # Delta version of the target, -1 if the slices were empty
    quarantined: int = field(default=0, metadata=QUIET)  # rows that did not convert: in rows_in, not in rows_out


@dataclass(frozen=True, slots=True)
class StepDone:
    """A step has succeeded."""

    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedDay:
    """One day of a table in the old and in the new version.

    day      UTC; "" for rows without a time
    old, new rows
    columns  unchanged columns whose checksums differ, the first ones of many; `TOGETHER` if only the rows differ
    more     columns that differ and are not listed
    """

    day: str
    old: int
    new: int
    columns: tuple[str, ...] = ()
    more: int = field(default=0, metadata=QUIET)

    @property
    def equal(self) -> bool:
        return self.old == self.new and not self.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One check of the validation.

    ok             None: inconclusive
    detail         one line: figures, or the differences
    commits, rows  recomputed live commits, and their source rows
    days           of a comparison per day, oldest first: the first days that differ, and the newest others; all of them
                   are in the region's records (`model/compared`)
    tally          of a comparison per day: the number of each kind
    summaries      of columns that are meant to change
    calls          of an endpoint, whose name is `table`: the results of its recorded calls
    """

    table: str
    check: str
    ok: bool | None
    detail: str
    commits: int = field(default=0, metadata=BESIDE)
    rows: int = field(default=0, metadata=BESIDE)
    days: tuple[ComparedDay, ...] = field(default=(), metadata=BESIDE)
    tally: DayTally | None = field(default=None, metadata=BESIDE)
    summaries: tuple[ColumnSummary, ...] = field(default=(), metadata=BESIDE)
    calls: tuple[ReplayedCall, ...] = field(default=(), metadata=BESIDE)


@dataclass(frozen=True, slots=True)
class Waiting:
    """The rollout waits, without an error; never stored. why: "" when it continues"""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ailing:
    """A live feed whose last attempt failed.

    feed     its materialization;  target  the logical table that it fills;  path  the version of it
    tries    failed attempts in a row
    standing the feed has stopped, or has failed too often for a recovery to be expected
    below    logical tables downstream of the target, which get no rows either
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Lagging:
    """Summed lag of the feeds behind their sources, failing feeds, and watchers; never stored.

    samples   the newest ones, of the pipeline and of each feed; () between two measurements
    watchers  None: not reported, as by older agents
    sandboxes the same; empty if there is none
    way_back  the newest proof of the previous release; None without such a release, and before the first proof
    on_hold   releases whose cleanup has begun; None: not reported
    soak      the checks that continue at the gate; None elsewhere
    erased    kept files that may hold erased rows; None: not reported
    watch     those that continue after the promotion; None before, once their time is over, and without `policy.watch`
    following how its agent follows; None: not reported
    """

    commits: int
    rows: int
    seconds: float
    ailing: tuple[Ailing, ...] = field(default=(), metadata=BESIDE)
    samples: tuple[FeedSample, ...] = field(default=(), metadata=BESIDE)
    watchers: tuple[Watcher, ...] | None = field(default=None, metadata=BESIDE)
    sandboxes: tuple[Sandbox, ...] | None = field(default=None, metadata=BESIDE)
    way_back: WayBackProof | None = field(default=None, metadata=BESIDE)
    on_hold: tuple[HeldRelease, ...] | None = field(default=None, metadata=BESIDE)
    soak: SoakProgress | None = field(default=None, metadata=BESIDE)
    erased: tuple[ErasedRows, ...] | None = field(default=None, metadata=BESIDE)
    watch: WatchProgress | None = field(default=None, metadata=BESIDE)
    following: Following | None = field(default=None, metadata=BESIDE)


@dataclass(frozen=True, slots=True)
class Paused:
    """No batch begins until the rollout is resumed."""

    by: str


@dataclass(frozen=True, slots=True)
class Expiring:
    """Files that a rollout reads may soon be, or already have been, deleted. level: urgency, 1 … 3"""

    until: float  # seconds, UTC
    level: int
    told: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """The rollout continues after a pause or, by `retry`, after a failure."""

    by: str


@dataclass(frozen=True, slots=True)
class TakenOver:
    """Another console controls the rollout from now on; the previous one can only watch."""

    by: str
    host: str
    console: str  # id of the console in control


@dataclass(frozen=True, slots=True)
class DriverLost:
    """The region's Spark was lost during a step, which starts again.

    why  how its JVM ended; "" from older agents
    """

    step: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The rollout stops until it is retried or discarded."""

    step: str
    why: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """The new release is live; the previous one is kept for a rollback."""

    release: str
    was: str
    by: str
    host: str
    version: int  # of the release table


@dataclass(frozen=True, slots=True, kw_only=True)
class RolledBack:
    """The previous release is live again."""

    release: str  # live now
    was: str
    by: str
    host: str
    version: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The rollout was cancelled, discarded or cleaned, and by whom."""

    state: State
    by: str


@dataclass(frozen=True, slots=True)
class Logged:
    """A line for the operator's log pane; stored if it reports an incident.

    incident  the line's content, as a value; older readers have the line
    """

    text: str
    level: Literal["info", "warning", "error"] = "info"
    incident: Incident | None = field(default=None, metadata=BESIDE)


Event = (
    Accepted | Entered | Fenced | StepStarted | BatchStarted | Progress | BatchDone | StepDone | Checked | Waiting
    | Lagging | Paused | Expiring | Resumed | DriverLost | Failed | Promoted | RolledBack | Ended | Logged | TakenOver
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recorded:
    """One event of one rollout.

    seq  number of a stored event, from 1; 0 for an event that is never stored
    at   seconds since 1970, UTC
    """

    rollout: str
    seq: int
    at: float
    event: Event


def fleeting(data: object) -> bool:
    """Whether an event received over a link is one that is never stored, so that it may be lost."""
    return isinstance(data, dict) and data.get("seq") == 0


def point(event: Event) -> str:
    """The crash-point name of an event: `entered-validating`, `StepDone-create-requests`, `BatchDone`."""
    match event:
        case Entered(state):
            return f"entered-{state}"
        case Logged(_, _, incident) if incident is not None:
            return type(incident).__name__
        case StepStarted(step) | StepDone(step):
            return f"{type(event).__name__}-{step.replace('/', '-')}"
    return type(event).__name__
