"""Waves, gates, races and refusals, over fake regions."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from console.drivers.fake import FakeDriver, FakeRegion, Scenario, stored_events
from console.errors import (
    AtGate,
    CheckFailed,
    Conflict,
    ConsoleError,
    DataError,
    Problems,
    RegionError,
    Unreachable,
    UsageError,
    no_warehouse,
)
from console.model.event import Ended, Recorded
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Policy, Region
from console.runner.exit_codes import exit_code
from console.runner.waves import queued_regions
from tests.runner.worlds import BOB, NEW, Brake, World, at_event, ends, fake, plan, refreshed, refusing, until


def three(us: Scenario | None = None, **more: object) -> tuple[FakeRegion, FakeRegion, FakeRegion]:
    return fake("eu", wave=2), fake("us", us, canary=True, **more), fake("ap", wave=2)


async def test_the_canary_is_live_before_any_other_region_hears_of_the_plan(folder: Path) -> None:
    eu, us, ap = three()
    fleet = await refreshed(World(folder, eu, us, ap))
    others: list[int] = []
    us.heard.append(lambda _: others.append(len(eu.disk.stored) + len(ap.disk.stored)))
    assert list(fleet.views) == ["us", "eu", "ap"]
    assert ends(await fleet.run(yes=True)) == {"us": ("live", None), "eu": ("live", None), "ap": ("live", None)}
    assert not any(others)
    await fleet.close()


async def test_all_stored_events_of_a_rollout_are_there_to_be_asked_for(folder: Path) -> None:
    eu, us, ap = three()
    fleet = await refreshed(World(folder, eu, us, ap))
    assert await fleet.recorded("ap") == ()
    await fleet.run(["us"], yes=True)
    events = await fleet.recorded("us")
    assert [recorded.seq for recorded in events] == list(range(1, len(us.disk.stored) + 1))
    await fleet.close()


@pytest.mark.parametrize(
    ("script", "end"),
    [
        (Scenario(failures={"backfill/requests/parse": 1}), ("failed", RegionError)),
        (Scenario(differ=("requests",)), ("awaiting-confirmation", CheckFailed)),
        (Scenario(inconclusive=("requests",)), ("awaiting-confirmation", AtGate)),
    ],
)
async def test_a_canary_that_is_not_live_stops_every_later_wave(
    script: Scenario, end: tuple[str, type[ConsoleError]], folder: Path
) -> None:
    eu, us, ap = three(script)
    fleet = await refreshed(World(folder, eu, us, ap))
    outcomes = await fleet.run(yes=True)
    assert ends(outcomes) == {"us": end, "eu": ("skipped", None), "ap": ("skipped", None)}
    assert exit_code(outcomes) == end[1].exit_code
    assert not eu.disk.stored
    assert not ap.disk.stored
    assert us.disk.live == "r1"
    assert outcomes[0].error
    assert outcomes[0].error.hint
    await fleet.close()


@pytest.mark.parametrize(("policy", "yes"), [("ask", False), ("auto", False), ("never", True), ("never", False)])
async def test_the_gate_stays_shut(policy: Literal["ask", "never", "auto"], yes: bool, folder: Path) -> None:
    eu = fake("eu", policy=Policy(promote=policy))
    fleet = await refreshed(World(folder, eu))
    outcomes = await fleet.run(yes=yes)
    assert ends(outcomes) == {"eu": ("awaiting-confirmation", AtGate)}
    assert exit_code(outcomes) == 3
    assert eu.disk.live == "r1"
    await fleet.close()


@pytest.mark.slow
async def test_opened_by_hand_the_waves_that_waited_begin(folder: Path) -> None:
    eu, us, ap = three()
    fleet = await refreshed(World(folder, eu, us, ap))
    assert ends(await fleet.run())["eu"] == ("skipped", None)
    promoted = await fleet.promote("us")
    assert (promoted.release, promoted.was) == ("r2", "r1")
    changes = fleet.changes()
    async with asyncio.timeout(60):
        while any(fleet.views[name].status.state != "awaiting-confirmation" for name in ("eu", "ap")):
            await anext(changes)
    assert eu.disk.live == ap.disk.live == "r1"
    await fleet.close()


@pytest.mark.slow
async def test_a_region_of_the_wave_that_had_nothing_to_do_holds_nothing_whatever_its_last_rollout_came_to(
    folder: Path,
) -> None:
    eu, us, _ = three()
    uk = fake("uk", canary=True)

    def planned(pipeline: Pipeline, live: Live, where: Region) -> Plan:
        made = plan(pipeline, live, where)
        return replace(made, nodes=(), steps=()) if where.name == "uk" else made

    before = await refreshed(World(folder, uk))
    await before.run()
    await before.control("uk", "cancel")
    await before.close()
    fleet = await refreshed(World(folder, eu, us, uk), planner=planned)
    assert [outcome.state for outcome in await fleet.run() if outcome.region == "uk"] == ["unchanged"]
    assert fleet.views["uk"].status.state == "cancelled"
    await fleet.promote("us")
    await until(lambda: fleet.views["eu"].status.state == "awaiting-confirmation")
    await fleet.close()


async def test_another_plan_is_refused_while_one_is_under_way(folder: Path) -> None:
    eu = fake("eu")
    world = World(folder, eu)
    one = await refreshed(world)
    await one.start("eu")

    two = await refreshed(world, who=BOB)
    two._pipelines["eu"] = two._pipelines["eu"].__class__(name="web", description="other")
    await two.refresh()
    outcomes = await two.run(yes=True)
    assert exit_code(outcomes) == 4
    assert "ada@laptop" in str(outcomes[0].error)
    with pytest.raises(Conflict):
        await two.start("eu")
    await one.close()
    await two.close()


async def test_what_the_planner_refuses_is_never_handed_over(folder: Path) -> None:
    eu = fake("eu")
    fleet = await refreshed(World(folder, eu), planner=refusing)
    with pytest.raises(Problems):
        await fleet.start("eu")
    outcomes = await fleet.run(yes=True)
    assert exit_code(outcomes) == 65
    assert not eu.disk.stored
    await fleet.close()


async def test_a_planner_s_error_lands_in_the_view_and_in_the_outcome(folder: Path) -> None:
    def broken(*_: object) -> None:
        raise DataError("requests.yaml: no column ts")

    eu = fake("eu")
    fleet = await refreshed(World(folder, eu), planner=broken)
    assert fleet.views["eu"].problem == "requests.yaml: no column ts"
    assert exit_code(await fleet.run()) == 65
    await fleet.close()


async def test_a_region_s_name_is_not_part_of_its_problem_since_every_face_writes_it_in_front(folder: Path) -> None:
    def broken(*_: object) -> None:
        raise no_warehouse("eu", "/srv/warehouse")

    eu = fake("eu")
    fleet = await refreshed(World(folder, eu), planner=broken)
    assert fleet.views["eu"].problem == "there is no warehouse at /srv/warehouse"
    await fleet.close()


@pytest.mark.slow
async def test_a_region_out_of_reach_is_that_and_nothing_else(folder: Path) -> None:
    eu, us = fake("eu"), fake("us")
    eu.drop_link()
    fleet = await refreshed(World(folder, eu, us))
    assert fleet.views["eu"].link == "unreachable"
    outcomes = await fleet.run(yes=True)
    assert ends(outcomes) == {"eu": ("none", Unreachable), "us": ("live", None)}
    assert exit_code(outcomes) == 5
    eu.heal()
    await fleet.refresh()
    assert ends(await fleet.run(yes=True)) == {"eu": ("live", None), "us": ("unchanged", None)}
    await fleet.close()


async def test_a_link_that_stays_lost_ends_the_wait_and_the_rollout_is_not_called_failed(folder: Path) -> None:
    eu = fake("eu")
    fleet = await refreshed(World(folder, eu), reconnect_seconds=0.05)
    eu.drop_link(after=12)
    outcomes = await fleet.run(yes=True)
    assert exit_code(outcomes) == 5
    assert "may be running" in str(outcomes[0].error)
    assert fleet.views["eu"].status.held == ""
    await fleet.close()


async def test_after_a_failure_retry_goes_on_where_it_stopped(folder: Path) -> None:
    eu = fake("eu", Scenario(failures={"catch-up/requests/parse": 1}))
    fleet = await refreshed(World(folder, eu))
    assert exit_code(await fleet.run(yes=True)) == 1
    assert fleet.views["eu"].status.why
    batches = [write for write in eu.disk.writes if write.last]
    await fleet.control("eu", "retry")
    assert ends(await fleet.run(yes=True)) == {"eu": ("live", None)}
    assert [write for write in eu.disk.writes if write.last] == batches
    await fleet.close()


async def test_a_failure_is_discarded_where_the_policy_says_so(folder: Path) -> None:
    policy = Policy(on_failure="discard")
    eu = fake("eu", Scenario(failures={"validate": 1}), policy=policy)
    fleet = await refreshed(World(folder, eu))
    assert exit_code(await fleet.run(yes=True)) == 1
    assert eu.disk.status.state == "discarded"
    assert [row.id for row in eu.disk.releases] == ["r1"]
    await fleet.close()


async def test_paused_it_stands_and_resumed_it_ends_as_if_it_had_not_been(folder: Path) -> None:
    brake = Brake()
    eu = fake("eu", brake=brake)
    fleet = await refreshed(World(folder, eu))
    at_event(eu, 9, brake.hold)
    run = asyncio.create_task(fleet.run(yes=True))
    await until(lambda: fleet.views["eu"].status.state == "backfilling")
    await fleet.control("eu", "pause")
    brake.release()
    await until(lambda: fleet.views["eu"].status.shown == "paused")
    stored = len(eu.disk.stored)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(eu.disk.stored) == stored
    await fleet.control("eu", "resume")
    assert ends(await run) == {"eu": ("live", None)}
    assert [(write.first, write.last) for write in eu.disk.writes if write.last] == [(1, 1), (2, 4)]
    await fleet.close()


async def test_a_rollout_that_someone_paused_before_is_not_waited_for(folder: Path) -> None:
    eu = fake("eu")
    world = World(folder, eu)
    one = await refreshed(world)
    await one.start("eu")
    await one.control("eu", "pause")
    two = await refreshed(world, who=BOB)
    (outcome,) = await two.run(yes=True)
    assert "paused by ada@laptop" in str(outcome.error)
    assert outcome.error
    assert "resume" in outcome.error.hint
    await one.close()
    await two.close()


async def test_cancelled_under_a_run_it_ends_as_a_conflict_naming_who(folder: Path) -> None:
    brake = Brake()
    eu = fake("eu", brake=brake)
    world = World(folder, eu)
    one, two = await refreshed(world), await refreshed(world, who=BOB)
    at_event(eu, 9, brake.hold)
    run = asyncio.create_task(one.run(yes=True))
    await until(lambda: one.views["eu"].status.state == "backfilling")
    await two.control("eu", "cancel")
    (outcome,) = await run
    assert exit_code([outcome]) == 4
    assert "bob@tower" in str(outcome.error)
    assert len(stored_events(eu, Ended)) == 1
    await one.close()
    await two.close()


@pytest.mark.slow
async def test_back_and_forth_and_cleaned_up(folder: Path) -> None:
    eu = fake("eu")
    fleet = await refreshed(World(folder, eu))
    await fleet.run(yes=True)
    back = await fleet.rollback("eu")
    assert (back.release, back.was) == ("r1", "r2")
    await until(lambda: (plan := fleet.views["eu"].plan) is not None and bool(plan.steps))
    assert ends(await fleet.run(yes=True)) == {"eu": ("live", None)}
    assert eu.disk.live == "r3"
    (retired,) = await fleet.cleanup("eu", dry_run=True)
    assert retired.endswith("-2")
    assert await fleet.cleanup("eu", previous=True) == (retired, "requests/old-1")
    await fleet.refresh()
    with pytest.raises(Conflict, match="nothing to go back to"):
        await fleet.rollback("eu")
    await fleet.close()


async def test_a_slow_reader_gets_the_latest_view_and_none_after_the_end(folder: Path) -> None:
    eu, us = fake("eu"), fake("us")
    fleet = await refreshed(World(folder, eu, us))
    changes = fleet.changes()
    await fleet.run(yes=True)
    await fleet.close()
    last = [view async for view in changes]
    assert sorted(view.region.name for view in last) == ["eu", "us"]
    assert [view for view in last] == [fleet.views[view.region.name] for view in last]


async def test_unknown_regions_and_nothing_to_start_are_usage_errors(folder: Path) -> None:
    fleet = await refreshed(World(folder, fake("eu")))
    with pytest.raises(UsageError, match="mars"):
        await fleet.run(["mars"])
    await fleet.run(["eu"], yes=True)
    await fleet.refresh()
    with pytest.raises(UsageError, match="nothing to start"):
        await fleet.start("eu")
    await fleet.close()


async def test_an_agent_that_talks_nonsense_is_a_failure_and_other_regions_go_on(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    eu, us = fake("eu"), fake("us")
    fleet = await refreshed(World(folder, eu, us))
    driver = fleet.driver("eu")
    assert isinstance(driver, FakeDriver)

    async def nonsense(pipeline: str, after: int = 0) -> AsyncIterator[Recorded]:
        raise RegionError("eu: the agent does not speak the protocol")
        yield

    monkeypatch.setattr(driver, "watch", nonsense)
    await fleet._watchers["eu"].stop()
    assert ends(await fleet.run(yes=True))["us"] == ("live", None)
    assert fleet.views["eu"].link == "unreachable"
    assert fleet.views["eu"].status.held == ""
    await fleet.close()


@pytest.mark.slow
async def test_the_waves_that_waited_begin_from_whichever_console_opens_the_gate(folder: Path) -> None:
    """The one that began it is gone, and with its machine its journal: the waves stand in the regions."""
    eu, us, ap = three()
    world = World(folder, eu, us, ap)
    first = await refreshed(world)
    assert ends(await first.run())["eu"] == ("skipped", None)
    await first.close()
    second = world.console(BOB)
    await second.refresh()
    changes = second.changes()
    await second.promote("us")
    async with asyncio.timeout(60):
        while any(second.views[name].status.state != "awaiting-confirmation" for name in ("eu", "ap")):
            await anext(changes)
    await second.close()


@pytest.mark.slow
async def test_a_wave_of_which_one_region_is_not_live_yet_holds_the_next(folder: Path) -> None:
    eu, us, ap = three()
    uk = fake("uk", canary=True)
    world = World(folder, eu, us, ap, uk)
    first = await refreshed(world)
    await first.run()
    await first.close()
    second = await refreshed(world)
    await second.promote("us")
    assert second.views["eu"].status.state == "none"
    assert queued_regions(second.views, {"eu": NEW})["eu"].after == ("uk",)
    changes = second.changes()
    await second.promote("uk")
    async with asyncio.timeout(60):
        while second.views["eu"].status.state != "awaiting-confirmation":
            await anext(changes)
    await second.close()


async def test_a_region_that_was_started_alone_begins_no_other(folder: Path) -> None:
    eu, us, ap = three()
    world = World(folder, eu, us, ap)
    fleet = await refreshed(world)
    await fleet.run(["us"])
    await fleet.promote("us")
    assert queued_regions(fleet.views, dict.fromkeys(fleet.views, NEW)) == {}
    assert not eu.disk.stored
    await fleet.close()


async def test_a_region_whose_files_have_changed_since_waits_for_a_person(folder: Path) -> None:
    eu, us, ap = three()
    world = World(folder, eu, us, ap)
    first = await refreshed(world)
    await first.run()
    await first.close()

    def edited(pipeline: Pipeline, live: Live, where: Region) -> Plan:
        return replace(plan(pipeline, live, where), desired="edited")

    second = await refreshed(world, planner=edited)
    await second.promote("us")
    assert queued_regions(second.views, dict.fromkeys(second.views, "edited")) == {}
    assert queued_regions(second.views, dict.fromkeys(second.views, NEW)).keys() == {"eu", "ap"}
    await asyncio.sleep(0.05)
    assert not eu.disk.stored
    await second.close()


@pytest.mark.slow
async def test_a_gate_opened_while_its_wave_is_still_on_its_way_lets_the_next_begin(folder: Path) -> None:
    eu, us, ap = three()
    brake = Brake()
    uk = fake("uk", canary=True, brake=brake)
    world = World(folder, eu, us, ap, uk)
    fleet = await refreshed(world)
    brake.hold()
    run = asyncio.create_task(fleet.run())
    changes = fleet.changes()
    while fleet.views["us"].status.state != "awaiting-confirmation":
        await anext(changes)
    await fleet.promote("us")
    brake.release()
    outcomes = await run
    assert ends(outcomes)["uk"] == ("awaiting-confirmation", AtGate)
    await fleet.promote("uk")
    async with asyncio.timeout(60):
        while fleet.views["eu"].status.state != "awaiting-confirmation":
            await anext(changes)
    await fleet.close()
