"""The screens by name. The fleet screen is not among them: it stays below all others."""

from typing import assert_never

from console.tui.screens.base import BaseScreen, ScreenName
from console.tui.screens.history import HistoryScreen
from console.tui.screens.of_region.gate import GateScreen
from console.tui.screens.of_region.plan import PlanScreen
from console.tui.screens.of_region.rollout import RolloutScreen
from console.tui.state import ScreenState


def screen_of(name: ScreenName, state: ScreenState, region: str, pane: str = "") -> BaseScreen:
    """A new screen; `pane` is the one of its panes to begin with."""
    match name:
        case "rollout":
            return RolloutScreen(state, region, pane)
        case "plan":
            return PlanScreen(state, region, pane)
        case "gate":
            return GateScreen(state, region, pane)
        case "history":
            return HistoryScreen(state, region)
        case "fleet":
            raise ValueError("the fleet lies below all screens")
        case _:
            assert_never(name)
