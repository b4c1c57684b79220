"""A bug in console while a region is followed: the run that waits for that region is notified."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.drivers.fake import FakeDriver
from console.drivers.protocol import Who
from console.errors import ConsoleError, NoAgent, no_warehouse
from console.model.event import Recorded
from console.model.fleet import FleetWaves
from console.model.plan import Plan
from tests.runner.worlds import Brake, World, fake, refreshed


class Spoilt(FakeDriver):
    """Breaks whenever it is to follow a rollout, however often it is started anew."""

    async def watch(self, pipeline: str, after: int = 0, who: Who | None = None) -> AsyncIterator[Recorded]:
        if self.world.disk.status.rollout:
            raise ValueError("a \x1b[2Jbug")
        async for recorded in super().watch(pipeline, after, who):
            yield recorded


@pytest.mark.parametrize("again", [False, True])
async def test_a_mistake_of_ours_in_following_ends_the_run_with_its_words_and_not_never(
    again: bool, folder: Path
) -> None:
    """The region stands still meanwhile: nothing else can end the run, neither a gate nor an event."""
    brake = Brake()
    brake.hold()
    eu = fake("eu", brake=brake)
    fleet = await refreshed(World(folder, eu), driver=Spoilt)
    if again:
        await fleet.start("eu")  # the run then joins a rollout under way
    async with asyncio.timeout(60):
        (outcome,) = await fleet.run(yes=True)
    assert outcome.error is not None
    assert (type(outcome.error), outcome.error.code) == (ConsoleError, "E_BUG")
    assert str(outcome.error) == "eu: watching it failed: ValueError: a \\x1b[2Jbug"
    assert outcome.error.hint == "console status; the region's rollout continues"
    assert fleet.views["eu"].link == "unreachable"
    assert eu.disk.status.state == "preparing", "what the region carries goes on"
    brake.release()
    await fleet.close()


async def test_a_region_whose_agent_was_never_started_is_not_called_unreachable_when_a_run_begins(folder: Path) -> None:
    """Nothing runs there yet that could be lost; whoever hands the plan over starts it."""

    class Fresh(FakeDriver):
        async def watch(self, pipeline: str, after: int = 0, who: Who | None = None) -> AsyncIterator[Recorded]:
            if not self.world.disk.status.rollout:
                await asyncio.sleep(0.05)
                raise NoAgent("eu: no agent runs")
            async for recorded in super().watch(pipeline, after, who):
                yield recorded

        async def accept(self, plan: Plan, who: Who, *, attached: bool = False, fleet: FleetWaves | None = None) -> str:
            await asyncio.sleep(0.2)
            return await super().accept(plan, who, attached=attached, fleet=fleet)

    fleet = await refreshed(World(folder, fake("eu")), driver=Fresh)
    links: set[str] = set()

    async def listen() -> None:
        async for view in fleet.changes():
            links.add(view.link)

    listening = asyncio.create_task(listen())
    (outcome,) = await fleet.run(yes=True)
    await fleet.close()
    await listening
    assert outcome.error is None
    assert "unreachable" not in links


async def test_a_disk_that_is_away_while_a_rollout_is_under_way_is_waited_for(folder: Path) -> None:
    class Unmounted(FakeDriver):
        away = 2

        async def watch(self, pipeline: str, after: int = 0, who: Who | None = None) -> AsyncIterator[Recorded]:
            if self.world.disk.status.rollout and Unmounted.away:
                Unmounted.away -= 1
                raise no_warehouse("eu", "/mnt/eu")
            async for recorded in super().watch(pipeline, after, who):
                yield recorded

    fleet = await refreshed(World(folder, fake("eu")), driver=Unmounted)
    async with asyncio.timeout(60):
        (outcome,) = await fleet.run(yes=True)
    await fleet.close()
    assert (Unmounted.away, outcome.error) == (0, None)
