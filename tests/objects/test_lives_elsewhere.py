"""Regions in a bucket, with each kind of Spark, through lives that are played on a disk: the routes of the planner, tables that keep one
row of each key, both ways and under a writer that never stops."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
import pytest_asyncio

from tests.life import test_life, test_newest
from tests.life.region import LiveRegion
from tests.objects.server import BUCKET, options
from tests.objects.sparks import KINDS, Kind

pytestmark = [
    pytest.mark.cluster, pytest.mark.s3, pytest.mark.soak, pytest.mark.asyncio(loop_scope="function"),
    pytest.mark.parametrize("spark", KINDS),
]  # fmt: skip


@pytest_asyncio.fixture(loop_scope="function")
async def region(
    spark: Kind, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[LiveRegion]:
    for name, value in {**options(server), "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9"}.items():
        monkeypatch.setenv(name, value)
    with spark(tmp_path, {}) as setting:
        live = LiveRegion(
            tmp_path / "region", rows=600, spark=setting, store=options(server),
            address=f"s3://{BUCKET}/life-{abs(hash(request.node.nodeid)):x}",
        )  # fmt: skip
        try:
            yield live
        finally:
            await live.close()


async def test_each_key_has_its_newest_row(region: LiveRegion, tmp_path: Path) -> None:
    await test_newest.test_each_key_has_its_newest_row_through_a_copy_of_the_table_itself(region, tmp_path)


@pytest.mark.parametrize("cases", [test_life.EVERY_RUN])
async def test_each_route_through_its_whole_life(
    region: LiveRegion, monkeypatch: pytest.MonkeyPatch, cases: Sequence[Path]
) -> None:
    for case in cases:
        region.install(case.name, case / "before")
        await region.roll_out(case.name)
    region.write(cases[0].name, test_life.SELDOM)
    life = test_life.test_each_route_through_its_whole_life_ends_equal_to_a_batch_computation
    await life(region, monkeypatch, cases, anew=False)
