"""The state of the history screen. Frozen values, replaced as a whole."""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Literal

from console.model.status import Status
from console.record import dataclass
from console.runner.view import RegionView

if TYPE_CHECKING:  # not needed for the first picture
    from console.model.receipt import AuditProgress, Finding, Past

RolloutKey = tuple[str, str]  # region and rollout


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditState:
    """One verification and its progress.

    began, ended  seconds since 1970, UTC; ended: 0 while it runs
    findings      so far
    error         why it failed
    """

    began: float
    ended: float = 0.0
    outcome: Literal["running", "done", "stopped", "failed"] = "running"
    progress: "AuditProgress | None" = None
    findings: "tuple[Finding, ...]" = ()
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryState:
    """The rollouts that have been read.

    listed   region → its rollouts, oldest first, when they were read
    errors   region → why they could not be read
    reading  regions that have not answered yet
    whole    rollouts that were read in full
    audits   verifications since the screen was opened
    """

    listed: Mapping[str, tuple[Status, ...]] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)
    reading: frozenset[str] = frozenset()
    whole: "Mapping[RolloutKey, Past]" = field(default_factory=dict)
    audits: Mapping[RolloutKey, AuditState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRollout:
    """One line of the list."""

    region: str
    status: Status

    @property
    def key(self) -> RolloutKey:
        return self.region, self.status.rollout


def ended_steps(status: Status) -> int:
    """How many steps of a rollout have ended; each has its receipts from then on."""
    return sum(step.state == "done" for step in status.steps)


def listed_rollouts(views: Mapping[str, RegionView], history: HistoryState) -> list[ListedRollout]:
    """Rollouts of all regions, the newest first; current ones from their live views."""
    rollouts = [
        ListedRollout(region=name, status=status)
        for name, view in views.items()
        for status in (*(s for s in history.listed.get(name, ()) if s.rollout != view.status.rollout), view.status)
        if status.rollout
    ]
    return sorted(rollouts, key=lambda rollout: rollout.status.started, reverse=True)
