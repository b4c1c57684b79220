"""Regions that 0.1.0 left in the middle of something: this version reads them, and plans what they would have planned."""

import asyncio
import json
import re
import tarfile
from pathlib import Path

import pytest

from tests.versions.stored import HERE, PIPELINE, VERSIONS, region

pytestmark = pytest.mark.slow

ABSOLUTE = re.compile(rb'"(/[\w./-]+)"')
STATES = ("gate", "paused", "failed", "live")
versions = pytest.mark.parametrize("version", VERSIONS)


def test_regions_of_a_version_are_kept() -> None:
    assert "0.1.0" in VERSIONS


@versions
@pytest.mark.parametrize("state", STATES)
def test_no_archive_is_large_or_names_the_machine_that_built_it(version: str, state: str) -> None:
    archive = HERE / version / f"{state}.tar.gz"
    assert archive.stat().st_size < 200 * 1024
    with tarfile.open(archive) as opened:
        files = [opened.extractfile(member) for member in opened if member.isfile()]
        results = {path for file in files if file for path in ABSOLUTE.findall(file.read())}
    assert [path for path in results if not path.startswith((b"/tmp/console-stored", b"/tmp/console-0/"))] == []


@versions
@pytest.mark.parametrize(("state", "shown"), [("gate", "awaiting-confirmation"), ("paused", "paused"), ("failed", "failed"), ("live", "live")])  # fmt: skip
async def test_each_command_that_reads_reads_it(version: str, state: str, shown: str, tmp_path: Path) -> None:
    async with region(tmp_path / "region", version, state) as stored:
        says = await asyncio.gather(
            *(
                asyncio.to_thread(stored.console, *words, "--output", "json", exits=exits)
                for words, exits in (
                    (("status",), (0, 1)),  # 1: rows wait, and no agent runs that would move them
                    (("plan",), (0,)),
                    (("history",), (0,)),
                    (("show", f"{PIPELINE}-2"), (0,)),
                )
            )
        )
    status, plan, history, show = map(json.loads, says)
    assert status["regions"][0]["state"] == shown
    assert plan
    assert f"{PIPELINE}-2" in json.dumps(history)
    assert f"{PIPELINE}-2" in json.dumps(show)


@versions
async def test_an_unchanged_pipeline_plans_nothing(version: str, tmp_path: Path) -> None:
    async with region(tmp_path / "region", version, "live") as stored:
        plan = await stored.plan(PIPELINE)
    assert [(node.name, node.why) for node in plan.changes] == []
    assert plan.steps == ()


@versions
async def test_a_change_moves_what_it_moved_by_the_version_that_planned_it(version: str, tmp_path: Path) -> None:
    async with region(tmp_path / "region", version, "gate") as stored:
        plan = await stored.plan(PIPELINE)
    moved = {node.name: node.action for node in plan.changes}
    assert moved == {"requests": "replay", "by_agent": "create", "by_hour": "rebind", "visits": "metadata"}
