"""Before anything runs, the plan on the screen shows whether it can be rolled back, and whose results change; afterwards each
minute's proof shows whether a rollback would work."""

from dataclasses import replace

import pytest

from console.model.plan import Answer, Plan, Rollback
from console.model.way_back import WayBackProof, proof
from console.runner.outlook.attention import NeedKind, attention
from console.runner.view import RegionView
from console.text import safe_text
from console.tui.dialogs.gate import confirm_rollback
from console.tui.fleet.question import draw_question
from console.tui.panes.plan import draw_plan
from console.tui.state import ScreenState
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text

pytestmark = pytest.mark.slow

NASTY = "landing.\x1b[2J"


def drawn(plan: Plan, width: int = 60) -> str:
    return draw_plan(replace(s.waiting(s.US), plan=plan), width, s.NOON).plain


def test_a_plan_says_that_a_rollback_loses_nothing_and_why() -> None:
    plan = s.plan(s.US, rollback=Rollback(True, (), "the previous release goes on"))
    assert "↶ a rollback loses nothing; the previous release goes on" in drawn(plan)
    assert "a rollback" not in drawn(replace(plan, nodes=()))


def test_what_a_rollback_loses_is_shown_above_the_tables_with_its_reason() -> None:
    lost = Rollback(False, ("landing.agent", NASTY), "its producers may no longer send agent of landing")
    text = drawn(s.plan(s.US, rollback=lost), 200)
    assert (
        f"! a rollback loses landing.agent, {safe_text(NASTY)}: its producers may no longer send agent of landing"
        in text
    )
    assert text.index("a rollback loses") < text.index("requests")
    final = Rollback(False, (), "the Delta protocol of requests stays raised (columnMapping)")
    assert "! a rollback loses no stored rows, but does not restore everything: the Delta" in drawn(
        s.plan(s.US, rollback=final), 200
    )


def test_changed_results_are_listed_by_owner_with_node_and_reason() -> None:
    answers = (
        Answer(kind="endpoint", name="top_pages", owner="", why="rows of requests differ"),
        Answer(kind="sink", name="export", owner="web team", why="another query"),
        Answer(kind="copy", name="daily", owner="data team", why="requests.ms differs"),
    )
    lines = drawn(s.plan(s.US, answers=answers), 200).splitlines()
    at = lines.index("results change for")
    assert [line.strip() for line in lines[at + 1 : at + 5]] == [
        "data team: daily (copy)  requests.ms differs",
        "web team: export (sink)  another query",
        "no owner: top_pages (endpoint)  rows of requests differ",
        "",
    ]
    assert "results change for" not in drawn(s.plan(s.US, answers=()), 200)


async def test_the_rollback_line_is_visible_without_scrolling_on_a_small_screen() -> None:
    lost = Rollback(False, ("landing.agent",), "its producers may no longer send agent of landing")
    view = replace(s.waiting(s.US), plan=s.plan(s.US, rollback=lost))
    async with running_app(s.ScriptedCockpit(view), size=(80, 24)) as (app, pilot):
        await pilot.press("3")
        assert "a rollback loses landing.agent" in screen_text(app)


BROKEN = proof("r1", s.NOON - 12, (s.GONE,), until=s.NOON + 3600, feeds=3, files=124, endpoints=5)


def at_rest(known: WayBackProof | None) -> RegionView:
    view = s.live(s.US)
    return replace(view, status=replace(view.status, way_back=known))


def asked(view: RegionView) -> str:
    return draw_question(view, (), (160, 40), s.NOON).plain


def test_the_line_of_the_way_back_shows_its_proof_with_its_age_and_what_is_gone() -> None:
    assert "proven 40 s ago: 3 feeds, 124 files, 5 endpoints" in asked(at_rest(s.PROVEN))
    assert "failed its proof 10 s ago: requests: file day=2026-11-02/part-1.parquet" in asked(at_rest(BROKEN))
    assert "prove" not in asked(at_rest(None)), "an older agent has none"
    assert "not proven" in asked(at_rest(replace(s.PROVEN, release="r0"))), "the proof of another release"


def test_a_rollback_is_confirmed_beside_its_proof_and_promises_no_more_than_that() -> None:
    def body(view: RegionView) -> str:
        return "\n".join(
            line.plain for line in confirm_rollback(ScreenState(views={"us": view}, at=s.NOON), "us").lines
        )

    whole, broken = body(at_rest(s.PROVEN)), body(at_rest(BROKEN))
    assert "proven 40 s ago" in whole
    assert "no row is lost" in whole
    assert "failed its proof" in broken
    assert "no row is lost" not in broken


def test_a_way_back_that_failed_its_proof_needs_a_person_and_one_that_holds_does_not() -> None:
    def kinds(view: RegionView) -> list[NeedKind]:
        return [need.kind for need in attention({"us": view}, s.NOON)]

    assert NeedKind.WAY_BACK in kinds(at_rest(BROKEN))
    assert NeedKind.WAY_BACK not in kinds(at_rest(s.PROVEN))
    assert NeedKind.WAY_BACK not in kinds(replace(at_rest(BROKEN), previous="r0"))
