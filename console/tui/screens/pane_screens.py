"""The screen of each pane, and the most important pane of a region."""

from console.runner.view import RegionView
from console.tui.labels import idle, under_way
from console.tui.screens.base import ScreenName

SCREENS: dict[str, ScreenName] = {  # pane → the screen that has it
    "plan": "plan",
    "witness": "plan",
    "checks": "gate",
    "days": "rollout",
    "slow": "rollout",
    "steps": "rollout",
    "log": "rollout",
}


def first_pane(view: RegionView | None) -> str:
    """The most important pane now: the plan of a region at rest, the checks of one at its gate, else its rollout."""
    if view is None or (idle(view) and not view.note):
        return "plan"
    if view.status.state == "awaiting-confirmation":
        return "checks"
    return "steps" if under_way(view) else "log"
