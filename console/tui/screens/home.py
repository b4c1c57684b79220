"""The first screen: all regions, which of them plan the same, and the plan of the one under the cursor.

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

GROUP_LINES = 4  # lines; twice as many where the screen is high
FOLLOW_SECONDS = (
    0.1  # seconds without a move of the cursor, until plan and steps follow it: to draw them holds up the next key
)


class HomeScreen(BaseScreen):
    """Regions above (or beside) the plan."""

    AUTO_FOCUS = "RegionList"
    front = tuple(RegionList.BINDINGS)
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", key_display="/", tooltip="words to look for; !word leaves out"),
        Binding("escape", "clear", "Clear", show=False, tooltip="clear filter and marks"),
    ]

    def __init__(self, scene: ScreenState) -> None:
        super().__init__(scene)
        self._list = RegionList()
        self._groups = Static(id="groups")
        self._groups.display = False
        self._grouped = Content("")
        self._now = Pane("steps", draw_steps, id="now")
        self._plan = Pane("plan", draw_plan, drawn_from=plan_inputs, id="plan")
        self._filter = Input(placeholder="name, environment or state; !word leaves out", id="filter", compact=True)
        self._filter.cursor_blink = False
        self._following: Timer | None = None

    def parts(self) -> ComposeResult:
        yield Container(Vertical(self._list, self._groups, self._now, id="left"), self._plan, id="halves")
        yield self._filter

    def on_mount(self) -> None:
        self._filter.display = False
        self.redraw()

    @property
    def subject(self) -> str:
        return self._list.current

    @property
    def subjects(self) -> tuple[str, ...]:
        marked = self._list.marked
        return tuple(name for name in self.scene.views if name in marked) if marked else super().subjects

    def redraw(self) -> None:
        self._list.scene = self.scene
        self._show_groups()
        if not self._following:
            self._show_subject()
        super().redraw()

    def on_region_list_moved(self) -> None:
        if self._following:
            self._following.stop()
        self._following = self.set_timer(FOLLOW_SECONDS, self._show_subject)
        self.advise()

    def on_region_list_opened(self, message: RegionList.Opened) -> None:
        self.app.push_screen(RegionScreen(self.scene, message.region))

    def on_resize(self) -> None:
        self._show_groups()

    def _show_groups(self) -> None:
        width, most = self._groups.size.width, GROUP_LINES * (2 if self.size.height >= 36 else 1)
        content = stack_lines(draw_groups(self.scene.groups, width or self.size.width, most))
        if content.is_same(self._grouped):
            return  # an update lays out the whole screen
        self._grouped = content
        self._groups.display = bool(content)
        self._groups.update(content)

    def _show_subject(self) -> None:
        self._following = None
        view = self.scene.views.get(self.subject)
        title = plan_title(self.scene.groups, self.subject)
        self._plan.border_title = safe(f"{self.subject}: {title}" if self.subject else "plan", limit=100)
        self._plan.show(view, self.scene.at)
        self._now.border_title = safe(f"steps of {self.subject}", limit=60)
        self._now.show(view, self.scene.at)
        self._now.set_class(view is None or idle(view), "-idle")

    def action_ask(self, deed: RegionAction) -> None:
        # a change goes through all regions unless some are marked: canary and waves belong to it
        everyone = tuple(self.scene.views)
        whole = deed in ("start", "refresh") and not self._list.marked
        self.post_message(ActionRequest(deed, everyone if whole else self.subjects))

    def action_pane(self, name: str) -> None:
        if self.subject:
            self.app.push_screen(RegionScreen(self.scene, self.subject, name))

    def action_open(self) -> None:
        self._list.action_open()

    def action_mark(self) -> None:
        self._list.action_mark()

    def action_filter(self) -> None:
        self._filter.display = True
        self._filter.focus()

    def action_clear(self) -> None:
        if not self._list.wanted and not self._filter.display:
            self._list.marked = frozenset()
        self._filter.value = ""
        self._filter.display = False
        self._list.focus()
        self.redraw()

    def on_input_changed(self, message: Input.Changed) -> None:
        self._list.wanted = message.value

    def on_input_submitted(self) -> None:
        self._filter.display = bool(self._filter.value)
        self._list.focus()
