"""Every route, really carried: plan → roll out → roll back → roll out → promote, while a writer keeps committing."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import yaml

from console.model.step import Backfill
from console.planning.routes import replay
from tests.life.region import SELDOM, LiveRegion, multiset, near

pytestmark = [pytest.mark.spark, pytest.mark.asyncio(loop_scope="module")]
CASES = sorted(path for path in (Path(__file__).parent / "cases").iterdir() if path.is_dir())


# In every run the case of most routes, forward again from the way back; all cases and a second rollout in the soak.
EVERY_RUN = tuple(case for case in CASES if case.name == "derived")


@pytest_asyncio.fixture(loop_scope="module")
async def region(tmp_path_factory: pytest.TempPathFactory, cases: Sequence[Path]) -> AsyncIterator[LiveRegion]:
    """One region that serves all cases, each as a pipeline of its own over the same landing table, rolled out as before."""
    live = LiveRegion(tmp_path_factory.mktemp("life"), rows=1200, most=1000)
    for case in cases:
        live.install(case.name, case / "before")
    try:
        await asyncio.gather(*(live.roll_out(case.name) for case in cases))
        live.write(cases[0].name, SELDOM)
        yield live
    finally:
        await live.close()


def expected(case: Path) -> dict[str, Any]:
    result: dict[str, Any] = yaml.safe_load((case / "expect.yaml").read_text())
    return result


@pytest.mark.parametrize(
    ("cases", "anew"),
    [(EVERY_RUN, False), pytest.param(tuple(CASES), True, marks=pytest.mark.soak)],
    ids=["every run", "soak"],
)
async def test_each_route_through_its_whole_life_ends_equal_to_a_batch_computation(
    region: LiveRegion, monkeypatch: pytest.MonkeyPatch, cases: Sequence[Path], anew: bool
) -> None:
    # tables of a few kilobytes are never worth being put together from parts
    monkeypatch.setattr(replay, "saves", lambda *_: True)
    await asyncio.gather(*(live_through(region, case, anew=anew) for case in cases))
    await region.quiet([case.name for case in cases])
    for case in cases:
        await compare(region, case)


async def live_through(region: LiveRegion, case: Path, *, anew: bool) -> None:
    name, expect = case.name, expected(case)
    region.install(name, case / "after")
    plan = await region.plan(name)
    assert {node.name: node.action for node in plan.nodes} == expect["actions"]
    apart = {step.target for step in plan.steps if isinstance(step, Backfill) and step.states}
    assert apart == set(expect.get("parts", []))
    before = (await region.driver.state(name)).live

    await region.roll_out(name, expect.get("filtered", []))
    await region.roll_back(name)
    assert (await region.driver.state(name)).live == before
    again = await region.plan(name)
    assert [(n.name, n.action) for n in again.nodes] == [(n.name, n.action) for n in plan.nodes]

    if anew:
        await region.roll_out(name, expect.get("filtered", []))
    else:
        await region.roll_back(name)  # from the way back: forward
    settled = await region.plan(name)
    assert {node.action for node in settled.nodes} == {"keep"}
    assert settled.steps == ()


async def compare(region: LiveRegion, case: Path) -> None:
    """Whole rows as multisets: nothing missing, nothing twice; sketches within their error."""
    expect = expected(case)
    for place, sql in expect["truth"].items():
        table, _, columns = place.partition(":")
        counted, truth = multiset(await region.table(case.name, columns or "*", table)), multiset(region.truth(sql))
        assert truth.total() > 0
        assert (counted - truth, truth - counted) == ({}, {}), f"{case.name}: {table}"
    for place, sql in expect.get("near", {}).items():
        table, _, columns = place.partition(":")
        keys, values = (part.split(",") for part in columns.split("|"))
        rows = await region.table(case.name, ",".join([*keys, *values]), table)
        truth = {next(iter(multiset([row[: len(keys)]]))): row[len(keys) :] for row in region.truth(sql)}
        assert len(rows) == len(truth) > 0
        for row in rows:
            key = next(iter(multiset([row[: len(keys)]])))
            off = [v for v, t in zip(row[len(keys) :], truth[key], strict=True) if not near(v, t, relative=0.35)]
            assert not off, f"{case.name}: {table} {key}: {row[len(keys) :]} is not near {truth[key]}"
