"""The screens over the real runner and regions in memory: from start to gate, promotion and rollback."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from console.drivers.fake import FakeRegion
from console.tui.app import ConsoleApp
from tests.runner.worlds import World, fake
from tests.screens.harness import dialog_title, running_app, screen_text, settle

pytestmark = pytest.mark.slow


async def until(pilot: Pilot[int], app: ConsoleApp, text: str) -> None:
    """Wait until the operator can read this."""
    for _ in range(200):
        if text in screen_text(app):
            return
        await settle(pilot)
    raise AssertionError(f"never read {text!r} on:\n{screen_text(app)}")


async def test_a_change_goes_through_canary_and_wave_and_back_by_keys_alone(tmp_path: Path) -> None:
    us: FakeRegion = fake("us", canary=True)
    world = World(tmp_path, us, fake("eu", wave=2))
    async with running_app(world.console()) as (app, pilot):
        await until(pilot, app, "change waiting")
        await pilot.press("s", "enter")
        await until(pilot, app, "◆ at the gate")
        assert world.regions["eu"].state().status.state == "none"
        await pilot.press("P", *"us", "enter")
        await until(pilot, app, "✓ live")
        await pilot.press("j")
        await until(pilot, app, "◆ at the gate")
        await pilot.press("P")
        assert dialog_title(app) == "Promote eu"
        await pilot.press(*"eu", "enter")
        await until(pilot, app, "2 live")
        assert [region.state().live for region in world.regions.values()] == ["r2", "r2"]
        await pilot.press("R", *"eu", "enter")
        await until(pilot, app, "↶ rolled back")
        assert [region.state().live for region in world.regions.values()] == ["r2", "r1"]
