"""Two consoles at one gate, and one console that does not know whether its promotion succeeded."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from console.drivers.fake import FakeDriver, stored_events
from console.drivers.protocol import Who
from console.errors import Conflict, Unreachable
from console.model.event import Accepted, Promoted, Recorded
from console.process import birth
from console.runner.actions import JournaledActions
from console.runner.exit_codes import exit_code
from console.runner.journal import Journal
from console.runner.view import Outcome
from tests.runner.worlds import ADA, BOB, Brake, World, at_event, ends, fake, refreshed, until


async def test_of_two_consoles_that_promote_one_succeeds_and_the_other_is_told_who(folder: Path) -> None:
    eu = fake("eu")
    world = World(folder, eu)
    one, two = await refreshed(world), await refreshed(world, who=BOB)
    await one.run()
    await two.run()
    results = await asyncio.gather(one.promote("eu"), two.promote("eu"), return_exceptions=True)
    (won,) = [result for result in results if isinstance(result, Promoted)]
    (lost,) = [result for result in results if isinstance(result, Conflict)]
    assert won.by in str(lost)
    assert won.host in str(lost)
    assert len(stored_events(eu, Promoted)) == 1
    await one.close()
    await two.close()


@pytest.mark.parametrize("lead", range(1, 33, 2))
async def test_of_two_headless_runs_one_exits_0_and_the_other_4_however_they_interleave(
    lead: int, folder: Path
) -> None:
    eu = fake("eu")
    world = World(folder, eu)
    one, two = await refreshed(world), await refreshed(world, who=BOB)
    second: list[asyncio.Task[tuple[Outcome, ...]]] = []
    at_event(eu, lead, lambda: second.append(asyncio.create_task(two.run(yes=True))))
    first = await one.run(yes=True)
    codes = sorted([exit_code(first), exit_code(await second[0])])
    assert codes == [0, 4]
    assert len(stored_events(eu, Promoted)) == len(stored_events(eu, Accepted)) == 1
    await one.close()
    await two.close()


class Deaf(FakeDriver):
    """Hears nothing until the promotion is done, and then only by asking."""

    async def watch(self, pipeline: str, after: int = 0, who: Who | None = None) -> AsyncIterator[Recorded]:
        async for recorded in super().watch(pipeline, after, who):
            if isinstance(recorded.event, Promoted):
                raise Unreachable("eu: the connection was lost")
            if self.region.name == "nowhere":
                yield recorded


@pytest.mark.parametrize(("who", "shared", "code"), [(BOB, False, 4), (ADA, True, 4), (ADA, False, 0)])
async def test_a_run_that_was_to_promote_and_finds_it_done_says_who_did_unless_it_was_itself(
    who: Who, shared: bool, code: int, folder: Path
) -> None:
    """Itself: an earlier process of the same person and host, whose journal is lost; with it, it would be known."""
    brake = Brake()
    eu = fake("eu", brake=brake)
    world = World(folder, eu)
    one = await refreshed(world, journal=Journal(folder / "shared.db"))
    second = Journal(folder / "shared.db") if shared else None
    two = await refreshed(world, who=who, driver=Deaf, journal=second)
    at_event(eu, 9, brake.hold)
    await one.start("eu")
    late = asyncio.create_task(two.run(yes=True))
    await until(lambda: two.views["eu"].status.rollout == "web-2")
    brake.release()
    await one.run()
    await one.promote("eu")
    outcomes = await late
    assert exit_code(outcomes) == code
    assert not outcomes[0].error or "ada@laptop from laptop" in str(outcomes[0].error)
    await one.close()
    await two.close()


@pytest.mark.parametrize(("born", "lives"), [("now", True), ("long ago", False), ("", False)])
async def test_a_console_that_asked_and_was_not_answered_lives_if_its_pid_is_still_the_same_process(
    born: str, lives: bool, folder: Path
) -> None:
    journal = Journal(folder / "shared.db")
    asked = {"rollout": "web-2", "pid": os.getpid(), "born": birth(os.getpid()) if born == "now" else born}
    journal.intent("eu", "web", "promote", asked)
    assert JournaledActions(journal, "web", ADA).tried_elsewhere("eu", "promote", "web-2") is lives
    journal.close()


class Torn(FakeDriver):
    """Loses the link while it promotes: no answer, no event, no state, until it is asked to promote again."""

    async def promote(self, pipeline: str, rollout: str, live: str, who: Who) -> Promoted:
        if "promote" in self.calls:
            self.world.heal()
            return await super().promote(pipeline, rollout, live, who)
        self.calls.append("promote")
        self.world.drop_link()
        await self.world.agent.promote(rollout, live, who)
        raise Unreachable("eu: the connection was lost")


async def test_asked_again_after_a_lost_answer_a_promotion_of_ours_is_no_conflict(folder: Path) -> None:
    eu = fake("eu")
    fleet = await refreshed(World(folder, eu), driver=Torn)
    assert ends(await fleet.run(yes=True)) == {"eu": ("live", None)}
    assert len(stored_events(eu, Promoted)) == 1
    await fleet.close()
