"""Killed during cleanup or while saving a plan: nothing that is still named is touched, and the same command completes it."""

import json
import signal
from pathlib import Path

import pytest
import pytest_asyncio

from tests.faults import points
from tests.faults.acts import Act, died_once, play
from tests.faults.stories import Story
from tests.faults.world import Operator, World, verdict

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="session")]


@pytest_asyncio.fixture(scope="package", loop_scope="session")
async def tidied(world: World, ada: Operator, after: Story) -> Act:
    """All that the live release does not name is dropped, by agents that die at every step of it."""
    assert after.live
    return await play(world, ada, points.TIDYING, "cleanup", "--previous", "--regions", "eu", "--yes")


@pytest.mark.parametrize("point", points.TIDYING)
async def test_killed_while_tidying_up_only_what_nobody_names_is_gone(
    tidied: Act, after: Story, world: World, point: str
) -> None:
    assert point not in tidied.left, "it was never reached"
    assert died_once(tidied, point)
    assert (tidied.live, verdict(tidied.judgement, world.bad_reads())) == (after.live, {})
    values = {f"{path.parent.parent.name}/{path.parent.name}" for path in world.warehouse.glob("[!_]*/*/_delta_log")}
    assert values == set(world.paths(after.live))
    assert list(world.warehouse.glob("*/.dropped-*")) == []


@pytest.mark.parametrize(("point", "there"), [("console-before-plan-file", False), ("console-plan-file", True)])
async def test_killed_while_a_plan_is_saved_there_is_the_whole_file_or_none(
    tidied: Act, world: World, ada: Operator, tmp_path: Path, point: str, there: bool
) -> None:
    world.arm([point])
    code, output = await ada.run("plan", "--out", str(tmp_path / "web.json"))
    assert (code, world.armed()) == (-signal.SIGKILL, set()), output
    assert (tmp_path / "web.json").exists() is there
    if there:
        assert json.loads((tmp_path / "web.json").read_text())["digest"]
