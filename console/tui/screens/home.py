"""The first screen: all regions, groups of equal plans, and the plan of the region under the cursor.

Where there is room, its steps too.
"""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.timer import Timer
from textual.widgets import Input, Static

from console.tui.actions import ActionRequest, RegionAction
from console.tui.drawing import safe, stack_lines
from console.tui.groups import draw_groups, plan_title
from console.tui.labels import idle
from console.tui.panes.pane import Pane
from console.tui.panes.plan import draw_plan, plan_inputs
from console.tui.panes.regions import RegionList
from console.tui.panes.steps import draw_steps
from console.tui.screens.base import BaseScreen
from console.tui.screens.region import RegionScreen
from console.tui.state import ScreenState

GROUP_LINES = 4  # twice as many on a high screen
FOLLOW_SECONDS = 0.1  # without a move of the cursor before plan and steps follow it: drawing them delays the next key


class HomeScreen(BaseScreen):
    """Regions above (or beside) the plan."""

    AUTO_FOCUS = "RegionList"
    main_keys = tuple(RegionList.BINDINGS)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", tooltip="show regions with these words; !word excludes"),
        Binding("escape", "clear", "Clear", show=False, tooltip="clear filter and marks"),
    ]

    def __init__(self, state: ScreenState) -> None:
        super().__init__(state)
        self._list = RegionList()
        self._groups = Static(id="groups")
        self._groups.display = False
        self._grouped = Content("")
        self._steps = Pane("steps", draw_steps, id="now")
        self._plan = Pane("plan", draw_plan, inputs=plan_inputs, id="plan")
        self._filter = Input(placeholder="name, environment or state; !word excludes", id="filter", compact=True)
        self._filter.cursor_blink = False
        self._following: Timer | None = None

    def body(self) -> ComposeResult:
        yield Container(Vertical(self._list, self._groups, self._steps, id="left"), self._plan, id="halves")
        yield self._filter

    def on_mount(self) -> None:
        self._filter.display = False
        self.redraw()

    @property
    def current_region(self) -> str:
        return self._list.current

    @property
    def target_regions(self) -> tuple[str, ...]:
        marked = self._list.marked
        return tuple(name for name in self.state.views if name in marked) if marked else super().target_regions

    def redraw(self) -> None:
        self._list.state = self.state
        self._show_groups()
        if not self._following:
            self._show_region()
        super().redraw()

    def on_region_list_moved(self) -> None:
        if self._following:
            self._following.stop()
        self._following = self.set_timer(FOLLOW_SECONDS, self._show_region)
        self.update_coach()

    def on_region_list_opened(self, message: RegionList.Opened) -> None:
        self.app.push_screen(RegionScreen(self.state, message.region))

    def on_resize(self) -> None:
        self._show_groups()

    def _show_groups(self) -> None:
        width, most = self._groups.size.width, GROUP_LINES * (2 if self.size.height >= 36 else 1)
        content = stack_lines(draw_groups(self.state.groups, width or self.size.width, most))
        if content.is_same(self._grouped):
            return  # an update would lay out the whole screen
        self._grouped = content
        self._groups.display = bool(content)
        self._groups.update(content)

    def _show_region(self) -> None:
        self._following = None
        view = self.state.views.get(self.current_region)
        title = plan_title(self.state.groups, self.current_region)
        self._plan.border_title = safe(f"{self.current_region}: {title}" if self.current_region else "plan", limit=100)
        self._plan.show(view, self.state.at)
        self._steps.border_title = safe(f"steps of {self.current_region}", limit=60)
        self._steps.show(view, self.state.at)
        self._steps.set_class(view is None or idle(view), "-idle")

    def action_request(self, action: RegionAction) -> None:
        # a change is rolled out to all regions unless some are marked, since canary and waves are part of it
        everywhere = action in ("start", "refresh") and not self._list.marked
        self.post_message(ActionRequest(action, tuple(self.state.views) if everywhere else self.target_regions))

    def action_pane(self, name: str) -> None:
        if self.current_region:
            self.app.push_screen(RegionScreen(self.state, self.current_region, name))

    def action_open(self) -> None:
        self._list.action_open()

    def action_mark(self) -> None:
        self._list.action_mark()

    def action_filter(self) -> None:
        self._filter.display = True
        self._filter.focus()

    def action_clear(self) -> None:
        if not self._list.filter_text and not self._filter.display:
            self._list.marked = frozenset()
        self._filter.value = ""
        self._filter.display = False
        self._list.focus()
        self.redraw()

    def on_input_changed(self, message: Input.Changed) -> None:
        self._list.filter_text = message.value

    def on_input_submitted(self) -> None:
        self._filter.display = bool(self._filter.value)
        self._list.focus()
