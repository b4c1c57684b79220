"""The screens over the real runner and regions in memory: from start to gate, promotion and rollback."""

import asyncio
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


async def confirm(pilot: Pilot[int], app: ConsoleApp, key: str, *typed: str, title: str = "") -> None:
    """Press a key, and answer its dialog once it is open: a busy machine takes a while to show it."""
    await pilot.press(key)
    async with asyncio.timeout(60):
        while not dialog_title(app):
            await settle(pilot)
    assert title in dialog_title(app)
    await pilot.press(*typed, "enter")


async def test_a_change_goes_through_canary_and_wave_and_back_by_keys_alone(tmp_path: Path) -> None:
    us: FakeRegion = fake("us", canary=True)
    world = World(tmp_path, us, fake("eu", wave=2))
    async with running_app(world.console()) as (app, pilot):
        await until(pilot, app, "2 change waiting")  # of both: what is not planned yet is not started
        await confirm(pilot, app, "s")
        await until(pilot, app, "◆ at the gate")
        assert world.regions["eu"].state().status.state == "none"
        await confirm(pilot, app, "P", *"us")
        await until(pilot, app, "✓ live")
        await pilot.press("j")
        await until(pilot, app, "◆ at the gate")
        await confirm(pilot, app, "P", *"eu", title="Promote eu")
        await until(pilot, app, "2 live")
        assert [region.state().live for region in world.regions.values()] == ["r2", "r2"]
        await confirm(pilot, app, "R", *"eu")
        await until(pilot, app, "↶ rolled back")
        assert [region.state().live for region in world.regions.values()] == ["r2", "r1"]
