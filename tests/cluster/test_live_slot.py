"""Rule 10 on a cluster: while a build's tasks are long, live rows do not wait for the end of one."""

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
import pytest_asyncio

from tests.cluster.region import CASE, has_every_row, on_cluster
from tests.cluster.skewed import heavy_file
from tests.cluster.standalone import CORES, Events, Standalone
from tests.life.region import ME, LiveRegion

pytestmark = [pytest.mark.cluster, pytest.mark.soak, pytest.mark.asyncio(loop_scope="function")]
FILES, ROWS = 8, 20_000
EDITED = "CAST(get_json_object(payload, '$.status') AS INT)"


@pytest_asyncio.fixture(loop_scope="function")
async def region(tmp_path: Path) -> AsyncIterator[tuple[LiveRegion, Events]]:
    (tmp_path / "cluster").mkdir()
    cluster, events = Standalone(tmp_path / "cluster"), Events(tmp_path / "events")
    live: LiveRegion | None = None
    try:
        cluster.start()
        live = on_cluster(tmp_path / "region", cluster, events, rows=30, most=10_000_000)
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
        heavy_file(live.warehouse / "landing", ROWS, name=f"h{number}-")
    await live.followed("web")
    edited = tmp_path / "edited"
    for file in CASE.rglob("*.*"):
        place = edited / file.relative_to(CASE)
        place.parent.mkdir(parents=True, exist_ok=True)
        text = file.read_text()
        place.write_text(text.replace(EDITED, f"{EDITED} + 0") if file.name == "by_status.sql" else text)
    live.install("web", edited)
    await live.driver.accept(await live.plan("web"), ME)
    live.write("web", every=1.0)
    status = await live.until("web", "awaiting-confirmation")
    await live.driver.promote("web", status.rollout, status.was, ME)
    await live.quiet(["web"])
    await has_every_row(live)

    batch = long_tasks(events)
    assert len(batch) == 2 * CORES - 1, "the build takes all slots but one"
    begun, ended = max(start for start, _ in batch), min(end for _, end in batch)
    assert ended - begun > 5.0, (
        f"the build's tasks ran side by side for {ended - begun:.1f} s only: no measure of a wait"
    )
    finished = [end for start, end in live_jobs(events) if begun < end < ended]
    waits = [later - earlier for earlier, later in pairwise([begun, *sorted(finished), ended])]
    print(f"{len(finished)} live jobs within {ended - begun:.1f} s of a build's tasks, longest wait {max(waits):.1f} s")
    assert len(finished) > 1
    assert max(waits) < (ended - begun) / 2


def long_tasks(events: Events) -> list[tuple[float, float]]:
    """Begin and end of each task of the longest stage of a batch, in seconds."""
    of_batches = {
        (application, stage["Stage ID"])
        for application, job in events.of("SparkListenerJobStart")
        if "#" in job["Properties"].get("spark.jobGroup.id", "")
        for stage in job["Stage Infos"]
    }
    spans: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for application, event in events.of("SparkListenerTaskEnd"):
        if (stage := (application, event["Stage ID"])) in of_batches:
            info = event["Task Info"]
            spans.setdefault(stage, []).append((info["Launch Time"] / 1000, info["Finish Time"] / 1000))
    return max(spans.values(), key=lambda each: max(end - start for start, end in each))


def live_jobs(events: Events) -> list[tuple[float, float]]:
    """Begin and end of each job of the live feeds, in seconds."""
    begun = {
        (application, job["Job ID"]): job["Submission Time"] / 1000
        for application, job in events.of("SparkListenerJobStart")
        if job["Properties"].get("spark.scheduler.pool") == "live"
    }
    ends = (
        (application, job["Job ID"], job["Completion Time"] / 1000)
        for application, job in events.of("SparkListenerJobEnd")
    )
    return [(begun[application, number], end) for application, number, end in ends if (application, number) in begun]
