"""A build on the region's second Spark: live rows go on beside it, a dead agent's one keeps the region's lock and commits
nothing, and one that is lost is replaced.

What is written and then lost is in `tests/agent/test_second_spark.py`.
"""

import asyncio
import fcntl
import json
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest
import pytest_asyncio
from deltalake import DeltaTable

from console.agent.store import log
from console.errors import ConsoleError
from console.model.step import Backfill
from tests.cluster.region import CASE, has_every_row, with_another_column
from tests.cluster.skewed import heavy_file
from tests.life.region import ME, SHORT_LIVED, LiveRegion

pytestmark = [pytest.mark.faults, pytest.mark.soak, pytest.mark.asyncio(loop_scope="function")]
FEW, MANY, ABOVE = 300, 6_000, 1_000  # rows of the first release, and of the change; the threshold between them
LIVE_COMMITS = 3  # beside one batch
LOOK_SECONDS, SOON_SECONDS, HELD_SECONDS = 0.1, 120.0, 3.0
T = TypeVar("T")


@pytest_asyncio.fixture(loop_scope="function")
async def region(tmp_path: Path) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path / "region", rows=FEW, most=MANY)
    inventory = live.root / "regions" / "eu.yaml"
    second = json.dumps({"master": "local[1]", "conf": SHORT_LIVED, "above": {"rows": ABOVE}})
    inventory.write_text(f"{inventory.read_text()}backfill_spark: {second}\nfollow: {{share: 100%}}\n")
    live.install("web", CASE)
    try:
        yield live
    finally:
        await live.close()


async def test_live_goes_on_beside_it_and_neither_its_death_nor_the_agents_costs_or_doubles_a_row(
    region: LiveRegion, tmp_path: Path
) -> None:
    await region.roll_out("web")
    heavy_file(region.warehouse / "landing", MANY)
    await region.followed("web")
    live = current(region, "live")
    assert not second_notes(live), "a small build stays on the first Spark"
    region.install("web", with_another_column(tmp_path / "edited"))
    plan = await region.plan("web")
    assert [step.second_spark for step in plan.steps if isinstance(step, Backfill)] == [True]
    await region.driver.accept(plan, ME)

    first, agent = await soon(lambda: second_jvm(region), "the second Spark"), agent_of(region)
    with stopped(first):  # in the middle of its batch, for as long as this test likes
        begun = log.latest_version(live)
        region.write("web", every=0.5)
        await soon(lambda: log.latest_version(live) >= begun + LIVE_COMMITS, "live commits beside a batch")
        await region.end_writing()
        os.kill(agent, signal.SIGKILL)
        await asyncio.sleep(HELD_SECONDS)
        assert not lock_is_free(region), "the second Spark of a dead agent holds the region"
        target = current(region, "building")
        before = log.latest_version(target)
    await soon(lambda: lock_is_free(region), "the end of a dead agent's second Spark")
    assert log.latest_version(target) == before, "it has committed"
    while agent_of(region) == agent:
        with suppress(ConsoleError):
            await region.driver.start_agent()
        await asyncio.sleep(LOOK_SECONDS)

    lost = await soon(lambda: second_jvm(region), "another second Spark")
    os.kill(lost, signal.SIGKILL)
    status = await region.until("web", "awaiting-confirmation")
    assert not [check for check in status.checks if check.ok is False], status.checks
    assert second_notes(target), "its history was built on the second Spark"
    assert not second_jvm(region), "it has ended with the build"
    await region.driver.promote("web", status.rollout, status.was, ME)
    await region.quiet(["web"])
    await has_every_row(region)
    findings = await region.driver.verify("web", status.rollout)
    assert findings
    assert not [finding for finding in findings if finding.ok is not True], findings


def current(region: LiveRegion, state: str) -> str:
    """The path of by_status in the live release, or in the one that is built: of its versions the one that was made last."""
    firsts = sorted(
        (region.warehouse / "by_status").glob(f"*/_delta_log/{0:020}.json"), key=lambda log: log.stat().st_mtime
    )
    assert len(firsts) == (1 if state == "live" else 2), firsts
    return str(firsts[-1].parents[1])


def second_notes(table: str) -> list[list[int]]:
    """Slices of each batch of a table's history that the second Spark wrote; none twice."""
    commits = tuple(log.commits(table, 0, log.latest_version(table)))
    slices = [commit.note["slices"] for commit in commits if commit.note.get("kind") == "history"]
    assert len({tuple(each) for each in slices}) == len(slices)
    assert DeltaTable(table).version() >= len(slices)
    return [commit.note["slices"] for commit in commits if commit.note.get("second_spark")]


def agent_of(region: LiveRegion) -> int:
    return int(json.loads((region.warehouse / "_console" / "agent.lock").read_text())["pid"])


def lock_is_free(region: LiveRegion) -> bool:
    fd = os.open(region.warehouse / "_console" / "agent.lock", os.O_RDWR)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    return True


def second_jvm(region: LiveRegion) -> int:
    """The JVM of the region's second Spark; 0 where none runs."""
    workers = {pid for pid, words in processes() if {"backfill", str(region.warehouse)} <= {*words}}
    found = [pid for pid, words in processes() if words[0].endswith("java") and parent(pid) in workers]
    return found[0] if found else 0


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def processes() -> list[tuple[int, list[str]]]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append((int(entry.parent.name), entry.read_text().split("\0")))
    return found


def parent(pid: int) -> int:
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


async def soon(look: Callable[[], T], what: str) -> T:
    """raises  AssertionError where it does not come"""
    until = asyncio.get_running_loop().time() + SOON_SECONDS
    while asyncio.get_running_loop().time() < until:
        if result := look():
            return result
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError(f"{what}: not within {SOON_SECONDS:g} s")
