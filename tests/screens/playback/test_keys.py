"""The keys of a playback on every screen, its line, and that no key acts on what has happened."""

import asyncio
import re
from pathlib import Path

import pytest

from console.runner.recording.player import STORED_ONLY, Playback
from console.runner.recording.reader import open_recording
from tests.runner.recording.test_playback import paused, rolled_out, spaced
from tests.screens.harness import running_app, screen_text, settle, toast_text

pytestmark = pytest.mark.slow
SCREENS = ("2", "3", "4", "5", "1")


async def playback(folder: Path, *, playing: bool = False) -> Playback:
    path, _ = await rolled_out(folder)
    player = Playback(open_recording(path), "console playback 'my night.jsonl'", clock=lambda: 0.0)
    if not playing:
        player.toggle()
    return player


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (200, 60)], ids="{0[0]}x{0[1]}".format)
async def test_banner_and_line_say_that_it_is_a_recording_on_every_screen(
    size: tuple[int, int], tmp_path: Path
) -> None:
    async with running_app(await playback(tmp_path), size=size) as (app, pilot):
        for key in SCREENS:
            await pilot.press(key)
            await settle(pilot)
            lines = screen_text(app).splitlines()
            assert "PLAYBACK" in lines[0], (key, lines)
            assert "‖ ×1 2026-09-21 14:13:20Z" in lines[-2], (key, lines)
            assert "space play" in lines[-1], (key, lines)
            assert not any(word in lines[-1] for word in ("promote", "start", "mark", "refresh"))
            assert "next  " not in lines[-3]  # the coach names keys that act


async def test_decisions_speed_pause_and_times_by_keys_alone(tmp_path: Path) -> None:
    player = await playback(tmp_path)
    async with running_app(player, size=(200, 60)) as (app, pilot):

        async def after(*keys: str) -> str:
            await pilot.press(*keys)
            await settle(pilot)
            return screen_text(app)

        assert "‖ ×5" in await after("greater_than_sign", "greater_than_sign")
        assert "‖ ×2" in await after("less_than_sign")
        shown = await after("space")
        assert "▶ ×2" in shown
        assert "space pause" in shown
        assert "‖ ×2" in await after("space")
        for _ in range(20):
            shown = await after("full_stop")
            if re.search("us: r2 (is )?live", shown.splitlines()[-2]):  # an event, or a state that was adopted whole
                break
        assert "◆ at the gate" in shown
        at = player.now()
        await after("full_stop")
        assert player.views["us"].live == "r2"
        await after("comma")
        assert player.now() < at or "at the gate" in screen_text(app)
        before = player.now()
        await after("f")
        assert player.position.at == pytest.approx(min(before + 60, player.position.ends))
        while player.position.at < player.position.ends:  # how long a recording takes depends on the machine
            await after("f")
        assert "■" in screen_text(app).splitlines()[-2]
        await after("full_stop")
        assert "there is no further decision" in toast_text(app)
        while player.position.at > player.position.begins:
            await after("b")
        await after("comma")
        assert "there is no decision before" in toast_text(app)
        await after("a", *"14:13:22", "enter")
        assert player.position.at == pytest.approx(player.position.begins + 2)
        assert "14:13:22Z" in screen_text(app).splitlines()[0]
        shown = await after("a", *"noon", "enter")
        assert "'noon' is not a time" in shown
        await after("escape")
        await after("y")
        assert "copied: console playback 'my night.jsonl' --at 2026-09-21T14:13:22Z" in toast_text(app)


@pytest.mark.parametrize("screen", SCREENS)
async def test_no_key_acts_and_each_says_why(screen: str, tmp_path: Path) -> None:
    player = await playback(tmp_path)
    async with running_app(player) as (app, pilot):
        await player.seek(player.position.ends)
        await pilot.press(screen)
        await settle(pilot)
        for key in ("s", "p", "P", "R", "X", "t", "D", "T", "r", "w", "V"):
            app.clear_notifications()
            await pilot.press(key)
            await settle(pilot)
            why = "this is a recording" if key != "V" or screen == "5" else "5 leads there"
            assert why in toast_text(app), key
            assert len(app.screen_stack) == (1 if screen == "1" else 2), key


async def test_the_rollouts_of_the_past_are_those_of_the_time_that_is_shown(tmp_path: Path) -> None:
    player = await playback(tmp_path)
    position = player.position
    async with running_app(player, size=(200, 60)) as (app, pilot):
        await pilot.press("5")
        for key, at, rolled_back in (
            ("", position.begins, False),
            ("f", position.ends, True),
            ("b", position.begins, False),
            ("f", position.ends, True),
        ):
            while player.position.at != at:  # more than a minute away, if this machine was busy while it was recorded
                await pilot.press(key)
                await settle(pilot)
            async with asyncio.timeout(60):  # the rollouts are read beside the screen
                while ("rolled back" in screen_text(app)) is not rolled_back:
                    await pilot.pause(0.1)


async def test_going_back_draws_what_was_drawn_before(tmp_path: Path) -> None:
    path, _ = await rolled_out(tmp_path)
    player = paused(spaced(path))
    begins, ends = player.position.begins, player.position.ends
    times = [begins + (ends - begins) * part / 8 for part in range(9)]
    async with running_app(player, size=(200, 60)) as (app, pilot):
        for screen in ("2", "1"):
            await pilot.press(screen)

            async def shown(at: float) -> str:
                await player.seek(at)
                app.repaints.outdate()
                await settle(pilot)
                # an hour's line is drawn anew with its region alone
                return re.sub("[ ─⠀-⣿]+", " ", screen_text(app))

            there = [await shown(at) for at in times]
            back = [await shown(at) for at in reversed(times)]
            for before, again in zip(there, back[::-1], strict=True):
                different = [
                    pair for pair in zip(before.splitlines(), again.splitlines(), strict=True) if pair[0] != pair[1]
                ]
                assert not different


async def test_help_lists_the_keys_of_a_playback_only_there(tmp_path: Path) -> None:
    async with running_app(await playback(tmp_path), size=(100, 90)) as (app, pilot):
        await pilot.press("question_mark")
        await settle(pilot)
        assert "playback: on to the next decision" in screen_text(app)
        assert "mark the region" not in screen_text(app)


async def test_what_a_recording_does_not_hold_is_reported(tmp_path: Path) -> None:
    path, _ = await rolled_out(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0].replace('"watched"', '"stored"'), *lines[1:-4], '{"at":17']))
    player = Playback(open_recording(path), "console playback x", clock=lambda: 0.0)
    async with running_app(player, size=(200, 60)) as (app, pilot):
        assert STORED_ONLY in screen_text(app)
        await player.seek(player.position.ends)
        app.repaints.outdate()
        await settle(pilot)
        assert "it ends here: line" in screen_text(app)
        assert "is cut short" in screen_text(app)


async def test_escapes_in_a_recording_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path, _ = await rolled_out(tmp_path)
    text = path.read_text().replace("ada@laptop", "ada\\u001b[2J\\u202e").replace('"web"', '"we\\u001b]0;x\\u0007b"')
    path.write_text(text)
    player = Playback(open_recording(path), "console playback x", clock=lambda: 0.0)
    async with running_app(player, size=(200, 60)) as (app, pilot):
        for at in (0.0, 4e9):
            for key in SCREENS:
                await player.seek(at)
                await pilot.press(key)
                await settle(pilot)
                assert not {"\x1b", "\x07", "\u202e"} & set(screen_text(app))
