"""One region of the inventory: its warehouse, transport, Spark, limits and policies."""

from dataclasses import field
from typing import Literal

from console.errors import Problem
from console.model.breach import OnBreach
from console.model.codec import QUIET
from console.model.policy import Throttle
from console.model.sandbox import EXPIRES_HOURS
from console.model.spark_master import configured_slots, spark_master
from console.record import dataclass

# names in `secrets` that have an effect, as AWS's own files call them
STORE_SECRETS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_profile")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ssh:
    """SSH access to a remote region. Host keys are always verified against `known_hosts`."""

    host: str
    port: int = 22
    user: str = ""
    key: str = ""
    known_hosts: str = ""
    jump: str = ""
    bootstrap: bool = False


@dataclass(frozen=True, slots=True)
class Spark:
    """The region's Spark. `master` in Spark's syntax; to a local one the agent adds one slot for live feeds.

    defaults  the operator's `spark-defaults.conf`, a path on the region's host; "" for none
    """

    master: str = "local[2]"
    remote: str = ""
    conf: tuple[tuple[str, str], ...] = ()
    defaults: str = field(default="", metadata=QUIET)

    @property
    def cores(self) -> int:
        """Cores that `master` names, or of a cluster its settings in the region's file; 1 if they name none."""
        known = None if self.remote else spark_master(self.master)
        if known is None:
            return 1
        return known.cores or 1 if known.is_local else configured_slots(dict(self.conf)) or 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillSpark:
    """The region's second Spark, on which large builds run.

    rows, bytes  of a build as planned: above either of them its batches run there
    """

    spark: Spark
    rows: int = 100_000_000
    bytes: int = 50 << 30

    def takes(self, rows: int, bytes: int) -> bool:
        """Whether a build of that many rows and bytes runs there."""
        return rows > self.rows or bytes > self.bytes


def lowest(*limits: int | None) -> int | None:
    """The limit that is reached first; None if there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


DAY_TARGETS = 4.0  # durations of a batch that a day may take in one piece
LEAST_DAY_ROWS = 100_000  # a rate that was measured with few rows is that of a batch's overhead


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one batch; None for no limit."""

    rows: int | None = None
    bytes: int | None = None
    target_seconds: float = 60.0

    def day_rows(self, rows_per_second: float) -> int | None:
        """Rows above which a day would take several times the target duration; None if no rate was measured."""
        if rows_per_second <= 0:
            return None
        return max(int(DAY_TARGETS * self.target_seconds * rows_per_second), LEAST_DAY_ROWS)


WAKE_SECONDS = 15.0  # from the landing commit that wakes a region's Spark to its row, at most


@dataclass(frozen=True, slots=True)
class Follow:
    """How a region's agent follows its landing tables.

    share         of one core that following takes at most, 0 < share ≤ 1; the rests between two ticks are by it
    lag_seconds   within which a row is readable, whatever the share; None: only the share counts
    idle_seconds  after which Spark is ended if nothing has needed it; None: never
    """

    share: float = 0.25
    lag_seconds: float | None = None
    idle_seconds: float | None = 300.0

    @property
    def keeps_spark(self) -> bool:
        """Whether Spark is started with the agent and never ended: a row could not be readable in time otherwise."""
        return self.idle_seconds is None or (self.lag_seconds is not None and self.lag_seconds < WAKE_SECONDS)


FOLLOW = Follow()


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Rules for opening the gate, and retention of failed and superseded releases.

    preview_expires_hours  after which a preview is dropped, unless it was ordered for another time
    approvals, ticket  what people must declare before a promotion (`model/consent`)
    min_soak_seconds, clean_intervals  how long a rollout waits at its gate, at least, and clean rounds of checks there
    watch_seconds, on_breach, watch_query  how long the checks continue after a promotion, what follows if one fails, and a
                     query that is one of them
    quarantine_rows  limit of one rollout's quarantined rows with values that do not convert; more of them fail it
    """

    promote: Literal["ask", "never", "auto"] = "ask"
    on_failure: Literal["keep", "discard"] = "keep"
    keep_failed_hours: float = 72.0
    rollback_window_hours: float = 72.0
    quarantine_rows: int = 0
    preview_expires_hours: float = field(default=EXPIRES_HOURS, metadata=QUIET)
    approvals: int = field(default=0, metadata=QUIET)
    ticket: Literal["optional", "required"] = field(default="optional", metadata=QUIET)
    min_soak_seconds: float = field(default=0.0, metadata=QUIET)
    clean_intervals: int = field(default=0, metadata=QUIET)
    watch_seconds: float = field(default=0.0, metadata=QUIET)
    on_breach: OnBreach = field(default="pause", metadata=QUIET)
    watch_query: str = field(default="", metadata=QUIET)


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices in a currency, without which no money is shown; 0 means no price."""

    core_hour: float = 0.0
    tb_read: float = 0.0
    tb_month: float = 0.0
    currency: str = field(default="", metadata=QUIET)


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """One deployment. `warehouse` is an absolute path or URI, resolved against the project when loaded.

    backfill_spark  its second Spark; None where everything runs on `spark`
    secrets      credentials of its bucket: name → reference, never a value
    ineffective  warnings about unused keys of its file, and the refusal of plans for a warehouse that no agent serves
    """

    name: str
    warehouse: str
    environment: str = ""
    owner: str = ""
    zone: str = "UTC"
    wave: int = 1
    canary: bool = False
    transport: Ssh | None = None
    spark: Spark = field(default_factory=Spark)
    limits: Limits = field(default_factory=Limits)
    throttle: Throttle = field(default_factory=Throttle)
    follow: Follow = field(default=FOLLOW, metadata=QUIET)
    policy: Policy = field(default_factory=Policy)
    prices: Prices = field(default_factory=Prices)
    where: str = ""
    backfill_spark: BackfillSpark | None = field(default=None, metadata=QUIET)
    secrets: tuple[tuple[str, str], ...] = field(default=(), metadata=QUIET)
    ineffective: tuple[Problem, ...] = field(default=(), metadata=QUIET)

    @property
    def groups(self) -> tuple[str, ...]:
        """The words that select it together with others: `@wave2`, `@canary`."""
        return (f"@wave{self.wave}", *(("@canary",) if self.canary else ()))
