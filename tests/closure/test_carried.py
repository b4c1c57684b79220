"""Each practical row of docs/changes.md, carried out on Spark beside a writer that never stops, rolled back and promoted again.

The rows are dealt to tables by seed, so that one rollout carries all of them: 25 rows in every run, 31 in the soak.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.closure.carried import Carried, carry
from tests.closure.deal import OF, dealt
from tests.life.region import LiveRegion

pytestmark = [pytest.mark.spark, pytest.mark.asyncio]
ROUTES = {"replay", "forward", "hybrid", "metadata", "read"}
LEAST = 24  # rows of the page
ROWS = (
    "a column from its source", "a column from its source, with a default", "a column that its own columns give",
    "such a column, read from them", "a column dropped", "a column renamed", "a wider type",
    "another expression over its source", "a filter over columns that it keeps", "a filter over its source",
    "another partition_by",
)  # fmt: skip
GROUPS = (
    "a measure", "a measure of states that it keeps", "a measure dropped", "a wider measure",
    "another expression over the same states", "a key dropped", "a coarser bucket", "a filter over its keys",
)  # fmt: skip
NEWEST = ("a column from its source", "a wider type", "a filter over its key")
ONCE = ("a column from its source", "a column dropped")
MORE_ROWS = ("a column that is the same for all rows", "a wider type by a cast", "a filter less")
MORE_GROUPS = ("another measure under the name", "a key more")
# By these every route is taken, and tables of three kinds are carried whose source has lost days.
SEED, SOAK_SEED = "798", "8"


def edits(
    seed: str, rows: Sequence[str], groups: Sequence[str], newest: Sequence[str], once: Sequence[str]
) -> list[Carried]:
    names = {"hits": rows, "hourly": groups, "last": newest, "once": once, "named": ("a column from its source",)}
    return dealt(seed, [OF[table, name] for table, each in names.items() for name in each])


async def carried(place: Path, dealt_edits: Sequence[Carried]) -> None:
    assert len(dealt_edits) >= 10
    assert len({kind for edit in dealt_edits for kind in edit.kinds}) >= LEAST
    region = LiveRegion(place / "region", rows=300, most=100_000)
    try:
        differences, routes = await carry(region, dealt_edits, place)
    finally:
        await region.close()
    assert differences == []
    assert {*routes} >= ROUTES


async def test_every_kind_of_change_is_carried_and_no_row_is_lost(tmp_path: Path) -> None:
    await carried(tmp_path, edits(SEED, ROWS, GROUPS, NEWEST, ONCE))


@pytest.mark.soak
async def test_so_are_rarer_ones(tmp_path: Path) -> None:
    rarer = edits(
        SOAK_SEED,
        (*ROWS, *MORE_ROWS),
        (*GROUPS, *MORE_GROUPS),
        (*NEWEST, "another order"),
        (*ONCE, "a filter over its source"),
    )
    await carried(tmp_path, rarer)
