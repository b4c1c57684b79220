"""Watching consoles are shown to each other, until they have left; older consoles and agents lack names."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from console import paths
from console.agent.service import Service
from console.drivers.local import LocalDriver
from console.drivers.protocol import Who
from console.model import beside
from console.model.event import Lagging, Recorded
from console.model.region import Region
from console.model.status import Status, fold
from console.model.watcher import Watcher, watchers_text
from tests.agent.test_service import listening, start, watching
from tests.drivers.test_audit import NO_METHOD
from tests.drivers.test_local import agent, home, place

pytestmark = pytest.mark.slow

__all__ = ["home", "start"]

ADA, BOB = Who("ada@laptop", "laptop", "c1"), Who("bob (OS user)", "tower", "c2")


async def named(driver: LocalDriver, *names: str) -> tuple[Watcher, ...]:
    """Wait until the region's state names just these."""
    async with asyncio.timeout(30):
        while True:
            watchers = (await driver.state("web")).status.watchers or ()
            if tuple(watcher.name for watcher in watchers) == names:
                return watchers
            await asyncio.sleep(0.01)


async def test_who_watches_is_named_while_it_watches(start: Callable[[], Service], home: Path, tmp_path: Path) -> None:
    service = start()
    async with listening(service, paths.socket_path(str(tmp_path))):
        driver = LocalDriver(Region(name="eu", warehouse=str(tmp_path)))
        assert (await driver.state("web")).status.watchers == ()
        _, older = await watching(paths.socket_path(str(tmp_path)))  # a console that gives no name
        heard: list[Lagging] = []

        async def watch(who: Who) -> None:
            async for recorded in driver.watch("web", 0, who):
                if isinstance(recorded.event, Lagging):
                    heard.append(recorded.event)

        ada = asyncio.create_task(watch(ADA))
        await named(driver, "ada@laptop")
        bob = asyncio.create_task(watch(BOB))
        watchers = await named(driver, "ada@laptop", "bob (OS user)")
        assert [(w.host, w.console) for w in watchers] == [("laptop", "c1"), ("tower", "c2")]
        assert watchers_text(watchers).startswith("ada@laptop since ")
        assert "bob (OS user) on tower since " in watchers_text(watchers)
        service.agent.tick()
        async with asyncio.timeout(30):
            while not heard or heard[-1].watchers != watchers:
                await asyncio.sleep(0.01)
        bob.cancel()
        await named(driver, "ada@laptop")
        ada.cancel()
        await named(driver)
        assert service.agent.controller("web").recorder.watchers == 1, "the one without a name"
        older.close()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(ada, bob)
        await driver.close()


async def test_an_older_agent_is_watched_without_a_name(tmp_path: Path) -> None:
    region, asked = place(tmp_path), []
    refused = {"error": {**NO_METHOD["error"], "message": "watch: unexpected keyword argument 'by'"}}
    event = {"method": "event", "params": beside.split(recorded())[0]}

    def watch(params: dict[str, object]) -> list[dict[str, object]]:
        asked.append(params)
        return [refused] if "by" in params else [{"result": {}}, event]

    async with agent(region, watch=watch):
        events = LocalDriver(region).watch("web", 3, ADA)
        first = await anext(aiter(events))
        assert isinstance(first.event, Lagging)
        assert first.event.watchers is None
        await events.aclose()
    assert [sorted(params) for params in asked] == [
        ["after", "by", "console", "host", "pipeline"],
        ["after", "pipeline"],
    ]


def recorded(*watchers: Watcher) -> Recorded:
    return Recorded("web-1", 0, 9.0, Lagging(commits=0, rows=0, seconds=0.0, watchers=watchers or None))


def test_a_report_without_names_keeps_those_known_and_equal_ones_stay_the_same_object() -> None:
    ada = Watcher(name="ada", host="laptop", since=5.0)
    status = fold(Status(rollout="web-1"), recorded(ada))
    assert status.watchers == (ada,)
    assert fold(status, recorded()).watchers is status.watchers
    assert fold(status, recorded(Watcher(name="ada", host="laptop", since=5.0))).watchers is status.watchers
    assert "watchers" not in beside.split(status)[0]
