"""A heap that is really too small: the backfill continues in smaller batches, and a day that never fits is named in the error (F32)."""

import json
from collections.abc import AsyncIterator
from datetime import timedelta

import pyarrow as pa
import pytest
import pytest_asyncio
from deltalake import write_deltalake

from console.model.step import Backfill
from tests.faults.world import CASE, PIPELINE
from tests.life.region import FIRST_DAY, LANDING, ME, LiveRegion

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="module")]
ROWS, DAYS, MB = 20, 4, 1 << 20
HEAP = "512m"  # Spark starts in no less than 450 MB
STEP = "backfill/requests/parse"
TOO_MUCH = 8 * MB  # a row of the first day: 160 MB, all of which are read at once


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("memory"), rows=0, conf={"spark.driver.memory": HEAP})
    for day in range(DAYS):
        rows = [
            {
                "id": f"d{day}-{n}",
                "ts": FIRST_DAY + timedelta(days=day, minutes=n),
                "payload": json.dumps({"ip": f"192.0.2.{n}", "ua": f"{n:08}" * (1 if day else TOO_MUCH // 8)}),
            }
            for n in range(ROWS)
        ]
        write_deltalake(str(live.warehouse / "landing"), pa.Table.from_pylist(rows, LANDING), mode="append")
    live.install(PIPELINE, CASE / "before")
    try:
        yield live
    finally:
        await live.close()


async def test_a_batch_that_kills_the_jvm_is_carried_in_smaller_ones_and_the_day_that_never_fits_is_named_with_the_cause(
    region: LiveRegion,
) -> None:
    plan = await region.plan(PIPELINE)
    assert [step.batches for step in plan.steps if isinstance(step, Backfill)] == [1], "all days would be one batch"
    await region.driver.accept(plan, ME)
    with pytest.raises(AssertionError, match="the driver was lost 3 times"):
        await region.until(PIPELINE, "awaiting-confirmation", seconds=300)
    status = (await region.driver.state(PIPELINE)).status
    assert status.why == f"the driver was lost 3 times in {STEP} at {FIRST_DAY:%Y-%m-%d}: its memory ran out"
    assert "spark.driver.memory" in status.hint
    # once with all days, three times with the first alone; on a busy machine once more with the others together
    lost = sum(line.endswith(f"Z warning: Spark was lost in {STEP}: its memory ran out") for line in status.log)
    assert lost in (4, 5), status.log
    carried = next(step for step in status.steps if step.id == STEP)
    assert (carried.rows_done, carried.slices_done) == (ROWS * (DAYS - 1), DAYS - 1)
