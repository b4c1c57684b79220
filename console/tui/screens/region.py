"""One region: its summary, and plan, steps, checks and log; side by side where there is room, else one at a time.

Witnesses are shown beside the plan alone: their rows need the room.
"""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widgets import Static

from console.runner.view import RegionView
from console.tui.drawing import safe
from console.tui.groups import plan_title
from console.tui.labels import idle, under_way
from console.tui.panes.checks import draw_checks
from console.tui.panes.log import draw_log
from console.tui.panes.pane import Pane
from console.tui.panes.plan import draw_plan, plan_inputs
from console.tui.panes.steps import draw_steps
from console.tui.panes.summary import draw_summary
from console.tui.panes.witness import draw_witness
from console.tui.screens.base import BaseScreen, ScreenName
from console.tui.state import ScreenState

PANES = ("plan", "steps", "checks", "log", "witness")


def first_pane(view: RegionView | None) -> str:
    """The pane that matters most right now."""
    if view is None or (idle(view) and not view.note):
        return "plan"
    if view.status.state == "awaiting-confirmation":
        return "checks"
    return "steps" if under_way(view) else "log"


class RegionScreen(BaseScreen):
    """Draws one region of the state. `[` and `]` turn to the pane before and after."""

    AUTO_FOCUS = ""
    in_region = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.pop_screen", "Back", key_display="esc", tooltip="back to the regions"),
    ]
    name_of: ClassVar[ScreenName] = "rollout"

    def __init__(self, state: ScreenState, region: str, pane: str = "") -> None:
        super().__init__(state)
        self._region = region
        self._summary = Static(id="summary")
        self._tabs = Static(id="tabs")
        self._panes = {
            "plan": Pane("plan", draw_plan, inputs=plan_inputs, id="plan"),
            "steps": Pane("steps", draw_steps, id="steps"),
            "checks": Pane("checks", draw_checks, id="checks"),
            "log": Pane("log", draw_log, follow=True, id="log"),
            "witness": Pane("witness", draw_witness, id="witness"),
        }
        self._pane = pane or first_pane(state.views.get(region))

    def body(self) -> ComposeResult:
        yield self._summary
        yield self._tabs
        yield Container(*self._panes.values(), id="panes")

    def on_mount(self) -> None:
        self.redraw()
        self.action_pane(self._pane)

    def on_resize(self) -> None:
        self.redraw()

    @property
    def current_region(self) -> str:
        return self._region

    def redraw(self) -> None:
        view = self.state.views.get(self._region)
        if view:
            self._summary.update(draw_summary(view, max(20, self.size.width - 2), self.state.at))
        for pane in self._panes.values():
            pane.show(view, self.state.at)
        self._panes["plan"].border_title = safe(f"{plan_title(self.state.groups, self._region)}", limit=100)
        super().redraw()

    def action_pane(self, name: str) -> None:
        self._pane = name
        self.query_one("#panes").set_class(name == "witness", "-proving")
        for other, pane in self._panes.items():
            pane.set_class(other == name, "-chosen")
        self._panes[name].focus()
        tabs = [Content.styled(f" {other} ", "reverse bold" if other == name else "$text-muted") for other in PANES]
        self._tabs.update(Content(" ").join([*tabs, Content.styled(" [ ] pane", "$text-muted")]))

    def action_tab(self, by: int) -> None:
        self.action_pane(PANES[(PANES.index(self._pane) + by) % len(PANES)])
