"""The shown plan starts from the live release, however its change was reported."""

import asyncio
import threading
from pathlib import Path

from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Region
from console.runner.fleet import Fleet
from tests.runner.worlds import BOB, World, fake, plan, refreshed, until


def shown(fleet: Fleet) -> tuple[str, str, bool]:
    """(what is live, what the plan starts from, whether it changes something)"""
    view = fleet.views["eu"]
    return view.live, view.plan.live if view.plan else "", bool(view.plan and view.plan.changes)


async def test_a_plan_that_was_begun_before_a_rollback_and_ends_after_it_is_not_the_one_that_stays(
    folder: Path,
) -> None:
    slow, go_on = threading.Event(), threading.Event()
    planning: list[bool] = []

    def planner(pipeline: Pipeline, live: Live, where: Region) -> Plan:
        if live.release and live.release.id == "r2" and not slow.is_set():
            slow.set()
            planning.append(True)
            go_on.wait(60)
            planning.clear()
        return plan(pipeline, live, where)

    fleet = await refreshed(World(folder, fake("eu")), planner=planner)
    await fleet.run()
    await fleet.promote("eu")
    await asyncio.to_thread(slow.wait, 60)
    await fleet.rollback("eu")
    await until(lambda: shown(fleet) == ("r1", "r1", True))
    go_on.set()
    await until(lambda: not planning)
    await asyncio.sleep(0.05)
    assert shown(fleet) == ("r1", "r1", True)
    await fleet.close()


async def test_a_rollback_that_was_heard_of_only_when_the_link_was_back_makes_the_plan_anew(folder: Path) -> None:
    eu = fake("eu")
    fleet = await refreshed(World(folder, eu))
    await fleet.run(yes=True)
    await until(lambda: shown(fleet) == ("r2", "r2", False))
    eu.drop_link()
    await until(lambda: fleet.views["eu"].link == "unreachable")
    eu.agent.rollback("r2", BOB)
    eu.heal()
    await until(lambda: shown(fleet) == ("r1", "r1", True))
    await fleet.close()
