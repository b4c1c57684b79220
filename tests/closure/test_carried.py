"""Each row of docs/changes.md that a real team meets, carried on Spark under a writer that never stops, back and forward again.

The rows are dealt to tables by seed, so that one rollout carries all of them.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.closure.carried import Carried, carry
from tests.closure.deal import OF, dealt
from tests.life.region import LiveRegion

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]
SEED = "8"  # by which every route is taken, and tables whose source has lost days are among them
ROWS = (
    "a column from its source", "a column from its source, with a default", "a column that its own columns give",
    "such a column, read from them", "a column that is the same for all rows", "a column dropped", "a column renamed",
    "a wider type", "a wider type by a cast", "another expression over its source", "a filter over columns that it keeps",
    "a filter over its source", "a filter less", "another partition_by",
)  # fmt: skip
GROUPS = (
    "a measure", "a measure of states that it keeps", "a measure dropped", "a wider measure",
    "another expression over the same states", "another measure under the name", "a key dropped", "a key more",
    "a coarser bucket", "a filter over its keys",
)  # fmt: skip
NEWEST = ("a column from its source", "another order", "a wider type", "a filter over its key")


def edits() -> list[Carried]:
    return dealt(
        SEED,
        [
            *(OF["hits", name] for name in ROWS),
            *(OF["hourly", name] for name in GROUPS),
            *(OF["last", name] for name in NEWEST),
            OF["once", "a filter over its source"],
            OF["once", "a column dropped"],
            OF["named", "a column from its source"],
        ],
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("changes"), rows=300, most=100_000)
    try:
        yield live
    finally:
        await live.close()


async def test_every_kind_of_change_is_carried_and_no_row_is_lost(region: LiveRegion, tmp_path: Path) -> None:
    carried = edits()
    assert len(carried) >= 10
    assert len({kind for edit in carried for kind in edit.kinds}) >= 24
    differences, routes = await carry(region, carried, tmp_path)
    assert differences == []
    assert {"replay", "forward", "hybrid", "metadata", "read"} <= {*routes}
