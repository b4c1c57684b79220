"""What the screens are drawn from: one frozen value, replaced as a whole whenever something changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from console.runner.view import Group, RegionView
from console.runner.waves import QueuedRegion
from console.tui.labels import Condition, condition

NOTEWORTHY = (Condition.AT_GATE, Condition.FAILED, Condition.LIVE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenState:
    """All regions at one moment.

    views     region name → view, in the order of waves
    title     pipeline or project, shown in the banner
    coach     show the line with the next keys
    readonly  refuse every action that changes a region
    at        now, seconds since 1970, UTC
    groups    regions with equal plans, largest group first
    queued    regions whose wave of a rollout has not started
    """

    views: Mapping[str, RegionView]
    title: str = ""
    coach: bool = False
    readonly: bool = False
    at: float = 0.0
    groups: tuple[Group, ...] = ()
    queued: Mapping[str, QueuedRegion] = field(default_factory=dict)


def needs_attention(before: ScreenState, now: ScreenState) -> bool:
    """Whether a region has just reached its gate, failed or gone live: worth a bell if nobody is looking."""
    return any(
        (current := condition(view)) in NOTEWORTHY
        and name in before.views
        and condition(before.views[name]) not in (current, Condition.READING)
        for name, view in now.views.items()
    )
