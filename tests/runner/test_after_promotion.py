"""Waves behind a region whose checks go on after its promotion: they wait, are held by a breach, and begin when a person says so."""

import asyncio
import json
from contextlib import suppress
from dataclasses import asdict, replace
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from console.cli.reports.run_report import status_report
from console.cli.status_text import region_data, status_text
from console.drivers.fake import FakeRegion, Scenario
from console.errors import AtGate, RegionError
from console.model.breach import NOT_WATCHED, Breached, OnBreach, WatchEnded, WatchNews, WatchProgress, WatchSteered
from console.model.event import Promoted
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Policy, Region
from console.model.status import Status
from console.planning.derived.plan import gated
from console.runner import after_promotion
from console.runner.exit_codes import exit_code
from console.runner.handover.facts import handover
from console.runner.outlook.attention import NeedKind, attention
from console.runner.view import RegionView
from console.tui.actions import objection
from console.tui.panes.safety import safety_lines
from console.tui.panes.summary import draw_summary
from tests.runner.worlds import PIPELINE, Brake, World, ends, fake, plan, refreshed, region, survey, until

pytestmark = pytest.mark.slow


def watched(pipeline: Pipeline, live: Live, where: Region) -> Plan:
    return gated(plan(pipeline, live, where), where.policy)


def two(action: OnBreach, breach: str = "", brake: Brake | None = None) -> tuple[FakeRegion, FakeRegion]:
    policy = Policy(watch_seconds=1800.0, on_breach=action)
    return fake("us", Scenario(breach=breach), brake, canary=True, policy=policy), fake("eu")


async def stays_untouched(region: FakeRegion) -> None:
    """Time enough for a wave that begins too early to reach it."""
    with suppress(TimeoutError):
        async with asyncio.timeout(0.3):
            while not region.disk.stored:
                await asyncio.sleep(0.001)
    assert region.disk.stored == []


async def test_the_next_wave_begins_once_the_checks_after_the_promotion_have_ended(folder: Path) -> None:
    brake = Brake()
    us, eu = two("pause", brake=brake)
    fleet = await refreshed(World(folder, us, eu), planner=watched)
    begun: list[bool] = []
    eu.heard.append(lambda _: begun.append(bool(us.disk.status.watched.ended)))
    us.heard.append(lambda heard: brake.hold() if isinstance(heard.event, Promoted) else None)
    run = asyncio.create_task(fleet.run(yes=True))
    await until(lambda: us.disk.live == "r2")
    await stays_untouched(eu)
    brake.release()
    assert ends(await run) == {"us": ("live", None), "eu": ("live", None)}
    assert begun
    assert all(begun)
    await fleet.close()


async def test_a_breach_holds_the_next_wave_until_a_person_lets_it_begin(folder: Path) -> None:
    us, eu = two("pause", "rows per day")
    world = World(folder, us, eu)
    fleet = await refreshed(world, planner=watched)
    outcomes = await fleet.run(yes=True)
    assert ends(outcomes) == {"us": ("live", RegionError), "eu": ("skipped", None)}
    assert exit_code(outcomes) == 1
    error = outcomes[0].error
    assert error is not None
    assert (error.code, "requests: rows per day" in str(error), "console resume" in error.hint) == (
        "E_BREACH",
        True,
        True,
    )
    again = await fleet.run(yes=True)  # the same command once more
    assert ends(again) == {"us": ("live", RegionError), "eu": ("skipped", None)}
    assert (us.disk.live, eu.disk.stored) == ("r2", [])
    await fleet.control("us", "resume")
    await until(lambda: not after_promotion.holds(fleet.views["us"]) or bool(us.disk.status.watched.ended))
    assert ends(await fleet.run(yes=True))["eu"] == ("live", None)
    await fleet.close()


async def test_a_breach_that_is_only_told_holds_nothing(folder: Path) -> None:
    us, eu = two("tell", "rows per day")
    fleet = await refreshed(World(folder, us, eu), planner=watched)
    assert ends(await fleet.run(yes=True)) == {"us": ("live", None), "eu": ("live", None)}
    assert len(us.disk.status.watched.breaches) == 1
    await fleet.close()


async def test_a_release_that_was_taken_back_ends_the_run_and_is_promoted_by_a_person_alone(folder: Path) -> None:
    us, eu = two("rollback", "rows per day")
    fleet = await refreshed(World(folder, us, eu), planner=watched)
    outcomes = await fleet.run(yes=True)
    assert ends(outcomes) == {"us": ("rolled-back", RegionError), "eu": ("skipped", None)}
    error = outcomes[0].error
    assert error is not None
    assert (error.code, "since a check failed" in str(error)) == ("E_BREACH", True)
    assert (us.disk.live, eu.disk.stored) == ("r1", [])
    await fleet.refresh()
    again = await fleet.run(yes=True)
    assert ends(again) == {"us": ("awaiting-confirmation", AtGate), "eu": ("skipped", None)}
    refused = again[0].error
    assert refused is not None
    assert (refused.code, "rolled r2 back" in str(refused)) == ("E_GATE_POLICY", True)
    assert (await fleet.promote("us")).release == "r3"
    await fleet.close()


@pytest.mark.parametrize("breach", ["", "rows per day"])
async def test_opened_by_hand_the_waves_that_waited_begin_when_the_watch_lets_them(folder: Path, breach: str) -> None:
    us, eu = two("pause", breach)
    fleet = await refreshed(World(folder, us, eu), planner=watched)
    assert ends(await fleet.run())["eu"] == ("skipped", None)
    await fleet.promote("us")
    if breach:
        await until(lambda: bool(fleet.views["us"].status.watched.holds))
        await until(lambda: bool(fleet.views["us"].status.watched.ended))
        await stays_untouched(eu)
        await fleet.control("us", "resume")
    await until(lambda: eu.disk.status.state == "awaiting-confirmation")
    assert us.disk.status.watched.ended
    await fleet.close()


async def test_a_person_holds_the_next_wave_before_anything_has_failed(folder: Path) -> None:
    brake = Brake()
    us, eu = two("rollback", "rows per day", brake)
    fleet = await refreshed(World(folder, us, eu), planner=watched)
    await fleet.run()
    us.heard.append(lambda heard: brake.hold() if isinstance(heard.event, Promoted) else None)
    await fleet.promote("us")
    await until(lambda: fleet.views["us"].status.state == "live")
    await fleet.control("us", "pause")
    brake.release()
    await until(lambda: bool(fleet.views["us"].status.watched.ended))
    await stays_untouched(eu)
    assert us.disk.live == "r2"
    await fleet.close()


NOW = 1_800_000_000.0
BREACH = Breached(table="requests", check="rows per day", detail="2 → 1", action="pause")
PLAN = gated(plan(PIPELINE, survey("eu"), region("eu")), Policy(watch_seconds=1800.0))


def live_view(*news: WatchNews, **more: Any) -> RegionView:
    status = Status(rollout="web-2", release="r2", state="live", changed=NOW - 60.0)
    watched = reduce(lambda known, each: known.after(each, NOW - 30.0), news, NOT_WATCHED)
    return RegionView(
        region=region("eu"), status=replace(status, watched=watched, **more), accepted=PLAN, live="r2", previous="r1"
    )


def test_a_breach_needs_a_person_until_one_answers_and_a_return_until_the_next_rollout() -> None:
    taken_back = live_view(replace(BREACH, action="rollback"), state="rolled-back", decided_by="the agent, …")
    for view, needed in (
        (live_view(), False),
        (live_view(BREACH), True),
        (live_view(BREACH, WatchSteered(by="ada", verb="resume")), False),
        (live_view(WatchSteered(by="ada", verb="pause")), True),
        (live_view(replace(BREACH, action="tell")), True),
        (live_view(replace(BREACH, action="tell"), WatchEnded(rounds=9)), False),
        (taken_back, True),
    ):
        needs = [need for need in attention({"eu": view}, NOW) if need.kind is NeedKind.BREACH]
        assert bool(needs) is needed, view.status.watched
        assert all("requests: rows per day" in need.cause or "paused by ada" in need.cause for need in needs)


def test_every_face_has_the_same_sentences() -> None:
    progress = WatchProgress(left=600.0, at=NOW - 9.0, rounds=3, clean=0)
    view = live_view(BREACH, watch=progress)
    said = [line.text for line in after_promotion.lines(view, NOW)]
    assert said == [
        "after the promotion requests: rows per day failed (2 → 1): the next wave is held",
        "watched for another 10 min: 3 rounds, the last one 9 s ago",
    ]
    shown = status_text([view], {}, NOW)
    head = draw_summary(view, 200, NOW).plain
    gate = "\n".join(line.plain for line in safety_lines(view, (), 200, NOW))
    left = json.dumps(asdict(handover("web", {"eu": view}, {}, "ada", NOW)), default=str, ensure_ascii=False)
    assert all(said[0] in text for text in (shown, head, gate, left))
    assert said[1] in shown
    error = status_report(view, None, None, NOW).error
    assert error is not None
    assert (error.code, "rows per day" in error.message) == ("E_BREACH", True)
    data = region_data(view)["watch"]
    assert (data["goes_on"], data["on_breach"], data["taken_back"]) == (True, "pause", False)
    assert data["breaches"][0]["name"] == "requests: rows per day"
    assert region_data(replace(view, accepted=None, status=Status()))["watch"] is None


def test_p_pauses_a_watched_region_and_resumes_a_held_one() -> None:
    assert objection("pause", live_view()) == ""
    assert objection("resume", live_view()) != ""
    assert objection("resume", live_view(BREACH)) == ""
    assert objection("pause", replace(live_view(), accepted=None)) != ""
