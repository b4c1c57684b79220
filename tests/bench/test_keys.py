"""The cost of a key until its effect is drawn: the cockpit over regions that change all the time, beside a bare table of 500 rows.

In processor seconds, since the machine may be busy; both in turn, round by round, so that it is as busy for both. Each begins
a round with a heap without garbage, as the console begins after its first picture.
"""

import asyncio
import gc
import importlib
import inspect
import pkgutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import cycle
from random import Random
from statistics import median, quantiles
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
from tests.bench.report import Measurement, check
from tests.screens import scripted as s

pytestmark = pytest.mark.bench
REGIONS, TABLES = 500, 200
ROUNDS, KEYS = 4, 60
LINES = 10_000  # of log, each second, over all regions
STORED = 10  # of them one is a batch that the region stores
PAUSE = 0.02, 0.11  # seconds between keys; after the longest the panes follow, and the next key meets that
MOST_DUE = 0.05  # seconds' worth of lines that may be behind
TURN = 20  # lines read from one region before the next has its turn
SIZE = (160, 48)
THRESHOLDS = 700, 10, 10  # of a fresh interpreter
RATIO = 3.0


@pytest.fixture(autouse=True)
def _collected_as_in_a_console() -> Iterator[None]:
    """With the thresholds of the interpreter: those of the tests make collections rare, and each as long as a picture."""
    before = gc.get_threshold()
    gc.set_threshold(*THRESHOLDS)
    yield
    gc.set_threshold(*before)


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
    results = []
    for number in range(REGIONS):
        view = s.running(replace(s.EU, name=f"r{number:03}", wave=1 + number // 100), rows=466_830 + number)
        assert view.plan is not None
        results.append(replace(view, plan=replace(view.plan, nodes=(*view.plan.nodes, *tables))))
    return results


@asynccontextmanager
async def busy(cockpit: s.ScriptedCockpit, rate: int = LINES) -> AsyncIterator[None]:
    """All regions tell of their batches meanwhile; what a machine is too slow to tell in time is left out."""

    async def tell() -> None:
        names, report, due, last = cycle(list(cockpit.views)), 0, 0.0, time.monotonic()
        while True:
            await asyncio.sleep(0.01)
            now = time.monotonic()
            due, last = min(due + (now - last) * rate, MOST_DUE * rate), now
            for _ in range(int(due)):
                report += 1
                tell_one(cockpit, next(names), report)
                if report % TURN == 0:  # as a socket's reader does, who has read what was there
                    await asyncio.sleep(0)
            due %= 1

    task = asyncio.create_task(tell())
    try:
        yield
    finally:
        task.cancel()


def tell_one(cockpit: s.ScriptedCockpit, name: str, report: int) -> None:
    view = cockpit.views[name]
    log = (*view.status.log[-199:], f"batch {report} committed")
    status = replace(view.status, seq=view.status.seq + 1, log=log)
    if report % STORED == 0:
        view = replace(view, events=(*view.events, batch(report))[-EVENTS_KEPT:])
    cockpit.show(replace(view, status=status))


def batch(number: int) -> Recorded:
    """A stored batch."""
    done = BatchDone(
        step="backfill/requests/parse_requests", label=f"2026-10-{1 + number % 28:02}", position=number, of=10**6,
        rows_in=61_000, rows_out=61_000, bytes=1 << 24, seconds=12.0, version=number,
    )  # fmt: skip
    return Recorded("web-2", number, s.NOON - 900 + number % 900, done)


async def seconds(app: App[Any], key: str, at: Callable[[], object]) -> list[float]:
    """Processor seconds from each key to the first painting that shows where it led."""
    painted, display = asyncio.Event(), app._display
    spent = 0.0

    def paint(*args: Any) -> None:
        nonlocal spent
        display(*args)
        if at() != before and not painted.is_set():
            spent = time.process_time()
            painted.set()

    taken, pauses = [], Random(7)
    gc.collect()
    gc.freeze()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(app, "_display", paint)
        for _ in range(KEYS):
            before = at()
            painted.clear()
            start = time.process_time()
            app.post_message(Key(key, None))
            await asyncio.wait_for(painted.wait(), 60)
            taken.append(spent - start)
            await asyncio.sleep(pauses.uniform(*PAUSE))
    gc.unfreeze()
    return taken


async def bare_seconds() -> list[float]:
    bare = Bare()
    async with bare.run_test(size=SIZE) as pilot:
        await pilot.pause()
        table = bare.query_one(DataTable)
        return await seconds(bare, "down", lambda: table.cursor_row)


async def list_seconds(report: int) -> list[float]:
    """From region to region, while so many lines a second are told."""
    cockpit = s.ScriptedCockpit(*views())
    session = ConsoleApp(cockpit, title="web")
    async with session.run_test(size=SIZE) as pilot:
        await pilot.pause()
        regions = session.screen.query_one(RegionList)
        async with busy(cockpit, report):
            return await seconds(session, "down", lambda: regions.current)


def compare(what: str, ours: list[float], bare: list[float], limit: float) -> None:
    (ours_50, ours_99), (bare_50, bare_99) = (
        (median(taken), quantiles(taken, n=100, method="inclusive")[98]) for taken in (ours, bare)
    )
    text = (
        f"p99 {ours_99 * 1000:.1f} ms, {ours_99 / bare_99:.2f} times a bare table's; "
        f"median {ours_50 * 1000:.1f} ms, {ours_50 / bare_50:.2f} times"
    )
    check(Measurement(what=f"key to paint: {what}", figure=ours_99 / bare_99, limit=limit, text=text))


async def test_a_key_costs_at_most_three_times_a_bare_table_s_however_much_the_regions_tell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    alone, quiet, loaded = [], [], []
    for _ in range(ROUNDS):
        alone += await bare_seconds()
        quiet += await list_seconds(0)
        loaded += await list_seconds(LINES)
    with capsys.disabled():
        compare(f"{REGIONS} regions, no messages", quiet, alone, RATIO)
        compare(f"{REGIONS} regions, {LINES:,} lines a second", loaded, alone, RATIO)


FEW, A_REGION = 200, 20  # regions, and changes of each a second
PANE_RATIO = 1.5


def screens() -> list[type[BaseScreen]]:
    """Every full screen: one that is added is measured without being named here."""
    for module in pkgutil.walk_packages(tui_screens.__path__, tui_screens.__name__ + "."):
        importlib.import_module(module.name)
    results, todo = [], [BaseScreen]
    while todo:
        below = todo.pop().__subclasses__()
        results += below
        todo += below
    return sorted((kind for kind in results if not kind.__subclasses__()), key=lambda kind: kind.__name__)


def opened(kind: type[BaseScreen], session: ConsoleApp) -> BaseScreen:
    """The screen, of the first region if it is one of a region."""
    known = {"state": session.state, "region": "r000"}
    wanted = list(inspect.signature(kind.__init__).parameters.values())[1:]
    return kind(*(known[each.name] for each in wanted if each.default is each.empty))


async def pane_seconds(kind: type[BaseScreen]) -> list[float]:
    """From pane to pane of that screen, while the regions change: each is drawn with and without the focus."""
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
        async with busy(cockpit, FEW * A_REGION):
            return await seconds(session, "tab", lambda: session.screen.focused)


@pytest.mark.parametrize("kind", screens(), ids=lambda kind: kind.__name__)
async def test_a_key_costs_at_most_one_and_a_half_times_a_bare_table_s_on_every_screen(
    kind: type[BaseScreen], capsys: pytest.CaptureFixture[str]
) -> None:
    ours, alone = [], []
    for _ in range(ROUNDS):
        alone += await bare_seconds()
        ours += await pane_seconds(kind)
    with capsys.disabled():
        what = f"panes of {kind.__name__}, {FEW} regions at {A_REGION} changes a second each"
        compare(what, ours, alone, PANE_RATIO)
