"""One region of the inventory: where it is, how it is reached, and its limits."""

from dataclasses import dataclass, field
from typing import Literal

from console.model.policy import Throttle


@dataclass(frozen=True, slots=True)
class Ssh:
    """How a remote region is reached. Host keys are always verified against `known_hosts`."""

    host: str
    port: int = 22
    user: str = ""
    key: str = ""
    known_hosts: str = ""
    jump: str = ""
    bootstrap: bool = False


@dataclass(frozen=True, slots=True)
class Spark:
    """The region's Spark. `master` as Spark takes it; the agent adds the slot for live."""

    master: str = "local[2]"
    remote: str = ""
    conf: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """What one batch may carry. None is no limit."""

    rows: int | None = None
    bytes: int | None = None
    target_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Policy:
    """Who opens the gate, and what becomes of a failed rollout.

    quarantine_rows  rows of one rollout that may be set aside where a value does not convert, instead of failing it
    """

    promote: Literal["ask", "never", "auto"] = "ask"
    on_failure: Literal["keep", "discard"] = "keep"
    keep_failed_hours: float = 72.0
    rollback_window_hours: float = 72.0
    quarantine_rows: int = 0


@dataclass(frozen=True, slots=True)
class Prices:
    """Money, in the operator's currency; 0 hides the figure."""

    core_hour: float = 0.0
    tb_read: float = 0.0
    tb_month: float = 0.0


@dataclass(frozen=True, slots=True)
class Region:
    """One deployment. `warehouse` is an absolute path or URI, resolved against the project at load."""

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
    policy: Policy = field(default_factory=Policy)
    prices: Prices = field(default_factory=Prices)
    where: str = ""
