"""The common parts of the screens of one region: its summary above, and the way to its other screens."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from console.runner.view import RegionView
from console.tui.commands.keys import FIRST, FooterKey
from console.tui.panes.pane import Pane
from console.tui.panes.summary import draw_summary
from console.tui.quiet import Line
from console.tui.screens.base import BaseScreen, GoTo
from console.tui.screens.pane_screens import SCREENS
from console.tui.state import ScreenState


class RegionScreen(BaseScreen):
    """Draws one region of the state: its summary, and `panes()` below."""

    AUTO_FOCUS = ""
    in_region = True
    own_panes: ClassVar[tuple[str, ...]] = ()
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Back", key_display="esc", tooltip="back to the regions"),
    ]

    def __init__(self, state: ScreenState, region: str, pane: str = "") -> None:
        super().__init__(state)
        self._region = region
        self._first = pane
        self._summary = Line(id="summary")

    def body(self) -> ComposeResult:
        yield self._summary
        yield from self.panes()

    def panes(self) -> ComposeResult:
        """The widgets below the summary."""
        yield from ()

    def on_mount(self) -> None:
        self.redraw()
        if self._first:
            self.choose_pane(self._first)

    def on_resize(self) -> None:
        self.redraw()

    @property
    def current_region(self) -> str:
        return self._region

    def own_keys(self) -> tuple[FooterKey, ...]:
        return (FooterKey("esc", "fleet", "screen.leave", FIRST),)

    def redraw(self) -> None:
        if view := self.state.views.get(self._region):
            self._summary.update(draw_summary(view, max(20, self.size.width - 2), self.state.at))
            self.show_region(view)
        super().redraw()

    def show_region(self, view: RegionView) -> None:
        """Redraw the panes."""

    def action_pane(self, name: str) -> None:
        if name in self.own_panes:
            self.choose_pane(name)
        else:
            self.post_message(GoTo(SCREENS[name], self._region, name))

    def choose_pane(self, name: str) -> None:
        """Show one of `own_panes`, and focus it."""

    def action_tab(self, by: int) -> None:
        """Focus the pane before or after."""

    def turn(self, panes: list[Pane], by: int) -> None:
        """Focus the pane before or after the focused one."""
        seen = [pane for pane in panes if pane.display]
        at = next((number for number, pane in enumerate(seen) if pane.has_focus), 0 if by < 0 else -1)
        if seen:
            seen[(at + by) % len(seen)].focus()

    def action_leave(self) -> None:
        self.post_message(GoTo("fleet", self._region))
