"""SIGKILL of the agent before and after its writes: the same command again, the same end, and no row lost or doubled."""

import os
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from tests.faults import points
from tests.faults.world import CASE, PIPELINE, Operator, World, verdict

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="session")]


@dataclass
class Act:
    """One rollout under fire: which points were armed and never reached, who died at the others, how it ended."""

    armed: tuple[str, ...]
    left: set[str] = field(default_factory=set)
    died: dict[str, int] = field(default_factory=dict)  # point → the process that it ended
    live: str = ""
    told: dict[str, Any] = field(default_factory=dict)


def died_once(act: Act, point: str) -> bool:
    """A process that reached a point reached no other one after it."""
    return list(act.died.values()).count(act.died[point]) == 1


async def play(world: World, ada: Operator, armed: tuple[str, ...], *words: str) -> Act:
    """Give one command until it succeeds, while the agent dies at every armed point."""
    if only := os.environ.get("FAULTS_ONLY"):  # what a planted bug needs, and nothing else
        armed = tuple(point for point in armed if point in only.split(","))
    world.arm(armed)
    await ada.until_done(*words)
    act = Act(armed, world.armed(), world.died())
    world.hurt += sorted(set(armed) - act.left)
    act.live = (await world.until_answered(lambda: world.driver.state(PIPELINE))).live
    act.told = await world.judged()
    return act


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def first(world: World, ada: Operator) -> Act:
    """The first release, carried while the agent dies at every point that it passes."""
    world.nurse()
    return await play(world, ada, points.FIRST, "apply", "--regions", "eu", "--yes")


@pytest.mark.parametrize("point", points.FIRST)
async def test_an_agent_killed_here_is_resumed_to_the_same_end(first: Act, point: str) -> None:
    assert point not in first.left, "it was never reached"
    assert died_once(first, point)
    assert verdict(first.told, []) == {}
    assert first.live


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def change(world: World, ada: Operator, first: Act) -> Act:
    """A column more, beside a writer and a reader; agent and consoles die around commits and journal entries."""
    assert first.live, first.left
    world.read()
    world.write()
    world.install(PIPELINE, CASE / "after")
    return await play(world, ada, (*points.LIVE, *points.CONSOLE), "apply", "--regions", "eu", "--yes")


@pytest.mark.parametrize("point", [*points.LIVE, *points.CONSOLE])
async def test_killed_beside_a_writer_no_row_is_lost_or_doubled(
    first: Act, change: Act, world: World, point: str
) -> None:
    assert point not in change.left, "it was never reached"
    assert died_once(change, point)
    assert verdict(change.told, world.bad_reads()) == {}
    assert change.live != first.live


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def back(world: World, ada: Operator, first: Act, change: Act) -> Act:
    """The way back, with the agent dying after the commit and before its record."""
    assert change.live != first.live, change.left
    return await play(world, ada, points.BACK, "rollback", "--regions", "eu", "--yes")


@pytest.mark.parametrize("point", points.BACK)
async def test_killed_on_the_way_back_the_release_before_is_whole(
    first: Act, back: Act, world: World, point: str
) -> None:
    assert point not in back.left, "it was never reached"
    assert died_once(back, point)
    assert verdict(back.told, world.bad_reads()) == {}
    assert back.live == first.live
