"""What the faces draw of each region, and what they may ask: one frozen value and one protocol."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from console.drivers.protocol import Answer, Verb
from console.errors import ConsoleError
from console.model.event import Promoted, RolledBack
from console.model.plan import Plan
from console.model.region import Region
from console.model.status import Status

Link = Literal["idle", "connecting", "connected", "unreachable"]


@dataclass(frozen=True, slots=True)
class RegionView:
    """One region, now.

    plan     the pending plan, computed from the files against the live release; None before the first survey
    problem  why there is no plan (an error of the survey or the planner), or ""
    note     a word from outside the rollout that deserves the state column ("building the demo: 3 of 14 days")
    """

    region: Region
    link: Link = "idle"
    link_why: str = ""
    status: Status = field(default_factory=Status)
    plan: Plan | None = None
    problem: str = ""
    note: str = ""
    live: str = ""
    previous: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one region's part of a headless run ended. error is None when it is live or had nothing to do."""

    region: str
    state: str  # a state of the rollout, or `unchanged`, `skipped` (its wave never began)
    error: ConsoleError | None = None


class Cockpit(Protocol):
    """All that a face can do. `Fleet` is the one implementation; it never blocks the caller's loop."""

    @property
    def views(self) -> Mapping[str, RegionView]:
        """Region name → latest view, in the order of waves (canaries first)."""
        ...

    def changes(self) -> AsyncIterator[RegionView]:
        """Every later change, region by region; a slow reader gets the latest, not all."""
        ...

    async def refresh(self, regions: Sequence[str] = ()) -> None:
        """Survey and plan again (all by default), concurrently; failures land in the views. Attaches to running rollouts."""
        ...

    async def run(
        self, regions: Sequence[str] = (), *, yes: bool = False, attached: bool = False
    ) -> tuple[Outcome, ...]:
        """Carry the pending plans through these regions, wave after wave, canaries first, up to the gate or (yes) live.

        A wave starts when every region of the one before is live. Without `yes` the run ends for a region at its gate;
        with it the gate opens where the policy is `ask` or `auto` and every check passed.
        """
        ...

    async def start(self, region: str) -> None:
        """Hand one region's pending plan over and follow it; returns when the region has accepted it."""
        ...

    async def control(self, region: str, verb: Verb) -> Status: ...

    async def promote(self, region: str) -> Promoted: ...

    async def rollback(self, region: str) -> RolledBack: ...

    async def cleanup(self, region: str, *, dry_run: bool = False, previous: bool = False) -> tuple[str, ...]: ...

    async def query(
        self, region: str, sql: str, tables: Sequence[str], args: Mapping[str, tuple[str, str]], limit: int
    ) -> Answer: ...

    async def trigger(self, region: str, kind: Literal["copy", "sink"], name: str) -> dict[str, Any]: ...

    async def close(self) -> None:
        """Drop the links; agents go on."""
        ...
