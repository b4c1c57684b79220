"""The history screen: the rollouts of all regions, one in full, its verification, and the handover."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from textual.content import Content
from textual.pilot import Pilot
from textual.widgets import Input

from console.cli.root import cli
from console.cli.words import ScreenWords
from console.errors import Unreachable
from console.model.event import (
    Accepted,
    BatchDone,
    BatchStarted,
    Entered,
    Event,
    Logged,
    Paused,
    Promoted,
    Recorded,
    Resumed,
    StepStarted,
)
from console.model.note import Note, Noted
from console.model.receipt import AuditProgress, Finding, Past, Receipt
from console.model.status import Status
from console.model.tuning import Tuned, Tuning
from console.runner.view import plan_label
from console.tui.app import ConsoleApp
from console.tui.fleet.events import Happening, Happenings
from console.tui.history.rollouts import RolloutList
from console.tui.history.state import HistoryState, listed_rollouts
from console.tui.panes.pane import Pane
from console.tui.screens import history
from console.tui.screens.base import BaseScreen
from console.tui.screens.handover import HandoverScreen
from console.tui.screens.history import HistoryScreen
from console.tui.screens.palette import entries
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text, settle, toast_text

pytestmark = pytest.mark.slow

STEP = "backfill/requests/parse_requests"
DONE = BatchDone(
    step=STEP, label="d", position=12, of=12, rows_in=400_140, rows_out=400_140, bytes=9, seconds=300.0, version=4
)
EVENTS: tuple[Event, ...] = (
    Accepted(release="r2", was="r1", plan="9f2c41d07b", by="ada", host="laptop", steps=((STEP, 400_140),)),
    Entered("backfilling"),
    StepStarted(STEP),
    BatchStarted(step=STEP, label="d", first=1, last=12, of=12, rows=400_140),
    Logged("ada from ops2: lag none → 30", "info", Tuned(by="ada", host="ops2", tuning=Tuning(lag=30.0))),
    DONE,
    Paused("eve"),
    Resumed("eve"),
    Logged("note by ana from desk: x", "info", Noted(by="ana", host="desk", text="waits for \x1b[31mbob [b]")),
    Promoted(release="r2", was="r1", by="bob (SSH login from 192.0.2.7)", host="tower", version=7),
)
RECEIPTS = tuple(
    Receipt(
        rollout="web-2", step=STEP, target="requests", source="landing", day=f"2026-10-{31 - n}", fence=118, position=12,
        version=4, rows_in=33_345, checksum_in="1f2e", rows_out=33_345, checksum_out="3d4c", days=12,
    )
    for n in range(12)
)  # fmt: skip
OLDER = replace(
    Status(), rollout="web-1", release="r1", state="live", by="ada", decided_by="ada", started=s.NOON - 86_400
)


def finding(what: str, ok: bool | None, detail: str) -> Finding:
    return Finding(table="requests", step=STEP, what=what, ok=ok, detail=detail)


EQUAL, GONE = finding("receipts", True, "12 of 12 are there"), finding("source", None, "its log is gone")
DIFFERENT = finding("since", False, "version 9 (DELETE) removed rows \x1b[2J")


def report(number: int, *findings: Finding) -> AuditProgress:
    return AuditProgress(number=number, of=6, table="requests", step=STEP, what="target", found=findings)


@pytest.fixture
def cockpit() -> s.ScriptedCockpit:
    """Three regions that remember two rollouts each."""
    views = (s.live(s.US), s.running(s.EU), s.at_gate(s.AP))
    made = s.ScriptedCockpit(*views)
    for view in views:
        name = view.region.name
        made.rollouts[name] = (OLDER, view.status)
        events = tuple(Recorded("web-2", n + 1, s.NOON - 4000 + 60 * n, event) for n, event in enumerate(EVENTS))
        made.pasts[name, "web-2"] = Past(made.rollouts[name], events, RECEIPTS)
    made.reports = [report(1, EQUAL), report(2, GONE, DIFFERENT)]
    made.findings = (EQUAL, GONE, DIFFERENT, EQUAL)
    return made


async def read(pilot: Pilot[int], app: ConsoleApp) -> None:
    """Wait until the list and the chosen rollout have been read."""
    async with asyncio.timeout(30):
        while app.state.history.reading or not app.state.history.whole:
            await settle(pilot)


async def test_a_rollout_that_was_read_while_it_ran_is_read_again_when_a_step_has_ended(
    cockpit: s.ScriptedCockpit,
) -> None:
    began, ended = s.running(s.US), s.at_gate(s.US)
    whole = cockpit.pasts["us", "web-2"]
    cockpit.show(began)
    cockpit.rollouts["us"] = (OLDER, began.status)
    cockpit.pasts["us", "web-2"] = replace(whole, rollouts=cockpit.rollouts["us"], receipts=())
    async with running_app(cockpit, size=(200, 60)) as (app, pilot):
        await pilot.press("5")
        await read(pilot, app)
        await settle(pilot)
        assert "none yet: a step's receipts are written at its end." in screen_text(app)
        cockpit.pasts["us", "web-2"] = replace(whole, rollouts=(OLDER, ended.status))
        asked = cockpit.calls.count(("history", ("us", "web-2")))
        cockpit.show(ended)
        async with asyncio.timeout(30):
            while "400,140 rows in, 400,140 out" not in screen_text(app):
                await settle(pilot)
        assert cockpit.calls.count(("history", ("us", "web-2"))) == asked + 1


@pytest.mark.parametrize("size", [(80, 24), (200, 60)], ids="{0[0]}x{0[1]}".format)
async def test_the_rollouts_of_all_regions_are_listed_and_one_is_shown_in_full(
    size: tuple[int, int], cockpit: s.ScriptedCockpit
) -> None:
    async with running_app(cockpit, size=size) as (app, pilot):
        await pilot.press("5")
        await read(pilot, app)
        await settle(pilot)
        text = screen_text(app)
        assert "rollouts of all regions: 6" in text
        assert text.count("nothing → r1") == 3
        assert "web-2 in us" in text
        accepted = cockpit.views["us"].accepted
        assert accepted
        assert f"plan {plan_label(accepted)}" in text
        for item in (
            "accepted  ada from laptop (OS user)",
            "tuned (lag none → 30)",
            "noted: waits for \\x1b[31mbob [b]",
        ):
            assert item in text
        assert "promoted r2  bob from tower (SSH login from 192.0.2.7)" in text or size[0] == 80
        if size[0] > 80:
            assert "paused  eve (OS user)" in text
            assert "landing up to version 118 → requests version 4 · 12 days" in text
            assert "400,140 rows in, 400,140 out" in text
        await pilot.press("down")
        await settle(pilot)
        assert "web-2 in eu" in screen_text(app)
        assert ("history", ("eu", "web-2")) in cockpit.calls


async def test_verify_shows_its_progress_is_cancelled_by_the_same_key_and_keeps_what_it_found(
    cockpit: s.ScriptedCockpit,
) -> None:
    async with running_app(cockpit, size=(120, 36)) as (app, pilot):
        await pilot.press("5")
        await read(pilot, app)
        await pilot.press("V")
        await settle(pilot)
        text = screen_text(app)
        assert "verify  2 of 6" in text
        assert "V cancels it" in text
        assert "✗ differs" in text
        assert "? unknown" in text
        assert "\x1b[2J" not in text
        await pilot.press("1", "5")  # it goes on while other screens are looked at
        await settle(pilot)
        assert "V cancels it" in screen_text(app)
        await pilot.press("V")
        await settle(pilot)
        assert "cancelled at 2 of 6" in screen_text(app)
        assert cockpit.calls.count(("verify", ("us", "web-2"))) == 1
        cockpit.verified.set()
        await pilot.press("V")
        await settle(pilot)
        text = screen_text(app)
        assert "1 of 4 checks differ" in text
        assert "web-2: 1 of 4 checks differ" in toast_text(app)
        await pilot.press("y")
        assert app.clipboard == "console verify --rollout web-2 --regions us"


async def test_a_verification_that_fails_says_why(cockpit: s.ScriptedCockpit) -> None:
    cockpit.errors["verify"] = Unreachable("us: the link is gone")
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("5")
        await read(pilot, app)
        await pilot.press("V")
        await settle(pilot)
        assert "failed: us: the link is gone" in screen_text(app)


async def test_leaving_breaks_off_what_still_runs(cockpit: s.ScriptedCockpit) -> None:
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("5")
        await read(pilot, app)
        await pilot.press("V")
        await settle(pilot)
        assert app._history.runs(("us", "web-2"))
    assert not app._history.runs(("us", "web-2"))
    assert app._history.state.audits["us", "web-2"].outcome == "stopped"


async def test_a_region_that_gives_no_answer_is_named_and_the_others_are_listed(cockpit: s.ScriptedCockpit) -> None:
    cockpit.errors["history"] = Unreachable("no route")
    async with running_app(cockpit, size=(120, 36)) as (app, pilot):
        await pilot.press("5")
        await settle(pilot)
        async with asyncio.timeout(30):
            while app.state.history.reading:
                await settle(pilot)
        text = screen_text(app)
        assert "rollouts of all regions: 3 · not read: ap, eu, us" in text
        assert "not read: no route" in text
        del cockpit.errors["history"]
        await pilot.press("r")
        await read(pilot, app)
        await settle(pilot)
        assert "rollouts of all regions: 6" in screen_text(app)
        assert "not read" not in screen_text(app)


async def test_a_rollout_is_chosen_by_key_and_by_click_and_stays_chosen_when_one_is_added(
    cockpit: s.ScriptedCockpit,
) -> None:
    async with running_app(cockpit, size=(200, 60)) as (app, pilot):
        await pilot.press("5")
        await read(pilot, app)
        await settle(pilot)
        listed = app.screen.query_one(RolloutList)
        keys = [rollout.key for rollout in listed_rollouts(app.state.views, app.state.history)]
        await pilot.press("end")
        assert listed.chosen == keys[-1]
        await pilot.press("up", "up")
        assert listed.chosen == keys[-3]
        await pilot.press("pageup")
        assert listed.chosen == keys[0]
        await pilot.click(RolloutList, offset=(4, 3))  # the border is line 0
        assert listed.chosen == keys[2]
        await pilot.click(RolloutList, offset=(4, 0))
        assert listed.chosen == keys[2], "the border is no rollout"
        await pilot.click(RolloutList, offset=(4, 2), times=2)
        await settle(pilot)
        assert listed.chosen == keys[1]
        assert isinstance(app.focused, Pane), "a double click leads to the rollout in full"
        newest = replace(OLDER, rollout="web-3", started=s.NOON + 60)
        cockpit.rollouts["eu"] = (*cockpit.rollouts["eu"], newest)
        await pilot.press("r")
        async with asyncio.timeout(30):
            while "rollouts of all regions: 7" not in screen_text(app):
                await settle(pilot)
        assert listed.chosen == keys[1]


async def test_esc_leads_back_and_the_panes_take_turns(cockpit: s.ScriptedCockpit) -> None:
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("5", "right_square_bracket", "right_square_bracket")
        await settle(pilot)
        assert "what happened in all regions" in screen_text(app)
        await pilot.press("y")
        assert app.clipboard == "console history"
        await pilot.press("escape")
        assert not isinstance(app.screen, HistoryScreen)
        await pilot.press("V")
        assert "5 leads there" in toast_text(app)


def test_a_current_rollout_is_listed_as_its_view_has_it_now() -> None:
    view = s.running(s.EU)
    stale = replace(view.status, state="preparing")
    listed = listed_rollouts({"eu": view}, HistoryState(listed={"eu": (OLDER, stale)}))
    assert [(rollout.status.rollout, rollout.status.state) for rollout in listed] == [
        ("web-2", "backfilling"),
        ("web-1", "live"),
    ]


async def test_the_handover_is_shown_and_copied_from_every_screen(cockpit: s.ScriptedCockpit) -> None:
    view = s.at_gate(s.AP)
    note = Note(at=s.NOON - 60, by="ana", host="desk", text="waits for bob")
    cockpit.show(replace(view, status=replace(view.status, notes=(note,))))
    async with running_app(cockpit, words=ScreenWords(cli)) as (app, pilot):
        await settle(pilot)
        for typed in (("h",), ("2", "h"), ("colon", *"handover", "enter")):
            await pilot.press(*typed)
            await settle(pilot)
            assert isinstance(app.screen, HandoverScreen)
            assert "# Handover: web, 2026-11-02 12:00Z" in screen_text(app)
            await pilot.press("y")
            assert "copied: the handover" in toast_text(app)
            assert "→ `console promote --region ap`" in app.clipboard
            assert "**ap** web-2, ana: waits for bob" in app.clipboard
            await pilot.press("escape")


async def test_a_note_is_typed_behind_the_colon_and_begun_by_the_palette(cockpit: s.ScriptedCockpit) -> None:
    async with running_app(cockpit, words=ScreenWords(cli)) as (app, pilot):
        await pilot.press("colon", *"note waits for bob", "enter")
        await settle(pilot)
        assert cockpit.calls[-1] == ("note", ("us", "waits for bob"))
        assert "noted" in toast_text(app)
        await pilot.press("at")
        await settle(pilot)
        assert "console note --regions us 'waits for bob'" in screen_text(app)
        await pilot.press("escape", "colon", *"note --regions eu,ap x", "enter")
        await settle(pilot)
        assert [about for call, about in cockpit.calls if call == "note"][1:] == [("eu", "x"), ("ap", "x")]
        assert "noted with eu, ap" in toast_text(app)
        await pilot.press("colon", *"note", "enter")
        await settle(pilot)
        assert "Missing argument" in screen_text(app)
        await pilot.press("escape")
        assert isinstance(app.screen, BaseScreen)
        (begin,) = [call for name, _, call in entries(app.screen) if name == "Note"]
        begun = begin()
        assert isinstance(begun, Awaitable)
        await begun
        await settle(pilot)
        assert app.screen.query_one("#line", Input).value == "note --region us "


async def test_a_read_only_screen_leaves_no_note(cockpit: s.ScriptedCockpit) -> None:
    async with running_app(cockpit, words=ScreenWords(cli), readonly=True) as (app, pilot):
        await pilot.press("colon", *"note x", "enter")
        await settle(pilot)
        assert "read-only" in toast_text(app)
        assert "note" not in [call for call, _ in cockpit.calls]


def test_a_note_and_changed_limits_are_listed_with_who_made_them() -> None:
    events = tuple(Recorded("web-2", n + 1, s.NOON - 60 * (9 - n), event) for n, event in enumerate(EVENTS))
    lines = Happenings().of({"eu": replace(s.running(s.EU), events=events)})
    texts = {line.text.partition(":")[0]: line.by for line in lines}
    assert texts["note by ana from desk"] == "ana"
    assert texts["ada from ops2"] == "ada"
    assert texts["backfilling"] == ""


async def test_the_list_of_events_is_drawn_once_a_second_and_none_is_left_out(
    cockpit: s.ScriptedCockpit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred regions send new lines all the time: a key would often wait for the list."""
    drawn: list[int] = []
    draw = history.draw_events

    def counted(happenings: Sequence[Happening], *args: Any, **options: Any) -> list[Content]:
        drawn.append(len(happenings))
        return draw(happenings, *args, **options)

    monkeypatch.setattr(history, "draw_events", counted)
    monkeypatch.setattr(history, "EVENTS_SECONDS", 3600.0)
    view = s.live(s.EU)
    async with running_app(cockpit, size=(120, 36)) as (app, pilot):
        await pilot.press("5")
        await settle(pilot)
        drawn.clear()
        for number in range(1, 6):
            events = tuple(Recorded("web-2", n, s.NOON - 60 + n, Paused(f"ana{n}")) for n in range(1, number + 1))
            cockpit.show(replace(view, events=events))
            await settle(pilot)
        assert drawn == []
        screen = app.screen
        assert isinstance(screen, HistoryScreen)
        screen._request_events()  # the second has passed
        await settle(pilot)
        assert len(drawn) == 1
        assert "ana5" in screen_text(app)
