"""Actions that need no plan: the regions are attached to, and neither surveyed nor planned."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from console.drivers.fake import FakeDriver
from console.errors import AtGate, Unreachable
from console.model.plan import Plan
from console.runner.fleet import Fleet
from tests.runner.worlds import World, fake, plan, refreshed, until


class Planner:
    """Counts plans."""

    def __init__(self) -> None:
        self.plans = 0

    def __call__(self, *of: Any) -> Plan:
        self.plans += 1
        return plan(*of)


async def at_gate(folder: Path, **more: Any) -> World:
    world = World(folder, fake("eu", **more))
    first = await refreshed(world)
    (outcome,) = await first.run()
    assert isinstance(outcome.error, AtGate)
    await first.close()
    return world


def driver_of(fleet: Fleet) -> FakeDriver:
    driver = fleet.driver("eu")
    assert isinstance(driver, FakeDriver)
    return driver


async def test_what_is_promoted_after_no_plan_was_made_is_neither_surveyed_nor_planned_before_nor_after(
    folder: Path,
) -> None:
    world, planner = await at_gate(folder), Planner()
    fleet = world.console(planner=planner, runs_on=False)
    await fleet.attach(["eu"])
    waiting = fleet.views["eu"]
    assert (waiting.status.state, waiting.plan, waiting.link) == ("awaiting-confirmation", None, "connecting")
    promoted = await fleet.promote("eu")
    view = fleet.views["eu"]
    assert (view.live, view.status.state) == (promoted.release, "live")
    assert world.regions["eu"].disk.status.state == "live"
    await asyncio.sleep(0.05)  # time in which a survey of a planned region would have begun
    rolled = await fleet.rollback("eu")
    assert fleet.views["eu"].live == rolled.release
    await fleet.close()
    assert planner.plans == 0
    assert "survey" not in driver_of(fleet).calls


async def test_a_region_that_is_planned_after_it_was_attached_to_is_planned_again_once_it_is_promoted(
    folder: Path,
) -> None:
    world, planner = await at_gate(folder), Planner()
    fleet = world.console(planner=planner, runs_on=False)
    await fleet.attach()
    await fleet.refresh()
    await fleet.attach()
    assert fleet.views["eu"].plan is not None
    before = planner.plans
    promoted = await fleet.promote("eu")
    await until(lambda: planner.plans > before)
    await until(lambda: (found := fleet.views["eu"].plan) is not None and found.live == promoted.release)
    await fleet.close()


@pytest.mark.parametrize("planned", [False, True])
async def test_a_region_out_of_reach_is_that_when_it_is_attached_to(folder: Path, planned: bool) -> None:
    world = await at_gate(folder)
    fleet = world.console(runs_on=False)
    if planned:
        await fleet.refresh()
    world.regions["eu"].reachable = False
    await fleet.attach()
    assert fleet.views["eu"].link == "unreachable"
    with pytest.raises(Unreachable):
        fleet.pending("eu")
    await fleet.close()
