"""Each row of docs/changes.md that a real team meets, carried on Spark under a writer that never stops, back and forward again.

Part of `make soak`: three rollouts of 28 tables took 15 minutes on a busy machine.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.closure.carried import Carried, carry
from tests.closure.edits import KINDS
from tests.life.region import LiveRegion

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]
OF = {(kind.table, kind.name): kind for kind in KINDS}
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
LOST = (
    ("a column from its source, with a default", ""), ("another expression over its source", "carry"),
    ("a filter over columns that it keeps", ""),
)  # fmt: skip


def edits() -> list[Carried]:
    return [
        *(Carried(name=f"r{n}", kind=OF["hits", name]) for n, name in enumerate(ROWS)),
        *(Carried(name=f"g{n}", kind=OF["hourly", name]) for n, name in enumerate(GROUPS)),
        *(Carried(name=f"l{n}", kind=OF["hits", name], lost=True, history=word) for n, (name, word) in enumerate(LOST)),
        Carried(name="j0", kind=OF["named", "a column from its source"]),
    ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[LiveRegion]:
    live = LiveRegion(tmp_path_factory.mktemp("changes"), rows=300, most=100_000)
    try:
        yield live
    finally:
        await live.close()


async def test_every_kind_of_change_is_carried_and_no_row_is_lost(region: LiveRegion, tmp_path: Path) -> None:
    carried = edits()
    assert len(carried) >= 24
    differences, routes = await carry(region, carried, tmp_path)
    assert differences == []
    assert {"replay", "forward", "hybrid", "metadata", "read"} <= {*routes}
