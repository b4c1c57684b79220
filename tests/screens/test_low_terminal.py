"""What a terminal of 24 lines leaves of the panes: nothing is covered by lines that say the same twice, or belong elsewhere."""

from dataclasses import replace

import pytest

from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text, settle, toast_text

pytestmark = pytest.mark.slow

GUIDE = ("bytes              8.4 MB moved; 11.1 MB not moved",)


async def test_a_key_pressed_again_says_why_it_does_nothing_once() -> None:
    async with running_app(s.ScriptedCockpit(s.live(s.US)), readonly=True) as (app, pilot):
        await pilot.press("1", "1")
        await settle(pilot)
        assert toast_text(app) == "this is the fleet screen"
        assert screen_text(app).count("this is the fleet screen") == 1
        await pilot.press("o", "R")
        await settle(pilot)
        assert screen_text(app).count("this is the fleet screen") == 1
        assert len(toast_text(app).splitlines()) > 1, "another text is shown beside it"


async def test_the_same_reason_is_shown_again_once_it_is_gone() -> None:
    async with running_app(s.ScriptedCockpit(s.live(s.US))) as (app, pilot):
        await pilot.press("1")
        await settle(pilot)
        app.clear_notifications()
        await settle(pilot)
        assert "this is the fleet screen" not in screen_text(app)
        await pilot.press("1")
        await settle(pilot)
        assert "this is the fleet screen" in screen_text(app)


@pytest.mark.parametrize(("key", "shown"), [("1", True), ("2", True), ("3", False), ("4", False), ("5", False)])
async def test_the_effect_of_a_change_takes_no_lines_of_a_low_gate_plan_or_history(key: str, shown: bool) -> None:
    view = replace(s.live(s.US), guide=GUIDE)
    async with running_app(s.ScriptedCockpit(view)) as (app, pilot):
        await pilot.press(key)
        await settle(pilot)
        assert ("8.4 MB moved" in screen_text(app)) is shown
        await pilot.resize_terminal(120, 36)
        await settle(pilot)
        assert "8.4 MB moved" in screen_text(app)
