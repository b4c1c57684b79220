"""The pane of a rollout's days, with a cursor."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content

from console.runner.view import RegionView
from console.tui.drawing import stack_lines
from console.tui.panes.pane import Pane
from console.tui.rollout.days import CalendarCache, DayCursor, days_lines, first_cursor


class DaysPane(Pane):
    """A cell per day and table. The cursor follows the running day until it is moved."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "day(-1)", "Newer day", show=False, tooltip="the newer day"),
        Binding("right", "day(1)", "Older day", show=False, tooltip="the older day"),
        Binding("up", "table(-1)", "Table above", show=False, tooltip="the table above"),
        Binding("down", "table(1)", "Table below", show=False, tooltip="the table below"),
    ]

    def __init__(self, id: str) -> None:
        super().__init__("days", self._draw, inputs=self._seen, id=id)
        self._calendar = CalendarCache()
        self._cursor: DayCursor | None = None

    def choose(self, cursor: DayCursor) -> None:
        """Put the cursor on a day."""
        self._cursor = cursor
        self._redraw()

    def action_day(self, by: int) -> None:
        self._move(day=by)

    def action_table(self, by: int) -> None:
        self._move(table=by)

    def _move(self, table: int = 0, day: int = 0) -> None:
        if self.view:
            tables = self._calendar.tables(self.view)
            self.choose((self._cursor or first_cursor(tables)).moved(tables, table, day))

    def _seen(self, view: RegionView) -> object:
        return view.events, view.status.checks, self._cursor

    def _draw(self, view: RegionView, width: int, at: float) -> Content:
        tables = self._calendar.tables(view)
        if not tables and view.status.rows_done:
            return Content.styled("unknown: the events that list its days have not been read.", "$text-muted")
        return stack_lines(days_lines(tables, self._cursor or first_cursor(tables), width))
