"""A canonical form must differ for expressions whose values can differ."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from console.model import region
from console.model.live import Day, Live, Release, TableStats
from console.model.region import Limits
from console.model.slices import cut
from console.model.small_batch import next_run
from console.planning.cache.planner_cache import PlannerCache
from console.planning.cache.releases import release_key
from console.planning.estimate import history
from tests.planning.world import live, release


def other(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case str():
            return value + "x"
        case int() | float():
            return value + 1
        case None:
            return "x"
        case dict():
            return {**value, "x": "x"}
    return (*value, "x")


def variants(value: Any) -> Iterator[tuple[str, Any]]:
    """The value with one leaf changed, for every leaf of its first and last elements."""
    for field in fields(value):
        stored = getattr(value, field.name)
        items = [(0, stored[0]), (len(stored) - 1, stored[-1])] if isinstance(stored, tuple) and stored else []
        if is_dataclass(stored):
            for path, changed in variants(stored):
                yield f"{field.name}.{path}", replace(value, **{field.name: changed})
        elif items and is_dataclass(items[0][1]):
            for at, item in items:
                for path, changed in variants(item):
                    more = (*stored[:at], changed, *stored[at + 1 :])
                    yield f"{field.name}[{at}].{path}", replace(value, **{field.name: more})
            yield f"{field.name} shorter", replace(value, **{field.name: stored[1:]})
        else:
            yield field.name, replace(value, **{field.name: other(stored)})


def test_a_release_that_differs_anywhere_has_another_key() -> None:
    mine = release(live())
    cache = PlannerCache()
    key = release_key(mine, cache)
    assert release_key(replace(mine), cache) == key
    seen = [path for path, changed in variants(mine) if release_key(changed, cache) == key]
    assert seen == []
    paths = {path for path, _ in variants(mine)}
    assert {"tables[0].table.columns[0].type", "tables[2].version.columns[0].nullable", "feeds[0].sql", "id"} <= paths
    assert isinstance(mine, Release)


DAYS = st.lists(
    st.tuples(
        st.sampled_from(["", *(f"2026-10-{d:02}" for d in range(1, 12))]), st.integers(0, 50), st.integers(0, 50)
    ),
    unique_by=lambda d: d[0],
)


@pytest.mark.slow
@given(
    DAYS,
    st.none() | st.integers(0, 120),
    st.none() | st.integers(0, 120),
    st.sampled_from(["date", "timestamp", ""]),
    st.sampled_from([0.0, 0.1, 0.2, 5.0]),
)
def test_batches_are_as_many_as_are_carried(
    days: list[tuple[str, int, int]], rows: int | None, size: int | None, time: str, rate: float
) -> None:
    values = tuple(Day(*day) for day in days)
    total = sum(day.rows for day in values)
    stats = TableStats(
        name="t", path="t", version=1, rows=total, bytes=0, files=1, columns=(), partition_by=(), days=values
    )
    heavy = min((most for most in (rows, int(4 * 60 * rate) or None) if most is not None), default=None)
    slices = cut(values, heavy, time != "date", bytes_limit=size) if time and values else ()
    carried, after = 0, 0
    while run := next_run(slices, after, rows, size):
        carried += any(piece.rows for piece in run)
        after = run[-1].index
    here = Live(region="eu", pipeline="web", release=None, stats=(stats,), rows_per_second=rate)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(region, "LEAST_DAY_ROWS", 0)  # the drawn days are small
        price = history(here, "t", time, Limits(rows, size))
    assert price.batches == max(carried, 1 if total else 0)
