"""The cockpit's promises: every key answers, applicable keys are shown, help indicates hidden lines."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from textual.color import Color
from textual.pilot import Pilot
from textual.theme import Theme
from textual.widgets import Input, Static

from console.cli.root import cli
from console.cli.words import ScreenWords
from console.model.event import Ailing, Logged, Recorded, StepDone
from console.model.tuning import Tuning
from console.tui.app import ConsoleApp
from console.tui.drawing import stack_lines
from console.tui.fleet.events import Happenings, draw_events
from console.tui.fleet.memory import FleetMemory, ScreenPlace
from console.tui.fleet.regions import RegionList
from console.tui.screens.base import BaseScreen
from console.tui.screens.history import HistoryScreen
from console.tui.screens.home import HomeScreen
from console.tui.screens.palette import entries
from console.tui.screens.sheet import SheetScreen
from console.tui.state import ScreenState
from console.tui.terminal.escape import clipboard_sequence, notice_sequence
from console.tui.terminal.themes import HIGH_CONTRAST, TEXT_NAMES, THEMES
from tests.cli.sample import story
from tests.screens import scripted as s
from tests.screens.harness import dialog_title, running_app, screen_text, settle, toast_text
from tests.screens.moments import moment

pytestmark = pytest.mark.slow

PROMISED = (
    "1", "2", "3", "4", "5", "n", "s", "p", "P", "R", "X", "t", "D", "T", "r", "d", "g", "v", "l", "w", "e", "o", "h", "V",
    "left_square_bracket", "right_square_bracket", "plus", "underscore", "y", "at", "colon", "ctrl+s", "question_mark",
    "f1", "slash", "escape", "space", "enter", "q", "ctrl+z",
)  # fmt: skip


def test_every_promised_key_is_bound_on_every_screen() -> None:
    for screen in (HomeScreen, HistoryScreen):
        node = screen(s_state()) if screen is HomeScreen else HistoryScreen(s_state(), "us")
        bound = {key for key, _ in node._bindings}
        extra = {"space", "enter", "slash", "escape"}  # of the list and the home screen
        assert set(PROMISED) - extra <= bound


def s_state() -> ScreenState:
    return ScreenState(views={view.region.name: view for view in moment("live")}, at=s.NOON)


@pytest.mark.parametrize(
    "key", [key for key in PROMISED if key not in ("q", "ctrl+z", "space", "escape", "enter", "r", "underscore", "1")]
)
async def test_no_key_is_silent(key: str, tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path))
    async with running_app(s.ScriptedCockpit(*moment("live"))) as (app, pilot):
        before = screen_text(app)
        await pilot.press(key)
        await settle(pilot)
        assert screen_text(app) != before or toast_text(app)


async def test_the_help_says_that_it_goes_on_and_scrolls() -> None:
    async with running_app(s.ScriptedCockpit(*moment("before"))) as (app, pilot):
        await pilot.press("question_mark")
        await settle(pilot)
        assert isinstance(app.screen, SheetScreen)
        assert "below · esc closes" in screen_text(app)
        await pilot.press("G")
        await pilot.wait_for_scheduled_animations()
        await settle(pilot)
        text = screen_text(app)
        assert "above · esc closes" in text
        assert "symbols of a plan" in text


async def test_the_palette_offers_what_is_safe_first_and_nothing_that_does_not_apply() -> None:
    async with running_app(s.ScriptedCockpit(*moment("before"))) as (app, pilot):
        assert isinstance(app.screen, BaseScreen)
        names = [name for name, _, _ in entries(app.screen)]
        assert names[0].startswith("Go to")
        assert "Cancel the rollout" not in names
        await pilot.press("ctrl+p")
        await pilot.pause(0.3)
        lines = [line for line in screen_text(app).splitlines() if line.strip()]
        assert any("Go to rollout" in line for line in lines)
        assert not any("Cancel the rollout" in line for line in lines)
    async with running_app(s.ScriptedCockpit(s.running(s.US))) as (app, _):
        assert isinstance(app.screen, BaseScreen)
        names = [name for name, _, _ in entries(app.screen)]
        assert names.index("Cancel the rollout") > names.index("Quit") > 0


async def test_the_footer_shows_only_keys_that_fit_now() -> None:
    cockpit = s.ScriptedCockpit(*moment("live"))
    async with running_app(cockpit) as (app, pilot):
        foot = screen_text(app).splitlines()[-1]
        assert "R back" in foot
        assert "promote" not in foot
        assert "pause" not in foot
        assert "start" not in foot
        cockpit.show(*moment("gate"))
        await settle(pilot)
        foot = screen_text(app).splitlines()[-1]
        assert "P promote" in foot
        assert "n next" in foot
        assert "R back" not in foot


async def test_a_region_is_live_only_while_its_agent_is_heard_and_its_feeds_move() -> None:
    still = Ailing(feed="parse", target="requests", path="p", tries=9, standing=True, why="replaced")
    heard, silent = s.live(s.US), replace(s.live(s.EU), heard=s.NOON - 11)
    stopped = replace(s.live(s.AP), status=replace(s.live(s.AP).status, ailing=(still,)))
    async with running_app(s.ScriptedCockpit(heard, silent, stopped), size=(200, 60)) as (app, _):
        lines = {line[3:9].strip(): line for line in screen_text(app).splitlines() if line[:1] in "› "}
        assert "✓ live" in lines["us"]
        assert "✓" not in lines["eu"]
        assert "live, not" in lines["eu"]
        assert "feed stopped" in lines["ap"]


async def test_the_coach_does_not_send_one_where_one_is() -> None:
    async with running_app(s.ScriptedCockpit(*moment("before")), size=(120, 36)) as (app, pilot):
        assert "3 see why" in screen_text(app)
        await pilot.press("3")
        await settle(pilot)
        assert "3 see why" not in screen_text(app)
        assert "s start" in screen_text(app)


async def test_nobody_promotes_by_figures_of_another_minute() -> None:
    old = replace(s.at_gate(s.US), heard=s.NOON - 31)
    async with running_app(s.ScriptedCockpit(old)) as (app, pilot):
        await pilot.press("P")
        await settle(pilot)
        assert dialog_title(app) == ""
        assert "its figures are 31 s old; r reads them again" in toast_text(app)


async def test_n_goes_to_the_next_region_that_needs_you_and_to_hidden_ones() -> None:
    views = (s.live(s.US), s.failed(s.EU), s.at_gate(s.AP))
    async with running_app(s.ScriptedCockpit(*views)) as (app, pilot):
        home = app.screen
        assert isinstance(home, HomeScreen)
        await pilot.press("n")
        assert home.current_region == "eu"  # it has a date
        await pilot.press("n")
        assert home.current_region == "ap"
        await pilot.press("slash", *"us", "enter", "n")
        assert home.current_region == "eu"


async def test_rows_change_places_only_by_o_and_are_hidden_only_by_e() -> None:
    cockpit = s.ScriptedCockpit(s.live(s.US), s.live(s.EU), s.live(s.AP))
    async with running_app(cockpit) as (app, pilot):
        home = app.screen
        assert isinstance(home, HomeScreen)
        await pilot.press("o")
        cockpit.show(s.failed(s.AP))
        await settle(pilot)
        assert home.list.shown == ["us", "eu", "ap"]
        await pilot.press("o", "o", "o", "o")
        assert home.list.shown == ["ap", "us", "eu"]
        await pilot.press("e")
        assert home.list.shown == ["ap"]
        cockpit.show(s.failed(s.EU))
        await settle(pilot)
        assert home.list.shown == ["ap"]
        await pilot.press("e")
        assert home.list.shown == ["ap", "us", "eu"]


async def test_a_key_acts_on_the_region_that_was_under_the_cursor_when_it_was_pressed() -> None:
    cockpit = s.ScriptedCockpit(s.running(s.US), s.running(s.EU))
    async with running_app(cockpit) as (app, pilot):
        home = app.screen
        assert isinstance(home, HomeScreen)
        home.action_request("pause")
        home.list.current = "eu"
        await settle(pilot)
        assert [call for call in cockpit.calls if call[0] == "pause"] == [("pause", "us")]


async def test_digits_go_to_the_screens_and_coming_back_keeps_cursor_filter_and_order() -> None:
    async with running_app(s.ScriptedCockpit(*moment("running"))) as (app, pilot):
        home = app.screen
        assert isinstance(home, HomeScreen)
        await pilot.press("o", "o", "slash", *"prod", "enter", "j")
        at = home.current_region
        for key in "2345":
            await pilot.press(key)
            assert isinstance(app.screen, BaseScreen)
            assert app.screen.current_region == at
            assert len(app.screen_stack) == 2
        await pilot.press("1")
        assert app.screen is home
        assert (home.current_region, home.list.filter_text, home.list.order) == (at, "prod", "lag")


async def test_what_was_run_is_kept_as_commands_to_copy() -> None:
    cockpit = s.ScriptedCockpit(s.running(s.US))
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("p")
        await settle(pilot)
        await pilot.press("at")
        await settle(pilot)
        assert "console pause --regions us  done" in screen_text(app)
        await pilot.press("y")
        await settle(pilot)
        assert app.clipboard == "console pause --regions us"
        await pilot.press("escape", "y")
        await settle(pilot)
        assert app.clipboard == "console status --history 1h --output json"


def test_the_clipboard_and_notices_pass_through_tmux() -> None:
    assert clipboard_sequence("é", {}) == "\x1b]52;c;w6k=\a"
    assert clipboard_sequence("é", {"TMUX": "x"}) == "\x1bPtmux;\x1b\x1b]52;c;w6k=\a\x1b\\"
    assert notice_sequence("eu: \x1b[2Jfailed", {}) == "\x1b]9;eu: \\x1b[2Jfailed\a\a"


@pytest.mark.parametrize("theme", THEMES, ids=lambda theme: theme.name)
def test_text_has_the_contrast_that_people_need(theme: Theme) -> None:
    wanted = 7.0 if theme is HIGH_CONTRAST else 4.5
    grounds = [Color.parse(str(ground)) for ground in (theme.background, theme.surface, theme.panel)]
    texts = {name: theme.variables[name] for name in TEXT_NAMES} | {"foreground": str(theme.foreground)}
    for name, text in texts.items():
        for ground in grounds:
            ratio = contrast(Color.parse(text), ground)
            assert ratio >= wanted, (name, ground.hex, round(ratio, 2))


def contrast(text: Color, ground: Color) -> float:
    """WCAG 2.1, relative luminance."""

    def luminance(color: Color) -> float:
        parts = [part / 255 for part in color.rgb]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(text), luminance(ground)), reverse=True)
    return (high + 0.05) / (low + 0.05)


async def test_the_banner_has_the_time_of_utc_and_of_the_region_and_who_steers() -> None:
    async with running_app(s.ScriptedCockpit(*moment("running")), size=(160, 48)) as (app, _):
        banner = screen_text(app).splitlines()[0]
        assert "12:00:00Z" in banner
        assert "us 07:00:00" in banner
        assert "ada steers" in banner


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 36), (200, 60)], ids="{0[0]}x{0[1]}".format)
async def test_region_cause_and_key_are_on_the_screen_at_every_size(size: tuple[int, int]) -> None:
    async with running_app(s.ScriptedCockpit(s.live(s.US), s.failed(s.EU)), size=size) as (app, _):
        text = screen_text(app)
        assert "✗ eu" in text
        assert "t retry" in text
        assert "due in 3 d" in text
        assert "3 rows of" in text or size[0] < 80
        assert app.screen.query_one("#foot", Static)
        assert "? keys" in text.splitlines()[-1]


async def test_a_colon_takes_the_words_of_the_command_line_through_the_same_dialogs() -> None:
    cockpit = s.ScriptedCockpit(s.running(s.US), s.at_gate(s.EU))
    async with running_app(cockpit, words=ScreenWords(cli)) as (app, pilot):
        await pilot.press("colon", *"pau")
        await settle(pilot)
        assert dict(ScreenWords(cli).complete("pau"))["pause"][:24] in screen_text(app)
        await pilot.press("tab", "enter")
        await settle(pilot)
        assert ("pause", "us") in cockpit.calls
        await pilot.press("colon", *"resume", "enter")
        await settle(pilot)
        assert "there is no paused rollout to resume" in toast_text(app)
        await pilot.press("colon", *"promote --region eu", "enter")
        await settle(pilot)
        assert "Promote eu" in dialog_title(app)
        await pilot.press("escape", "colon", *"status", "enter")
        await settle(pilot)
        assert app.clipboard == "console status"
        await pilot.press("colon", *"history", "enter")
        await settle(pilot)
        assert isinstance(app.screen, HistoryScreen)
        await pilot.press("colon", *"promot", "enter")
        await settle(pilot)
        assert "did you mean promote?" in screen_text(app)


async def test_what_is_typed_before_the_line_has_the_focus_is_not_lost() -> None:
    async with running_app(s.ScriptedCockpit(s.running(s.US)), words=ScreenWords(cli)) as (app, pilot):
        await pilot.press("colon")
        app.screen.set_focus(None)
        await pilot.press(*"pause")
        assert app.screen.query_one("#line", Input).value == "pause"
        assert isinstance(app.screen.focused, Input)


async def test_tune_begins_its_command_where_a_rollout_runs_and_says_why_where_none_does() -> None:
    cockpit = s.ScriptedCockpit(s.running(s.US), s.live(s.EU))
    async with running_app(cockpit, words=ScreenWords(cli)) as (app, pilot):
        await pilot.press("T", *"rows=60000", "enter")
        await settle(pilot)
        assert ("tune", ("us", Tuning(rows=60_000), False)) in cockpit.calls
        assert "rows" in toast_text(app)
        assert app._ran[-1].line == "console tune --region us rows=60000"
        await pilot.press("T", *"rows=0", "enter")
        await settle(pilot)
        assert "rows" in screen_text(app).split("✗")[1]
        assert [call for call, _ in cockpit.calls].count("tune") == 1
        await pilot.press("escape")
        await pilot.press("j", "T")
        await settle(pilot)
        assert "eu: no rollout is running; its limits are in regions/*.yaml" in toast_text(app)


async def test_coming_back_another_day_finds_cursor_order_and_filter_and_what_is_new(tmp_path: Path) -> None:
    file = tmp_path / "screens" / "web.json"
    async with running_app(s.ScriptedCockpit(*moment("before")), memory=file) as (app, pilot):
        await pilot.press("o", "slash", *"prod", "enter", "j")
        await settle(pilot)
        home = app.screen
        assert isinstance(home, HomeScreen)
        left = home.remembered()
    assert file.stat().st_mode & 0o777 == 0o600
    async with running_app(s.ScriptedCockpit(*moment("before")), memory=file) as (app, pilot):
        await settle(pilot)
        home = app.screen
        assert isinstance(home, HomeScreen)
        assert home.remembered() == left == FleetMemory(cursor=home.current_region, order="needs", filter="prod")
        assert app.state.looked == s.NOON


async def returned(app: ConsoleApp, pilot: Pilot[int], place: ScreenPlace) -> BaseScreen:
    """The screen once it is back at a place: Textual focuses a pane after the message that asks for it."""
    async with asyncio.timeout(20):
        while True:
            await settle(pilot)
            screen = app.screen
            if isinstance(screen, BaseScreen) and screen.place() == place:
                return screen


async def test_leaving_and_coming_back_keeps_pane_zoom_filter_and_lines_also_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "web.json"
    async with running_app(s.ScriptedCockpit(*moment("slow")), memory=file, size=(120, 36)) as (app, pilot):
        await pilot.press("j", "2", "l", "i", "slash", *"memory", "enter", "plus")
        await settle(pilot)
        left = app.screen
        assert isinstance(left, BaseScreen)
        place = left.place()
        assert place == ScreenPlace(
            screen="rollout", region="eu", pane="log", zoomed="yes", filter="memory", lines="stored"
        )
        text = screen_text(app)
        assert text.count("╭") == 1
        assert "╱" not in text
        assert [line[0] for line in text.splitlines()[1:-2]] == ["╭", *"│" * 31, "╰"]
        assert "failed: memory" in screen_text(app)
        await pilot.press("right_square_bracket")
        await settle(pilot)
        assert "─ days" in screen_text(app)
        assert "─ log" not in screen_text(app)
        await pilot.press("l")
        await settle(pilot)
        await pilot.press("4", "2")
        assert await returned(app, pilot, place) is not left
        await pilot.press("q")
    async with running_app(s.ScriptedCockpit(*moment("slow")), memory=file, size=(120, 36)) as (app, pilot):
        await returned(app, pilot, place)
        await pilot.press("underscore")
        await settle(pilot)
        assert screen_text(app).count("╭") > 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"looked": "x", "fleet": 3, "theme": 7}', '{"fleet": {"order": "none", "cursor": 1}}']
)
async def test_a_damaged_memory_costs_the_memory_alone(tmp_path: Path, text: str) -> None:
    file = tmp_path / "web.json"
    file.write_text(text)
    async with running_app(s.ScriptedCockpit(*moment("before")), memory=file) as (app, _):
        assert "✓" in screen_text(app) or "change" in screen_text(app)


async def test_the_header_orders_and_a_click_on_the_footer_acts() -> None:
    cockpit = s.ScriptedCockpit(s.running(s.US), s.running(s.EU))
    async with running_app(cockpit) as (app, pilot):
        home = app.screen
        assert isinstance(home, HomeScreen)
        await pilot.click(RegionList, offset=(5, 0))
        assert home.list.order == "needs"
        foot = screen_text(app).splitlines()[-1]
        await pilot.click("#foot", offset=(foot.index("p pause") + 1, 0))
        await settle(pilot)
        assert ("pause", "us") in cockpit.calls


async def test_what_happened_is_told_newest_first_with_a_line_where_one_last_looked() -> None:
    events = story()
    view = replace(s.live(s.US), events=tuple(events))
    lines = Happenings().of({"us": view})
    assert lines[0].at >= lines[-1].at
    drawn = stack_lines(draw_events(lines, events[3].at, events[-1].at, 100)).plain
    assert "when you last looked" in drawn
    assert drawn.index("is live, it was") < drawn.index("when you last looked") < drawn.index("planned by ada")


def test_routine_is_folded_between_what_was_decided_or_failed() -> None:
    done = StepDone("create/requests")
    failed = Logged("batch failed", "warning")
    events = [
        Recorded("web-2", n, s.NOON - 900 + n, e) for n, e in enumerate((done, done, failed, done, done, done), 1)
    ]
    lines = Happenings().of({"us": replace(s.live(s.US), events=tuple(events))})
    drawn = stack_lines(draw_events(lines, 0.0, s.NOON, 78, folded=True)).plain.splitlines()
    assert [line.split()[-1] for line in drawn] == ["+2", "agent", "+1"]
    assert "batch failed" in drawn[1]
    new = stack_lines(draw_events(lines, s.NOON - 900 + 4, s.NOON, 78, folded=True)).plain.splitlines()
    assert [line.split()[-1] for line in new] == ["+1", "──", "agent", "agent", "+1"]
    assert len(stack_lines(draw_events(lines, 0.0, s.NOON, 78)).plain.splitlines()) == 6


async def test_at_80x24_what_happened_has_a_line_an_event() -> None:
    """The column of a scrollbar is kept free: lines drawn for more of them would be wrapped."""
    events = [Recorded("web-2", n, s.NOON - 900 + n, Logged(f"event {n} " + "x" * 90, "warning")) for n in range(1, 31)]
    async with running_app(s.ScriptedCockpit(replace(s.live(s.US), events=tuple(events)))) as (app, pilot):
        await pilot.press("right_square_bracket")
        await settle(pilot)
        shown = [line for line in screen_text(app).splitlines() if "event" in line or "agent" in line]
        assert len(shown) >= 8
        assert all("event" in line and "agent" in line for line in shown), screen_text(app)
