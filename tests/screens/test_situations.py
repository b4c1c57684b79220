"""Eight planted situations: the first screen at 80 × 24 shows region, cause, due date or age, and the key that applies. And a fleet of
twenty regions at 200 × 60 fills the screen.
"""

import re
from dataclasses import replace
from typing import Any

import pytest

from console.model.event import Ailing, BatchDone, Checked, Logged, Recorded
from console.model.incident import TryFailed, WaitBegan
from console.model.measured import FeedSample
from console.model.region import Region
from console.runner.view import RegionView
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text

pytestmark = pytest.mark.slow

HOUR = 3600.0


def rolling(name: str = "jp", **changes: Any) -> RegionView:
    view = s.running(replace(s.EU, name=name))
    return replace(view, status=replace(view.status, **changes))


def throttled() -> RegionView:
    why = "lag 71 s is over 60 s"
    waits = WaitBegan(step="s", cause="lag", why=why, since=s.NOON - 720)
    return rolling(why=why, waiting=waits)


def short_of_memory() -> RegionView:
    tried = TryFailed(
        step="backfill/requests/parse_requests", label="11-16", first=1, last=1, cause="memory", why="OOM", number=2, of=3,
        rows=250_000, rows_next=62_500, seconds=20.0,
    )  # fmt: skip
    view = rolling()
    steps = tuple(replace(step, tries=2) if step.state == "running" else step for step in view.status.steps)
    failed = Recorded("web-2", 4, s.NOON - 60, Logged("batch failed", "warning", tried))
    return replace(view, status=replace(view.status, steps=steps), events=(failed,))


def differing() -> RegionView:
    view = s.at_gate(replace(s.EU, name="jp"))
    wrong = Checked(table="requests", check="rows per day", ok=False, detail="2026-10-31: 61,003 and 61,004")
    status = replace(view.status, checks=(wrong, *view.status.checks[1:]), changed=s.NOON - 600)
    return replace(view, status=status)


def stopped() -> RegionView:
    feed = Ailing(
        feed="orders",
        target="requests",
        path="p",
        tries=9,
        standing=True,
        why="landing was replaced",
        code="E_REPLACED",
    )
    view = s.live(replace(s.EU, name="jp"))
    return replace(view, status=replace(view.status, ailing=(feed,), lag_rows=1_200_000, lag_seconds=8 * HOUR))


def away() -> RegionView:
    return replace(rolling(), link="unreachable", link_why="ssh: timed out", heard=s.NOON - 11 * HOUR)


def paused() -> RegionView:
    return rolling(held="paused", why="paused by ana", changed=s.NOON - 2400, until=s.NOON + 43 * HOUR)


def slow() -> RegionView:
    view = s.at_gate(replace(s.EU, name="jp"))
    check = Checked(table="top_errors", check="latency", ok=None, detail="1.9 times as slow as r1")
    return replace(view, status=replace(view.status, checks=(*view.status.checks, check), changed=s.NOON - 7800))


@pytest.mark.parametrize(
    ("view", "parts"),
    [
        (throttled(), ("jp", "lag 71 s is over 60 s", "for 12 m", "2 why slow")),
        (short_of_memory(), ("jp", "11-16 failed 2 times: memory", "for 1 m", "2 why slow")),
        (differing(), ("jp", "1 of 4 checks differ", "2026-10-31: 61,003 and 61,004", "for 10 m", "4 gate")),
        (stopped(), ("jp", "feed orders stopped [E_REPLACED]", "landing was replaced", "due in 6 d 16 h", "enter why")),
        (away(), ("jp", "ssh: timed out", "a batch may be running", "for 11 h", "r reach it")),
        (paused(), ("jp", "paused by ana", "due in 1 d 19 h", "p resume")),
        (slow(), ("jp", "1 of 5 checks inconclusive", "1.9 times as slow as r1", "for 2 h 10 m", "4 gate")),
        (s.live(replace(s.EU, name="jp")), ("jp", "✓ all is well", "the way back to r1 ends in 3 d", "R back")),
        (
            replace(s.live(replace(s.EU, name="jp")), attended=False),
            ("! no agent runs in 1 of 2 live regions: live feeds stand still", "no agent runs", "R back"),
        ),
    ],
    ids=["throttled", "memory", "differs", "stopped", "away", "paused", "slow", "well", "unattended"],
)
async def test_the_first_screen_shows_region_cause_due_or_age_and_a_key_that_fits(
    view: RegionView, parts: tuple[str, ...]
) -> None:
    async with running_app(s.ScriptedCockpit(s.live(s.US), view), size=(80, 24)) as (app, pilot):
        await pilot.press("j")
        await pilot.pause(0.3)
        text = screen_text(app)
        flat = " ".join(re.sub(r"[│╭╮╰╯─]", " ", text).split())
        for part in parts:
            assert part in flat, f"{part!r} is not on\n{text}"


def twenty() -> list[RegionView]:
    """A recorded fleet: rollouts at every stage, an hour of samples, and what happened."""
    views = []
    for number in range(20):
        name = f"r{number:02}"
        region = Region(name=name, warehouse=f"/w/{name}", environment="prod", wave=1 + number // 7, canary=number == 0)
        match number % 5:
            case 0:
                view = s.live(region)
            case 1:
                view = s.at_gate(region)
            case 2 | 3:
                view = s.running(region, 20_000 * number)
            case _:
                view = s.waiting(region)
        samples = tuple(
            FeedSample(
                at=s.NOON - 3600 + 10 * at, feed=feed, rows=100.0 + (at * 7 + number) % 50, lag=0.5 + at % 9,
                behind=at % 40,
            )
            for at in range(0, 360, 6)
            for feed in ("", "parse_requests", "hourly")
        )  # fmt: skip
        events = tuple(
            Recorded(
                "web-2", at, s.NOON - 900 + 40 * at + number,
                BatchDone(step="backfill/requests", label=f"2026-10-{at:02}", position=at, of=20, rows_in=61_000,
                          rows_out=61_000, bytes=1 << 24, seconds=12.0, version=at),
            )
            for at in range(1, 20)
        )  # fmt: skip
        views.append(replace(view, samples=samples, events=events))
    return views


async def test_twenty_regions_fill_a_large_screen() -> None:
    async with running_app(s.ScriptedCockpit(*twenty()), size=(200, 60)) as (app, pilot):
        await pilot.press("j")
        await pilot.pause(0.3)
        lines = screen_text(app).splitlines()
        written = [line for line in lines if re.search(r"\w", line)]
        assert len(written) >= 48, "\n".join(lines)
        assert sum("⣀" <= char <= "⣿" for line in lines for char in line) > 100
