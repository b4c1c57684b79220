"""Regions, plans and fleets for the tests: small, but with every kind of step."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from console.drivers.fake import FakeDriver, FakeRegion, Scenario
from console.drivers.protocol import Who
from console.errors import ConsoleError, Problem
from console.model.event import Recorded
from console.model.live import Day, Live, Release, ReleaseRow, TableState, TableStats, Version
from console.model.pipeline import Pipeline
from console.model.plan import NodeChange, Plan, Price
from console.model.region import Region
from console.model.schema import Column, Table
from console.model.step import Backfill, CatchUp, Comparison, CreateTable, Pair, Promote, Step, Validate
from console.runner.fleet import Fleet
from console.runner.journal import Journal
from console.runner.view import Outcome

ADA, BOB = Who("ada@laptop", "laptop"), Who("bob@tower", "tower")
RAW = Table(
    name="landing",
    kind="landing",
    columns=(Column(name="id", type="string"), Column(name="ts", type="timestamp")),
    time="ts",
    managed=True,
)
OLD, NEW = "old0000000", "new0000000"
PIPELINE = Pipeline(
    name="web",
    description=NEW,
    tables=(RAW, Table(name="requests", kind="append", columns=RAW.columns, time="ts", partition_by=("day",))),
)
DAYS = tuple(Day(f"2026-01-0{day}", 1000 * day, 10_000 * day) for day in (1, 2, 3))
CHECKED = Validate((Comparison(table="requests", pairs=(Pair("id", "id"),)),))


def region(name: str, **more: Any) -> Region:
    return replace(Region(name=name, warehouse=f"/nowhere/{name}"), **more)


def release(id: str, content: str, path: str) -> Release:
    requests = PIPELINE.tables[1]
    version = Version(content=content, path=path, columns=requests.columns, partition_by=("day",))
    return Release(
        id=id,
        pipeline="web",
        digest=content,
        tables=(TableState(table=requests, version=version, read="SELECT * FROM stored", rows="", values={}),),
        feeds=(),
    )


def survey(name: str) -> Live:
    stats = TableStats(
        name="landing",
        path="landing",
        version=7,
        rows=6000,
        bytes=60_000,
        files=3,
        columns=RAW.columns,
        partition_by=(),
        days=DAYS,
    )
    table = replace(stats, name="requests", path="requests/old-1", partition_by=("day",))
    return Live(
        region=name,
        pipeline="web",
        release=release("r1", OLD, "requests/old-1"),
        releases=(ReleaseRow(id="r1", state="live"),),
        stats=(stats, table),
    )


def plan(pipeline: Pipeline, live: Live, where: Region) -> Plan:
    """Rebuilds `requests` where the live release is another than the files; `keep` where it is not."""
    same = live.release is not None and live.release.digest == pipeline.description
    sql = "SELECT id, ts FROM landing"
    steps: tuple[Step, ...] = (
        CreateTable("requests"),
        Backfill(
            materialization="parse",
            source="landing",
            target="requests",
            route="replay",
            sql=sql,
            time="ts",
            rows=6000,
            bytes=60_000,
            days=3,
            batches=3,
        ),
        CatchUp("parse", "landing", "requests", "fence"),
        CHECKED,
        Promote(),
    )
    return Plan(
        format_version=1, tool="console test", pipeline="web", region=where.name, desired=pipeline.description, live=live.release.id if live.release else "", content="",
        nodes=(NodeChange(kind="table", name="requests", action="keep" if same else "replay", why="a column is new"),),
        steps=() if same else steps,
        release=release("", pipeline.description, ""),
        price=Price(days=3, rows=live.stats[0].rows, bytes=60_000, batches=3),
        rows_limit=3000,
    )  # fmt: skip


def refusing(pipeline: Pipeline, live: Live, where: Region) -> Plan:
    return replace(
        plan(pipeline, live, where), problems=(Problem(code="C101", message="landing keeps less than requests"),)
    )


class Brake:
    """Holds a fake region's agent where it is, so that a test can do something just then."""

    def __init__(self) -> None:
        self._free = asyncio.Event()
        self._free.set()

    async def __call__(self, _: float) -> None:
        await asyncio.sleep(0)
        await self._free.wait()

    def hold(self) -> None:
        self._free.clear()

    def release(self) -> None:
        self._free.set()


def fake(name: str, script: Scenario | None = None, brake: Brake | None = None, **more: object) -> FakeRegion:
    return FakeRegion(region(name, **more), survey(name), script, sleep=brake)


class World:
    """Some fake regions, and any number of consoles over them, each with a journal of its own."""

    def __init__(self, folder: Path, *regions: FakeRegion) -> None:
        self.regions = {world.region.name: world for world in regions}
        self._folder = folder
        self._consoles = 0

    def console(
        self, who: Who = ADA, *, journal: Journal | None = None, driver: type[FakeDriver] = FakeDriver, **more: Any
    ) -> Fleet:
        self._consoles += 1
        drivers = {name: driver(world) for name, world in self.regions.items()}
        kept = journal or Journal(self._folder / f"journal-{self._consoles}.db")
        options: dict[str, Any] = {"sleep": fast, "reconnect_seconds": 5.0, **more}
        planner = options.pop("planner", plan)
        return Fleet("web", drivers, dict.fromkeys(drivers, PIPELINE), planner, kept, who, **options)


async def fast(_: float) -> None:
    await asyncio.sleep(0)


def at_event(world: FakeRegion, number: int, do: Callable[[], None]) -> None:
    """Do something the moment the region has told its `number`-th event from now, stored or fleeting."""
    left = [number]

    def hear(_: Recorded) -> None:
        left[0] -= 1
        if left[0] == 0:
            do()

    world.heard.append(hear)


async def refreshed(world: World, **more: Any) -> Fleet:
    fleet = world.console(**more)
    await fleet.refresh()
    return fleet


def ends(outcomes: tuple[Outcome, ...]) -> dict[str, tuple[str, type[ConsoleError] | None]]:
    return {o.region: (o.state, type(o.error) if o.error else None) for o in outcomes}


async def until(view: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not view():
            await asyncio.sleep(0.001)
