"""Builds the demo's regions: history without Spark, then release r1 of the pipeline as it was before the change."""

import asyncio
import getpass
import json
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from console.demo import building
from console.demo.processes import TERM_SECONDS, Processes, birth, end
from console.demo.traffic.generate import TICK_SECONDS, TRAFFIC, DayWritten
from console.demo.traffic.generate import build as build_history
from console.drivers.local import LocalDriver, local_drivers
from console.drivers.protocol import Who
from console.errors import ConsoleError, UsageError
from console.model.pipeline import Pipeline
from console.model.region import Region
from console.project import Project, load
from console.runner.fleet import Fleet
from console.runner.journal import Journal
from console.runner.region_planner import RegionPlanner
from console.runner.view import RegionView

PIPELINE = "web"
BEFORE = Path(__file__).parent / "before"
ADDED = ("endpoints/requests_by_agent.sql",)  # added by the change
ShowView = Callable[[RegionView], None]


@dataclass(frozen=True)
class Demo:
    """The demo's files: warehouses, its processes and their ledgers, all below `.console/demo` of the project."""

    root: Path
    project: Project

    @classmethod
    def of(cls, root: Path) -> "Demo":
        """raises UsageError if the project is not the demo's, Problems if its files are invalid"""
        demo = cls(root, load(root))
        if PIPELINE not in demo.project.names:
            raise UsageError(
                f"{root} holds no pipeline {PIPELINE}",
                hint="console demo --project NEW writes its own project into a new folder",
            )
        if not demo.regions:
            raise UsageError(f"no region of {root} is the demo's", hint=f"their warehouses are in {demo.home}")
        return demo

    @property
    def home(self) -> Path:
        return demo_home(self.root)

    @property
    def run(self) -> Path:
        return self.home / "run"

    @property
    def processes(self) -> Processes:
        return Processes(self.run)

    @property
    def regions(self) -> tuple[Region, ...]:
        """Those of the inventory whose warehouse is `.console/demo/<name>`, in the order of waves."""
        ours = [r for r in self.project.regions if Path(r.warehouse) == self.home / r.name]
        return tuple(sorted(ours, key=lambda region: (not region.canary, region.wave, region.name)))

    @property
    def built(self) -> bool:
        return (self.run / "built.json").is_file()

    def ledger(self, region: str) -> Path:
        return self.run / "ledgers" / f"{region}.ndjson"

    def pipelines(self) -> dict[str, Pipeline]:
        """The pending change in the project's files, region by region."""
        return {region.name: self.project.pipeline(PIPELINE, region) for region in self.regions}


def demo_home(root: Path) -> Path:
    return root / ".console" / "demo"


def screen_processes(home: Path) -> Processes:
    """The process with the demo's screen; kept apart from the others, which it restarts."""
    return Processes(home / "screen")


def operator() -> Who:
    host = socket.gethostname()
    return Who(f"{getpass.getuser()}@{host}", host)


def drivers(regions: Iterable[Region]) -> dict[str, LocalDriver]:
    return local_drivers(regions, tick_seconds=TICK_SECONDS)


async def build(demo: Demo, log: Path | None, show: ShowView) -> None:
    """Load history into every landing table, and promote release r1 over it. An unfinished attempt is started over.

    log     the user's own access log, or None for the shipped one
    show    called with a region's view at each step of its build, and at its end
    raises  ConsoleError of the first region that did not become live
    """
    await stop(demo)
    for region in demo.regions:
        _empty(Path(region.warehouse))
    _empty(demo.run)
    now = datetime.now(UTC)
    views = await asyncio.gather(*(_history(region, now, log, show) for region in demo.regions))
    await _first_release(demo, {view.region.name: view for view in views}, show)
    (demo.run / "built.json").write_text(json.dumps({"at": now.isoformat(), "log": str(log) if log else None}))


def _empty(directory: Path) -> None:
    if directory.exists():
        shutil.rmtree(directory)
    directory.mkdir(parents=True)


async def _history(region: Region, now: datetime, log: Path | None, show: ShowView) -> RegionView:
    view, loop = building.begun(region, time.time()), asyncio.get_running_loop()
    show(view)

    def written(day: DayWritten) -> None:
        nonlocal view
        view = building.with_day(view, day, time.time())
        loop.call_soon_threadsafe(show, view)

    await asyncio.to_thread(build_history, TRAFFIC[region.name], Path(region.warehouse), now, log, written)
    return view


async def _first_release(demo: Demo, written: Mapping[str, RegionView], show: ShowView) -> None:
    """Roll out the earlier pipeline in the ordinary way, in all regions at once.

    written  region name → its view once its history was written
    """
    before = load(_project_before(demo))
    together = tuple(replace(region, wave=1, canary=False) for region in demo.regions)
    pipelines = {region.name: before.pipeline(PIPELINE, before.region(region.name)) for region in demo.regions}
    journal = Journal(demo.run / "building.db")
    runner = Fleet(PIPELINE, drivers(together), pipelines, RegionPlanner(), journal, operator(), remember=True)
    follower = asyncio.create_task(_follow(runner, written, show))
    try:
        await runner.refresh()
        outcomes = await runner.run(yes=True)
    finally:
        follower.cancel()
        await runner.close()
    for outcome in outcomes:
        if outcome.error:
            raise outcome.error
        show(RegionView(region=written[outcome.region].region))


async def _follow(runner: Fleet, written: Mapping[str, RegionView], show: ShowView) -> None:
    async for view in runner.changes():
        show(building.with_release(written[view.region.name], view))


def _project_before(demo: Demo) -> Path:
    """A copy of the project's files as they were before the change."""
    copy = demo.run / "before"
    for folder in ("regions", "plans"):
        shutil.copytree(demo.root / folder, copy / folder)
    shutil.copytree(BEFORE, copy / "plans" / PIPELINE, dirs_exist_ok=True)
    for name in ADDED:
        (copy / "plans" / PIPELINE / name).unlink(missing_ok=True)
    return copy


def start_traffic(demo: Demo, log: Path | None) -> None:
    """One producer per region, each a separate process; running ones are kept."""
    for region in demo.regions:
        own = ("--log", str(log)) if log else ()
        demo.processes.start(
            f"producer-{region.name}", "-m", "console.demo.traffic.producer", "--project", str(demo.root),
            "--region", region.name, "--pipeline", PIPELINE, "--ledger", str(demo.ledger(region.name)), *own,
        )  # fmt: skip


async def stop_traffic(demo: Demo, seconds: float = TERM_SECONDS) -> None:
    names = demo.processes.names()
    await asyncio.gather(*(asyncio.to_thread(demo.processes.stop, name, seconds) for name in names))


async def stop(demo: Demo, seconds: float = TERM_SECONDS) -> None:
    """End the demo's own processes: producers and reader first, then the agents of its regions.

    seconds  for each to end by itself before it is killed; the next one continues where a killed one stopped
    """
    await stop_traffic(demo, seconds)
    await stop_agents(demo, seconds)


async def stop_agents(demo: Demo, seconds: float = TERM_SECONDS) -> None:
    async def one(driver: LocalDriver) -> None:
        with suppress(ConsoleError, TimeoutError):  # an agent that does not answer is ended below
            async with asyncio.timeout(seconds):
                await driver.stop()
        await driver.close()
        if pid := agent_pid(Path(driver.region.warehouse)):
            await asyncio.to_thread(end, pid, seconds)

    running = drivers(r for r in demo.regions if Path(r.warehouse).is_dir())
    await asyncio.gather(*(one(driver) for driver in running.values()))


async def stop_all_in(home: Path) -> None:
    """End the demo's own processes without reading the project's files: by pid files, and by the agents' locks.

    An open screen of the demo is ended first, since it ends what it started.
    """
    for processes in (screen_processes(home), Processes(home / "run")):
        for name in processes.names():
            await asyncio.to_thread(processes.stop, name)
    agents = [agent_pid(lock.parent.parent) for lock in home.glob("*/_console/agent.lock")]
    await asyncio.gather(*(asyncio.to_thread(end, pid) for pid in agents if pid))


def agent_pid(warehouse: Path) -> int:
    """Pid of the agent that holds this warehouse, or 0."""
    try:
        pid = int(json.loads((warehouse / "_console" / "agent.lock").read_text())["pid"])
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError, KeyError):
        return 0
    return pid if b"console.agent" in words and str(warehouse).encode() in words and birth(pid) else 0
