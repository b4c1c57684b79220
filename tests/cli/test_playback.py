"""`console watch --record`, `console --record` and `console playback`, over regions in memory."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.model.event import Accepted, BatchStarted
from console.model.measured import FeedSample
from console.model.status import replay
from console.runner.recording.player import STORED_ONLY, Playback
from console.runner.view import Position, RegionView
from tests.cli.conftest import World
from tests.runner.recording.test_playback import BEGAN, spaced


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if there were one."""
    for module in ("console.cli.wiring", "console.cli.commands.rollout.playback"):
        monkeypatch.setattr(f"{module}.why_no_screen", lambda: "")


class Screen:
    """Goes to these times of what is played, and keeps what there is to see."""

    def __init__(self, *at: float | None) -> None:
        self._at = at
        self.positions: list[Position] = []
        self.views: list[Mapping[str, RegionView]] = []
        self.title = ""

    def __call__(self, cockpit: Playback, *, title: str = "", **more: Any) -> int:
        self.title = title
        asyncio.run(self._look(cockpit))
        return 0

    async def _look(self, cockpit: Playback) -> None:
        cockpit.toggle()
        for at in self._at or (None,):
            await cockpit.seek(cockpit.now() if at is None else at)
            self.positions.append(cockpit.position)
            self.views.append(dict(cockpit.views))
        await cockpit.close()


def recorded(world: World, *words: str) -> Path:
    path = world.root.parent / "night.jsonl"
    done = world.call("watch", "--record", str(path), *words)
    assert (done.exit_code, path.exists()) == (0, True), done.output
    return path


@pytest.mark.slow
def test_watch_records_what_it_receives_and_playback_shows_it(deployed: World) -> None:
    path = recorded(deployed)
    first = json.loads(path.read_text().splitlines()[0])
    assert (first["format"], first["pipeline"], first["tool"][:8]) == ("console recording", "web", "console ")
    screen = deployed.screen = Screen(4e9)
    done = deployed.call("playback", str(path))
    assert done.exit_code == 0, done.output
    shown, position = screen.views[0], screen.positions[0]
    assert screen.title == "web"
    assert [view.status.state for view in shown.values()] == ["live", "live"]
    assert shown["eu"].plan is not None
    assert shown["eu"].events[-1].rollout == shown["eu"].status.rollout
    assert (position.missing, position.at) == ("", position.ends)
    assert position.command.startswith(f"console playback {path} --at 20")


@pytest.mark.slow
def test_a_recording_goes_on_through_the_gate(deployed: World) -> None:
    assert deployed.call("apply", "--region", "us").exit_code == 3
    path = deployed.root.parent / "gate.jsonl"
    done = deployed.call("watch", "--record", str(path), "--timeout", "0.3")
    assert (done.exit_code, "still under way" in done.output) == (1, True), done.output
    assert '"ended":true' in path.read_text().splitlines()[-1]


@pytest.mark.slow
def test_playback_begins_where_it_is_asked_to(deployed: World) -> None:
    path = recorded(deployed)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([json.dumps({**json.loads(lines[0]), "began": BEGAN}) + "\n", *lines[1:]]))
    spaced(path)
    for words, second in (
        (["--at", "14:15"], 100),
        (["--at", "+2m"], 120),
        (["--at", "2026-09-21T14:14:20Z"], 60),
        ([], 0),
    ):
        screen = deployed.screen = Screen()
        assert deployed.call("playback", str(path), *words).exit_code == 0
        assert round(screen.positions[0].at - BEGAN) == second
    for moment, why in (
        ("25:00", "is not a time"),
        ("noon", "is not a time"),
        ("13:00", "is not in the recording"),
        ("2025-01-01", "is not in"),
    ):
        done = deployed.call("playback", str(path), "--at", moment)
        assert (done.exit_code, why in done.output) == (64, True), done.output


def test_a_rollout_that_nobody_recorded_is_played_from_what_its_region_has_stored(deployed: World) -> None:
    region = deployed.regions["us"]
    events = tuple(r for r in region.disk.stored if r.rollout == region.disk.status.rollout)
    region.samples = [FeedSample(at=events[0].at + at, feed="", rows=7.0, lag=1.0, behind=3) for at in (-30, 2, 500)]
    screen = deployed.screen = Screen(events[0].at, events[6].at, events[-1].at, 4e9)
    rollout = events[0].rollout
    done = deployed.call("playback", "--rollout", rollout, "--region", "us")
    assert done.exit_code == 0, done.output
    for at, views in zip((events[0].at, events[6].at, events[-1].at), screen.views, strict=False):
        view, messages = views["us"], [recorded for recorded in events if recorded.at <= at]
        assert replace(view.status, lag_rows=0, lag_seconds=0.0) == replay(messages)
        assert view.events == tuple(messages)
        assert view.heard == at
    assert isinstance(screen.views[0]["us"].events[0].event, Accepted)
    assert [len(views["us"].samples) for views in screen.views] == [1, 2, 2, 3]
    assert screen.views[-1]["us"].status.lag_rows == 3  # of the last sample: events hold none
    assert screen.views[-1]["us"].accepted == region.disk.plan
    assert all(position.missing == STORED_ONLY for position in screen.positions)
    assert screen.positions[0].command.startswith(f"console playback --rollout {rollout} --region us --at ")
    assert any(isinstance(recorded.event, BatchStarted) for recorded in events)


@pytest.mark.slow
def test_what_cannot_be_played_is_reported(deployed: World, tmp_path: Path) -> None:
    deployed.screen = Screen()
    for words, code, item in (
        ((), 64, "name a recording, or a rollout"),
        (("x", "--rollout", "web-1"), 64, "name a recording, or a rollout"),
        ((str(tmp_path / "none"),), 65, "No such file"),
        (("--rollout", "web-77", "--region", "us"), 64, "us knows no rollout 'web-77'"),
        (("--rollout", "web-1"), 64, "say which region"),
        (("x", "--speed", "0"), 64, "speed"),
    ):
        done = deployed.call("playback", *words)
        assert (done.exit_code, item in done.output) == (code, True), (words, done.output)
    done = deployed.call("watch", "--record", str(tmp_path))
    assert (done.exit_code, "is there already" in done.output) == (64, True), done.output


@pytest.mark.slow
def test_the_screen_records_too(deployed: World, tmp_path: Path) -> None:
    async def look(fleet: Any) -> None:
        await fleet.refresh()
        await fleet.close()

    def screen(cockpit: Any, **more: Any) -> int:
        asyncio.run(look(cockpit))
        return 0

    deployed.screen = screen
    done = deployed.call("--record", str(tmp_path / "r"))
    assert done.exit_code == 0, done.output
    played = deployed.screen = Screen(4e9)
    assert deployed.call("playback", str(tmp_path / "r")).exit_code == 0
    assert played.views[0]["us"].plan is not None
    for words in (("status", "--record", "x"), ("--record", str(tmp_path / "r")), ("--headless", "--record", "x")):
        assert deployed.call(*words).exit_code == 64
