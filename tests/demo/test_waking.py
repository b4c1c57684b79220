"""A continued demo: its agents are started, and no feed is shown as stopped before they run."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.demo import cockpit
from console.demo.cockpit import DemoFleet
from console.demo.prepare import Demo, demo_home
from console.drivers.fake.driver import FakeDriver
from console.drivers.fake.region import FakeRegion
from console.model.live import Live
from console.model.region import Region
from console.project import load

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    """One that was built before."""
    project = load(ROOT)
    regions = tuple(replace(region, warehouse=str(demo_home(tmp_path) / region.name)) for region in project.regions)
    made = Demo(tmp_path, replace(project, regions=regions))
    made.run.mkdir(parents=True, exist_ok=True)
    (made.run / "built.json").write_text("{}")
    assert made.built
    return made


async def test_the_agents_of_a_continued_demo_are_started_and_their_regions_wait_for_them(
    demo: Demo, monkeypatch: pytest.MonkeyPatch
) -> None:
    worlds = {r.name: FakeRegion(r, Live(region=r.name, pipeline="web", release=None)) for r in demo.regions}
    asked, up = asyncio.Semaphore(0), asyncio.Event()

    class Starting(FakeDriver):
        async def start_agent(self) -> None:
            asked.release()
            await up.wait()
            await super().start_agent()

    def drivers(regions: Iterable[Region]) -> dict[str, Any]:
        return {region.name: Starting(worlds[region.name]) for region in regions}

    begun: list[Demo] = []
    monkeypatch.setattr(cockpit, "drivers", drivers)
    monkeypatch.setattr(cockpit, "start_traffic", lambda demo, log: begun.append(demo))
    away = next(iter(worlds))
    worlds[away].reachable = False
    fleet = DemoFleet(demo, None)
    try:
        refresh = asyncio.create_task(fleet.refresh())
        for _ in worlds:
            await asyncio.wait_for(asked.acquire(), 60)
        assert {(view.note, view.waits) for view in fleet.views.values()} == {
            ("starting: its agent is not up yet", True)
        }
        assert not refresh.done()
        up.set()
        await asyncio.wait_for(refresh, 60)
        running = {name for name, world in worlds.items() if world.agent.running}
        assert running == set(worlds) - {away}
        assert begun == [demo]
        assert not any("not up yet" in view.note or view.waits for view in fleet.views.values())
    finally:
        await fleet.close()
