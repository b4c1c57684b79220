"""A landing table is partitioned otherwise, renamed, widened and converted under 200 rows a second, forward, back and forward again: no row
is lost or doubled, no batch refused, no read fails, and no sender waits long. Judged by the lines that were sent, without anything of ours.
"""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from deltalake import DeltaTable

from tests.life.region import LiveRegion
from tests.life.test_landing_changes import Producer, forth_and_back

# in every run, another partition_by is part of test_landing_conversions.py, and names and widths of test_landing_changes.py
pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]
BEFORE = {
    "pipeline.yaml": "description: a landing table that lies otherwise\n",
    "tables/landing.yaml": "kind: landing\nmanaged: true\ntime: ts\ncolumns: {id: string, ts: timestamp, day: date, ip: string, n: int, code: string}\n",
    "tables/requests.yaml": "time: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date, ip: string, n: bigint, code: int}\n",
    "materializations/parse.sql": "/* into: requests */\nSELECT id, ts, to_date(ts) AS day, ip, n, coalesce(try_cast(code AS INT), -1) AS code FROM landing\n",
    "tables/visits.yaml": "time: ts\ncolumns: {id: string, ts: timestamp, who: string}\n",
    "materializations/visit.sql": "/* into: visits */\nSELECT id, ts, ip AS who FROM landing\n",
}
AFTER = {
    **BEFORE,
    "tables/landing.yaml": (
        'kind: landing\nmanaged: true\ntime: at\npartition_by: [day]\nforward_query: "id, ts AS at, day, ip AS client, n, coalesce(try_cast(code AS INT), -1) AS code"\n'
        "columns: {id: string, at: timestamp, day: date, client: string, n: bigint, code: int}\n"
    ),
    "materializations/parse.sql": "/* into: requests */\nSELECT id, at AS ts, to_date(at) AS day, client AS ip, n, code FROM landing\n",
    "materializations/visit.sql": "/* into: visits */\nSELECT id, at AS ts, client AS who FROM landing\n",
}


class DailyProducer(Producer):
    def line(self) -> dict[str, Any]:
        row = super().line()
        row["day"] = row.get("at", row.get("ts"))[:10]
        return row


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("versions"), rows=0)
    shutil.rmtree(live.warehouse / "landing")
    try:
        yield live
    finally:
        await live.close()


async def test_a_table_is_partitioned_otherwise_under_a_writer_that_never_stops(
    region: LiveRegion, tmp_path: Path
) -> None:
    producer = DailyProducer(region)
    actions = {"landing": "forward", "requests": "replay", "visits": "rebind"}
    await forth_and_back(region, tmp_path, (BEFORE, AFTER), producer, actions=actions, forward_again=region.roll_back)
    (new,) = (region.warehouse / "landing.versions").iterdir()
    for version in (new, region.warehouse / "landing"):
        stored = DeltaTable(str(version))
        assert sorted(stored.to_pyarrow_table().column("id").to_pylist()) == sorted(row["id"] for row in producer.lines)
    assert DeltaTable(str(new)).metadata().partition_columns == ["day"]
