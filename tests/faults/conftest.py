"""One region under fire for all tests of this folder: one start of Spark, one writer, one reader."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from tests import soak
from tests.faults import outside, points, stories
from tests.faults.acts import Act, play
from tests.faults.stories import Story
from tests.faults.world import CASE, PIPELINE, WHOLE_SECONDS, Operator, World, mounted, summary


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def world() -> AsyncIterator[World]:
    """A region on a small disk of its own, its pipeline installed as before; nothing has been rolled out.

    Not below pytest's folder: a run that is killed leaves its mounts, and pytest would fail to tidy them away for ever.
    """
    root = Path(tempfile.mkdtemp(prefix="console-fire-"))
    kept = {name: os.environ.get(name) for name in ("CONSOLE_CRASH_DIR", "CONSOLE_HOME")}
    os.environ["CONSOLE_CRASH_DIR"] = str(root / "crashes")  # inherited by every agent that is started from here
    os.environ["CONSOLE_HOME"] = str(root / "service")
    with mounted(root / "disk", 200), mounted(root / "scratch", 100):
        world = World(root)
        try:
            world.install(PIPELINE, CASE / "before")
            yield world
            if place := os.environ.get("CONSOLE_RELIABILITY"):
                await record(Path(place), world)
        finally:
            await world.ended()
            for name, value in kept.items():
                os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)
    shutil.rmtree(root, ignore_errors=True)


async def record(place: Path, world: World) -> None:
    """The fixed set as one line of the account of reliability."""
    figures = summary(await world.judged(whole=True), world.seen())
    soak.append(place, {"seed": 0, "faults": world.hurt, "seconds": round(world.age()), **figures})


@pytest.fixture(scope="package")
def ada(world: World) -> Operator:
    return Operator(world, "ada")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def first(world: World, ada: Operator) -> Act:
    """The first release, carried while the agent dies at every point that it passes, and a console in every state."""
    world.nurse()
    consoles: dict[str, int] = {}
    hunter = asyncio.create_task(outside.kill_in_each_state(world, ada, consoles))
    act = await play(world, ada, points.FIRST, "apply", "--regions", "eu", "--yes")
    hunter.cancel()
    await asyncio.gather(hunter, return_exceptions=True)
    world.hurt += [f"console killed while {state}" for state in consoles]
    return replace(act, consoles=consoles)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def change(world: World, ada: Operator, first: Act) -> Act:
    """A column more, beside a writer and a reader; agent and consoles die around commits and journal entries."""
    assert first.live, first.left
    world.read()
    world.write()
    world.install(PIPELINE, CASE / "after")
    return await play(world, ada, (*points.LIVE, *points.CONSOLE), "apply", "--regions", "eu", "--yes")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def back(world: World, ada: Operator, first: Act, change: Act) -> Act:
    """The way back, with the agent dying after the commit and before its record."""
    assert change.live != first.live, change.left
    return await play(world, ada, points.BACK, "rollback", "--regions", "eu", "--yes")


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def midway(world: World, back: Act) -> Story:
    """The column once more, with everything from outside that can hit a rollout on its way."""
    async with asyncio.timeout(WHOLE_SECONDS):
        return await stories.midway(world, back)


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def after(world: World, midway: Story) -> Story:
    """The same region while it only follows."""
    async with asyncio.timeout(WHOLE_SECONDS):
        return await stories.after(world, midway)
