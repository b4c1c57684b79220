"""Before anything runs, the plan on the screen shows whether it can be rolled back, and whose results change."""

from dataclasses import replace

import pytest

from console.model.plan import Answer, Plan, Rollback
from console.text import safe_text
from console.tui.panes.plan import draw_plan
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
