"""The rollout of a region: what is happening, and why is it slow? An ended rollout is shown with its name and time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Input

from console.model.event import Recorded
from console.runner.view import RegionView
from console.tui.commands.keys import FIRST, LAST, FooterKey
from console.tui.drawing import safe, stack_lines
from console.tui.fleet.memory import ScreenPlace
from console.tui.groups import same_plan
from console.tui.labels import idle, running_step, status_label
from console.tui.panes.pane import Pane
from console.tui.panes.steps import draw_progress
from console.tui.quiet import Line
from console.tui.rollout.days import DayCursor
from console.tui.rollout.days_pane import DaysPane
from console.tui.rollout.log import LINES, LogEntries, LogLines, log_lines, log_title
from console.tui.rollout.rates import draw_lag, draw_rates, lag_title, rates_line, rates_title
from console.tui.rollout.slow import accounted, job_line, slow_line, slow_lines, slow_title
from console.tui.rollout.steps_line import draw_steps_line
from console.tui.screens.base import HistoryRequest
from console.tui.screens.of_region.region import RegionScreen
from console.tui.state import ScreenState

UPPER_PERCENT = 60  # maximum share of the height for days, charts, reasons and steps, as in screens.tcss
LEAST_CHART = 12  # minimum height of a chart in lines, border included
HEAD = 5  # maximum height of the lines above the panes, in nearly all states
BORDER = 2


class RolloutScreen(RegionScreen):
    """Days, where the time went, rates, steps and log; in a narrow terminal the middle ones are a line each."""

    name_of = "rollout"
    own_panes = ("days", "slow", "steps", "log")
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "slash", "filter", "Filter", key_display="/", tooltip="lines of the log with these words; !word excludes"
        ),
        Binding("i", "lines", "Lines", tooltip="the log: all lines, stored ones, warnings and errors"),
    ]

    def __init__(self, state: ScreenState, region: str, pane: str = "") -> None:
        super().__init__(state, region, pane or "days")
        self._upper_rows: int | None = None  # None for `UPPER_PERCENT`
        self._line = Line(id="stages")
        self._brief = Line(id="brief")
        self._entries = LogEntries()
        self._sought = ""
        self._lines: LogLines = LINES[0]
        self._asked = ""
        self._history: tuple[Recorded, ...] = ()
        self._joined: tuple[tuple[Recorded, ...], tuple[Recorded, ...]] = ((), ())
        self._days = DaysPane(id="days")
        self._slow = Pane("why is it slow?", self._draw_slow, id="slow")
        self._rates = Pane("rows/s", self._draw_rates, id="rates")
        self._lag = Pane("lag", self._draw_lag, id="lag")
        self._steps = Pane("steps", draw_progress, id="steps")
        self._log = Pane("log", self._draw_log, inputs=self._log_inputs, follow=True, id="log")
        self._filter = Input(placeholder="words of a line; !word excludes", id="filter", compact=True)
        self._filter.cursor_blink = False
        self._filter.display = False

    def panes(self) -> ComposeResult:
        yield self._line
        charts = Container(self._rates, self._lag, id="charts")
        reasons = Vertical(self._slow, self._steps, id="reasons")
        yield Container(Vertical(self._days, charts, id="moving"), reasons, id="upper")
        yield self._brief
        yield self._log
        yield self._filter

    def adopt_history(self, events: Sequence[Recorded]) -> None:
        """Draw with these events, which are older than those of the views, from now on."""
        self._history = tuple(events)
        self._joined = ((), ())
        self.redraw()

    def _whole(self, view: RegionView) -> RegionView:
        """The view with all events of its rollout; missing ones are requested once."""
        rollout, stored = view.status.rollout, view.events
        first = next((recorded for recorded in stored if recorded.rollout == rollout), None)
        if not rollout or (first is not None and first.seq == 1):
            return view
        if self._asked != rollout:
            self._asked = rollout
            self.post_message(HistoryRequest(self._region))
        if not self._history or self._history[0].rollout != rollout:
            return view
        if self._joined[0] is not stored:
            last = self._history[-1].seq
            newer = (recorded for recorded in stored if recorded.rollout == rollout and recorded.seq > last)
            self._joined = (stored, (*self._history, *newer))
        return replace(view, events=self._joined[1])

    def show_region(self, view: RegionView) -> None:
        view = self._whole(view)
        width, now = max(20, self.size.width - 2), self.state.at
        last = last_rollout(view)
        self._line.update(stack_lines([*([last] if last else []), draw_steps_line(view, width)]))
        step = running_step(view)
        brief = [
            slow_line(view, width, now),
            *([job_line(step, width)] if step and step.job else []),
            rates_line(view, width, now),
        ]
        self._brief.update(stack_lines(brief))
        for pane in (self._days, self._slow, self._rates, self._lag, self._steps, self._log):
            pane.show(view, now)
        self._title(view)
        self._share_rows()

    def on_resize(self) -> None:
        super().on_resize()
        self.call_after_refresh(self._share_rows)

    def _share_rows(self) -> None:
        """Give the charts the free height; if the log needs it, only as much as the panes beside them have text for.

        Depends on the texts and the terminal's size alone: a moment of a playback always looks the same.
        """
        height = self.query_one("#parts").size.height
        free = height * (100 - UPPER_PERCENT) // 100 - HEAD - BORDER
        wanted = None
        if height and not self.has_class("-narrow") and self._log.row_count > free:
            texts = self._slow.row_count + self._steps.row_count + 2 * BORDER
            wanted = max(texts, self._days.row_count + BORDER + LEAST_CHART)
        if wanted != self._upper_rows:
            self._upper_rows = wanted
            self.query_one("#upper").styles.height = wanted

    def _title(self, view: RegionView) -> None:
        suffix = f" · {last_rollout(view).plain}" if last_rollout(view) else ""
        entries = self._entries.of(view)
        titles = {
            self._days: "days", self._slow: slow_title(view, accounted(view, self.state.at)), self._rates: rates_title(view, self.state.at),
            self._lag: lag_title(view, self.state.at), self._steps: "steps", self._log: log_title(entries, self._sought, view.status.log_dropped, self._lines),
        }  # fmt: skip
        for pane, title in titles.items():
            pane.border_title = safe(f"{title}{suffix if pane not in (self._rates, self._lag) else ''}", limit=160)

    def _draw_slow(self, view: RegionView, width: int, at: float) -> Content:
        return stack_lines(slow_lines(view, same_plan(self.state.views, self._region), width, at))

    def _draw_rates(self, view: RegionView, width: int, at: float) -> Content:
        return draw_rates(view, width, self._rates.size.height, at)

    def _draw_lag(self, view: RegionView, width: int, at: float) -> Content:
        return draw_lag(view, width, self._lag.size.height, at)

    def _draw_log(self, view: RegionView, width: int, at: float) -> list[Content]:
        return log_lines(self._entries.of(view), self._sought, self._lines)

    def _log_inputs(self, view: RegionView) -> object:
        return view.events, view.status.log, self._sought, self._lines

    def choose_pane(self, name: str) -> None:
        {"slow": self._slow, "log": self._log}.get(name, self._days).focus()

    def place(self) -> ScreenPlace:
        return replace(super().place(), filter=self._sought, lines=self._lines)

    def come_back(self, place: ScreenPlace) -> None:
        self._lines = next((lines for lines in LINES if lines == place.lines), LINES[0])
        if place.filter:
            self._filter.value = place.filter
            self._filter.display = True
        super().come_back(place)

    def own_keys(self) -> tuple[FooterKey, ...]:
        keys = (
            FooterKey("←→", "day", "screen.pane('days')", FIRST),
            FooterKey("/", "log", "screen.filter"),
            FooterKey("i", "lines", "screen.lines", LAST),
            FooterKey("]", "pane", "screen.tab(1)"),
        )
        return (*super().own_keys(), *keys)

    def action_tab(self, by: int) -> None:
        self.turn([self._days, self._slow, self._rates, self._lag, self._steps, self._log], by)

    def action_choose_day(self, table: int, day: int) -> None:
        """Put the cursor on a day that was clicked."""
        self._days.choose(DayCursor(table, day))

    def action_lines(self) -> None:
        """Which lines of the log are shown."""
        self._lines = LINES[(LINES.index(self._lines) + 1) % len(LINES)]
        self.redraw()

    def action_filter(self) -> None:
        self._filter.display = True
        self._filter.focus()

    def action_leave(self) -> None:
        if self._filter.display or self._sought:
            self._filter.value = ""
            self._filter.display = False
            self._log.focus()
        else:
            super().action_leave()

    def on_input_changed(self, message: Input.Changed) -> None:
        self._sought = message.value
        self.redraw()

    def on_input_submitted(self) -> None:
        self._filter.display = bool(self._filter.value)
        self._log.focus()


def last_rollout(view: RegionView) -> Content:
    """`last rollout r1, 13:02Z, live` for a region whose rollout has ended; empty while one is under way."""
    status = view.status
    if not idle(view) or not status.rollout:
        return Content("")
    at = datetime.fromtimestamp(status.changed, UTC).strftime("%H:%MZ" if status.changed else "")
    words = ", ".join(filter(None, (status.release, at, status_label(status).text)))
    return safe(f"last rollout {words}", "$text-warning", 120)
