"""Samples of a region, from its agent or, without one, from its file: the same figures, in pages; none from older agents."""

import time
from pathlib import Path
from typing import Any

import pytest

from console.agent.store.samples import SampleRing
from console.drivers.local import LocalDriver
from console.errors import DataError, Protocol
from console.model.codec import encode
from console.model.event import Lagging
from console.model.measured import FeedSample, SamplePage
from console.model.region import Region
from tests.drivers.test_local import agent, home, place

pytestmark = pytest.mark.slow

__all__ = ["home"]


def kept(warehouse: Path, ticks: int, feeds: tuple[str, ...] = ("", "parse")) -> list[FeedSample]:
    ring, now = SampleRing(warehouse), round(time.time(), 3)
    made = []
    for tick in range(ticks):
        results = [
            FeedSample(at=now - 10 * (ticks - tick), feed=feed, rows=12.5, lag=0.5, behind=tick) for feed in feeds
        ]
        ring.append("web", results)
        made += results
    return made


async def test_a_real_agent_and_a_file_without_one_tell_the_same(tmp_path: Path) -> None:
    region = place(tmp_path)
    made = kept(Path(region.warehouse), 2_100)
    driver = LocalDriver(region)
    alone = await driver.samples("web", 24, None)
    assert list(alone) == made
    asked = time.time()
    hour = await driver.samples("web", 1)
    whole = [sample for sample in made if not sample.feed]
    assert list(hour) == whole[-len(hour) :]
    since = [sum(sample.at > at - 3600 for sample in whole) for at in (time.time(), asked)]
    assert since[0] <= len(hour) <= since[1]
    assert 0 < since[1] < len(whole)
    assert not (tmp_path / "eu" / "_console" / "agent.lock").exists(), "none was started"
    await driver.start_agent()
    try:
        asked = await driver.samples("web", 24, None)
        assert list(asked)[: len(made)] == made, "in two pages"
        assert {sample.feed for sample in await driver.samples("web", 1, "parse")} == {"parse"}
        assert await driver.samples("other", 1) == ()
    finally:
        await driver.stop()


async def test_an_agent_measures_without_a_watcher_and_tells_the_watching_ones(tmp_path: Path) -> None:
    region = place(tmp_path)
    (tmp_path / "eu" / "_console" / "web" / "rollouts").mkdir(parents=True)  # a pipeline that it loads when it starts
    driver = LocalDriver(region)
    await driver.start_agent()
    try:
        end = time.monotonic() + 30
        while not (result := await driver.samples("web", 1)) and time.monotonic() < end:
            time.sleep(0.2)
        assert [sample.feed for sample in result] == [""]
        events = driver.watch("web")
        async for recorded in events:
            if isinstance(recorded.event, Lagging) and recorded.event.samples:
                assert recorded.seq == 0
                break
        both = await driver.samples("web", 1)
        assert len(both) >= 2
        assert 9 <= both[1].at - both[0].at <= 14
    finally:
        await driver.stop()


async def test_an_agent_that_keeps_none_tells_none(tmp_path: Path) -> None:
    region = place(tmp_path)
    refused: dict[str, Any] = {
        "error": {
            "code": -32000,
            "message": "no method 'samples'",
            "data": {"type": "DataError", "hint": "", "code": ""},
        }
    }
    async with agent(region, samples=lambda _: [refused]):
        driver = LocalDriver(region)
        assert await driver.samples("web", 1) == ()
        await driver.close()


async def test_pages_that_do_not_end_are_no_answer(tmp_path: Path) -> None:
    region = place(tmp_path)
    page = encode(SamplePage(samples=(), before=7))
    async with agent(region, samples=lambda _: [{"result": page}]):
        driver = LocalDriver(region)
        with pytest.raises(Protocol, match="samples does not fit"):
            await driver.samples("web", 1)
        await driver.close()


async def test_a_region_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no warehouse at"):
        await LocalDriver(Region(name="mars", warehouse=str(tmp_path / "mars"))).samples("web", 1)
