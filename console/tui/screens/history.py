"""What happened: the stored events of all regions, the newest first."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.content import Content

from console.model.region import Region
from console.runner.view import RegionView
from console.tui.fleet.events import Happenings, draw_events
from console.tui.format import MINUTE
from console.tui.panes.pane import Pane
from console.tui.screens.base import BaseScreen, ScreenName
from console.tui.state import ScreenState

NOWHERE = RegionView(region=Region(name="", warehouse=""))


class HistoryScreen(BaseScreen):
    """Events of all regions; keys act on the region that was selected before."""

    AUTO_FOCUS = "#events"
    in_region = True
    name_of: ClassVar[ScreenName] = "history"

    def __init__(self, state: ScreenState, region: str) -> None:
        super().__init__(state)
        self._region = region
        self._happenings = Happenings()
        self._events = Pane("what happened in all regions", self._draw, inputs=self._inputs, id="events")

    def body(self) -> ComposeResult:
        yield self._events

    @property
    def current_region(self) -> str:
        return self._region

    def redraw(self) -> None:
        self._events.show(self.current_view or NOWHERE, self.state.at)
        self._events.renew()
        super().redraw()

    def _draw(self, view: RegionView, width: int, at: float) -> Content:
        return draw_events(self._happenings.of(self.state.views), self.state.looked, at, width)

    def _inputs(self, view: RegionView) -> object:
        return self._happenings.of(self.state.views), self.state.looked, int(self.state.at // MINUTE)

    def copied_command(self) -> str:
        return "console history"
