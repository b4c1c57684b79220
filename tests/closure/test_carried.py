"""Each practical row of docs/changes.md, carried out on Spark beside a writer that never stops, rolled back and promoted again.

Each run has each route, each kind of table and a source that has lost days once: 11 rows in 6 tables. The rows that a real team meets
are dealt to tables by seed, so that one rollout carries all of them: 25 rows, and 31, in the soak.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.closure.carried import Carried, carry, found_by_verify
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
SEED, SOAK_SEED = "798", "88"


def _edits(
    seed: str, rows: Sequence[str], groups: Sequence[str], newest: Sequence[str], once: Sequence[str]
) -> list[Carried]:
    names = {"hits": rows, "hourly": groups, "last": newest, "once": once, "named": ("a column from its source",)}
    return dealt(seed, [OF[table, name] for table, each in names.items() for name in each])


def few() -> list[Carried]:
    """Each route, each kind of table, and a source that has lost days, with and without the operator's word."""
    return [
        _edit("joined", "named", "a column from its source", "another expression over its source", "a column dropped"),
        _edit("read", "hits", "such a column, read from them", "a column renamed"),
        _edit("completed", "hits", "a column from its source, with a default", lost=True),
        _edit("kept", "hourly", "a measure dropped", "another expression over the same states"),
        _edit("newest", "last", "a filter over its key", "a wider type"),
        _edit("once", "once", "a column from its source", lost=True, history="carry"),
    ]  # fmt: skip


def _edit(name: str, table: str, *kinds: str, lost: bool = False, history: str = "") -> Carried:
    return Carried(name=name, kinds=tuple(OF[table, kind] for kind in kinds), lost=lost, history=history)


def most() -> list[Carried]:
    return _edits(SEED, ROWS, GROUPS, NEWEST, ONCE)


def rarer() -> list[Carried]:
    return _edits(
        SOAK_SEED,
        (*ROWS, *MORE_ROWS),
        (*GROUPS, *MORE_GROUPS),
        (*NEWEST, "another order"),
        (*ONCE, "a filter over its source"),
    )


async def carried(place: Path, dealt_edits: Sequence[Carried], least: int, *, verified: bool) -> None:
    """least: different rows of the page"""
    assert len({kind for edit in dealt_edits for kind in edit.kinds}) >= least
    region = LiveRegion(place / "region", rows=300, most=100_000)
    try:
        differences, routes = await carry(region, dealt_edits, place)
        if verified:  # drawn tables are verified in every run by tests/worlds
            differences += await found_by_verify(region)
    finally:
        await region.close()
    assert differences == []
    assert {*routes} >= ROUTES


async def test_each_route_and_kind_of_table_is_carried_and_no_row_is_lost(tmp_path: Path) -> None:
    await carried(tmp_path, few(), 10, verified=False)


@pytest.mark.soak
async def test_every_kind_of_change_is_carried_and_no_row_is_lost(tmp_path: Path) -> None:
    await carried(tmp_path, most(), LEAST, verified=True)


@pytest.mark.soak
async def test_so_are_rarer_ones(tmp_path: Path) -> None:
    await carried(tmp_path, rarer(), LEAST, verified=True)
