"""The gate of a region: is it safe to confirm? The answer, with every day and check behind it."""

from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import safe, stack_lines, wrap_indented
from console.tui.groups import same_plan
from console.tui.labels import idle
from console.tui.panes.checks import draw_checks
from console.tui.panes.pane import Pane
from console.tui.panes.safety import confirm_title, day_lines, safety_lines
from console.tui.screens.of_region.region import RegionScreen
from console.tui.screens.of_region.rollout import last_rollout
from console.tui.state import ScreenState


class GateScreen(RegionScreen):
    """The answer above (or beside) its evidence."""

    name_of = "gate"
    own_panes = ("checks",)

    def __init__(self, state: ScreenState, region: str, pane: str = "") -> None:
        super().__init__(state, region, pane or "checks")
        self._safety = Pane("is it safe to confirm?", self._draw_safety, id="safety")
        self._evidence = Pane("each check and each day", self._draw_evidence, id="evidence")

    def panes(self) -> ComposeResult:
        yield Container(self._safety, self._evidence, id="gate")

    def show_region(self, view: RegionView) -> None:
        ended = f" · {last_rollout(view).plain}" if last_rollout(view) else ""
        others = same_plan(self.state.views, self._region)
        title = f"is it safe to confirm?{ended}" if ended else confirm_title(view, others, self.state.at)
        self._safety.border_title = safe(title, limit=160)
        self._evidence.border_title = f"each check and each day{ended}"
        self._safety.show(view, self.state.at)
        self._evidence.show(view, self.state.at)

    def _draw_safety(self, view: RegionView, width: int, at: float) -> Content:
        if idle(view):
            nothing = Content("nothing waits to be confirmed: no rollout is under way in this region.")
            return stack_lines(wrap_indented(nothing, 0, width))
        return stack_lines(safety_lines(view, same_plan(self.state.views, self._region), width, at))

    def _draw_evidence(self, view: RegionView, width: int, at: float) -> Content:
        if not view.status.checks:
            return draw_checks(view, width, at)
        return stack_lines([draw_checks(view, width, at), Content(""), *day_lines(view, width)])

    def choose_pane(self, name: str) -> None:
        (self._evidence if name == "checks" else self._safety).focus()

    def action_tab(self, by: int) -> None:
        self.turn([self._safety, self._evidence], by)
