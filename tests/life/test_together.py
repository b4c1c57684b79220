"""Two real regions that flip together through the command line, while an agent and then the console are killed between a
request and its answer.
"""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from console import project
from console.drivers.local import LocalDriver
from console.drivers.protocol import RegionState
from tests.life.region import LiveRegion
from tests.life.test_lost_days import BEFORE, written

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
FOREIGN = {**BEFORE, "tables/landing.yaml": BEFORE["tables/landing.yaml"].replace("managed: true\n", "")}
NEWER = {**FOREIGN, "endpoints/newest.sql": "SELECT id FROM requests ORDER BY ts DESC LIMIT 3\n"}  # moves no row
NAMES = ("eu", "us")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    """A project with two regions of one wave, whose agents can be killed at crash points."""
    made = LiveRegion(tmp_path_factory.mktemp("together"), rows=300)
    eu = made.root / "regions" / "eu.yaml"
    eu.with_name("us.yaml").write_text(eu.read_text().replace("name: eu\nwarehouse: ", "name: us\nwarehouse: us-"))
    shutil.copytree(made.warehouse, made.root / "us-warehouse")
    made.install("web", written(tmp_path_factory.mktemp("before"), FOREIGN))
    (made.root / "crashes" / "fired").mkdir(parents=True)
    try:
        yield made
    finally:
        for driver in drivers(made.root):
            await driver.stop()
            await driver.close()


def drivers(root: Path) -> list[LocalDriver]:
    return [LocalDriver(region) for region in project.load(root).regions]


async def states(root: Path) -> list[RegionState]:
    found = []
    for driver in drivers(root):
        found.append(await driver.state("web"))
        await driver.close()
    return found


async def program(root: Path, *words: str) -> tuple[int, str]:
    """Exit code, and what it printed on stdout."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "console.main", *words, "--project", str(root),
        env={**os.environ, "CONSOLE_CRASH_DIR": str(root / "crashes")}, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


async def document(root: Path, *words: str) -> tuple[int, dict[str, Any]]:
    code, output = await program(root, *words, "--output", "json")
    return code, json.loads(output)


def arm(root: Path, point: str) -> None:
    (root / "crashes" / point).touch()


def fired(root: Path) -> list[str]:
    return [path.name.rsplit(".", 1)[0] for path in (root / "crashes" / "fired").iterdir()]


async def test_a_wave_flips_once_in_each_region_although_an_agent_and_a_console_are_killed_and_all_of_it_is_returned(
    live: LiveRegion, tmp_path: Path
) -> None:
    root = live.root
    assert (await program(root, "apply", "--no-input"))[0] == 3
    arm(root, "after-swap")  # the commit is made, and the agent dies before it answers
    code, said = await document(root, "promote", "--regions", "@wave1", "--yes")
    assert (code, said["complete"], fired(root)) == (0, True, ["after-swap"]), said
    assert [each["end"] for each in said["regions"]] == ["promoted", "promoted"]
    spans = [each["known"] - each["sent"] for each in said["regions"]]
    assert max(spans) > 2 * min(spans)  # the killed one answered through its next agent
    assert 0 <= said["skew"]["least_seconds"] <= said["skew"]["most_seconds"]
    assert said["skew"]["most_seconds"] >= max(spans) - 1
    for state in await states(root):
        assert [(row.id, row.state) for row in state.releases] == [("r1", "live")]

    live.install("web", written(tmp_path / "newer", NEWER))
    assert (await program(root, "apply", "--no-input"))[0] == 3
    arm(root, "console-before-outcome")  # one region has answered, and the console dies
    code, _ = await program(root, "promote", "--regions", "@wave1", "--yes")
    assert code < 0
    code, said = await document(root, "promote", "--regions", "@wave1", "--yes")
    assert (code, said["complete"]) == (0, True), said
    assert [state.live for state in await states(root)] == ["r2", "r2"]
    for state in await states(root):
        assert [(row.id, row.state) for row in state.releases] == [("r1", "previous"), ("r2", "live")]
    assert (await program(root, "rollback", "--regions", "@wave1", "--yes"))[0] == 0
    assert [state.live for state in await states(root)] == ["r1", "r1"]
    assert (await program(root, "rollback", "--regions", "@wave1", "--yes"))[0] == 0
    assert [state.live for state in await states(root)] == ["r1", "r1"]
