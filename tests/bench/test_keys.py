"""How long a key takes to be seen: the cockpit over 500 regions that change all the time, beside a bare table of 500 rows."""

import asyncio
import importlib
import inspect
import pkgutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import cycle
from random import Random
from statistics import quantiles
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.events import Key
from textual.widgets import DataTable

from console.model.event import BatchDone, Recorded
from console.model.plan import NodeChange
from console.runner.view import RegionView
from console.runner.view_events import EVENTS_KEPT
from console.tui import screens as tui_screens
from console.tui.app import ConsoleApp
from console.tui.fleet.regions import RegionList
from console.tui.screens.base import BaseScreen
from tests.screens import scripted as s

pytestmark = pytest.mark.bench
REGIONS, TABLES, KEYS = 500, 200, 200
LINES = 10_000  # of log, each second, over all regions
STORED = 10  # of them one is a batch that the region stores
PAUSE = 0.02, 0.11  # seconds between keys; after the longest the panes follow, and the next key meets that
TURN = 20  # lines read from one region before the next has its turn
SIZE = (160, 48)
RATIO = 3.0


class Bare(App[None]):
    """What Textual itself needs."""

    def compose(self) -> ComposeResult:
        yield DataTable[str](cursor_type="row")

    def on_mount(self) -> None:
        table = self.query_one(DataTable)
        table.add_columns("region", "state", "plan", "rows", "lag", "owner")
        for number in range(REGIONS):
            table.add_row(f"r{number:03}", "backfilling", "A", str(number * 1000), "0.4 s", "data")


def views() -> list[RegionView]:
    """Regions in the middle of a rollout of many tables."""
    tables = tuple(
        NodeChange(kind="table", name=f"t_{number:03}", action="keep", why="nothing about it changes")
        for number in range(TABLES)
    )
    found = []
    for number in range(REGIONS):
        view = s.running(replace(s.EU, name=f"r{number:03}", wave=1 + number // 100), rows=466_830 + number)
        assert view.plan is not None
        found.append(replace(view, plan=replace(view.plan, nodes=(*view.plan.nodes, *tables))))
    return found


@asynccontextmanager
async def busy(cockpit: s.ScriptedCockpit, rate: int = LINES) -> AsyncIterator[None]:
    """All regions tell of their batches meanwhile."""

    async def tell() -> None:
        started = time.monotonic()
        for told, name in enumerate(cycle(list(cockpit.views)), 1):
            view = cockpit.views[name]
            log = (*view.status.log[-199:], f"batch {told} committed")
            status = replace(view.status, seq=view.status.seq + 1, log=log)
            if told % STORED == 0:
                view = replace(view, events=(*view.events, batch(told))[-EVENTS_KEPT:])
            cockpit.show(replace(view, status=status))
            if told / rate > time.monotonic() - started:
                await asyncio.sleep(0.01)
            elif told % TURN == 0:  # as a socket's reader does, who has read what was there
                await asyncio.sleep(0)

    task = asyncio.create_task(tell())
    try:
        yield
    finally:
        task.cancel()


def batch(number: int) -> Recorded:
    """A stored batch."""
    done = BatchDone(
        step="backfill/requests/parse_requests", label=f"2026-10-{1 + number % 28:02}", position=number, of=10**6,
        rows_in=61_000, rows_out=61_000, bytes=1 << 24, seconds=12.0, version=number,
    )  # fmt: skip
    return Recorded("web-2", number, s.NOON - 900 + number % 900, done)


async def seconds(app: App[Any], key: str, at: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """From each key to the first painting that shows where it led."""
    painted, display = asyncio.Event(), app._display

    def paint(*args: Any) -> None:
        display(*args)
        if at() != before:
            painted.set()

    monkeypatch.setattr(app, "_display", paint)
    taken, pauses = [], Random(7)
    for _ in range(KEYS):
        before = at()
        painted.clear()
        start = time.perf_counter()
        app.post_message(Key(key, None))
        await asyncio.wait_for(painted.wait(), 60)
        taken.append(time.perf_counter() - start)
        await asyncio.sleep(pauses.uniform(*PAUSE))
    return taken


async def test_a_key_is_seen_within_three_times_what_a_bare_table_takes_however_much_the_regions_tell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = Bare()
    async with bare.run_test(size=SIZE) as pilot:
        await pilot.pause()
        table = bare.query_one(DataTable)
        alone = await seconds(bare, "down", lambda: table.cursor_row, monkeypatch)
    cockpit = s.ScriptedCockpit(*views())
    session = ConsoleApp(cockpit, title="web")
    async with session.run_test(size=SIZE) as pilot:
        await pilot.pause()
        regions = session.screen.query_one(RegionList)
        quiet = await seconds(session, "down", lambda: regions.current, monkeypatch)
        regions.current = "r000"
        async with busy(cockpit):
            loaded = await seconds(session, "down", lambda: regions.current, monkeypatch)
    bare_99, quiet_99, loaded_99 = (quantiles(taken, n=100)[98] for taken in (alone, quiet, loaded))
    with capsys.disabled():
        print(
            f"\nkey to paint, p99 of {KEYS}: bare table {bare_99 * 1000:.1f} ms, {REGIONS} regions {quiet_99 * 1000:.1f} ms"
            f" ({quiet_99 / bare_99:.1f} times), with {LINES:,} lines a second {loaded_99 * 1000:.1f} ms"
            f" ({loaded_99 / bare_99:.1f} times)"
        )
    assert max(quiet_99, loaded_99) <= RATIO * bare_99


FEW, A_REGION = 200, 20  # regions, and changes of each a second
PANE_RATIO = 1.5


def screens() -> list[type[BaseScreen]]:
    """Every full screen: one that is added is measured without being named here."""
    for module in pkgutil.walk_packages(tui_screens.__path__, tui_screens.__name__ + "."):
        importlib.import_module(module.name)
    found, todo = [], [BaseScreen]
    while todo:
        below = todo.pop().__subclasses__()
        found += below
        todo += below
    return sorted((kind for kind in found if not kind.__subclasses__()), key=lambda kind: kind.__name__)


def opened(kind: type[BaseScreen], session: ConsoleApp) -> BaseScreen:
    """The screen, of the first region if it is one of a region."""
    known = {"state": session.state, "region": "r000"}
    wanted = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return kind(*(known[each.name] for each in wanted if each.default is each.empty))


@pytest.mark.parametrize("kind", screens(), ids=lambda kind: kind.__name__)
async def test_a_key_is_seen_on_every_screen_within_one_and_a_half_times_what_a_bare_table_takes(
    kind: type[BaseScreen], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = Bare()
    async with bare.run_test(size=SIZE) as pilot:
        await pilot.pause()
        table = bare.query_one(DataTable)
        alone = await seconds(bare, "down", lambda: table.cursor_row, monkeypatch)
    cockpit = s.ScriptedCockpit(*(replace(view, events=tuple(map(batch, range(1, 21)))) for view in views()[:FEW]))
    session = ConsoleApp(cockpit, title="web")
    async with session.run_test(size=SIZE) as pilot:
        await pilot.pause()
        if not isinstance(session.screen, kind):
            await session.push_screen(opened(kind, session))
        await pilot.pause(0.5)
        if len(session.screen.focus_chain) < 2:
            await pilot.press("w")  # of the plan's screen: its second pane
            await pilot.pause(0.5)
        # from pane to pane: each of them is drawn with and without the focus
        async with busy(cockpit, FEW * A_REGION):
            loaded = await seconds(session, "tab", lambda: session.screen.focused, monkeypatch)
    bare_99, loaded_99 = (quantiles(taken, n=100)[98] for taken in (alone, loaded))
    with capsys.disabled():
        print(
            f"\n{kind.__name__}: key to paint, p99 of {KEYS}, {FEW} regions at {A_REGION} changes a second each:"
            f" {loaded_99 * 1000:.1f} ms, {loaded_99 / bare_99:.2f} times a bare table ({bare_99 * 1000:.1f} ms)"
        )
    assert loaded_99 <= PANE_RATIO * bare_99
