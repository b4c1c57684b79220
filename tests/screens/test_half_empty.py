"""No pane is half empty while another pane of its screen cuts what it has to show: on every screen of a region, over a fleet
of twenty and over the planted situations.

Cut is a pane with rows out of sight, whatever pane has the empty ones; and one whose rows end in `…`, where a half empty
pane stands beside it and could give it the width.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.widget import Widget

from console.runner.view import RegionView
from console.tui.app import ConsoleApp
from console.tui.screens.base import BaseScreen
from console.tui.screens.of_region.rollout import RolloutScreen
from tests.screens import scripted as s
from tests.screens import trial
from tests.screens.harness import running_app, settle
from tests.screens.test_situations import twenty

pytestmark = pytest.mark.slow

SIZES = [(80, 24), (120, 36), (200, 60)]
SCREENS = {"home": "1", "rollout": "2", "plan": "3", "gate": "4", "history": "5"}
LEAST_EMPTY = 4  # rows: with fewer, a pane of a few lines is as high as it has to be


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A pane as it is drawn.

    written  rows down to the last one with text
    hidden   rows that it has and does not show
    ends     rows that end in `…`
    """

    name: str
    place: Region
    written: int
    hidden: int
    ends: int

    @property
    def half_empty(self) -> bool:
        empty = self.place.height - self.written
        return empty >= LEAST_EMPTY and empty > self.written

    def takes_from(self, other: "Room") -> bool:
        """Whether it is cut where the other one could have given way."""
        beside = self.place.y < other.place.bottom and other.place.y < self.place.bottom
        return other.name != self.name and (self.hidden > 0 or (self.ends > 0 and beside))


def rooms(app: ConsoleApp) -> Iterator[Room]:
    """Of every pane and list in sight."""
    screen = app.screen
    lines = [strip.text for strip in screen._compositor.render_strips(size=app.size)]
    for pane in screen.query("Pane, RegionList, RolloutList"):
        place = pane.content_region
        if place.area and all(widget.display for widget in pane.ancestors_with_self if isinstance(widget, Widget)):
            rows = [lines[y][place.x : place.right].rstrip() for y in range(place.y, place.bottom)]
            written = max((number for number, row in enumerate(rows, 1) if row), default=0)
            ends = sum("…" in row for row in rows)
            yield Room(name=named(pane), place=place, written=written, hidden=hidden(pane), ends=ends)


def named(pane: Widget) -> str:
    return pane.id or type(pane).__name__


def hidden(pane: Widget) -> int:
    """Rows out of sight above and below."""
    assert isinstance(pane, ScrollView)
    return max(0, pane.virtual_size.height - pane.content_region.height)


def wasted(app: ConsoleApp) -> list[str]:
    """`steps is half empty (7 of 28 rows), log is cut`."""
    shown = list(rooms(app))
    return [
        f"{empty.name} is half empty ({empty.written} of {empty.place.height} rows), {cut.name} is cut"
        f" ({cut.hidden} rows hidden, {cut.ends} rows end in …)"
        for empty in shown
        if empty.half_empty
        for cut in shown
        if cut.takes_from(empty)
    ]


def planted() -> list[RegionView]:
    """A fleet with a region in each of four situations: what the other four show is laid out as one of these."""
    drawn, kinds = random.Random(18), ("throttled", "differs", "stopped", "away")
    return [
        trial.planted(kind, trial.region(name, 2), drawn, "ana@ops1", "bob@tower")[0]
        for kind, name in zip(kinds, trial.NAMES, strict=False)
    ]


FLEETS = {"twenty": (twenty, 3), "planted": (planted, 4)}  # and how many of its regions are looked at


async def looked_at(views: Sequence[RegionView], regions: int, size: tuple[int, int]) -> list[str]:
    results = []
    async with running_app(s.ScriptedCockpit(*views), size=size) as (app, pilot):
        for _ in range(regions):
            for name, key in SCREENS.items():
                await pilot.press(key)
                await settle(pilot)
                assert isinstance(app.screen, BaseScreen)
                results += [f"{app.screen.current_region} {name}: {each}" for each in wasted(app)]
            await pilot.press("1", "j")
    return results


@pytest.mark.parametrize("size", SIZES, ids="{0[0]}x{0[1]}".format)
@pytest.mark.parametrize("fleet", FLEETS)
async def test_no_pane_is_half_empty_while_another_cuts(fleet: str, size: tuple[int, int]) -> None:
    views, regions = FLEETS[fleet]
    results = await looked_at(views(), regions, size)
    assert not results, "\n".join(results)


async def test_panes_of_a_fixed_height_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RolloutScreen, "_share_rows", lambda screen: None)
    async with running_app(s.ScriptedCockpit(*twenty()), size=(200, 60)) as (app, pilot):
        await pilot.press("2")
        await settle(pilot)
        (seen,) = wasted(app)
        assert seen.startswith("steps is half empty (7 of 28 rows), log is cut")


async def test_a_narrow_screen_is_laid_out_as_one_from_its_first_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    wide: list[str] = []
    plain = BaseScreen._refresh_layout

    def refresh(screen: BaseScreen, size: Size | None = None, scroll: bool = False) -> None:
        if not screen.has_class("-narrow"):
            wide.append(screen.name_of)
        plain(screen, size, scroll)

    monkeypatch.setattr(BaseScreen, "_refresh_layout", refresh)
    async with running_app(s.ScriptedCockpit(s.live(s.US), s.at_gate(s.EU)), size=(80, 24)) as (app, pilot):
        for key in SCREENS.values():
            await pilot.press(key)
            await settle(pilot)
        assert app.screen.has_class("-narrow")
    assert not wide
