"""The pending plan of a region, and beside it the witnesses of its edited queries: their rows need the space."""

from textual.app import ComposeResult
from textual.containers import Container

from console.runner.view import RegionView
from console.tui.drawing import safe
from console.tui.groups import plan_title
from console.tui.panes.pane import Pane
from console.tui.panes.plan import draw_plan, plan_inputs
from console.tui.panes.witness import draw_witness
from console.tui.screens.of_region.region import RegionScreen
from console.tui.state import ScreenState


class PlanScreen(RegionScreen):
    """Shows nothing of an ended rollout, which could be mistaken for the plan's."""

    name_of = "plan"
    own_panes = ("plan", "witness")

    def __init__(self, state: ScreenState, region: str, pane: str = "") -> None:
        super().__init__(state, region, pane or "plan")
        self._plan = Pane("plan", draw_plan, inputs=plan_inputs, id="plan")
        self._witness = Pane("witness", draw_witness, id="witness")

    def panes(self) -> ComposeResult:
        yield Container(self._plan, self._witness, id="planned")

    def show_region(self, view: RegionView) -> None:
        self._plan.border_title = safe(plan_title(self.state.groups, self._region), limit=100)
        self._plan.show(view, self.state.at)
        self._witness.show(view, self.state.at)

    def choose_pane(self, name: str) -> None:
        self.query_one("#planned").set_class(name == "witness", "-proving")
        (self._witness if name == "witness" else self._plan).focus()

    def action_tab(self, by: int) -> None:
        self.choose_pane("plan" if self._witness.has_focus else "witness")
