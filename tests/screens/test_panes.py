"""Panes are drawn row by row: the visible rows, the cost of a growing text, and the copied text."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.content import Content
from textual.geometry import Offset
from textual.screen import Screen
from textual.selection import Selection

from console.model.event import BatchDone, Recorded
from console.runner.view import RegionView
from console.tui.fleet.events import NOT_SEEN, Happenings, draw_events
from console.tui.panes.pane import Pane
from console.tui.panes.per_event import PerEvent
from console.tui.panes.rows import wrapped_rows
from tests.screens import scripted as s

pytestmark = pytest.mark.slow


class Panes(App[None]):
    """One pane that draws these lines, and keeps the last one in sight."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__()
        self.lines = [Content(line) for line in lines]
        self.pane = Pane("lines", lambda view, width, at: list(self.lines), follow=True)
        self.layouts = 0

    def compose(self) -> ComposeResult:
        yield self.pane

    def more(self, *lines: str) -> None:
        self.lines = [*self.lines, *map(Content, lines)]
        self.pane.renew()

    def shown(self) -> list[str]:
        return [self.pane.render_line(y).text.rstrip() for y in range(self.pane.size.height)]


async def test_growing_text_lays_nothing_out_anew_and_its_end_stays_in_sight(monkeypatch: Any) -> None:
    app = Panes([f"line {n}" for n in range(30)])
    async with app.run_test(size=(40, 12)) as pilot:
        app.pane.show(s.live(s.US), s.NOON)
        await pilot.pause()
        laid_out: list[object] = []
        layout = Screen._refresh_layout
        monkeypatch.setattr(
            Screen, "_refresh_layout", lambda *args, **more: (laid_out.append(args), layout(*args, **more))
        )
        app.more("line 30", "a long line that needs more than the forty cells of this terminal")
        await pilot.pause()
        assert [line for line in app.shown() if line][-3:] == [
            "line 30", "a long line that needs more than the", "forty cells of this terminal",
        ]  # fmt: skip
        assert not laid_out
        app.pane.scroll_to(y=0, animate=False)
        app.more("line 32")
        await pilot.pause()
        assert app.shown()[0] == "line 0"


async def test_what_is_selected_is_copied_from_its_lines_however_they_are_wrapped() -> None:
    app = Panes(["first", "second line, which is much longer than the pane is wide", "third"])
    async with app.run_test(size=(30, 12)) as pilot:
        app.pane.show(s.live(s.US), s.NOON)
        await pilot.pause()
        assert len([line for line in app.shown() if line]) > 3
        selection = Selection(Offset(7, 1), Offset(20, 1))
        assert app.pane.get_selection(selection) == ("line, which i", "\n")
        places = {
            segment.style.meta["offset"] for y in range(4) for segment in app.pane.render_line(y) if segment.style
        }
        assert {(0, 0), (0, 1)} <= places
        assert any(line == 1 and start > 20 for start, line in places)  # the second row of the second line


def test_rows_of_lines_that_stay_are_taken_over_wherever_these_are_now() -> None:
    blank, same = Content(""), Content("same")
    lines = [Content(f"line {n}") for n in range(5)]
    before = wrapped_rows([*lines, blank, same, same], 20, ())
    after = wrapped_rows([*lines[2:], blank, blank, same, same, Content("new")], 20, before)
    assert [row.content.plain for row in after] == ["line 2", "line 3", "line 4", "", "", "same", "same", "new"]
    assert [row.line for row in after] == list(range(8))
    assert after[0] is before[2]
    assert len(set(map(id, after))) == len(after)


def batch(number: int) -> Recorded:
    done = BatchDone(step="backfill/t/f", label=f"day {number}", position=number, of=9, rows_in=1, rows_out=1, bytes=1, seconds=1.0, version=number)  # fmt: skip
    return Recorded("web-1", number, s.NOON + number, done)


def test_only_new_events_are_formatted_whatever_was_dropped_or_put_in_front() -> None:
    made: list[int] = []
    events = [batch(number) for number in range(1, 10)]

    def make(recorded: Recorded) -> int:
        made.append(recorded.seq)
        return recorded.seq

    each = PerEvent(make)
    cases = (events[2:5], events[2:7], events[4:8], events[0:9], events[5:6], (), events[:3])
    for case in cases:
        assert each.of(tuple(case)) == tuple(recorded.seq for recorded in case)
    assert made == [3, 4, 5, 6, 7, 8, *range(1, 10), 6, 1, 2, 3]


def test_events_that_nobody_sees_are_blank_until_they_are_scrolled_to() -> None:
    view: RegionView = replace(s.live(s.US), events=tuple(map(batch, range(1, 30))))
    lines = draw_events(Happenings().of({"us": view}), 0.0, s.NOON, 80, rows=10)
    assert len(lines) == 29
    assert "day 20" in lines[9].plain
    assert lines[10:] == [NOT_SEEN] * 19
