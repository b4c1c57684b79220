"""The keys' calls to the cockpit, and their refusals."""

from dataclasses import replace
from itertools import product
from typing import get_args

import pytest
from textual.events import Paste

from console.errors import AtGate, Conflict
from console.runner.view import Outcome
from console.tui.actions import ActionRequest, RegionAction
from console.tui.dialogs.gate import confirm_promotion
from console.tui.repaint import REPAINT_SECONDS
from console.tui.screens.home import HomeScreen
from console.tui.state import ScreenState
from tests.screens import scripted as s
from tests.screens.harness import dialog_title, running_app, screen_text, settle, toast_text
from tests.screens.moments import moment

pytestmark = pytest.mark.slow


def actions(cockpit: s.ScriptedCockpit) -> list[tuple[str, object]]:
    return [call for call in cockpit.calls if call[0] not in ("refresh", "close")]


async def test_the_gate_opens_only_for_the_regions_own_name() -> None:
    cockpit = s.ScriptedCockpit(*moment("gate"))
    async with running_app(cockpit) as (app, pilot):
        app.post_message(ActionRequest("promote", ("us",)))
        await pilot.press("P", "u", "enter")
        assert dialog_title(app) == "Promote us"
        assert app.screen.query_one("#yes").disabled
        assert actions(cockpit) == []
        await pilot.press("s")
        assert not app.screen.query_one("#yes").disabled
        await pilot.press("enter")
        await settle(pilot)
        assert actions(cockpit) == [("promote", "us")]
        assert "r2 is live" in screen_text(app)


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (s.at_gate(s.US, wrong=True), "1 of 4 checks differ"),
        (replace(s.at_gate(s.US), status=replace(s.at_gate(s.US).status, checks=())), "no check has run"),
        (replace(s.at_gate(s.US), link="unreachable"), "us is unreachable"),
        (s.running(s.US), "only a region at its gate"),
        (s.live(s.US), "only a region at its gate"),
    ],
)
def test_the_gate_says_what_keeps_it_shut(view: s.RegionView, why: str) -> None:
    assert why in confirm_promotion(ScreenState(views={"us": view}), ("us",)).blocked


async def test_no_typing_opens_a_gate_that_a_check_keeps_shut() -> None:
    cockpit = s.ScriptedCockpit(s.at_gate(s.US, wrong=True))
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("P", "u", "s", "tab", "enter")
        assert (actions(cockpit), dialog_title(app)) == ([], "")


async def test_an_open_dialog_is_disabled_when_another_console_promotes() -> None:
    cockpit = s.ScriptedCockpit(*moment("gate"))
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("P", "u", "s")
        cockpit.show(s.live(s.US))
        await settle(pilot)
        assert "us (live): only a region at its gate can be promoted" in screen_text(app)
        await pilot.press("enter")
        assert actions(cockpit) == []


async def test_start_asks_first_and_names_the_waves_behind_the_gate() -> None:
    cockpit = s.ScriptedCockpit(*moment("before"))
    gate_shut = Outcome("us", "awaiting-confirmation", AtGate("us is at its gate"))
    cockpit.outcomes = [(gate_shut, Outcome("eu", "skipped"), Outcome("ap", "skipped"))]
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("s")
        text = screen_text(app)
        assert (
            text.index("wave 1 · canary")
            < text.index("us  2 replay")
            < text.index("wave 2")
            < text.index("eu  2 replay")
        )
        assert actions(cockpit) == []
        await pilot.press("enter")
        await pilot.pause()
        assert actions(cockpit) == [("run", ("us", "eu", "ap"))]
        assert "us: at the gate" in screen_text(app)
        assert "then eu, ap can start" in toast_text(app)


async def test_only_marked_regions_start() -> None:
    cockpit = s.ScriptedCockpit(*moment("before"))
    async with running_app(cockpit) as (_, pilot):
        await pilot.press("j", "space", "s", "enter")
        await pilot.pause()
        assert actions(cockpit) == [("run", ("eu",))]


async def test_a_destructive_key_does_nothing_unless_its_button_is_chosen() -> None:
    cockpit = s.ScriptedCockpit(s.running(s.US), s.failed(s.EU))
    async with running_app(cockpit) as (_, pilot):
        await pilot.press("X", "enter", "X", "escape")
        assert actions(cockpit) == []
        await pilot.press("X", "tab", "enter", "j", "D", "enter", "D", "tab", "enter")
        await pilot.pause()
        assert actions(cockpit) == [("cancel", "us"), ("discard", "eu")]


async def test_pause_resumes_a_paused_rollout_and_retry_applies_only_after_a_failure() -> None:
    paused = replace(s.running(s.EU), status=replace(s.running(s.EU).status, held="paused"))
    cockpit = s.ScriptedCockpit(s.running(s.US), paused, s.failed(s.AP))
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("p", "t", "j", "p", "j", "p", "t")
        await settle(pilot)
        assert actions(cockpit) == [("pause", "us"), ("resume", "eu"), ("retry", "ap")]
        assert "only a failed rollout can be retried" in screen_text(app)


async def test_rolling_back_asks_for_the_name_too() -> None:
    cockpit = s.ScriptedCockpit(*moment("live"))
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("R", "e", "u", "enter")
        assert (dialog_title(app), actions(cockpit)) == ("Roll back us", [])
        await pilot.press("backspace", "backspace", "u", "s", "enter")
        await pilot.pause()
        assert actions(cockpit) == [("rollback", "us")]


async def test_a_read_only_console_changes_nothing_in_any_state() -> None:
    views = (s.waiting(s.US), s.running(s.EU), s.failed(s.AP))
    views += (s.at_gate(replace(s.US, name="g")), s.live(replace(s.US, name="h")))
    cockpit = s.ScriptedCockpit(*views)
    async with running_app(cockpit, readonly=True) as (app, pilot):
        for action, name in product(get_args(RegionAction), cockpit.views):
            app.post_message(ActionRequest(action, (name,)))
        await pilot.pause()
        assert ([call for call in actions(cockpit) if call[0] != "witness"], dialog_title(app)) == ([], "")
        assert {call for call, _ in cockpit.calls} == {"refresh", "witness"}


async def test_an_error_is_shown_with_its_hint_and_the_console_continues() -> None:
    cockpit = s.ScriptedCockpit(*moment("gate"))
    cockpit.errors["promote"] = Conflict(
        "us was promoted by bob from his laptop at 12:00", hint="console status --region us"
    )
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("P", "u", "s", "enter")
        await settle(pilot)
        assert "promoted by bob" in screen_text(app)
        assert "console status --region us" in screen_text(app)
        await pilot.press("enter")
        assert "is it safe to confirm?" in screen_text(app)


async def test_a_filter_hides_regions_and_escape_brings_them_back() -> None:
    cockpit = s.ScriptedCockpit(*moment("before"))
    async with running_app(cockpit) as (app, pilot):
        home = app.screen
        assert isinstance(home, HomeScreen)
        await pilot.press("slash", *"prod !eu", "enter")
        assert home._list.shown == ["ap"]
        assert home.current_region == "ap"
        await pilot.press("escape")
        assert home._list.shown == ["us", "eu", "ap"]


async def test_pasted_text_presses_no_key() -> None:
    cockpit = s.ScriptedCockpit(*moment("gate"))
    async with running_app(cockpit) as (app, pilot):
        app.post_message(Paste("P\nus\nsX\n"))
        await pilot.pause()
        assert (dialog_title(app), actions(cockpit)) == ("", [])


async def test_the_help_names_every_key_of_the_screen() -> None:
    async with running_app(s.ScriptedCockpit(*moment("before")), size=(80, 60)) as (app, pilot):
        await pilot.press("question_mark")
        text = screen_text(app)
        for key in (
            "s",
            "p",
            "P",
            "R",
            "X",
            "t",
            "D",
            "r",
            "v",
            "l",
            "w",
            "/",
            "?",
            "esc",
            "space",
            "enter",
            "q",
            "ctrl+z",
        ):
            assert f"│ {key} " in text, key


async def test_a_thousand_changes_are_drawn_a_few_times() -> None:
    cockpit = s.ScriptedCockpit(s.running(s.EU, 0))
    async with running_app(cockpit, repaint=REPAINT_SECONDS) as (app, pilot):
        drawn = set()
        for done in range(1000):
            cockpit.show(s.running(s.EU, done * 400))
            if done % 50 == 0:
                await pilot.pause(0.01)
                drawn.add(id(app.state))
        await settle(pilot)
        assert len(drawn) <= 8
        assert "399,600 of 466,830 rows" in screen_text(app)


async def test_quitting_names_the_agents_that_keep_running(capsys: pytest.CaptureFixture[str]) -> None:
    cockpit = s.ScriptedCockpit(*moment("running"))
    async with running_app(cockpit) as (_, pilot):
        await pilot.press("q")
    assert "eu, ap: the agents continue" in capsys.readouterr().err
    assert cockpit.calls[-1] == ("close", None)
