"""A console that is being shut down while its regions change."""

import asyncio

import pytest

from console.tui.app import ConsoleApp
from console.tui.screens.base import BaseScreen
from console.tui.screens.of_region.rollout import RolloutScreen
from tests.screens import scripted as s
from tests.screens.harness import running_app, settle

REPAINT = 0.02


async def test_a_screen_that_has_lost_its_widgets_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cockpit, close, due = s.ScriptedCockpit(s.running(s.EU)), ConsoleApp._close_all, list[bool]()

    async def closing(app: ConsoleApp) -> None:
        screen = app.screen
        await app._prune(screen)
        assert not screen.query("#parts")
        assert isinstance(screen, BaseScreen)
        assert screen.is_mounted
        await asyncio.sleep(2 * REPAINT)
        app.repaints.outdate()
        app._repaint()  # as its timer does
        due.append(app.repaints.outdated)
        await close(app)

    async with running_app(cockpit, size=(160, 48), repaint=REPAINT) as (app, pilot):
        await app.push_screen(RolloutScreen(app.state, "eu"))
        await settle(pilot)
        monkeypatch.setattr(ConsoleApp, "_close_all", closing)
    assert due == [True]
