"""Witnesses of a plan on the screen: requested by a key, searched in the background, kept, ended with the console."""

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.pilot import Pilot

from console.drivers import replay
from console.drivers.fake import FakeRegion
from console.model.live import Feed, Live, Release, TableState, Version
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.region import Region
from console.tui.app import ConsoleApp
from console.tui.screens.home import HomeScreen
from tests.runner.worlds import RAW, World, plan, region, survey
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text, settle, toast_text
from tests.screens.moments import moment

pytestmark = pytest.mark.slow

OLD = "SELECT id, ts FROM landing"
EDITED = "SELECT id, ts FROM landing WHERE id <> 'probe'"
OTHERWISE = "SELECT id, ts FROM landing WHERE id <> 'test'"
WIDER = "SELECT id, ts, upper(id) AS name FROM landing"
SIZE = (100, 40)


class Started(subprocess.Popen[str]):
    """Real processes, remembered."""

    all: ClassVar[list["Started"]] = []

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.all.append(self)


@pytest.fixture
def sparks(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Started]]:
    """The processes that were started to replay on."""
    monkeypatch.setattr(Started, "all", [])
    monkeypatch.setattr(replay.subprocess, "Popen", Started)
    yield Started.all
    for process in Started.all:
        process.kill()


@dataclass
class Files:
    """A planner whose pipeline feeds `requests` by this query; what the regions hold is fed by another."""

    sql: str

    def __call__(self, pipeline: Pipeline, live: Live, where: Region) -> Plan:
        made = plan(pipeline, live, where)
        return replace(made, release=fed(made.release, self.sql))


def fed(release: Release | None, sql: str) -> Release:
    assert release is not None
    landing = TableState(
        table=RAW, version=Version(content="", path="landing", columns=RAW.columns), read="", rows="", values={}
    )
    return replace(
        release,
        tables=(landing, *release.tables),
        feeds=(Feed(materialization="parse", source="landing", target="requests", sql=sql),),
    )


def holding(name: str, sql: str = OLD) -> FakeRegion:
    live = survey(name)
    return FakeRegion(region(name), replace(live, release=fed(live.release, sql)))


async def until(pilot: Pilot[int], app: ConsoleApp, text: str, seconds: float = 20.0) -> str:
    """Wait until the operator can read this."""
    try:
        async with asyncio.timeout(seconds):
            while text not in screen_text(app):
                await settle(pilot)
    except TimeoutError:
        raise AssertionError(f"never read {text!r} on:\n{screen_text(app)}") from None
    return screen_text(app)


async def test_a_key_searches_witnesses_of_the_selected_region_and_escape_leaves_the_pane() -> None:
    cockpit = s.ScriptedCockpit(*moment("before"))
    async with running_app(cockpit, size=SIZE) as (app, pilot):
        await pilot.press("j", "w")
        await settle(pilot)
        assert ("witness", "eu") in cockpit.calls
        cockpit.show(replace(s.waiting(s.EU), witness=s.witness_progress(s.witness_result(), total=2)))
        text = await until(pilot, app, "searching, 1 of 2 done")
        assert "Spark is started on this machine" in text
        assert "esc leave: the search continues" in text
        assert "~ agent  NULL → 'Mozilla/5.0" in text
        await pilot.press("escape")
        assert isinstance(app.screen, HomeScreen)


async def test_opening_the_pane_starts_no_search_and_says_what_would_be_started() -> None:
    cockpit = s.ScriptedCockpit(*moment("before"))
    async with running_app(cockpit, size=SIZE) as (app, pilot):
        await pilot.press("enter", "right_square_bracket")
        text = await until(pilot, app, "w find the smallest made-up rows")
        assert "This starts Spark on this machine" in text
        assert [call for call, _ in cockpit.calls] == ["refresh"]


async def test_without_a_plan_there_is_no_search() -> None:
    cockpit = s.ScriptedCockpit(replace(s.waiting(s.US), plan=None, problem="tables/requests.yaml:3:1: no column ts"))
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("w")
        await settle(pilot)
        assert "tables/requests.yaml:3:1" in toast_text(app)
        assert [call for call, _ in cockpit.calls] == ["refresh"]


async def test_rows_of_only_one_side_are_shown_side_by_side_or_one_column_a_line() -> None:
    none = s.WitnessResult(None, 324, "none among 324 databases")
    view = replace(
        s.waiting(s.US), witness=s.witness_progress(s.witness_result(rows=2), s.witness_result(rows=14), none)
    )
    async with running_app(s.ScriptedCockpit(view), size=(119, 120)) as (app, pilot):
        await pilot.press("enter", "right_square_bracket")
        text = await until(pilot, app, "… and 2 more")
        assert "old returns, 2 rows" in text
        assert "'2024-02-29T00:00:00'  NULL" in text
        assert "no witness: none among 324 databases" in text


@pytest.mark.parametrize(
    ("sql", "text"), [(OLD, "the plan edits no query of a table"), (WIDER, "old rows and columns stay as they are")]
)
async def test_what_changes_no_row_starts_no_spark(sql: str, text: str, tmp_path: Path, sparks: list[Started]) -> None:
    world = World(tmp_path, holding("us"))
    async with running_app(world.console(planner=Files(sql)), size=SIZE) as (app, pilot):
        await until(pilot, app, "change waiting")
        await pilot.press("w")
        await until(pilot, app, text)
    assert sparks == []


async def test_without_spark_the_pane_says_so_and_the_search_can_be_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparks: list[Started]
) -> None:
    monkeypatch.setenv("CONSOLE_JARS", str(tmp_path))
    world = World(tmp_path, holding("us"))
    async with running_app(world.console(planner=Files(EDITED)), size=SIZE) as (app, pilot):
        await until(pilot, app, "change waiting")
        await pilot.press("w")
        assert "no Delta jars" in await until(pilot, app, "w search again", 60)
        await pilot.press("w")
        async with asyncio.timeout(60):
            while len(sparks) < 2:
                await settle(pilot)
        await until(pilot, app, "w search again", 60)


@pytest.mark.spark
async def test_one_spark_confirms_an_edit_for_all_regions_while_the_operator_looks_elsewhere(
    tmp_path: Path, sparks: list[Started]
) -> None:
    world, files = World(tmp_path, holding("us"), holding("eu"), holding("ap", EDITED)), Files(EDITED)
    async with running_app(world.console(planner=files), size=SIZE) as (app, pilot):
        await until(pilot, app, "3 change waiting")
        await pilot.press("w")
        await until(pilot, app, "… searching")
        await pilot.press("escape", "j", "w")
        await until(pilot, app, "… searching")
        await pilot.press("escape", "j", "w")
        await until(pilot, app, "the plan edits no query of a table")
        await pilot.press("escape", "k", "enter", "right_square_bracket")
        text = await until(pilot, app, "confirmed on Spark", 300)
        assert "'probe'" in text
        assert "old returns, 1 row" in text
        assert "new returns, 0 rows" in text
        await pilot.press("w", "escape", "k", "w")
        await until(pilot, app, "confirmed on Spark")
        assert len(sparks) == 1
        await pilot.press("r")
        await settle(pilot)
        assert "confirmed on Spark" in screen_text(app)
        files.sql = OTHERWISE
        await pilot.press("r")
        await until(pilot, app, "w find the smallest made-up rows")
        assert len(sparks) == 1


@pytest.mark.spark
async def test_leaving_the_console_ends_the_search_and_its_spark(tmp_path: Path, sparks: list[Started]) -> None:
    world = World(tmp_path, holding("us"))
    async with running_app(world.console(planner=Files(EDITED)), size=SIZE) as (app, pilot):
        await until(pilot, app, "change waiting")
        await pilot.press("w")
        async with asyncio.timeout(60):
            while not sparks:
                await settle(pilot)
        await pilot.press("q")
    assert await asyncio.to_thread(sparks[0].wait, 60) == -signal.SIGKILL
