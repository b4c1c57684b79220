"""A preview of one day of fourteen writes less than 15 % of a table of a million rows; a second one beside it writes as much, and no
other version."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.life.region import LANDING, ME, LiveRegion
from tests.life.test_history import written
from tests.life.test_preview import built, files, versions

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio]
ROWS, DAYS = 1_000_000, 14


def landing(day: int, rng: random.Random) -> pa.Table:
    start, number = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(days=day), ROWS // DAYS + 1
    ids = [f"d{day}-{n}" for n in range(number)]
    times = [start + timedelta(seconds=rng.randrange(86_400)) for _ in range(number)]
    payloads = [f'{{"bytes": {rng.randrange(10_000)}}}' for _ in range(number)]
    return pa.table([ids, times, payloads], schema=LANDING)


def size(place: Path) -> int:
    return sum(path.stat().st_size for path in place.rglob("*") if path.is_file())


async def test_a_preview_of_one_day_writes_less_than_15_percent_of_a_table_of_a_million_rows(tmp_path: Path) -> None:
    region = LiveRegion(tmp_path / "region", rows=3, most=400_000)
    try:
        for day in range(DAYS):
            write_deltalake(str(region.warehouse / "landing"), landing(day, random.Random(day)), mode="append")
        region.install("web", written(tmp_path / "before", files("int")))
        await region.roll_out("web")
        before, whole = versions(region), size(region.warehouse / "requests")
        region.install("web", written(tmp_path / "after", files("bigint")))
        plan = await region.plan("web")
        for name in ("one", "two"):
            await region.driver.preview(plan, ME, name=name, days=1, hours=1)
            await built(region, name)
        for version in versions(region) - before:
            share = size(region.warehouse / version) / (
                whole if version.startswith("requests") else size(region.warehouse / "seen")
            )
            assert share < 0.15, f"{version}: {share:.1%}"
        assert len(versions(region) - before) == 4
    finally:
        await region.close()
