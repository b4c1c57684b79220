"""A landing table that gets another version under 200 rows a second: how long its senders wait while intake is held."""

import asyncio
import shutil
import statistics
from collections.abc import Awaitable
from pathlib import Path

import pytest

from tests.bench.report import Measurement, check
from tests.life.region import ME, LiveRegion
from tests.life.test_landing_changes import slowest
from tests.life.test_landing_versions import AFTER, BEFORE, DailyProducer
from tests.life.test_lost_days import written

EVERY, BATCH = 0.5, 100  # seconds, lines: 200 rows a second
AROUND = 20  # batches, ten seconds, on each side of a switch
MOST_SECONDS = 2.0  # that 99 of 100 batches may wait

pytestmark = [pytest.mark.bench, pytest.mark.asyncio]


class SteadyProducer(DailyProducer):
    """Many senders: batches are due at fixed times, also while others wait, so that a hold counts for each that it meets."""

    async def _produce(self) -> None:
        sent = set[asyncio.Task[None]]()
        while not self._enough.is_set():
            sent.add(asyncio.create_task(self.send_one()))
            await asyncio.sleep(self._every)
        await asyncio.gather(*sent)


async def waits(producer: SteadyProducer, switch: Awaitable[object]) -> list[float]:
    """Seconds until acknowledged, of the batches around a switch."""
    await producer.more(AROUND)
    first = len(producer.seconds) - AROUND
    await switch
    await producer.more(AROUND)
    return producer.seconds[first:]


async def test_senders_wait_two_seconds_at_most_while_a_landing_table_switches(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    region = LiveRegion(tmp_path / "region", rows=0)
    shutil.rmtree(region.warehouse / "landing")
    try:
        region.install("web", written(tmp_path / "before", BEFORE))
        await region.roll_out("web")
        producer = SteadyProducer(region, every=EVERY, batch=BATCH)
        producer.start()
        region.install("web", written(tmp_path / "after", AFTER))
        status = await region.to_the_gate("web")
        promotion = region.driver.promote("web", status.rollout, status.was, ME)
        found = [await waits(producer, promotion)]
        found += [await waits(producer, region.roll_back("web")) for _ in ("back", "forward again")]
        await producer.end()
    finally:
        await region.close()
    every = [seconds for around in found for seconds in around]
    each = ", ".join(f"{max(around):.1f}" for around in found)
    text = f"p99 {slowest(every):.1f} s, p50 {statistics.median(every):.2f} s of {len(every)} batches; the longest of promotion, rollback and rollback of that {each} s"
    with capsys.disabled():
        check(
            Measurement(
                what="wait of a sender while a landing table switches, at 200 rows/s",
                figure=slowest(every), limit=MOST_SECONDS, text=text,
            )
        )  # fmt: skip
