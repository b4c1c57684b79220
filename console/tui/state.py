"""What the screens draw from: one frozen value, replaced whole whenever something changed."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from console.runner.view import Group, RegionView
from console.runner.waves import QueuedRegion
from console.tui.labels import state_label


@dataclass(frozen=True, slots=True)
class ScreenState:
    """All regions at one moment.

    views     region name → view, in the order of waves
    title     pipeline or project; drawn in the banner
    coach     show the line with the next keys
    readonly  no deed that changes a region
    at        now, seconds since 1970, UTC
    groups    regions whose plans say the same, largest group first
    turns     regions whose wave of a rollout has not begun
    """

    views: Mapping[str, RegionView]
    title: str = ""
    coach: bool = False
    readonly: bool = False
    at: float = 0.0
    groups: tuple[Group, ...] = ()
    turns: Mapping[str, QueuedRegion] = field(default_factory=dict)


def needs_attention(before: ScreenState, now: ScreenState) -> bool:
    """Whether a region has come to where a person is needed, or is through: worth a bell if nobody looks."""
    words = ("at the gate", "failed", "live")
    news = {name: state_label(view).text for name, view in now.views.items()}
    return any(
        word in words and name in before.views and state_label(before.views[name]).text not in (word, "reading")
        for name, word in news.items()
    )
