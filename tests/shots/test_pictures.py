"""The pictures of the documentation are what `make shots` draws, and a recorded fleet fills a large screen."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from console.tui.panes.pane import Pane
from tests.screens.harness import screen_text
from tests.shots.draw import MOVIE, drawn, moment, stage
from tests.shots.story import FLEET, IN_MIDST, LARGE, TOUR

pytestmark = pytest.mark.slow
MOVIE_BYTES = 500_000


@pytest.fixture(scope="module")
def made() -> dict[Path, str]:
    return asyncio.run(drawn())


def test_the_pictures_are_what_the_command_draws(made: dict[Path, str]) -> None:
    stale = [path.name for path, svg in made.items() if not path.exists() or path.read_text(encoding="utf-8") != svg]
    assert not stale, "make shots draws them anew"
    assert {path for path in TOUR.glob("*.svg")} == {path for path in made if path.parent == TOUR}


def test_every_picture_is_on_the_page_and_is_drawn_without_scripts(made: dict[Path, str]) -> None:
    page = (TOUR.parent / "tour.md").read_text(encoding="utf-8")
    for path, svg in made.items():
        assert path == MOVIE or f"(tour/{path.name})" in page, path.name
        assert "<script" not in svg
        ElementTree.fromstring(svg)
    assert len(made[MOVIE].encode()) < MOVIE_BYTES
    assert "docs/console.svg" in (TOUR.parents[1] / "README.md").read_text(encoding="utf-8")


async def test_a_recorded_fleet_of_twenty_regions_fills_a_large_screen() -> None:
    async with stage(FLEET, LARGE) as here:
        at = moment(here.reader, IN_MIDST.after, IN_MIDST.seconds)
        assert len(here.player.views) == 20
        for keys in ((), ("down", "2")):
            await here.home()
            await here.show(at, keys)
            lines = screen_text(here.app).splitlines()
            assert sum(bool(re.search(r"[^\s│╭╮╰╯─]", line)) for line in lines) >= 48, "\n".join(lines)
            panes = [inside(pane, lines) for pane in here.app.screen.query(Pane) if pane.region.area]
            empty = [rows for rows in panes if sum(bool(row.strip()) for row in rows) < len(rows) / 2]
            cut = [row for rows in panes for row in rows if row.rstrip().endswith("…")]
            assert not (empty and cut), "\n".join([*lines, *cut])


def inside(pane: Pane, lines: Sequence[str]) -> list[str]:
    """The rows of a pane without its border and scrollbar."""
    left, top, width, height = pane.region
    return [line[left + 1 : left + width - 2] for line in lines[top + 1 : top + height - 1]]
