"""Rule 10 on a cluster: while a build's tasks are long, a live step waits for none of them."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from console.agent.spark_session import LIVE_POOL
from tests.cluster.region import CASE, SLOW, has_every_row, on_cluster, with_another_column
from tests.cluster.skewed import heavy_file
from tests.cluster.standalone import CORES, Events, Standalone
from tests.life.region import ME, LiveRegion

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.asyncio(loop_scope="function")]
FILES, ROWS = 3 * (2 * CORES - 1), 1_000
# each task of a build has as much to do, in however many files live rows are
BY_BYTES = {"spark.sql.files.openCostInBytes": "1024"}
# so long did all tasks of the build run side by side, at least; within it no live step may wait for a slot for longer than that
BESIDE_SECONDS, WAIT_SECONDS = 5.0, 2.0


@pytest_asyncio.fixture(loop_scope="function")
async def region(tmp_path: Path) -> AsyncIterator[tuple[LiveRegion, Events]]:
    (tmp_path / "cluster").mkdir()
    cluster, events = Standalone(tmp_path / "cluster"), Events(tmp_path / "events")
    live: LiveRegion | None = None
    try:
        cluster.start()
        live = on_cluster(tmp_path / "region", cluster, events, conf=BY_BYTES, rows=30, most=10_000_000)
        inventory = live.root / "regions" / "eu.yaml"
        # without rests between live steps
        inventory.write_text(f"{inventory.read_text()}follow: {{share: 100%}}\n")
        live.install("web", CASE)
        yield live, events
    finally:
        if live is not None:
            await live.close()
        cluster.stop()


async def test_live_rows_do_not_wait_for_a_task_of_a_build(region: tuple[LiveRegion, Events], tmp_path: Path) -> None:
    live, events = region
    await live.roll_out("web")
    for number in range(FILES):
        heavy_file(live.warehouse / "landing", ROWS, name=f"h{number}-", days=1)
    await live.followed("web")
    live.install("web", with_another_column(tmp_path / "edited", SLOW))
    await live.driver.accept(await live.plan("web"), ME)
    live.write("web", every=1.0)
    status = await live.until("web", "awaiting-confirmation")
    await live.end_writing()
    await live.driver.promote("web", status.rollout, status.was, ME)
    await live.quiet(["web"])
    await has_every_row(live)

    batch = longest_stage(events)
    begun, ended = beside(batch)
    waits = [launched - asked for asked, launched in live_stages(events) if begun < asked < ended - WAIT_SECONDS]
    print(f"{len(batch)} tasks beside each other for {ended - begun:.1f} s; {len(waits)} live stages waited {max(waits, default=0):.2f} s at most")  # fmt: skip
    assert ended - begun > BESIDE_SECONDS, "the build's tasks are no measure of a wait"
    assert waits, "no live step began meanwhile"
    assert max(waits) < WAIT_SECONDS
    assert len(batch) == 2 * CORES - 1, "the build takes all slots but one"


Spans = list[tuple[float, float]]  # begin and end of tasks, in seconds


def beside(spans: Spans) -> tuple[float, float]:
    """When all of them ran."""
    return max(start for start, _ in spans), min(end for _, end in spans)


def longest_stage(events: Events) -> Spans:
    """The tasks of the batches' stage whose tasks were beside each other for longest, of those with several."""
    stages = {
        (application, stage["Stage ID"])
        for application, job in events.of("SparkListenerJobStart")
        if "#" in job["Properties"].get("spark.jobGroup.id", "")
        for stage in job["Stage Infos"]
    }
    spans: dict[tuple[str, int], Spans] = {}
    for stage, info in tasks(events):
        if stage in stages:
            spans.setdefault(stage, []).append((info["Launch Time"] / 1000, info["Finish Time"] / 1000))
    several = (each for each in spans.values() if len(each) > 1)
    return max(several, key=lambda each: beside(each)[1] - beside(each)[0])


def live_stages(events: Events) -> list[tuple[float, float]]:
    """When each stage of a live step was submitted, and when its first task was launched, in seconds."""
    launched: dict[tuple[str, int], float] = {}
    for stage, info in tasks(events):
        launched[stage] = min(info["Launch Time"] / 1000, launched.get(stage, info["Launch Time"] / 1000))
    return [
        (event["Stage Info"]["Submission Time"] / 1000, launched[stage])
        for application, event in events.of("SparkListenerStageSubmitted")
        if event["Properties"].get("spark.scheduler.pool") == LIVE_POOL
        and (stage := (application, event["Stage Info"]["Stage ID"])) in launched
    ]


def tasks(events: Events) -> list[tuple[tuple[str, int], dict[str, int]]]:
    """Stage and times of every task that ended."""
    ended = events.of("SparkListenerTaskEnd")
    return [((application, event["Stage ID"]), event["Task Info"]) for application, event in ended]
