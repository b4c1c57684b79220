"""The gate: whether it is safe to confirm, as a pane and in the dialog."""

from dataclasses import replace
from typing import Any

import pytest
from textual.content import Content

from console.cli.root import cli
from console.cli.words import ScreenWords
from console.errors import CheckFailed, Unreachable
from console.model.compared import DayExamples, DayTally, ExampleRows
from console.model.consent import Approved, CheckAccepted, Consent, GateApproval, GateRules, TicketNamed
from console.model.event import Ailing
from console.model.gate import verdicts
from console.model.note import Note
from console.model.plan import Rollback
from console.model.tuning import Tuned, Tuning
from console.model.watcher import Watcher
from console.runner.flips import Flips, RegionFlip
from console.runner.view import RegionView
from console.tui.actions import ActionRequest
from console.tui.dialogs.dialog import Dialog
from console.tui.dialogs.gate import confirm_promotion
from console.tui.fleet.banner import draw_banner, watching
from console.tui.groups import same_plan
from console.tui.panes.safety import day_lines, doubts, safety_lines
from console.tui.state import ScreenState
from tests.screens import scripted as s
from tests.screens.harness import dialog_title, running_app, screen_text, settle, toast_text

pytestmark = pytest.mark.slow

GATE = s.at_gate(s.EU)
NORMAL = {"us": s.live(s.US), "eu": GATE}


def text(view: RegionView, *others: RegionView, width: int = 72) -> str:
    return "\n".join(line.plain for line in safety_lines(view, others, width, s.NOON))


def test_the_answer_names_tally_age_doubts_plan_way_back_and_other_regions() -> None:
    view = replace(NORMAL["us"], accepted=GATE.accepted)
    message = text(GATE, *same_plan({"us": view, "eu": GATE}, "eu"))
    assert "✓ 4 of 4 passed, 40 s ago; 311 live rows computed again" in message
    assert "doubts     none known" in message
    assert "requests   10-31 ▪▪▪▪▪▪▪▪▪▪▪▪ 10-20" in message
    assert "plan d351  -/+ requests +user_agent +browser" in message
    assert "way back   r1, kept up to date for 3 d; a rollback (R) loses nothing" in message
    assert "elsewhere  us live for" in message
    assert "no feed fails" in message
    assert "accepted by ada" in message


def lossy(view: RegionView) -> RegionView:
    assert view.accepted
    back = Rollback(lossless=False, columns=("requests.user_agent",), why="r1 does not store it")
    return replace(view, accepted=replace(view.accepted, rollback=back, allowed=("C101:requests",)))


def status(view: RegionView, **changes: Any) -> RegionView:
    return replace(view, status=replace(view.status, **changes))


STOPPED = Ailing(
    feed="parse", target="requests", path="requests/3f-1", tries=9, standing=True, why="landing: DELETE in version 7"
)


@pytest.mark.parametrize(
    ("view", "message"),
    [
        (s.at_gate(s.EU, wrong=True), "requests · rows per day differs: 2026-10-29: 33,345 → 33,346"),
        (s.at_gate(s.EU, wrong=True), "feed parse_requests inconclusive: no live row since the fence"),
        (status(GATE, checks=()), "no check has run"),
        (replace(GATE, link="unreachable", link_why="ssh: timed out"), "the region does not answer: ssh: timed out"),
        (status(GATE, ailing=(STOPPED,)), "feed parse has stopped: landing: DELETE in version 7"),
        (status(GATE, quarantined=12), "12 rows did not convert and were left out"),
        (status(GATE, checked_at=s.NOON - 7200), "the checks are 2 h 00 m old"),
        (lossy(GATE), "a rollback loses requests.user_agent: r1 does not store it"),
        (lossy(GATE), "loss accepted by name: C101:requests"),
    ],
)
def test_whatever_speaks_against_confirming_is_a_doubt(view: RegionView, message: str) -> None:
    written = " ".join(text(view).split())
    assert "none known" not in written
    assert message in written


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            status(s.live(s.US), state="rolled-back", decided_by="ana"),
            "us has run this plan and was rolled back by ana",
        ),
        (s.failed(s.US), "us has failed with this plan: parse_requests: 3 rows"),
        (status(s.live(s.US), ailing=(STOPPED,)), "us runs this plan, and feed parse has stopped"),
        (s.at_gate(s.US, wrong=True), "us runs this plan, and its checks differ"),
    ],
)
def test_what_went_wrong_with_this_plan_elsewhere_is_a_doubt(other: RegionView, message: str) -> None:
    views = {"us": replace(other, accepted=GATE.accepted), "eu": GATE}
    assert message in " ".join(text(GATE, *same_plan(views, "eu")).split())
    assert not same_plan({"us": replace(other, accepted=None), "eu": GATE}, "eu")


def test_no_doubt_only_where_every_check_passed() -> None:
    assert doubts(GATE, (), s.NOON) == []
    assert doubts(status(GATE, checks=()), (), s.NOON)


def test_a_day_that_differs_is_shown_with_its_rows() -> None:
    days = Content("\n").join(day_lines(s.at_gate(s.EU, wrong=True), 72)).plain
    assert "✗ 2026-10-29          33,345 → 33,346 rows" in days
    assert days.count("equal") == 11


async def test_at_80x24_everything_that_decides_is_seen_without_scrolling() -> None:
    cockpit = s.ScriptedCockpit(replace(NORMAL["us"], accepted=GATE.accepted), GATE)
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("j", "P")
        await settle(pilot)
        shown = screen_text(app)
        for part in ("4 of 4 passed, 40 s ago", "doubts", "requests_by_hour", "✓ values", "plan d351", "way back", "elsewhere",
                     "us live", "accepted by ada", "Type eu to promote", "f2 each day's comparison", "Cancel"):  # fmt: skip
            assert part in shown, part
        assert "more lines" not in shown


async def test_f2_shows_each_day_and_the_answer_again() -> None:
    async with running_app(s.ScriptedCockpit(NORMAL["us"], s.at_gate(s.EU, wrong=True))) as (app, pilot):
        app.post_message(ActionRequest("promote", ("eu",)))
        await settle(pilot)
        seen = screen_text(app)
        assert all(part in seen for part in ("2 of 4 passed", "1 differs", "way back", "plan d351", "40 s ago"))
        await pilot.press("f2")
        await settle(pilot)
        assert "33,345 → 33,346 rows" in screen_text(app)
        await pilot.press("f2")
        await settle(pilot)
        assert "way back" in screen_text(app)


async def test_f3_fetches_rows_of_a_day_that_differs_and_f2_leads_back() -> None:
    columns = (("id", "string"), ("status", "int"))
    rows = ExampleRows(columns, (("e7", None),), (("e7", 404),))
    cockpit = s.ScriptedCockpit(NORMAL["us"], s.at_gate(s.EU, wrong=True))
    cockpit.examples_of[("requests", "2026-10-29")] = DayExamples(
        table="requests", day="2026-10-29", old_version=4, new_version=2, differing=rows
    )
    async with running_app(cockpit) as (app, pilot):
        app.post_message(ActionRequest("promote", ("eu",)))
        await settle(pilot)
        assert "f3 rows that differ" in screen_text(app)
        await pilot.press("f3")
        await settle(pilot)
        seen = screen_text(app)
        assert all(
            part in seen for part in ("eu: requests on 2026-10-29", "- id=e7 · status=NULL", "+ id=e7 · status=404")
        )
        await pilot.press("f2")
        await settle(pilot)
        assert "way back" in screen_text(app)
        cockpit.examples_of.clear()
        await pilot.press("f3")
        await settle(pilot)
        assert "only one version of requests is still here" in screen_text(app)


def test_rows_in_quarantine_that_explain_every_difference_are_no_doubt() -> None:
    check = replace(GATE.status.checks[0], tally=DayTally(days=12, differing=0, quarantined=12))
    explained = status(GATE, quarantined=12, checks=(check, *GATE.status.checks[1:]))
    assert "none known" in text(explained)
    for other in (
        status(explained, quarantined=13),
        status(explained, checks=(replace(check, tally=DayTally(days=12, differing=1, quarantined=12)),)),
    ):
        assert "rows did not convert and were left out" in " ".join(text(other).split())


@pytest.mark.parametrize("size", [(80, 24), (60, 15), (200, 60)])
async def test_cancel_and_the_question_are_seen_at_any_size(size: tuple[int, int]) -> None:
    async with running_app(s.ScriptedCockpit(GATE), size=size) as (app, pilot):
        await pilot.press("P")
        await settle(pilot)
        assert isinstance(app.screen, Dialog)
        assert all(part in screen_text(app) for part in ("Cancel", "Type eu to promote", "4 of 4 passed"))
        assert ("more lines" in screen_text(app)) is (size == (60, 15))
        await pilot.press("enter")  # nothing typed
        await settle(pilot)
        assert isinstance(app.screen, Dialog)


async def test_the_regions_of_a_wave_are_promoted_together_by_the_waves_name() -> None:
    ap = s.at_gate(replace(s.AP, wave=2))
    cockpit = s.ScriptedCockpit(NORMAL["us"], GATE, ap)
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("j", "space", "space", "P")
        await settle(pilot)
        assert dialog_title(app) == "Promote 2 regions of wave 2"
        assert "Type wave 2 to promote" in screen_text(app)
        await pilot.press(*"eu", "enter")
        await settle(pilot)
        assert isinstance(app.screen, Dialog)
        await pilot.press("backspace", "backspace", *"wave", "space", "2", "enter")
        await settle(pilot)
        assert "eu, ap: live, flipped at most 0.20 s apart" in toast_text(app)
    assert changes(cockpit) == [("promote_together", ({"eu": "web-2", "ap": "web-2"}, {}))]


def test_regions_of_several_waves_are_not_promoted_together() -> None:
    views = {"eu": GATE, "ap": s.at_gate(s.AP)}
    content = confirm_promotion(ScreenState(views=views), ("eu", "ap"))
    assert content.blocked == "the regions belong to several waves: mark those of one wave"
    one_wrong = {"eu": GATE, "ap": s.at_gate(replace(s.AP, wave=2), wrong=True)}
    assert "checks differ" in confirm_promotion(ScreenState(views=one_wrong), ("eu", "ap")).blocked


AP = replace(s.AP, wave=2)
SPLIT = {"eu": replace(s.live(s.EU), accepted=GATE.accepted), "ap": replace(s.at_gate(AP), accepted=GATE.accepted)}


async def test_a_wave_with_a_region_that_is_not_at_its_gate_is_blocked_by_it() -> None:
    cockpit = s.ScriptedCockpit(GATE, s.running(AP))
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("space", "space", "P")
        await settle(pilot)
        assert "ap (backfilling): only a region at its gate can be promoted" in screen_text(app).replace("│", "")


async def test_the_inconclusive_checks_of_a_wave_are_accepted_with_one_reason() -> None:
    cockpit = s.ScriptedCockpit(GATE, doubtful(s.at_gate(AP)))
    async with running_app(cockpit) as (_, pilot):
        await pilot.press("space", "space", "P")
        await settle(pilot)
        await pilot.press(*"late", "enter", *"wave", "space", "2", "enter")
        await settle(pilot)
    ((_, (confirmed, declared)),) = changes(cockpit)
    assert confirmed == {"eu": "web-2", "ap": "web-2"}
    assert [(name, each.detail, each.reason) for name, of in declared.items() for each in of] == [
        ("ap", "two late rows", "late")
    ]


async def test_a_typed_wave_is_its_regions() -> None:
    cockpit = s.ScriptedCockpit(NORMAL["us"], GATE, s.at_gate(AP))
    async with running_app(cockpit, words=ScreenWords(cli)) as (app, pilot):
        for typed, title in (
            ("promote --regions @wave2", "Promote 2 regions of wave 2"),
            ("promote --regions @wave9", ""),
        ):
            await pilot.press("colon")
            await settle(pilot)
            await pilot.press(*(key.replace("@", "at").replace(" ", "space").replace("-", "minus") for key in typed))
            await pilot.press("enter")
            await settle(pilot)
            assert dialog_title(app) == title
            await pilot.press("escape")
            await settle(pilot)
        assert "there is no region @wave9" in toast_text(app)


async def test_when_a_wave_fails_in_part_one_key_finishes_the_rest_and_one_returns_all() -> None:
    cockpit = s.ScriptedCockpit(GATE, s.at_gate(AP))
    refused = RegionFlip(region="ap", end="refused", error=CheckFailed("ap: requests differ", hint="console status"))
    cockpit.flips.append(Flips((s.promoted("eu"), refused)))
    async with running_app(cockpit, size=(100, 30)) as (app, pilot):
        await pilot.press("space", "space", "P")
        await settle(pilot)
        await pilot.press(*"wave", "space", "2", "enter")
        await settle(pilot)
        for said in (
            "ap: requests differ\n→ console status",
            "eu: live; not promoted: ap\n→ P finishes the rest, R returns all",
        ):
            assert said in toast_text(app)
        await pilot.press("escape")  # the marks
        cockpit.show(*SPLIT.values())
        await settle(pilot)
        for key in (
            "P finish the wave",
            "R return the wave",
            "wave 2 is live in part · P finish the rest · R return all",
        ):
            assert key in screen_text(app), key
        await pilot.press("P")
        await settle(pilot)
        assert dialog_title(app) == "Promote ap"  # the cursor is on eu
        await pilot.press("escape", "j", "R")
        await settle(pilot)
        assert dialog_title(app) == "Roll back eu"  # the cursor is on ap
        await pilot.press(*"eu", "enter")
        await settle(pilot)
    assert changes(cockpit)[-1] == ("rollback", "eu")


async def test_all_regions_of_a_wave_are_returned_by_its_name_and_those_that_never_flipped_stay() -> None:
    us = replace(s.live(replace(s.US, wave=2, canary=False)), accepted=GATE.accepted)
    cockpit = s.ScriptedCockpit(us, *SPLIT.values())
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("R")
        await settle(pilot)
        assert dialog_title(app) == "Roll back 2 regions of wave 2"
        shown = screen_text(app)
        assert all(part in shown for part in ("ap: waits at its gate, untouched", "Type wave 2 to roll back"))
        await pilot.press(*"wave", "space", "2", "enter")
        await settle(pilot)
    assert changes(cockpit) == [("rollback", "us"), ("rollback", "eu")]


async def test_nothing_is_promoted_if_a_region_of_the_wave_is_not_ready_and_the_screen_says_which() -> None:
    cockpit = s.ScriptedCockpit(GATE, s.at_gate(AP))
    away = RegionFlip(region="ap", end="refused", error=Unreachable("ap: timed out", hint="console doctor"))
    cockpit.flips.append(Flips((RegionFlip(region="eu", end="held"), away)))
    async with running_app(cockpit, size=(100, 30)) as (app, pilot):
        await pilot.press("space", "space", "P")
        await settle(pilot)
        await pilot.press(*"wave", "space", "2", "enter")
        await settle(pilot)
        assert "nothing was promoted: ap not ready" in toast_text(app)
        assert "ap: timed out" in toast_text(app)


async def test_a_wave_of_one_region_asks_for_the_region() -> None:
    async with running_app(s.ScriptedCockpit(NORMAL["us"], GATE)) as (app, pilot):
        await pilot.press("space", "space", "P")  # us is live already, so that only eu can be promoted
        await settle(pilot)
        assert dialog_title(app).startswith("Promote eu")
        assert not toast_text(app)


ME = Watcher(name="ada@laptop", host="laptop", since=s.NOON - 600, console="c1")
BOB = Watcher(name="bob@tower", host="tower", since=s.NOON - 120, console="c2")
SCREEN = Watcher(name="ada@laptop", host="laptop", since=s.NOON - 60, console="c3")


@pytest.mark.parametrize(
    ("watchers", "at_the_gate", "wide", "narrow"),
    [
        (None, "accepted by ada", "", ""),
        ((ME,), "nobody else looks", "", ""),
        ((ME, BOB), "also looks: bob@tower since 11:58Z", "bob@tower watches", "+1 watches"),
        (
            (ME, BOB, SCREEN),
            "also looks: bob@tower since 11:58Z, ada@laptop since 11:59Z",
            "and 1 more watch",
            "+2 watch",
        ),
    ],
)
def test_gate_and_banner_say_who_else_looks(
    watchers: tuple[Watcher, ...] | None, at_the_gate: str, wide: str, narrow: str
) -> None:
    view = replace(status(GATE, watchers=watchers), console="c1")
    assert at_the_gate in " ".join(text(view).split())
    state = ScreenState(views={"eu": view}, title="web", at=s.NOON)
    assert watching(state, 160) == (wide if "more" not in wide else f"ada@laptop {wide}")
    assert watching(state, 80) == narrow
    assert narrow in draw_banner(state, view, 80).plain
    gone = replace(view, link="unreachable")
    assert "also looks" not in text(gone)


def test_the_gate_shows_the_last_notes_and_who_changed_which_limit() -> None:
    notes = tuple(Note(at=s.NOON - 60 * n, by="ana", host="desk", text=f"note {n} [b]\x1b[31m") for n in (5, 4, 3, 2))
    tuned = Tuned(by="eve", host="tower", tuning=Tuning(target_seconds=20.0))
    message = " ".join(text(status(GATE, notes=notes, tuned=tuned)).split())
    assert "note note 2 [b]\\x1b[31m by ana, 2 m" in message
    assert "note 5" not in message
    assert "tuned target_seconds 60 → 20, by eve from tower" in message


def doubtful(view: RegionView) -> RegionView:
    """Its last check is inconclusive."""
    checks = (*view.status.checks[:-1], replace(view.status.checks[-1], ok=None, detail="two late rows"))
    return status(view, checks=checks)


def changes(cockpit: s.ScriptedCockpit) -> list[tuple[str, object]]:
    return [call for call in cockpit.calls if call[0] in ("declare", "promote", "promote_together", "rollback")]


async def test_an_inconclusive_check_is_accepted_with_a_reason_in_the_dialog_that_promotes() -> None:
    view = doubtful(GATE)
    check = view.status.checks[-1]
    cockpit = s.ScriptedCockpit(view)
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("P")
        await settle(pilot)
        await pilot.press("enter", *"eu", "enter")  # without a reason nothing happens
        await settle(pilot)
        assert (changes(cockpit), "Promote eu" in dialog_title(app)) == ([], True)
        await pilot.press("shift+tab", *"late", "enter", "enter")
        await settle(pilot)
    accepted = CheckAccepted(table=check.table, check=check.check, detail="two late rows", reason="late")
    assert changes(cockpit) == [("declare", ("eu", accepted)), ("promote", "eu")]


def test_what_people_declared_stands_at_the_gate_as_a_record_and_missing_approvals_block_the_dialog() -> None:
    assert GATE.accepted
    strict = replace(GATE, accepted=replace(GATE.accepted, gate=GateRules(approvals=2)))
    approval = GateApproval(at=s.NOON, by="bob@desk", host="desk", ticket="OPS-7")
    shown = text(status(strict, consent=Consent(approvals=(approval,))), width=110)
    assert "approvals  1 of 2 identities: bob@desk · a record, not access control" in shown
    assert "ticket     OPS-7 named by bob@desk" in shown
    content = confirm_promotion(ScreenState(views={"eu": strict}), ("eu",))
    assert content.blocked == "approvals: 0 of 2 identities: none yet"


def wants_a_ticket(view: RegionView, approvals: int = 0) -> RegionView:
    assert view.accepted
    return replace(view, accepted=replace(view.accepted, gate=GateRules(ticket=True, approvals=approvals)))


async def test_a_required_ticket_is_named_in_the_dialog_that_promotes() -> None:
    cockpit = s.ScriptedCockpit(wants_a_ticket(GATE))
    async with running_app(cockpit) as (app, pilot):
        await pilot.press("P")
        await settle(pilot)
        assert "Ticket of eu:" in screen_text(app)
        await pilot.press("enter", *"eu", "enter")  # without one nothing happens
        await settle(pilot)
        assert (changes(cockpit), "Promote eu" in dialog_title(app)) == ([], True)
        await pilot.press("shift+tab", *"OPS", "minus", "7", "enter", "enter")
        await settle(pilot)
    assert changes(cockpit) == [("declare", ("eu", TicketNamed(ticket="OPS-7"))), ("promote", "eu")]


async def test_a_ticket_is_named_for_those_regions_of_a_wave_that_ask_for_one_beside_the_reason() -> None:
    cockpit = s.ScriptedCockpit(GATE, wants_a_ticket(doubtful(s.at_gate(AP))))
    async with running_app(cockpit) as (_, pilot):
        await pilot.press("space", "space", "P")
        await settle(pilot)
        await pilot.press(*"late", "enter", *"OPS", "enter", *"wave", "space", "2", "enter")
        await settle(pilot)
    ((_, (_, declared)),) = changes(cockpit)
    assert {name: [type(each) for each in of] for name, of in declared.items()} == {"ap": [CheckAccepted, TicketNamed]}


def test_a_ticket_hides_no_other_condition_that_a_gate_waits_for() -> None:
    content = confirm_promotion(ScreenState(views={"eu": wants_a_ticket(GATE, approvals=1)}), ("eu",))
    assert (content.ticket_for, content.blocked) == ("eu", "approvals: 0 of 1 identities: none yet")


async def test_a_typed_approval_names_the_checks_that_the_screen_shows() -> None:
    cockpit = s.ScriptedCockpit(GATE)
    async with running_app(cockpit, words=ScreenWords(cli)) as (_, pilot):
        await pilot.press("colon")
        await settle(pilot)
        await pilot.press(*"approve", "enter")
        await settle(pilot)
    assert changes(cockpit) == [("declare", ("eu", Approved(checks=verdicts(GATE.status))))]
