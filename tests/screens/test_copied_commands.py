"""Every number on a pane is printed by a command that `y` copies there: each line is run against the same regions."""

import asyncio
import json
import re
import shlex
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from textual.content import Content

from console.cli import wiring
from console.runner.view import Cockpit
from console.tui.app import ConsoleApp
from console.tui.panes.pane import Pane
from console.tui.screens.base import BaseScreen
from console.tui.screens.home import HomeScreen
from tests.cli.conftest import CHANGE, World
from tests.screens import recorded as r
from tests.screens import scripted as s
from tests.screens.harness import settle

pytestmark = pytest.mark.slow

SIZE = (200, 60)
UNITS = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
SECONDS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
OCTETS = {"B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownPane:
    """What stands in a pane, and the lines that `y` copies there."""

    screen: str
    pane: str
    text: str
    lines: tuple[str, ...]


class Screens:
    """Stands in for the terminal: visits every pane of the region and copies its commands."""

    def __init__(self, region: str) -> None:
        self._region = region
        self.shown: list[ShownPane] = []

    def __call__(self, cockpit: Cockpit, **options: Any) -> int:
        asyncio.run(self._visit(cockpit, str(options["title"])))
        return 0

    async def _visit(self, cockpit: Cockpit, title: str) -> None:
        app = ConsoleApp(cockpit, title=title, repaint_seconds=0.02)
        async with app.run_test(size=SIZE) as pilot:
            seen: dict[str, object] = {}
            while seen != (seen := dict(cockpit.views)):  # until all that the regions have stored has been read
                await pilot.pause(0.5)
            await settle(pilot)
            while isinstance(app.screen, BaseScreen) and app.screen.current_region != self._region:
                await pilot.press("down")
                await settle(pilot)
            for key in "12345":
                if key != "1":
                    await pilot.press(key)
                await pilot.pause(0.2)
                await settle(pilot)
                screen = app.screen
                assert isinstance(screen, BaseScreen)
                around: list[str] = []
                for pane in screen.query(Pane):
                    if pane.display and pane.region.area:
                        pane.focus()
                        await pilot.pause()
                        around += await self._copy(app, pane, screen)
                if isinstance(screen, HomeScreen):
                    screen.list.focus()
                    await pilot.pause()
                    around = list(await self._copied(app, screen))
                self.shown.append(
                    ShownPane(
                        screen=screen.name_of, pane="", text=_above(app, screen), lines=tuple(dict.fromkeys(around))
                    )
                )

    async def _copy(self, app: ConsoleApp, pane: Pane, screen: BaseScreen) -> tuple[str, ...]:
        lines = await self._copied(app, screen)
        title = Content.from_markup(str(pane.border_title)).plain
        text = f"{title}\n{pane.text}"
        self.shown.append(ShownPane(screen=screen.name_of, pane=pane.id or "", text=text, lines=lines))
        return lines

    async def _copied(self, app: ConsoleApp, screen: BaseScreen) -> tuple[str, ...]:
        """What `y` copies, pressed so often that it begins anew."""
        lines = screen.copied_commands()
        copied = []
        for _ in lines:
            screen.action_copy()
            await asyncio.sleep(0.02)
            copied.append(app.clipboard)
        assert tuple(copied) == lines
        return lines


def _above(app: ConsoleApp, screen: BaseScreen) -> str:
    """What stands around the panes: needs, the list and its tally, or the head of a region."""
    strips = app.screen._compositor.render_strips(size=app.size)
    panes = [pane.region for pane in screen.query(Pane) if pane.display]
    lines = [strip.text for y, strip in enumerate(strips) if y and not any(p.y <= y < p.bottom for p in panes)]
    return "\n".join(lines[:-1])  # without the keys


NUMBER = re.compile(
    r"(?P<day>\b\d{4}-\d\d-\d\d\b|\b\d\d-\d\d\b)|(?P<clock>\b\d\d:\d\d(?::\d\d)?)"
    r"|(?P<span>\b\d+(?:\.\d+)?~? ?(?:d|h|min|m|s)\b(?: \d+ (?:h|min|m|s)\b)?)"
    r"|(?P<size>\b\d+(?:\.\d+)? (?:B|kB|MB|GB|TB)\b)|(?P<share>\b\d+%)|(?P<count>(?<![\w.,])\d[\d,]*(?:\.\d+)?[kMGT]?\b)"
)


class Printed:
    """All numbers of what a command has printed as JSON."""

    def __init__(self, output: str, now: float) -> None:
        self.text, self._now = output, now
        self.numbers: set[float] = set()
        self.moments: set[float] = set()
        self._take(json.loads(output) if output.startswith("{") else output)

    def _take(self, value: object) -> None:
        match value:
            case dict():
                for each in value.values():
                    self._take(each)
            case list():
                self.numbers.add(len(value))
                for each in value:
                    self._take(each)
            case bool() | None:
                pass
            case int() | float():
                self.numbers.add(float(value))
                if 1e9 < value < 4e9:
                    self.moments |= {float(value)}
            case str():
                self.numbers |= {
                    float(item.replace(",", "")) for item in re.findall(r"\d[\d,]*(?:\.\d+)?(?<!,)", value)
                }
            case _:
                raise AssertionError(value)

    def has(self, result: re.Match[str]) -> bool:
        text = result.group()
        match result.lastgroup:
            case "day":
                days = {datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d") for at in self.moments}
                return text in self.text or any(day.endswith(text) for day in days)
            case "clock":
                form = "%H:%M:%S" if text.count(":") == 2 else "%H:%M"
                return text in self.text or any(
                    datetime.fromtimestamp(at, UTC).strftime(form) == text for at in self.moments
                )
            case "span":
                return self._has_span(text)
            case "size":
                number, unit = text.split()
                return self._near(float(number) * OCTETS[unit], OCTETS[unit] * _precision(number))
            case "share":
                return self._near(float(text[:-1]), 0.51) or self._near(float(text[:-1]) / 100, 0.0051)
            case _:
                digits = text.rstrip("kMGT").replace(",", "")
                unit = UNITS.get(text[-1], 1.0)
                return self._near(float(digits) * unit, unit * _precision(digits))

    def _has_span(self, text: str) -> bool:
        parts = re.findall(r"(\d+(?:\.\d+)?) ?(d|h|min|m|s)", text)
        seconds = sum(float(number) * SECONDS[unit] for number, unit in parts)
        last, unit = parts[-1]
        slack = SECONDS[unit] * max(
            _precision(last), 0.51 if unit == "s" and "." not in last else 1.0 if unit != "s" else 0.0
        )
        ages = {abs(self._now - at) for at in self.moments}
        hours = {number * 3600 for number in self.numbers} | {number * 86400 for number in self.numbers}
        return any(abs(number - seconds) <= slack for number in self.numbers | ages | hours)

    def _near(self, number: float, slack: float) -> bool:
        return any(abs(each - number) <= slack for each in self.numbers)


def _precision(digits: str) -> float:
    """Half of the last digit's worth: what rounding may have changed."""
    return 0.51 * 10 ** -len(digits.partition(".")[2])


def missing(world: World, shown: ShownPane, known: dict[str, Printed]) -> list[str]:
    """Numbers of a pane that none of its commands prints. known: what commands of panes before it have printed"""
    for line in shown.lines:
        if line not in known:
            done = world.call(*shlex.split(line)[1:])
            assert done.exit_code == 0, (line, done.output)
            known[line] = Printed(done.stdout, s.NOON)
    printed = [known[line] for line in shown.lines]
    scales = re.compile(r"^ *[\d.]+[kMGT]?(?: ?s)?[│└].*$", re.MULTILINE)  # of a chart: no figure of the region
    text = re.sub(r"\S*…", "", scales.sub("", shown.text))  # what is cut is not a number
    return [item.group() for item in NUMBER.finditer(text) if not any(each.has(item) for each in printed)]


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    """Both regions live, a change pending, and the moment that the screens are drawn at."""
    monkeypatch.setenv("CONSOLE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(wiring, "why_no_screen", lambda: "")
    monkeypatch.setattr(time, "time", lambda: s.NOON)
    its_world = World(tmp_path / "project")
    assert its_world.call("apply", "--yes", "--quiet").exit_code == 0
    its_world.write(CHANGE)
    return its_world


def begin(world: World, situation: str) -> None:
    """Put region us into the situation."""
    region = world.regions["us"]
    if situation != "pending":
        world.call("apply", "--quiet")
    region.samples[:] = r.samples(backfill=situation == "slow")
    if situation in ("slow", "paused", "failed"):
        view = r.slow()
        region.disk.stored[:] = [event for event in region.disk.stored if event.rollout == "web-1"]
        region.disk.stored += view.events
        stored = {"paused": "paused", "failed": "failed"}.get(situation, "")
        until = s.NOON + 43 * 3600 if stored else 0.0
        region.disk.status = replace(view.status, held=stored, why="paused by ana" if stored else "", until=until)


@pytest.mark.parametrize("situation", ["pending", "gate", "slow", "paused", "failed"])
def test_every_number_of_a_pane_is_printed_by_a_command_that_y_copies(world: World, situation: str) -> None:
    begin(world, situation)
    world.screen = screens = Screens("us")
    assert world.call().exit_code == 0
    assert {"fleet", "rollout", "plan", "gate", "history"} == {shown.screen for shown in screens.shown}
    assert sum(len(NUMBER.findall(shown.text)) for shown in screens.shown) > 100
    known = dict[str, Printed]()
    for shown in screens.shown:
        assert not missing(world, shown, known), f"{shown.screen} {shown.pane} {shown.lines}\n{shown.text}"


def test_a_number_that_no_command_prints_is_noticed(world: World) -> None:
    begin(world, "slow")
    lines = ("console show web-8 --region us --output json",)
    right = ShownPane(screen="rollout", pane="slow", text="lag 12 m 05 s, 62,500 rows, 131k", lines=lines)
    wrong = replace(right, text="lag 13 m 05 s, 62,501 rows, 132k")
    assert missing(world, right, {}) == []
    assert missing(world, wrong, {}) == ["13 m 05 s", "62,501", "132k"]
