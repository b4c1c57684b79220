"""Whichever process dies, at whatever time: the same result as without a failure, each part written once."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from console.drivers.fake import FakeDriver, FakeRegion, stored_events
from console.errors import Conflict
from console.model.event import BatchDone, Promoted
from console.runner.journal import Journal
from console.runner.view import Outcome
from tests.runner.worlds import ADA, BOB, World, at_event, fake

pytestmark = pytest.mark.slow

EVENTS = 33  # told by one rollout, stored and fleeting; `test_an_unbroken_run…` holds it to that
PIECES = [(1, 1), (2, 4)]  # slices of the two batches: 3,000 rows; 2,000, 1,000 and the NULL days


def in_full(world: FakeRegion) -> None:
    """The region is where an unbroken run leaves it, and nothing was written twice."""
    disk = world.disk
    batches = [write for write in disk.writes if write.last]
    assert [(write.first, write.last) for write in batches] == PIECES
    assert len(disk.writes) == len(set(disk.writes)) == 4
    assert [(row.id, row.state) for row in disk.releases] == [("r1", "previous"), ("r2", "live")]
    assert disk.status.state == "live"
    assert disk.status.rows_done == 6000
    assert len(stored_events(world, Promoted)) == 1
    assert sum(event.rows_in for event in stored_events(world, BatchDone) if isinstance(event, BatchDone)) == 6000


async def test_an_unbroken_run_ends_live_and_says_all_there_is_to_say(folder: Path) -> None:
    eu = fake("eu")
    heard: list[object] = []
    eu.heard.append(heard.append)
    fleet = World(folder, eu).console()
    await fleet.refresh()
    assert await fleet.run(yes=True) == (Outcome("eu", "live"),)
    assert len(heard) == EVENTS
    in_full(eu)
    assert fleet.views["eu"].status.state == "live"
    await fleet.close()


@pytest.mark.parametrize("cut", range(1, EVENTS))
async def test_a_console_killed_after_any_event_is_succeeded_from_the_region_alone(cut: int, folder: Path) -> None:
    eu = fake("eu")
    world = World(folder, eu)
    first = world.console()
    await first.refresh()
    run = asyncio.create_task(first.run(yes=True))
    at_event(eu, cut, run.cancel)
    with suppress(asyncio.CancelledError):
        await run
    await first.close()

    second = world.console()
    await second.refresh()
    (outcome,) = await second.run(yes=True)
    await second.close()
    assert outcome.error is None, outcome
    in_full(eu)


@pytest.mark.parametrize("cut", range(1, EVENTS))
async def test_an_agent_killed_after_any_event_is_restarted_by_the_run(cut: int, folder: Path) -> None:
    eu = fake("eu")
    dying: list[asyncio.Task[None]] = []
    at_event(eu, cut, lambda: dying.append(asyncio.create_task(eu.kill_agent())))
    fleet = World(folder, eu).console()
    await fleet.refresh()
    (outcome,) = await fleet.run(yes=True)
    await asyncio.gather(*dying)
    await fleet.close()
    assert outcome.error is None, outcome
    in_full(eu)


@pytest.mark.parametrize("cut", range(1, EVENTS))
async def test_a_link_lost_at_any_event_is_shown_as_that_and_taken_up_again(cut: int, folder: Path) -> None:
    eu = fake("eu")
    fleet = World(folder, eu).console()
    await fleet.refresh()
    changes = fleet.changes()
    run = asyncio.create_task(fleet.run(yes=True))
    eu.drop_link(after=cut)
    links = set()
    while not run.done():
        with suppress(TimeoutError):
            view = await asyncio.wait_for(anext(changes), 0.05)
            links.add(view.link)
            assert view.status.held != "failed"
            if view.link == "unreachable":
                assert "eu" in view.link_why
                eu.heal()
    (outcome,) = run.result()
    await fleet.close()
    assert outcome.error is None, outcome
    assert "unreachable" in links
    in_full(eu)


async def test_the_answer_to_a_promotion_may_be_lost_and_it_still_counts_once(folder: Path) -> None:
    eu = fake("eu")
    fleet = World(folder, eu).console()
    driver = fleet.driver("eu")
    assert isinstance(driver, FakeDriver)
    driver.lose_answer = {"promote"}
    await fleet.refresh()
    assert await fleet.run(yes=True) == (Outcome("eu", "live"),)
    await fleet.close()
    in_full(eu)


async def test_the_answer_to_a_rollback_may_be_lost_and_nobody_asks_for_the_way_back_twice(folder: Path) -> None:
    eu = fake("eu")
    fleet = World(folder, eu).console()
    driver = fleet.driver("eu")
    assert isinstance(driver, FakeDriver)
    await fleet.refresh()
    assert await fleet.run(yes=True) == (Outcome("eu", "live"),)
    driver.lose_answer = {"rollback"}
    assert (await fleet.rollback("eu")).release == "r1"
    await fleet.close()
    assert [(row.id, row.state) for row in eu.disk.releases] == [("r1", "live"), ("r2", "previous")]


async def test_what_somebody_else_rolled_back_stays_so_unless_the_release_is_named(folder: Path) -> None:
    eu = fake("eu")
    fleet = World(folder, eu).console()
    await fleet.refresh()
    assert await fleet.run(yes=True) == (Outcome("eu", "live"),)
    eu.agent.rollback("r2", BOB)
    await fleet.refresh()
    for to in ("", "r1"):
        with pytest.raises(Conflict, match="r1 is live already \\(rolled back by bob@") as refused:
            await fleet.rollback("eu", to)
        assert refused.value.hint == "console rollback --region eu --to r2, to make r2 live instead"
    with pytest.raises(Conflict, match="r1 is live, and r2 can become live again, not r7"):
        await fleet.rollback("eu", "r7")
    assert eu.disk.live == "r1"
    assert (await fleet.rollback("eu", "r2")).release == "r2"
    await fleet.close()


@pytest.mark.parametrize("outcome", ["", "unknown"])
async def test_a_way_back_of_which_nobody_was_told_is_not_undone_by_asking_again(folder: Path, outcome: str) -> None:
    eu = fake("eu")
    world = World(folder, eu)
    journal = Journal(folder / "ada.db")
    fleet = world.console(journal=journal)
    await fleet.refresh()
    assert await fleet.run(yes=True) == (Outcome("eu", "live"),)
    intent = journal.intent("eu", "web", "rollback", {"live": "r2", "to": "r1"})
    await fleet.driver("eu").rollback("web", "r2", ADA)  # and there the console died, or the region did
    if outcome:
        journal.outcome(intent, "eu", "web", outcome)
    await fleet.close()
    journal.close()
    # found done; then truly forward, and truly back
    for to, expected in (("", "r1"), ("r2", "r2"), ("r1", "r1")):
        again = world.console(journal=Journal(folder / "ada.db"))
        await again.refresh()
        assert (await again.rollback("eu", to)).release == expected
        await again.close()
        assert [row.id for row in eu.disk.releases if row.state == "live"] == [expected]


async def test_what_is_live_already_is_left_alone(folder: Path) -> None:
    eu = fake("eu")
    world = World(folder, eu)
    for expected in ("live", "unchanged", "unchanged"):
        fleet = world.console()
        await fleet.refresh()
        assert await fleet.run(yes=True) == (Outcome("eu", expected),)
        await fleet.close()
    in_full(eu)


async def test_a_plan_under_way_is_not_handed_over_twice_even_if_rows_have_arrived_since(folder: Path) -> None:
    eu = fake("eu")
    world = World(folder, eu)
    first = world.console()
    await first.refresh()
    await first.start("eu")
    eu.disk.stats["landing"] = replace(eu.disk.stats["landing"], rows=9000)
    second = world.console()
    await second.refresh()
    await first.start("eu")
    await second.start("eu")
    assert eu.disk.status.rollout == "web-2"
    assert len({recorded.rollout for recorded in eu.disk.stored}) == 1
    await first.close()
    await second.close()
