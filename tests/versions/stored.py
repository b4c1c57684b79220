"""Regions left by another version, stored beside this file, and a clock set to their day."""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path

from console import project
from console.model.plan import Plan
from console.runner.region_planner import RegionPlanner
from tests.faults.clock import Clock, read_from
from tests.life.region import LiveRegion
from tests.versions.build import PLACE

HERE = Path(__file__).parent
VERSIONS = sorted(path.name for path in HERE.iterdir() if (path / "gate.json").is_file())
PIPELINE = "web"
MORE_CODE = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
)


@dataclass(frozen=True, slots=True)
class Noted:
    """Where and when a region was left. at: seconds, UTC"""

    commit: str
    version: str
    at: int
    place: str


def noted(version: str, state: str) -> Noted:
    return Noted(**json.loads((HERE / version / f"{state}.json").read_text()))


class Stored(LiveRegion):
    """A region as it was left, at another place and at the hour in which it was left."""

    def __init__(self, place: Path, version: str, state: str) -> None:
        with tarfile.open(HERE / version / f"{state}.tar.gz") as archive:
            archive.extractall(place, filter="data")
        self.root, self.warehouse = place, place / "warehouse"
        inventory = place / "regions" / "eu.yaml"
        # 0.1.0 left it with a code cache of 48 MB, too small for Spark: each agent would compile the same code again and again
        inventory.write_text(inventory.read_text().replace(*MORE_CODE))
        self.clock = Clock(place / "clock")
        self.clock.step(noted(version, state).at - round(time.time()))
        self._driver, self._writer = None, None

    def console(self, *words: str, exits: tuple[int, ...] = (0,)) -> str:
        """What a command of this version says on stdout, at that hour."""
        command = [sys.executable, "-m", "console.main", *words, "--project", str(self.root), "--no-input"]
        done = subprocess.run(command, env=self.clock.around(), capture_output=True, text=True, check=False)
        assert done.returncode in exits, f"{' '.join(words)}: exit {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    async def plan(self, pipeline: str) -> Plan:
        loaded = project.load(self.root)
        desired = loaded.pipeline(pipeline, loaded.regions[0])
        live = await self.driver.survey(pipeline, [t.name for t in desired.tables if t.kind == "landing"])
        return RegionPlanner().plan(desired, live, loaded.regions[0])

    def older(self, checkout: Path, *words: str, exits: tuple[int, ...] = (0,)) -> str:
        """The same of a command of another version, from its own files."""
        path = os.pathsep.join([str(checkout), self.clock.environment["PYTHONPATH"]])
        jars = str(Path(__file__).parents[2] / ".console" / "jars")
        environment = {**self.clock.around(), "PYTHONPATH": path, "CONSOLE_JARS": jars}
        command = [sys.executable, "-m", "console.main", *words, "--project", str(self.root), "--no-input"]
        done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode in exits, f"{' '.join(words)}: exit {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout


@contextmanager
def own_place() -> Iterator[Path]:
    """Where the regions of 0.1.0 lay, whose manifests hold it: of one test at a time on a machine."""
    with (PLACE.parent / f"{PLACE.name}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        shutil.rmtree(PLACE, ignore_errors=True)
        try:
            yield PLACE
        finally:
            shutil.rmtree(PLACE, ignore_errors=True)


@asynccontextmanager
async def region(place: Path, version: str, state: str) -> AsyncIterator[Stored]:
    """A stored region under the clock of its day, unpacked at `place`; its agent ends with it."""
    stored = Stored(place, version, state)
    with read_from(stored.clock):
        try:
            yield stored
        finally:
            await stored.close()
