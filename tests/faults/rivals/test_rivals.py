"""Rivals as real processes at one real region: two consoles, two agents, and an agent that was asleep meanwhile."""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from console.drivers.survey import agent_environment
from tests.faults.rivals.people import Person
from tests.life.region import LiveRegion, multiset
from tests.life.test_life import CASES, compare

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="module")]
CASE = next(case for case in CASES if case.name == "column")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("rivals"), rows=900)
    live.install(CASE.name, CASE / "before")
    try:
        await live.roll_out(CASE.name)
        live.install(CASE.name, CASE / "after")
        live.write(CASE.name)
        yield live
    finally:
        await live.close()


def person(region: LiveRegion, name: str, project: Path | None = None) -> Person:
    return Person(name, region.root / "homes", project or region.root, CASE.name)


def other_edit(region: LiveRegion, name: str) -> Path:
    """Somebody's own checkout, with an edit of their own to the same pipeline."""
    root = region.root / name
    shutil.copytree(region.root / "plans", root / "plans")
    shutil.copytree(region.root / "regions", root / "regions")
    settings = root / "regions" / "eu.yaml"
    settings.write_text(settings.read_text().replace("warehouse: warehouse", f"warehouse: {region.warehouse}"))
    query = root / "plans" / CASE.name / "materializations" / "parse.sql"
    query.write_text(f"{query.read_text().rstrip()}\nWHERE id <> 'nobody'\n")
    return root


def versions(region: LiveRegion) -> set[str]:
    tables = (path for path in region.warehouse.glob("*/*") if path.parent.name not in ("_console", "landing"))
    return {str(path.relative_to(region.warehouse)) for path in tables}


def holder(region: LiveRegion) -> int:
    return int(json.loads((region.warehouse / "_console" / "agent.lock").read_text())["pid"])


async def whole(region: LiveRegion) -> None:
    """Nothing missing, nothing twice, against a computation that knows nothing of rollouts."""
    await region.quiet([CASE.name])
    await compare(region, CASE)
    region.write(CASE.name)


async def test_of_two_who_apply_different_plans_the_second_is_refused_before_its_first_write(
    region: LiveRegion,
) -> None:
    ada, eve = person(region, "ada"), person(region, "eve", other_edit(region, "eves"))
    ends = dict(
        zip(
            ("ada", "eve"),
            await asyncio.gather(*(each.run("apply", "--region", "eu") for each in (ada, eve))),
            strict=True,
        )
    )
    assert sorted(code for code, _ in ends.values()) == [3, 4], ends
    winner, loser = sorted(ends, key=lambda name: ends[name][0])
    state = await region.driver.state(CASE.name)
    assert state.status.rollout == "column-2"
    assert state.status.by.startswith(f"{winner}@")
    assert f"column-2 by {winner}@" in ends[loser][1]
    assert "is under way" in ends[loser][1]
    assert [row.id for row in state.releases] == ["r1", "r2"]
    assert {name.rpartition("-")[2] for name in versions(region)} == {"1", "2"}, "the loser has built nothing"
    code, output = await person(region, winner).run("cancel", "--region", "eu", "--yes")
    assert code == 0, output
    assert {name.rpartition("-")[2] for name in versions(region)} == {"1"}


async def test_a_console_that_slept_while_another_took_its_rollout_over_wakes_to_the_news(region: LiveRegion) -> None:
    """Stopped for longer than the rest takes: nothing changes but that the other one decides."""
    ada, eve = person(region, "ada"), person(region, "eve")
    run = ada.start("apply", "--region", "eu", "--yes")
    while (await region.driver.state(CASE.name)).status.state in ("cancelled", "none"):
        await asyncio.sleep(0.02)
    run.stop()
    try:
        code, output = await eve.run("attach", "--region", "eu", "--take-over")
        assert code == 3, output
        assert "is yours; ada@" in output
    finally:
        run.go_on()
    code, output = await run.end()
    assert code == 4, output
    assert "error: eu: eve@" in output
    assert "took column-3 over at 20" in output
    assert (await region.driver.state(CASE.name)).live == "r1", "who only looks promotes nothing"


async def test_an_agent_that_is_stopped_keeps_its_region_until_it_is_forced_and_what_it_held_goes_on(
    region: LiveRegion,
) -> None:
    """With the lock nobody can take a sleeping agent's place, so that none ever wakes to a promotion it has missed."""
    old = holder(region)
    os.kill(old, signal.SIGSTOP)
    second = subprocess.run(
        [sys.executable, "-m", "console.agent", "serve", "--warehouse", str(region.warehouse)],
        env=agent_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert second.returncode == 4
    assert f"is held by another agent: pid {old} on {os.uname().nodename} since 20" in second.stderr
    eve = person(region, "eve")
    code, output = await eve.run("lock", "show", "--region", "eu")
    assert (code, f"held by pid {old} on" in output, "(stopped)" in output) == (0, True, True)
    os.kill(old, signal.SIGCONT)
    assert (await region.driver.state(CASE.name)).status.shown == "awaiting-confirmation"

    os.kill(old, signal.SIGSTOP)
    code, output = await eve.run("lock", "force", "--region", "eu", "--yes")
    assert (code, f"ended pid {old} on" in output) == (0, True)
    code, output = await eve.run("promote", "--region", "eu", "--yes")
    assert code == 0, output
    assert holder(region) != old
    assert (await region.driver.state(CASE.name)).live == "r3"
    await whole(region)


async def test_of_two_who_promote_or_roll_back_at_once_one_does_and_the_other_exits_4_with_name_host_and_time(
    region: LiveRegion,
) -> None:
    ada, eve = person(region, "ada"), person(region, "eve")

    async def both(*words: str) -> None:
        ends = await asyncio.gather(*(each.run(*words) for each in (ada, eve)))
        assert sorted(code for code, _ in ends) == [0, 4], ends
        loser = next(item for code, item in ends if code == 4)
        assert "@" in loser
        assert os.uname().nodename in loser

    await both("rollback", "--region", "eu", "--yes")
    assert (await region.driver.state(CASE.name)).live == "r1"
    ends = await asyncio.gather(*(each.run("apply", "--region", "eu") for each in (ada, eve)))
    assert [code for code, _ in ends] == [3, 3], ends  # the same plan: one began it, the other joined
    assert (await region.driver.state(CASE.name)).status.rollout == "column-4"
    paused = await asyncio.gather(*(each.run("pause", "--region", "eu") for each in (ada, eve)))
    assert [code for code, _ in paused] == [0, 0], paused
    resumed = await asyncio.gather(*(each.run("resume", "--region", "eu") for each in (ada, eve)))
    assert sorted(code for code, _ in resumed) == [0, 4], resumed
    await region.until(CASE.name, "awaiting-confirmation")
    await both("promote", "--region", "eu", "--yes")
    assert (await region.driver.state(CASE.name)).live == "r4"
    await whole(region)


async def test_tables_are_compacted_and_vacuumed_beside_their_feeds_and_no_row_is_other_than_before(
    region: LiveRegion,
) -> None:
    code, output = await person(region, "eve").run(
        "maintain", "--region", "eu", "--small-files", "4", "--output", "jsonl"
    )
    assert code == 0, output
    done = json.loads(output.splitlines()[0])["done"]
    kinds = {(each["table"], each["what"]) for each in done}
    assert kinds >= {("requests", "compacted"), ("by_hour", "merged"), ("by_hour", "vacuumed")}, done
    await region.quiet([CASE.name])
    counted = multiset(await region.table(CASE.name, "event_id", "requests"))
    assert counted == multiset(region.truth("SELECT id FROM landing"))
    by_hour = sum(requests for (requests,) in await region.table(CASE.name, "requests", "by_hour"))
    assert by_hour == counted.total()
