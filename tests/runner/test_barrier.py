"""Several regions that flip together, over fake regions: all or none before anything is sent, and what is said when one fails after others."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.drivers.fake import FakeDriver, FakeRegion, Scenario, stored_events
from console.drivers.protocol import Who
from console.errors import AtGate, CheckFailed, Conflict, ConsoleError, Unreachable
from console.model.consent import CheckAccepted, GateRules
from console.model.event import Accepted, Checked, Entered, Lagging, Promoted
from console.model.identity import AgentReason, by_agent
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Region
from console.model.soak import SoakProgress
from console.runner.fleet import Fleet
from console.runner.flips import Flips, FlipSkew, skew_of
from console.runner.journal import Journal
from console.runner.together.readiness import SplitWave, readiness, returnable, split_waves
from tests.runner.worlds import ADA, BOB, NEW, Brake, World, at_event, fake, plan, refreshed, until

NAMES = ("eu", "us", "ap")
WRONG = Checked(table="requests", check="rows per day", ok=False, detail="2026-01-02: 2,000 → 1,999")
DESIRED = dict.fromkeys(NAMES, NEW)


async def at_gates(world: World, **more: object) -> Fleet:
    """A console that has carried every region to its gate."""
    fleet = await refreshed(world, **more)
    await fleet.run()
    assert {view.status.state for view in fleet.views.values()} == {"awaiting-confirmation"}
    return fleet


def regions_of(folder: Path, **scripts: Scenario) -> World:
    return World(folder, *(fake(name, scripts.get(name), wave=2) for name in NAMES))


def confirmed(fleet: Fleet) -> dict[str, str]:
    """What a person confirms who looks now."""
    return {name: view.status.rollout if view.status.state != "live" else "" for name, view in fleet.views.items()}


async def promoted(fleet: Fleet, **declared: CheckAccepted) -> Flips:
    return await fleet.promote_together(confirmed(fleet), {name: (each,) for name, each in declared.items()})


def ends(flips: Flips) -> dict[str, tuple[str, type[ConsoleError] | None]]:
    return {flip.region: (flip.end, type(flip.error) if flip.error else None) for flip in flips.regions}


def live(world: World) -> dict[str, str]:
    return {name: region.disk.live for name, region in world.regions.items()}


def promotions(world: World) -> int:
    return sum(len(stored_events(region, Promoted)) for region in world.regions.values())


async def test_regions_that_are_ready_flip_together_and_each_flip_lies_between_its_request_and_its_answer(
    folder: Path,
) -> None:
    world = regions_of(folder)
    fleet = await at_gates(world)
    commits: list[float] = []
    clock = fleet._promotions._barrier._clock
    for region in world.regions.values():
        region.heard.append(lambda told: commits.append(clock()) if isinstance(told.event, Promoted) else None)
    flips = await promoted(fleet)
    assert ends(flips) == dict.fromkeys(NAMES, ("promoted", None))
    assert (flips.complete, flips.split, live(world)) == (True, False, dict.fromkeys(NAMES, "r2"))
    assert flips.skew
    assert flips.skew.least <= max(commits) - min(commits) <= flips.skew.most
    assert all(flip.sent < flip.known for flip in flips.regions)
    assert max(flip.sent for flip in flips.regions) < min(commits)  # every request left before the first flip
    await fleet.close()


async def test_if_one_region_is_not_ready_nothing_is_sent_to_any(folder: Path) -> None:
    world = regions_of(folder, eu=Scenario(inconclusive=("requests",)))
    fleet = await at_gates(world)
    flips = await promoted(fleet)
    assert ends(flips) == {"eu": ("refused", AtGate), "us": ("held", None), "ap": ("held", None)}
    assert (flips.split, flips.skew, promotions(world)) == (False, None, 0)
    (check,) = (check for check in fleet.views["eu"].status.checks if check.ok is None)
    accepted = CheckAccepted(table=check.table, check=check.check, detail=check.detail, reason="two late rows")
    assert (await promoted(fleet, eu=accepted)).complete
    assert world.regions["eu"].disk.status.consent.accepted[0].reason == "two late rows"
    await fleet.close()


async def test_what_is_declared_for_one_region_is_not_stored_where_another_is_not_ready(folder: Path) -> None:
    world = regions_of(folder, eu=Scenario(inconclusive=("requests",)), ap=Scenario(inconclusive=("requests",)))
    fleet = await at_gates(world)
    (check,) = (check for check in fleet.views["eu"].status.checks if check.ok is None)
    flips = await promoted(
        fleet, eu=CheckAccepted(table=check.table, check=check.check, detail=check.detail, reason="x")
    )
    assert ends(flips)["ap"] == ("refused", AtGate)
    assert not world.regions["eu"].disk.status.consent.accepted
    await fleet.close()


async def test_a_region_without_an_answer_keeps_all_from_flipping(folder: Path) -> None:
    world = regions_of(folder)
    fleet = await at_gates(world)
    world.regions["ap"].drop_link()
    assert ends(await promoted(fleet))["ap"] == ("refused", Unreachable)
    assert promotions(world) == 0
    await fleet.close()


class ClosedAtLast(FakeDriver):
    """A round of checks finds a difference in eu after its gate was read, and before its promotion arrives."""

    async def promote(self, pipeline: str, rollout: str, live: str, who: Who) -> Promoted:
        if self.region.name == "eu" and "promote" not in self.calls:
            self.world.disk.keep(WRONG)
        return await super().promote(pipeline, rollout, live, who)


async def test_a_gate_that_closes_at_the_last_moment_is_told_and_the_same_request_finishes_the_rest(
    folder: Path,
) -> None:
    world = regions_of(folder)
    fleet = await at_gates(world, driver=ClosedAtLast)
    flips = await promoted(fleet)
    assert ends(flips) == {"eu": ("refused", CheckFailed), "us": ("promoted", None), "ap": ("promoted", None)}
    assert (flips.split, live(world)["eu"]) == (True, "r1")
    split = SplitWave(wave=2, live=("us", "ap"), waiting=("eu",))
    assert split_waves(fleet.views, DESIRED) == dict.fromkeys(NAMES, split)
    assert [name for name, why in returnable([*fleet.views.values()], DESIRED).items() if not why] == ["us", "ap"]
    assert ends(await promoted(fleet))["eu"] == ("refused", CheckFailed)
    world.regions["eu"].disk.keep(replace(WRONG, ok=True))
    await until(lambda: fleet.views["eu"].gate.open)
    assert ends(await promoted(fleet)) == {"eu": ("promoted", None), "us": ("live", None), "ap": ("live", None)}
    assert (promotions(world), split_waves(fleet.views, DESIRED)) == (3, {})
    assert ends(await promoted(fleet)) == dict.fromkeys(NAMES, ("live", None))
    await fleet.close()


class KilledAtLast(FakeDriver):
    """The agent of eu is killed between the request and its answer, before or after its commit."""

    committed = True
    asked = 0.0  # time.time() of the first request

    async def promote(self, pipeline: str, rollout: str, live: str, who: Who) -> Promoted:
        if self.region.name != "eu" or "promote" in self.calls:
            return await super().promote(pipeline, rollout, live, who)
        self.calls.append("promote")
        self.asked = time.time()
        if self.committed:
            await self.world.agent.promote(rollout, live, who)
        else:
            self.world.disk.keep(Entered("promoting"))
        await self.world.kill_agent()
        await asyncio.sleep(0.05)
        raise Unreachable("eu: the connection was lost before the answer to promote")


class KilledBefore(KilledAtLast):
    committed = False


@pytest.mark.parametrize("driver", [KilledAtLast, KilledBefore])
async def test_an_agent_killed_between_request_and_answer_promotes_once_and_its_flip_is_not_known_better_than_that(
    driver: type[FakeDriver], folder: Path
) -> None:
    world = regions_of(folder)
    fleet = await at_gates(world, driver=driver)
    flips = await promoted(fleet)
    assert (ends(flips), promotions(world)) == (dict.fromkeys(NAMES, ("promoted", None)), 3)
    killed, *others = flips.regions
    first = fleet.driver("eu")
    assert isinstance(first, KilledAtLast)
    assert killed.sent <= first.asked + 0.01  # not when it was asked again
    assert killed.known > killed.sent + 0.05
    assert killed.known > max(other.known for other in others)
    assert flips.skew
    assert flips.skew.most >= killed.known - min(other.sent for other in others)
    await fleet.close()


async def test_a_region_that_stays_away_after_its_request_is_unknown_and_no_failure(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.runner.together.barrier.ASKED_AGAIN_SECONDS", 0.0)

    class Gone(FakeDriver):
        async def promote(self, pipeline: str, rollout: str, live: str, who: Who) -> Promoted:
            if self.region.name == "eu":
                self.world.drop_link()
            return await super().promote(pipeline, rollout, live, who)

    world = regions_of(folder)
    fleet = await at_gates(world, driver=Gone)
    flips = await promoted(fleet)
    assert ends(flips) == {"eu": ("unknown", Unreachable), "us": ("promoted", None), "ap": ("promoted", None)}
    assert flips.split
    await fleet.close()


def other_change(pipeline: Pipeline, found: Live, where: Region) -> Plan:
    """eu runs the change of yesterday's files, the others today's."""
    made = plan(pipeline, found, where)
    return replace(made, desired="yesterday") if where.name == "eu" else made


async def test_a_region_that_waits_with_a_stale_plan_is_named_and_nothing_flips(folder: Path) -> None:
    world = regions_of(folder)
    before = await at_gates(world, planner=other_change)
    await before.close()
    fleet = await refreshed(world)
    flips = await promoted(fleet)
    assert ends(flips) == {"eu": ("refused", Conflict), "us": ("held", None), "ap": ("held", None)}
    (error,) = (flip.error for flip in flips.regions if flip.error)
    assert (error.code, "another change than the rollout of us" in str(error)) == ("E_STALE", True)
    assert promotions(world) == 0
    await fleet.close()


async def test_a_plan_that_starts_from_another_release_than_the_live_one_is_stale(folder: Path) -> None:
    fleet = await at_gates(regions_of(folder))
    views = [replace(view, live="r9") if name == "eu" else view for name, view in fleet.views.items()]
    judged = {each.region: each.error for each in readiness(views, DESIRED)}
    assert "its plan is stale: it starts from r1, and r9 is live" in str(judged["eu"])
    assert judged["us"] is judged["ap"] is None
    await fleet.close()


async def test_another_rollout_than_the_confirmed_one_is_not_promoted(folder: Path) -> None:
    world = regions_of(folder)
    fleet = await at_gates(world)
    flips = await fleet.promote_together({**confirmed(fleet), "ap": "web-1"}, {})
    assert ends(flips)["ap"] == ("refused", Conflict)
    assert promotions(world) == 0
    await fleet.close()


@pytest.mark.parametrize("who", [BOB, ADA])
async def test_a_region_that_another_console_promoted_meanwhile_counts_as_done_and_not_in_the_skew(
    who: Who, folder: Path
) -> None:
    class First(FakeDriver):
        async def promote(self, pipeline: str, rollout: str, live: str, who: Who) -> Promoted:
            if self.region.name == "eu" and "promote" not in self.calls:
                await self.world.agent.promote(rollout, live, who)
            return await super().promote(pipeline, rollout, live, who)

    world = regions_of(folder)
    fleet = await at_gates(world, driver=First)
    flips = await promoted(fleet)
    assert ends(flips)["eu"] == ("live", None)
    assert (flips.complete, {flip.region for flip in flips.promoted}) == (True, {"us", "ap"})
    await fleet.close()


class Unrecorded(Journal):
    """Has no room for the intent about ap."""

    def intent(self, region: str, pipeline: str, verb: str, body: Mapping[str, Any]) -> int:
        if (region, verb) == ("ap", "promote"):
            raise ConsoleError("the journal cannot be written, so nothing was done", code="E_JOURNAL")
        return super().intent(region, pipeline, verb, body)


async def test_nothing_is_sent_unless_the_intent_about_every_region_is_on_disk(folder: Path) -> None:
    world = regions_of(folder)
    fleet = await at_gates(world, journal=Unrecorded(folder / "full.db"))
    flips = await asyncio.wait_for(promoted(fleet), 30)
    assert ends(flips) == {"eu": ("held", None), "us": ("held", None), "ap": ("refused", ConsoleError)}
    assert promotions(world) == 0
    await fleet.close()


async def test_the_journal_has_every_intent_with_its_wave_and_the_measured_skew(folder: Path) -> None:
    world, journal = regions_of(folder), Journal(folder / "kept.db")
    fleet = await at_gates(world, journal=journal)
    flips = await promoted(fleet)
    intents = [entry.body for entry in journal.entries("intent") if entry.body["verb"] == "promote"]
    assert [body["together"] for body in intents] == [list(NAMES)] * 3
    noted = [entry.body for entry in journal.entries("fleet") if "flips" in entry.body]
    assert flips.skew
    assert [body["skew"] for body in noted] == [{"least": flips.skew.least, "most": flips.skew.most}]
    await fleet.close()


async def test_a_console_killed_between_two_flips_is_followed_by_one_that_finishes_the_rest(folder: Path) -> None:
    """It knows them from the regions: the journal of the first is on another machine."""
    stuck = asyncio.Event()

    class Slow(FakeDriver):
        async def promote(self, pipeline: str, rollout: str, live: str, who: Who) -> Promoted:
            if self.region.name != "us":
                stuck.set()
                await asyncio.Event().wait()  # the request never leaves
            return await super().promote(pipeline, rollout, live, who)

    world = regions_of(folder)
    first = await at_gates(world, driver=Slow)
    killed = asyncio.create_task(promoted(first))
    await stuck.wait()
    await until(lambda: world.regions["us"].disk.live == "r2")
    killed.cancel()
    await asyncio.gather(killed, return_exceptions=True)
    await first.close()

    second = await refreshed(world, who=BOB)
    split = SplitWave(wave=2, live=("us",), waiting=("eu", "ap"))
    assert split_waves(second.views, DESIRED) == dict.fromkeys(NAMES, split)
    assert {name for name, why in returnable([*second.views.values()], DESIRED).items() if not why} == {"us"}
    flips = await promoted(second)
    assert ends(flips) == {"eu": ("promoted", None), "us": ("live", None), "ap": ("promoted", None)}
    assert promotions(world) == 3
    await second.close()


async def test_a_return_leaves_alone_what_never_flipped_and_what_came_with_another_change(folder: Path) -> None:
    world = World(folder, *(fake(name, wave=2) for name in NAMES))
    earlier = await refreshed(world, planner=other_change)
    await earlier.run(["eu"], yes=True)
    await earlier.close()
    fleet = await refreshed(world)
    await fleet.run(["us", "ap"])
    await fleet.promote("us")
    stays = returnable([*fleet.views.values()], DESIRED)
    assert stays["us"] == ""
    assert "another change" in stays["eu"]
    assert stays["ap"].startswith("r1 is live; web-2 is awaiting-confirmation")
    await fleet.rollback("us")
    assert returnable([fleet.views["us"]], DESIRED)["us"] == "r1 is already live again"
    await fleet.close()


async def test_a_canary_that_is_live_before_the_others_of_its_wave_makes_no_split_wave(folder: Path) -> None:
    fleet = await refreshed(World(folder, fake("us", wave=1, canary=True), fake("eu", wave=1)))
    await fleet.run(["us"], yes=True)
    await fleet.run(["eu"])
    assert fleet.views["eu"].status.state == "awaiting-confirmation"
    assert split_waves(fleet.views, DESIRED) == {}
    await fleet.close()


spans = st.tuples(st.floats(0, 100), st.floats(0, 10), st.floats(0, 1)).map(
    lambda drawn: (drawn[0], drawn[0] + drawn[1], drawn[0] + drawn[1] * drawn[2])
)


@pytest.mark.slow
@given(st.lists(spans, min_size=2, max_size=6))
def test_whenever_each_region_flips_within_its_span_they_are_as_far_apart_as_reported(
    drawn: list[tuple[float, float, float]],
) -> None:
    skew = skew_of([(begins, ends) for begins, ends, _ in drawn])
    assert skew
    moments = [moment for *_, moment in drawn]
    assert skew.least - 1e-9 <= max(moments) - min(moments) <= skew.most + 1e-9


@pytest.mark.parametrize(
    ("drawn", "least", "most"),
    [
        ([(0, 4), (3, 5)], 0, 5),  # they overlap: both may flip at 3.5, or at 0 and 5
        ([(0, 1), (3, 5)], 2, 5),
        ([(0, 10), (4, 5)], 0, 6),  # of two different regions: 4 and 10
    ],
)
def test_the_reported_skew_is_as_tight_as_the_spans_allow(
    drawn: list[tuple[float, float]], least: float, most: float
) -> None:
    assert skew_of(drawn) == FlipSkew(least, most)


def test_one_region_alone_has_no_skew() -> None:
    assert skew_of([(1.0, 2.0)]) is None


async def opened_itself(region: FakeRegion) -> None:
    """Its agent opens the gate, as a policy says."""
    status = region.disk.status
    await region.agent.promote(status.rollout, status.was, Who(by_agent(AgentReason.POLICY), "eu"))


async def test_a_gate_that_an_agent_opens_itself_starts_the_next_wave_of_a_screen_once_all_of_its_wave_are_live(
    folder: Path,
) -> None:
    us, uk = fake("us", wave=1), fake("uk", wave=1)
    eu = fake("eu", wave=2)
    fleet = await refreshed(World(folder, us, uk, eu), runs_on=True)
    await fleet.run()
    await opened_itself(us)
    await until(lambda: fleet.views["us"].status.state == "live")
    await fleet.refresh()
    assert not eu.disk.stored  # uk still waits
    await opened_itself(uk)
    await until(lambda: fleet.views["eu"].status.state == "awaiting-confirmation")
    await fleet.close()


@pytest.mark.parametrize(("runs_on", "agent"), [(False, True), (True, False)])
async def test_a_console_that_only_looks_starts_no_wave_and_a_screen_none_that_another_person_made_due(
    runs_on: bool, agent: bool, folder: Path
) -> None:
    us, eu = fake("us", wave=1), fake("eu", wave=2)
    fleet = await refreshed(World(folder, us, eu), runs_on=runs_on)
    await fleet.run()
    status = us.disk.status
    await (opened_itself(us) if agent else us.agent.promote(status.rollout, status.was, BOB))
    await until(lambda: fleet.views["us"].status.state == "live")
    await fleet.refresh()
    assert not eu.disk.stored
    await fleet.close()


async def test_two_screens_start_the_next_wave_once(folder: Path) -> None:
    us, eu = fake("us", wave=1), fake("eu", wave=2)
    world = World(folder, us, eu)
    one = await refreshed(world, runs_on=True)
    await one.run()
    two = await refreshed(world, who=BOB, runs_on=True)
    await opened_itself(us)
    for fleet in (one, two):
        view = await fleet._board.until("eu", lambda view: view.status.state == "awaiting-confirmation", 30)
        assert not view.note
    assert eu.disk.status.rollout == "web-2"
    await one.close()
    await two.close()


def soaking(pipeline: Pipeline, found: Live, where: Region) -> Plan:
    """Agents open the gates themselves, after half an hour there."""
    return replace(plan(pipeline, found, where), gate=GateRules(auto=True, min_soak=1800.0))


@pytest.mark.parametrize("attached", [True, False])
async def test_an_attached_run_waits_for_the_soak_of_a_gate_that_opens_itself_and_goes_on_with_the_next_wave(
    attached: bool, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("console.runner.region_run.SELF_OPENING_SECONDS", 0.01)
    us, eu = fake("us", wave=1), fake("eu", wave=2)
    fleet = await refreshed(World(folder, us, eu), planner=soaking, runs_on=False)
    run = asyncio.create_task(fleet.run(attached=attached))
    await until(lambda: fleet.views["us"].status.state == "awaiting-confirmation")
    if not attached:
        ended = await asyncio.wait_for(run, 30)
        assert [outcome.state for outcome in ended] == ["awaiting-confirmation", "skipped"]
        await fleet.close()
        return
    done, _ = await asyncio.wait({run}, timeout=0.3)
    assert not done
    monkeypatch.setattr("console.runner.region_run.SELF_OPENING_SECONDS", 60.0)
    us.disk.say(Lagging(commits=0, rows=0, seconds=0.4, soak=SoakProgress(waited=1801.0)))
    await opened_itself(us)
    await until(lambda: fleet.views["eu"].status.state == "awaiting-confirmation")
    run.cancel()
    await asyncio.gather(run, return_exceptions=True)
    await fleet.close()


def watching(pipeline: Pipeline, found: Live, where: Region) -> Plan:
    """Checks go on after a promotion."""
    return replace(plan(pipeline, found, where), gate=GateRules(watch=60.0))


async def test_after_regions_flipped_together_the_next_wave_begins_once_when_the_last_watch_has_ended(
    folder: Path,
) -> None:
    brakes = Brake(), Brake()
    us, uk = (fake(name, brake=brake, wave=1) for name, brake in zip(("us", "uk"), brakes, strict=True))
    eu = fake("eu", wave=2)
    fleet = await refreshed(World(folder, us, uk, eu), planner=watching)
    await fleet.run()
    for region, brake in zip((us, uk), brakes, strict=True):
        at_event(region, 2, brake.hold)  # promoting, promoted: the watch does not end
    flips = await fleet.promote_together({name: fleet.views[name].status.rollout for name in ("us", "uk")}, {})
    assert flips.complete
    brakes[0].release()
    await until(lambda: bool(fleet.views["us"].status.watched.ended))
    assert not eu.disk.stored
    brakes[1].release()
    await until(lambda: fleet.views["eu"].status.state == "awaiting-confirmation")
    assert len(stored_events(eu, Accepted)) == 1
    await fleet.close()
