"""What a cluster loses: an executor in a batch with a shuffle, a worker, the driver. Rows and receipts stay right."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import pytest_asyncio

from console.model.status import Status
from tests.cluster.region import CASE, has_every_row, on_cluster
from tests.cluster.skewed import LOOK_SECONDS, SparkUi, heavy_file, soon
from tests.cluster.standalone import Events, Standalone
from tests.life.region import ME, LiveRegion

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.asyncio(loop_scope="function")]
HEAVY_ROWS = 60_000
LIGHT_ROWS = 900


@pytest.fixture
def cluster(tmp_path: Path) -> AsyncIterator[Standalone]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    made = Standalone(folder)
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture
def events(tmp_path: Path) -> Events:
    return Events(tmp_path / "events")


@pytest.fixture
def ui() -> SparkUi:
    return SparkUi()


@pytest_asyncio.fixture(loop_scope="function")
async def region(tmp_path: Path, cluster: Standalone, events: Events, ui: SparkUi) -> AsyncIterator[LiveRegion]:
    live = on_cluster(tmp_path / "region", cluster, events, conf=ui.conf, rows=LIGHT_ROWS, most=1_000_000)
    heavy_file(live.warehouse / "landing", HEAVY_ROWS)
    live.install("web", CASE)
    try:
        yield live
    finally:
        await live.close()


async def test_an_executor_is_lost_in_a_batch_with_a_shuffle(
    region: LiveRegion, cluster: Standalone, events: Events, ui: SparkUi
) -> None:
    """What its tasks had counted is counted again with their second attempt (SPARK-58183)."""
    await region.driver.accept(await region.plan("web"), ME)
    lost = await asyncio.to_thread(soon, ui.idle_but_needed, "an executor that has ended its tasks before another")
    kill_executor(cluster, lost)
    status = await at_the_gate(region)
    ends = [event["Task End Reason"]["Reason"] for _, event in events.of("SparkListenerTaskEnd")]
    assert "Resubmitted" in ends, "no task that had ended was run again"
    await promoted_with_every_row(region, status)


async def test_a_worker_dies_in_a_batch_and_comes_back(
    region: LiveRegion, cluster: Standalone, events: Events, ui: SparkUi
) -> None:
    await region.driver.accept(await region.plan("web"), ME)
    await asyncio.to_thread(soon, lambda: ui.stages_of_a_batch() or None, "a stage of a batch")
    first = cluster.workers[0]
    cluster.kill(first)
    fresh = cluster.add_worker()
    status = await at_the_gate(region)
    await promoted_with_every_row(region, status)
    assert events.ran()[fresh.web], "no task ran on the worker that came back"


async def test_the_driver_is_preempted_in_a_batch(
    region: LiveRegion, cluster: Standalone, events: Events, ui: SparkUi
) -> None:
    """Its agent and its JVM end at once, as the host on which they are; the next agent takes over."""
    await region.driver.accept(await region.plan("web"), ME)
    await asyncio.to_thread(soon, ui.idle_but_needed, "a batch in the middle of a stage")
    agent = agent_of(region)
    for pid in [*children(agent), agent]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    while agent_of(region) == agent:  # a console that has not noticed yet takes its old connection for one
        await region.driver.start_agent()
        await asyncio.sleep(LOOK_SECONDS)
    status = await at_the_gate(region)
    await promoted_with_every_row(region, status)
    assert len({application for application, _ in events.of("SparkListenerApplicationStart")}) > 1
    left = soon(lambda: (cluster.state()["activeapps"],), "the master's state")[0]
    assert len(left) == 1, "executors of the driver that is gone are still held"


async def at_the_gate(region: LiveRegion) -> Status:
    status = await region.until("web", "awaiting-confirmation")
    assert not [check for check in status.checks if check.ok is False], status.checks
    complete = [check for check in status.checks if check.check == "history is complete"]
    assert complete
    assert all(check.ok for check in complete), complete
    return status


async def promoted_with_every_row(region: LiveRegion, status: Status) -> None:
    await region.driver.promote("web", status.rollout, status.was, ME)
    await region.quiet(["web"])
    await has_every_row(region)
    findings = await region.driver.verify("web", status.rollout)
    assert findings
    assert not [finding for finding in findings if finding.ok is not True], findings


def kill_executor(cluster: Standalone, executor: str) -> None:
    pids = [pid for worker in cluster.workers for pid in worker.executors() if executor_id(pid) == executor]
    assert len(pids) == 1, (executor, pids)
    os.kill(pids[0], signal.SIGKILL)


def executor_id(pid: int) -> str:
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return words[words.index("--executor-id") + 1]


def agent_of(region: LiveRegion) -> int:
    return int(json.loads((region.warehouse / "_console" / "agent.lock").read_text())["pid"])


def children(pid: int) -> list[int]:
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(entry.read_text().rpartition(")")[2].split()[1]) == pid:
                found.append(int(entry.parent.name))
    return found
