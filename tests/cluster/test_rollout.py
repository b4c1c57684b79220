"""A region whose Spark is a standalone cluster: built in executors of two workers, promoted, followed and read."""

import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from console.agent.spark_session import LIVE_POOL
from tests.cluster.region import CASE, has_every_row, on_cluster
from tests.cluster.standalone import Events, Standalone
from tests.life.region import LiveRegion

pytestmark = [pytest.mark.cluster, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(loop_scope="module")
async def events(tmp_path_factory: pytest.TempPathFactory) -> Events:
    return Events(tmp_path_factory.mktemp("events"))


@pytest_asyncio.fixture(loop_scope="module")
async def cluster(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Standalone]:
    made = Standalone(tmp_path_factory.mktemp("cluster"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest_asyncio.fixture(loop_scope="module")
async def region(
    tmp_path_factory: pytest.TempPathFactory, cluster: Standalone, events: Events
) -> AsyncIterator[LiveRegion]:
    live = on_cluster(tmp_path_factory.mktemp("region"), cluster, events, rows=300)
    live.install("web", CASE)
    try:
        yield live
    finally:
        await live.close()


async def test_a_rollout_is_built_by_executors_of_both_workers_and_promoted_with_every_row(
    region: LiveRegion, cluster: Standalone, events: Events
) -> None:
    status = await region.roll_out("web")
    line = {"id": "late", "ts": "2026-11-02T03:04:05Z", "payload": '{"ip": "192.0.2.1", "status": 200, "bytes": 7}'}
    await region.driver.ingest("web", "landing", "late", [json.dumps(line)])
    await region.followed("web")
    await has_every_row(region)
    findings = await region.driver.verify("web", status.rollout)
    assert findings
    assert not [finding for finding in findings if finding.ok is not True]
    assert set(events.ran()) == {worker.web for worker in cluster.workers}
    jobs = [event for _, event in events.of("SparkListenerJobStart")]
    batches = [job for job in jobs if "#" in job["Properties"].get("spark.jobGroup.id", "")]
    # a slot stays free for live: four of the cluster, three of a build (rule 10)
    assert max(stage["Number of Tasks"] for job in batches for stage in job["Stage Infos"]) == 3
    live = [job for job in jobs if job["Properties"].get("spark.scheduler.pool") == LIVE_POOL]
    assert live, "the live row was computed in no pool of its own"
    assert not [job for job in live if job in batches]
