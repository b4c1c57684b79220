"""The drawings over every state and any outside text. Pure: no app, no terminal."""

import unicodedata
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from console.drivers.replay import Given, Ran
from console.errors import Problem
from console.model.event import Ailing, Checked, State
from console.model.gate import check_name, unaccepted
from console.model.measured import FeedSample
from console.model.plan import Answer, Rollback
from console.model.sandbox import Sandbox
from console.model.status import Status
from console.model.step_status import StepStatus
from console.runner.view import Link, RegionView
from console.text import safe_text
from console.tui.actions import RegionAction, coach, objection
from console.tui.dialogs.confirm import confirm_end, confirm_start
from console.tui.dialogs.content import DialogContent
from console.tui.dialogs.gate import confirm_promotion, confirm_rollback
from console.tui.fleet.figures import ready_at
from console.tui.fleet.question import draw_question
from console.tui.fleet.region_row import Row, columns, draw_row
from console.tui.format import short, size, span
from console.tui.labels import done_fraction, idle, state_label, working
from console.tui.panes.checks import draw_checks, promotion_blocker
from console.tui.panes.plan import draw_plan
from console.tui.panes.steps import draw_steps
from console.tui.panes.summary import draw_summary
from console.tui.panes.witness import draw_witness
from console.tui.rollout.log import LogEntries, log_lines
from console.tui.state import ScreenState, noteworthy
from console.tui.terminal.ascii import to_ascii
from console.tui.times import between
from console.witness import NoWitness, Witness, WitnessProgress, WitnessResult
from tests.screens import scripted as s

pytestmark = pytest.mark.slow

STEERING = {"Cc", "Cf", "Cs", "Zl", "Zp"}
outside = st.one_of(
    st.text(max_size=40), st.sampled_from(["\x1b]52;c;x\x07", "[/]", "\u202e", "\x9b2J", "漢字" * 60, "\ud800"])
)
rows = st.integers(0, 10**12)
steps = st.builds(
    StepStatus, id=outside, state=st.sampled_from(["waiting", "running", "done"]), rows_done=rows, rows_total=rows, slices_done=st.integers(0, 99),
    slices=st.integers(0, 99), batch=outside, batch_rows=rows, seconds=st.floats(0, 1e6), bytes=rows,
)  # fmt: skip
checks = st.builds(Checked, table=outside, check=outside, ok=st.sampled_from([True, False, None]), detail=outside)
ills = st.builds(
    Ailing, feed=outside, target=outside, path=outside, tries=st.integers(0, 99), standing=st.booleans(), why=outside, hint=outside
)  # fmt: skip
ways = st.builds(Rollback, st.booleans(), st.lists(outside, max_size=3).map(tuple), outside)
answers = st.builds(Answer, st.sampled_from(["endpoint", "copy", "sink"]), outside, outside, outside)
values = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), outside, st.lists(outside, max_size=2))


@st.composite
def tables(draw: st.DrawFn) -> tuple[tuple[str, ...], tuple[tuple[object, ...], ...]]:
    heads = draw(st.lists(outside, max_size=3, unique=True))
    row = st.tuples(*(values for _ in heads))
    return tuple(heads), tuple(draw(st.lists(row, max_size=14)))


@st.composite
def witnesses(draw: st.DrawFn) -> WitnessProgress:
    """Any answer to any number of edited queries, as far as the search has come."""
    hits = []
    for _ in range(draw(st.integers(0, 2))):
        (heads, contents), *results = (draw(tables()) for _ in range(3))
        old, new = (Ran(*result) if draw(st.booleans()) else Ran((), (), draw(outside)) for result in results)
        witness = Witness({draw(outside): Given(tuple((head, "string") for head in heads), contents)}, old, new)
        hits.append(
            WitnessResult(
                draw(st.sampled_from([None, witness])), draw(rows), draw(outside), draw(st.sampled_from(NoWitness))
            )
        )
    left = draw(st.integers(0, 1))
    edits = tuple((draw(outside), draw(outside)) for _ in range(len(hits) + left))
    return WitnessProgress(edits, tuple(hits), done=not left)


@st.composite
def views(draw: st.DrawFn) -> RegionView:
    """Any region in any state, likely or not."""
    view = s.running(replace(s.US, name=draw(outside), environment=draw(outside), zone=draw(outside)))
    status = replace(
        view.status, state=draw(st.sampled_from(["none", *get_args(State)])), held=draw(st.sampled_from(["", "paused", "failed"])),
        why=draw(outside), hint=draw(outside), steps=tuple(draw(st.lists(steps, max_size=3))),
        checks=tuple(draw(st.lists(checks, max_size=3))), log=tuple(draw(st.lists(outside, max_size=3))),
        ailing=tuple(draw(st.lists(ills, max_size=2))), lag_seconds=draw(st.floats(0, 1e7)), release=draw(outside), was=draw(outside), decided_by=draw(outside),
    )  # fmt: skip
    assert view.plan is not None
    problems = tuple(Problem(code="C1", message=draw(outside), where=draw(outside), hint=draw(outside), severity=draw(st.sampled_from(["refuse", "warn"]))) for _ in range(draw(st.integers(0, 1))))  # fmt: skip
    nodes = tuple(
        replace(node, name=draw(outside), why=draw(outside)) for node in view.plan.nodes[: draw(st.integers(0, 5))]
    )
    plan = draw(st.none() | st.builds(partial(replace, view.plan, nodes=nodes, problems=problems), rollback=ways, answers=st.lists(answers, max_size=2).map(tuple)))  # fmt: skip
    link = draw(st.sampled_from(get_args(Link)))
    return replace(view, status=status, plan=plan, link=link, link_why=draw(outside), problem=draw(outside), note=draw(outside), live=draw(outside), previous=draw(outside), witness=draw(st.none() | witnesses()))  # fmt: skip


def clean(content: Content) -> None:
    strange = [char for char in content.plain if unicodedata.category(char) in STEERING and char != "\n"]
    assert not strange, content.plain


@given(views(), st.integers(24, 200))
def test_every_drawing_is_safe_fits_its_width_and_never_fails(view: RegionView, width: int) -> None:
    for drawing in (draw_plan, draw_steps, draw_checks, draw_summary, draw_witness):
        content = drawing(view, width, s.NOON)
        clean(content)
        if drawing in (draw_steps, draw_summary, draw_witness):
            assert max(line.cell_length for line in content.split("\n")) <= width
    for line in log_lines(LogEntries().of(view)):
        clean(line)
    assert 0.0 <= done_fraction(view) <= 1.0


@given(views(), st.integers(24, 200), st.booleans())
def test_the_line_of_any_region_is_safe_and_never_fails(view: RegionView, width: int, marked: bool) -> None:
    row = Row(view=view, plan="2f34", at=s.NOON, marked=marked, current=not marked)
    line = draw_row(row, columns(width, [view.region.name], [view.region.environment, ""]), width)
    clean(line)
    assert line.cell_length == width


def test_a_running_batch_is_shown_even_if_the_rows_of_the_history_were_not_counted() -> None:
    view = s.running(s.US)
    uncounted = StepStatus(id="requests", state="running", slices=3, batch="2026-11-01", batch_rows=500)
    shown = draw_question(replace(view, status=replace(view.status, steps=(uncounted,))), (), (120, 0), s.NOON)
    assert "500 rows so far" in shown.plain


def test_nobody_is_promised_when_a_region_is_ready_that_does_not_answer() -> None:
    heard = replace(s.running(s.EU), heard=s.NOON)
    away = replace(heard, link="unreachable", link_why="ssh: timed out")
    assert (bool(ready_at(heard)), ready_at(away)) == (True, "")
    messages = [draw_summary(view, 120, s.NOON).plain for view in (heard, away)]
    assert [" left" in text for text in messages] == [True, False]
    assert [" rows/s" in text for text in messages] == [True, False]


def test_no_screen_shows_a_hundred_per_cent_while_a_feed_has_not_caught_up() -> None:
    view = s.running(s.EU)
    steps = tuple(
        replace(step, state="done", batch="", batch_rows=0, rows_done=step.rows_total, slices_done=step.slices)
        if step.slices
        else step
        for step in view.status.steps
    )
    late = replace(view, status=replace(view.status, state="catching-up", steps=steps))
    closed = replace(late, status=replace(late.status, steps=tuple(replace(step, state="done") for step in steps)))
    assert [done_fraction(each) < 1.0 for each in (late, closed)] == [True, False]
    for each, percent in ((late, "99%"), (closed, "100%")):
        assert f" {percent}" in draw_summary(each, 120, s.NOON).plain
        assert f" {percent}" in line_of(each, 200)


@given(views())
def test_every_state_has_a_label_a_symbol_and_a_next_key(view: RegionView) -> None:
    name = view.region.name
    state = ScreenState(views={name: view}, coach=True)
    word = state_label(view)
    assert word.symbol
    assert word.text
    for in_region in (False, True):
        message = coach(state, name, in_region=in_region)
        clean(message)
        assert message.plain.strip()


@pytest.mark.parametrize(("ok", "lead"), [(False, "1 of 4 checks differ"), (None, "1 of 4 checks are inconclusive")])
def test_a_gate_in_doubt_is_not_advertised_as_ready(ok: bool | None, lead: str) -> None:
    view = s.at_gate(s.US)
    doubtful = (replace(view.status.checks[0], ok=ok), *view.status.checks[1:])
    view = replace(view, status=replace(view.status, checks=doubtful))
    advice = coach(ScreenState(views={"us": view}, coach=True), "us").plain
    assert advice.startswith(lead)
    assert ("accept them and promote" in advice) == (ok is None)


@given(views())
def test_every_dialog_is_blocked_where_its_action_does_not_apply(view: RegionView) -> None:
    name = view.region.name
    state, shut = ScreenState(views={name: view}), ScreenState(views={name: view}, readonly=True)
    dialogs: dict[RegionAction, DialogContent] = {
        "promote": confirm_promotion(state, (name,)), "rollback": confirm_rollback(state, name), "start": confirm_start(state, (name,)),
        "cancel": confirm_end(state, (name,), "cancel"), "discard": confirm_end(state, (name,), "discard"),
    }  # fmt: skip
    for action in get_args(RegionAction):
        assert action in ("refresh", "witness") or objection(action, view, shut.refusal(action))
    for action, content in dialogs.items():
        assert bool(content.blocked) >= bool(objection(action, view))
        for line in content.lines:
            clean(line)
    assert all(
        ask.blocked
        for ask in (confirm_promotion(shut, (name,)), confirm_rollback(shut, name), confirm_start(shut, (name,)))
    )
    if not dialogs["promote"].blocked:
        assert view.status.state == "awaiting-confirmation"
        assert all(check.ok is not False for check in view.status.checks)
        assert (
            bool(dialogs["promote"].reason_for) == bool(unaccepted(view.status)) == bool(promotion_blocker(view.status))
        )


def test_the_gate_shows_the_accepted_plan_and_not_the_pending_one() -> None:
    view = replace(s.at_gate(s.US), plan=s.live(s.US).plan)
    before, now = (confirm_promotion(ScreenState(views={"us": one}), ("us",)) for one in (s.at_gate(s.US), view))
    assert now.lines == before.lines
    assert "requests" in next(line.plain for line in now.lines if line.plain.startswith("plan "))


def test_an_inconclusive_check_is_no_dead_end() -> None:
    view = s.at_gate(s.US)
    checks = (*view.status.checks[:-1], replace(view.status.checks[-1], ok=None))
    content = confirm_promotion(
        ScreenState(views={"us": replace(view, status=replace(view.status, checks=checks))}), ("us",)
    )
    assert (content.blocked, content.reason_for) == ("", check_name(checks[-1]))
    differs = confirm_promotion(ScreenState(views={"us": s.at_gate(s.US, wrong=True)}), ("us",))
    assert "promotion refused" in differs.blocked


@given(views())
def test_a_region_is_idle_working_held_or_at_its_gate(view: RegionView) -> None:
    assert not (idle(view) and working(view))
    assert working(view) or idle(view) or view.status.held or view.status.state == "awaiting-confirmation"


@given(st.floats(0, 1e18))
def test_figures_stay_short(number: float) -> None:
    assert len(short(number)) <= 9
    assert len(size(number)) <= 8
    assert not span(min(number, 1e9)).endswith(" 0 h")


@given(outside)
def test_an_ascii_terminal_gets_ascii_of_the_same_width(text: str) -> None:
    shown = safe_text(text)
    assert to_ascii(shown).isascii()
    assert Content(to_ascii(shown)).cell_length == Content(shown).cell_length


def test_the_bell_rings_once_when_a_person_is_needed() -> None:
    moves, gate_shut, broken, through = (
        ScreenState(views={"us": view}) for view in (s.running(s.US), s.at_gate(s.US), s.failed(s.US), s.live(s.US))
    )
    assert [noteworthy(moves, now) for now in (gate_shut, broken)] == ["us: at the gate", "us: failed"]
    assert noteworthy(gate_shut, through) == "us: live"
    assert not any(noteworthy(now, now) for now in (moves, gate_shut, broken, through))
    assert not noteworthy(ScreenState(views={"us": s.RegionView(region=s.US)}), through)


def test_a_stopped_feed_is_shown_in_the_list_and_in_the_summary() -> None:
    ill = Ailing(
        feed="parse",
        target="requests",
        path="requests/3f-1",
        tries=9,
        standing=True,
        why="landing: DELETE in version 7",
        hint="rebuild it",
        code="E_REWRITE",
    )
    live = replace(s.running(s.EU), status=Status(state="live"), plan=None, live="r7")
    still = replace(live, status=replace(live.status, ailing=(ill,)))
    assert (state_label(still).text, state_label(still).tone) == ("feed stopped", "bad")
    assert "feed stopped" in line_of(still, 200)
    assert "feed parse has stopped: landing: DELETE" in line_of(still, 200)
    assert "feed stopped" in line_of(still, 80)
    for drawn in (draw_question(still, (), (120, 0), s.NOON), draw_summary(still, 120, s.NOON)):
        assert "feed parse has stopped: landing: DELETE in version 7" in drawn.plain
        assert "→ rebuild it" in drawn.plain
    fails = replace(live, status=replace(live.status, ailing=(replace(ill, standing=False, tries=2),)))
    assert state_label(fails) == state_label(live)
    assert "feed parse is failing, attempt 2: landing" in draw_summary(fails, 120, s.NOON).plain


def test_the_head_of_a_region_names_its_previews_and_counts_those_that_do_not_fit() -> None:
    one = Sandbox(name="fix", state="ready", live="r7", digest="d", days=1, at=0.0, expires=9.0, by="ada")
    more = tuple(replace(one, name=f"b{number}", state="building") for number in range(4))
    live = replace(s.running(s.EU), status=Status(state="live"), plan=None, live="r7")
    for sandboxes, text in (
        ((one,), "· preview fix ready"),
        ((one, *more), "· previews fix ready, b0 building, b1 building and 2 more"),
    ):
        shown = draw_summary(replace(live, status=replace(live.status, sandboxes=sandboxes)), 120, s.NOON)
        assert text in shown.plain
    assert "preview" not in draw_summary(live, 120, s.NOON).plain


def line_of(view: RegionView, width: int) -> str:
    """The line of a region that is alone in the list."""
    row = Row(view=view, plan="2f34", at=s.NOON, marked=False, current=True)
    return draw_row(row, columns(width, [view.region.name], [view.region.environment]), width).plain


def test_a_note_is_labelled_by_its_kind_and_never_by_its_text() -> None:
    view = s.RegionView(region=s.US, note="us: the journal's disk is full")
    assert state_label(view).text == "noted"
    assert state_label(replace(view, notice="waits")).text == "waits"


def test_a_feed_that_is_no_longer_measured_under_its_name_leaves_the_table_of_feeds_at_once() -> None:
    """The feed of a version that is built gets the name of the live one with the promotion."""
    building = tuple(
        FeedSample(at=s.NOON - 20, feed=name, rows=268.0, lag=4.7, behind=1170)
        for name in ("parse", "parse → requests/2")
    )
    live = tuple(FeedSample(at=s.NOON - 10, feed=name, rows=20.0, lag=0.4, behind=3) for name in ("", "parse"))
    shown = draw_question(replace(s.live(s.EU), samples=(*building, *live)), (), (120, 0), s.NOON).plain
    assert "parse " in shown
    assert "requests/2" not in shown


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [
        (60.0, 3600.0, "12:01–13:00"),
        (60.0, 70.0, "12:01"),
        (13 * 3600.0, 14 * 3600.0, "Tue 01:00–02:00"),
        (11 * 3600.0, 13 * 3600.0, "23:00–Tue 01:00"),
        (13 * 3600.0, 37 * 3600.0, "Tue 01:00–Wed 01:00"),
    ],
)
def test_the_day_of_two_times_is_shown_once(low: float, high: float, shown: str) -> None:
    noon = datetime(2026, 11, 23, 12, tzinfo=UTC).timestamp()  # a Monday
    assert between(noon + low, noon + high, noon) == shown
