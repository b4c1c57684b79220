"""Hundreds of regions on the screen: the lines that a key and a repaint draw, how often, and the selection by a click."""

import time
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

import pytest
from textual.content import Content

from console.model.event import Paused, Recorded
from console.model.plan import NodeChange
from console.runner.view import RegionView
from console.tui import app as app_module
from console.tui.fleet import regions as pane
from console.tui.fleet.region_row import ListColumn, Row
from console.tui.fleet.regions import RegionList
from console.tui.panes.pane import Pane
from console.tui.repaint import BACKOFF
from console.tui.screens.of_region.region import RegionScreen
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text, settle

pytestmark = pytest.mark.slow

MANY = 500
SIZES = [(80, 24), (160, 48)]


def views(done: int = 180_000) -> list[RegionView]:
    return [s.running(replace(s.EU, name=f"r{number:03}"), done) for number in range(MANY)]


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
async def test_a_key_and_a_repaint_draw_the_regions_in_view_and_no_others(
    monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    drawn: list[str] = []
    draw_row = pane.draw_row

    def counted(row: Row, shown: Sequence[ListColumn], width: int) -> Content:
        drawn.append(row.view.region.name)
        return draw_row(row, shown, width)

    monkeypatch.setattr(pane, "draw_row", counted)
    fit = size[1]
    cockpit = s.ScriptedCockpit(*views())
    async with running_app(cockpit, size=size) as (app, pilot):
        await settle(pilot)
        assert "r000" in drawn
        assert len(set(drawn)) <= fit
        drawn.clear()
        await pilot.press("end")
        await settle(pilot)
        assert "› " in screen_text(app)
        assert "r499" in drawn
        assert len(set(drawn)) <= fit
        drawn.clear()
        await pilot.press("up")
        await settle(pilot)
        assert sorted(drawn) == ["r498", "r499"]
        drawn.clear()
        cockpit.show(*views(210_000))
        await settle(pilot)
        assert "210,000 of 466,830 rows" in screen_text(app)
        assert len(drawn) <= fit


async def test_the_pause_before_a_repaint_is_proportional_to_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now, took = time.monotonic() + 1000, 1.0
    cockpit = s.ScriptedCockpit(s.running(s.EU))
    async with running_app(cockpit) as (app, pilot):
        await settle(pilot)
        look = app._snapshot

        def slow() -> object:
            nonlocal now
            now += took
            return look()

        monkeypatch.setattr(app, "_snapshot", slow)
        monkeypatch.setattr(app_module, "time", SimpleNamespace(monotonic=lambda: now))
        cockpit.show(s.running(s.EU, 210_000))
        await settle(pilot)
        assert "210,000 of 466,830 rows" in screen_text(app)
        cockpit.show(s.running(s.EU, 250_000))
        for moment in (now, now + BACKOFF * took - 0.1):
            now = moment
            await pilot.pause(0.1)
            assert "210,000 of 466,830 rows" in screen_text(app)
        now += 0.2
        await settle(pilot)
        assert "250,000 of 466,830 rows" in screen_text(app)


async def test_a_click_moves_the_cursor_and_a_second_one_opens_the_region_also_where_the_list_is_scrolled() -> None:
    async with running_app(s.ScriptedCockpit(*views()), size=(80, 24)) as (app, pilot):
        await settle(pilot)
        widget = app.screen.query_one(RegionList)
        assert await pilot.click(RegionList, offset=(5, 0))  # the names of the columns
        assert widget.current == "r000"
        for y, name in ((1, "r000"), (2, "r001"), (3, "r002")):
            assert await pilot.click(RegionList, offset=(5, y))
            assert widget.current == name
        await pilot.press("end")
        assert await pilot.click(RegionList, offset=(5, widget.size.height - 2))
        assert widget.current == "r498"
        assert await pilot.click(RegionList, offset=(5, widget.size.height - 1), times=2)
        await pilot.pause()
        assert isinstance(app.screen, RegionScreen)
        assert app.screen.current_region == "r499"


async def test_the_cursor_stays_in_view_and_the_first_region_brings_the_names_of_the_columns() -> None:
    mixed = [s.waiting(view.region) if number % 2 else view for number, view in enumerate(views())]
    async with running_app(s.ScriptedCockpit(*mixed), size=(80, 24)) as (app, pilot):
        await settle(pilot)
        assert "r1 → next" in screen_text(app)  # beside the scroll bar, not under it
        await pilot.press("end")
        await settle(pilot)
        assert "› r499" in "".join(" ".join(line.split()) for line in screen_text(app).splitlines())
        await pilot.press("home")
        await settle(pilot)
        assert "REGION" in screen_text(app)
        await pilot.press("slash", *"r123", "enter")
        await settle(pilot)
        assert "›  r123" in screen_text(app)
        await pilot.press("escape")
        await settle(pilot)
        assert "›  r123" in screen_text(app)
        await pilot.resize_terminal(80, 16)
        await settle(pilot)
        assert "›  r123" in screen_text(app)


async def test_a_plan_of_many_tables_is_shown_whole_whatever_was_shown_before() -> None:
    def keeping(tables: int) -> RegionView:
        kept = tuple(
            NodeChange(kind="table", name=f"t_{number}", action="keep", why="nothing about it changes")
            for number in range(tables)
        )
        return replace(s.waiting(s.EU), plan=s.plan(s.EU, nodes=kept))

    cockpit = s.ScriptedCockpit(keeping(3))
    async with running_app(cockpit) as (app, pilot):
        widget = app.screen.query_one("#question", Pane)
        for tables in (3, 100, 190, 40, 5):
            cockpit.show(keeping(tables))
            await settle(pilot)
            assert f"t_{tables - 1} " in widget.text
            widget.scroll_home(animate=False)
            await settle(pilot)
            drawn: list[str] = []
            while len(drawn) < widget.virtual_size.height:
                widget.scroll_to(y=len(drawn), animate=False)
                await settle(pilot)
                drawn += [
                    widget.render_line(y).text for y in range(len(drawn) - widget.scroll_offset.y, widget.size.height)
                ]
            assert "".join(drawn).split() == widget.text.split()


async def test_a_long_log_shows_its_last_line_and_that_of_what_is_added() -> None:
    view = s.running(s.EU)

    def logging(lines: int) -> RegionView:
        return replace(view, status=replace(view.status, log=tuple(f"line {number} of it" for number in range(lines))))

    cockpit = s.ScriptedCockpit(logging(30))
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("l")
        for lines in (30, 39, 40, 41, 130, 200, 15):
            cockpit.show(logging(lines))
            await settle(pilot)
            assert f"line {lines - 1} of it" in screen_text(app)
            assert f"line {lines} of it" not in screen_text(app)
        cockpit.show(logging(130))
        await settle(pilot)
        await pilot.press("home")
        await pilot.wait_for_scheduled_animations()
        cockpit.show(logging(150))
        await settle(pilot)
        assert "line 0 of it" in screen_text(app)
        await pilot.press("end")
        await pilot.wait_for_scheduled_animations()
        cockpit.show(logging(170))
        await settle(pilot)
        assert "line 169 of it" in screen_text(app)


async def test_lines_of_a_log_draw_no_line_of_the_list_and_lay_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    cockpit = s.ScriptedCockpit(*views())
    async with running_app(cockpit, size=(160, 48)) as (app, pilot):
        await settle(pilot)
        drawn: list[str] = []
        monkeypatch.setattr(pane, "draw_row", lambda row, *rest: drawn.append(row.view.region.name))
        laid_out: list[object] = []
        monkeypatch.setattr(app.screen, "_refresh_layout", lambda *args, **named: laid_out.append(args))
        cockpit.show(
            *(
                replace(each, status=replace(each.status, seq=10, log=(*each.status.log, "x")))
                for each in cockpit.views.values()
            )
        )
        await settle(pilot)
        assert app.state.views["r001"].status.seq == 10
        assert (drawn, laid_out) == ([], [])


async def test_a_move_of_the_focus_does_not_draw_the_whole_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_app(s.ScriptedCockpit(*views()), size=(160, 48)) as (app, pilot):
        await settle(pilot)
        whole: list[object] = []
        monkeypatch.setattr(app.screen, "refresh", lambda *args, **named: whole.append(args))
        await pilot.press("tab")
        await settle(pilot)
        assert isinstance(app.screen.focused, Pane)
        assert whole == []


async def test_an_event_of_another_region_is_listed_at_once_and_a_covered_screen_is_drawn_when_it_is_seen() -> None:
    quiet, other = s.live(s.US), s.live(s.EU)
    cockpit = s.ScriptedCockpit(quiet, other)
    async with running_app(cockpit, size=(160, 48)) as (app, pilot):
        await settle(pilot)
        paused = Recorded(rollout="web-2", seq=1, at=s.NOON, event=Paused(by="lunch"))
        cockpit.show(replace(other, events=(paused,)))
        await settle(pilot)
        assert "lunch" in screen_text(app)
        await pilot.press("2")
        await settle(pilot)
        cockpit.show(s.failed(s.EU))
        await settle(pilot)
        await pilot.press("1")
        await settle(pilot)
        assert "failed" in screen_text(app)
