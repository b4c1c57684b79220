"""A project on disk and two regions in memory: everything between them is the real thing."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from console.cli.root import cli
from console.cli.wiring import CliContext, Wiring
from console.drivers.fake import FakeDriver, FakeRegion, Scenario
from console.model.live import Day, Live, TableStats
from console.model.region import Region
from console.model.schema import Column

FILES = {
    "regions/us.yaml": "name: us\nwarehouse: w/us\ncanary: true\nwave: 1\nenvironment: prod\n",
    "regions/eu.yaml": "name: eu\nwarehouse: w/eu\nwave: 2\nlimits: {rows: 60}\n",
    "plans/web/pipeline.yaml": "name: web\ndescription: requests\n",
    "plans/web/tables/landing.yaml": (
        "kind: landing\nmanaged: true\ntime: ts\ncolumns: {id: string, ts: timestamp, payload: string}\n"
    ),
    "plans/web/tables/requests.yaml": (
        "kind: append\ntime: ts\npartition_by: [day]\ncolumns: {id: string, ts: timestamp, day: date}\n"
    ),
    "plans/web/materializations/parse.sql": (
        "/*\ninto: requests\n*/\nSELECT id, ts, to_date(ts) AS day FROM landing\n"
    ),
    "plans/web/endpoints/newest.sql": (
        "/*\nparameters:\n  day: date\n  most: {type: int, default: 10}\n*/\n"
        "SELECT id, ts FROM requests WHERE day = :day ORDER BY ts DESC LIMIT :most\n"
    ),
    "plans/web/sinks/dump.sql": "/*\npath: exports/dump\n*/\nSELECT id, day FROM requests\n",
}
CHANGE = {
    "plans/web/tables/requests.yaml": FILES["plans/web/tables/requests.yaml"].replace(
        "day: date", "day: date, agent: string"
    ),
    "plans/web/materializations/parse.sql": (
        "/*\ninto: requests\n*/\n"
        "SELECT id, ts, to_date(ts) AS day, get_json_object(payload, '$.agent') AS agent FROM landing\n"
    ),
}


class World:
    """Two regions and the command line in front of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.scripts = {"us": Scenario(), "eu": Scenario()}
        self.regions: dict[str, FakeRegion] = {}
        self.executed: list[tuple[list[str], bytes]] = []
        self.screen: Callable[..., int] | None = None
        self.write(FILES)

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def drivers(self, regions: Sequence[Region]) -> dict[str, FakeDriver]:
        for region in regions:
            if region.name not in self.regions:
                self.regions[region.name] = FakeRegion(region, _live(region), self.scripts[region.name])
        return {region.name: FakeDriver(self.regions[region.name]) for region in regions}

    def call(self, *words: str, input: str | bytes | None = None, **kwargs: Any) -> Result:
        """One run of the program; an error that is no ConsoleError fails the test."""
        context = CliContext(Wiring(self.drivers, self.screen, self._execute))
        line = [*words, "--project", str(self.root)]
        return CliRunner().invoke(cli, line, obj=context, input=input, catch_exceptions=False, **kwargs)

    def _execute(self, argv: list[str], stdin: bytes) -> Any:
        self.executed.append((argv, stdin))
        raise SystemExit(0)


def _live(region: Region) -> Live:
    days = (Day("2026-11-07", 70, 7000), Day("2026-11-06", 40, 4000))
    columns = (
        Column(name="id", type="string"),
        Column(name="ts", type="timestamp"),
        Column(name="payload", type="string"),
    )
    stats = TableStats(
        name="landing", path="landing", version=12, rows=110, bytes=11_000, files=4, columns=columns, days=days
    )
    return Live(region=region.name, pipeline="web", release=None, stats=(stats,), free_bytes=1 << 40)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    for name in ("CONSOLE_PROJECT", "CONSOLE_REGIONS", "CONSOLE_OUTPUT"):
        monkeypatch.delenv(name, raising=False)
    return World(tmp_path / "project")


@pytest.fixture
def deployed(world: World) -> World:
    """Both regions live with the pipeline, and a column more in the files."""
    done = world.call("apply", "--yes", "--quiet")
    assert done.exit_code == 0, done.output
    world.write(CHANGE)
    return world
