"""Drawings that a reader of the screens once misread, or could not read at all: each has a test here."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from console.demo.cockpit import DemoFleet
from console.demo.prepare import Demo
from console.model.event import Accepted, Ailing, BatchDone, DriverLost, Entered, Event, Recorded, StepDone
from console.model.incident import WaitBegan
from console.model.region import Region
from console.model.step_status import StepStatus
from console.runner.outlook.attention import NeedKind, RegionNeed
from console.runner.outlook.forecast import forecast_of
from console.runner.view import RegionView
from console.tui.drawing import stack_lines
from console.tui.fleet.events import Happenings, draw_events
from console.tui.fleet.needs import draw_needs
from console.tui.fleet.question import draw_question
from console.tui.fleet.region_row import Row, columns, draw_row
from console.tui.history.rollouts import draw_rollout_line
from console.tui.history.state import ListedRollout
from console.tui.panes.safety import confirm_title
from console.tui.panes.steps import draw_progress
from console.tui.panes.summary import draw_summary
from console.tui.rollout.log import LogEntries
from console.tui.rollout.rates import lag_title, rates_line, rates_title
from console.tui.rollout.slow import accounted, slow_line, slow_title
from console.tui.rollout.steps_line import draw_steps_line
from console.tui.state import ScreenState
from tests.screens import recorded as r
from tests.screens import scripted as s
from tests.screens.harness import running_app, screen_text, settle

pytestmark = pytest.mark.slow

STEP = "backfill/requests/parse_requests"
DONE = BatchDone(step=STEP, label="2026-11-23 … 2026-11-11", position=13, of=15, rows_in=399_888, rows_out=399_888, bytes=1, seconds=120.9, version=3)  # fmt: skip
ACCEPTED = Accepted(release="r2", was="r1", plan="2f34" + "0" * 60, by="ada", host="", steps=((STEP, 1000),))


def recorded(*events: tuple[float, Event], rollout: str = "web-2") -> tuple[Recorded, ...]:
    """events: at seconds before noon"""
    return tuple(Recorded(rollout, seq, s.NOON - ago, event) for seq, (ago, event) in enumerate(events, 1))


def rolling(**changes: Any) -> RegionView:
    view = s.running(s.US)
    return replace(view, heard=s.NOON, status=replace(view.status, **changes))


def drawn_events(*events: tuple[float, Event], width: int, folded: bool = False) -> list[str]:
    view = replace(s.live(s.US), events=recorded(*events))
    return stack_lines(draw_events(Happenings().of({"us": view}), 0.0, s.NOON, width, folded=folded)).plain.splitlines()


def test_a_long_event_goes_on_in_the_next_line_and_is_one_line_where_routine_is_folded() -> None:
    wide = drawn_events((60, DONE), width=78)
    assert len(wide) == 2
    assert wide[1].strip() == "120.9 s, 13 of 15 slices"
    assert not any("…" in line.replace(" … ", " ") for line in wide)
    assert len(drawn_events((60, DONE), width=78, folded=True)) == 1


def test_the_cause_of_a_lost_spark_comes_before_its_place_in_a_short_line() -> None:
    lost = DriverLost(step=STEP, why="its memory ran out")
    (line,) = drawn_events((60, lost), width=78, folded=True)
    assert "its memory ran out" in line


def test_a_feed_that_stands_still_and_a_region_that_is_away_have_a_line_where_they_began() -> None:
    """Nothing is stored about either while no rollout runs, and the night was read without its worst hour."""
    feed = Ailing(
        feed="parse", target="requests", path="requests/1-1", tries=3, standing=True, why="landing was replaced"
    )
    status = replace(s.live(s.EU).status, ailing=(feed,), lag_seconds=7 * 3600.0 + 5)
    happenings, stopped = Happenings(), replace(s.live(s.EU), status=status, heard=s.NOON)
    away = replace(s.running(s.US), link="unreachable", link_why="ssh timed out", heard=s.NOON - 4 * 3600, events=recorded((6 * 3600, Entered("backfilling"))))  # fmt: skip
    views = {"eu": stopped, "us": away}
    listed = happenings.of(views)
    lines = stack_lines(draw_events(listed, 0.0, s.NOON, 90)).plain.splitlines()
    assert [line[:9] for line in lines] == ["08:00 us ", "06:00 us ", "04:59 eu "]
    assert "not reached since: ssh timed out" in lines[0]
    assert "feed parse has moved no row since: landing was replaced" in lines[2]
    later = replace(stopped, heard=s.NOON + 1, status=replace(status, lag_seconds=7 * 3600.0 + 6))
    assert happenings.of({**views, "eu": later}) is listed, "it lasts, and is not another event each second"
    assert len(happenings.of({"eu": s.live(s.EU), "us": away})) == 2


def test_the_gates_question_has_its_answer_beside_it() -> None:
    gate = replace(s.at_gate(s.US), link="connected")
    checks = gate.status.checks
    titles = [
        confirm_title(
            replace(gate, status=replace(gate.status, checks=(*checks[1:], replace(checks[0], ok=ok)))), (), s.NOON
        )
        for ok in (True, False, None)
    ]
    asked = "is it safe to confirm? "
    assert titles[0] == f"{asked}nothing speaks against it"
    assert titles[1] == f"{asked}no, 1 of {len(checks)} checks differ"
    assert titles[2] == f"{asked}in doubt, 1 of {len(checks)} checks are inconclusive"
    assert confirm_title(rolling(), (), s.NOON) == f"{asked}nothing to confirm yet"
    assert confirm_title(replace(gate, link="unreachable"), (), s.NOON) == f"{asked}unknown, the region does not answer"


def test_a_need_that_one_line_would_cut_takes_a_second_one() -> None:
    need = RegionNeed(kind=NeedKind.FEED_STOPPED, region="eu", cause="feed parse stopped [E_REPLACED]: landing was replaced · 280,000 rows behind",
                      since=s.NOON - 7 * 3600, due=s.NOON + 86400, then="its source may delete rows that it has not read")  # fmt: skip
    state = ScreenState(views={}, needs=(need,), at=s.NOON)
    first, second = (line.plain for line in draw_needs(state, 78, 1, wrapped=True))
    assert "due in 1 d" in first
    assert len(first) == len(second) == 78
    assert "280,000 rows behind" in f"{first} {second}"
    assert "…" not in first
    assert len(draw_needs(state, 78, 1)) == 1


def test_a_reason_takes_the_cells_of_empty_columns_behind_it() -> None:
    shown = columns(80, ["eu"], ["prod"])
    row = Row(view=replace(s.waiting(s.EU), heard=s.NOON), plan="d351", at=s.NOON, marked=False, current=False)
    assert "replay" in draw_row(row, shown, 80).plain
    assert "…" not in draw_row(row, shown, 80).plain


def test_states_have_the_words_of_the_screens() -> None:
    assert "at the gate" in drawn_events((60, Entered("awaiting-confirmation")), width=100)[0]
    status = replace(s.at_gate(s.US).status, rollout="web-2")
    line = draw_rollout_line(ListedRollout(region="us", status=status), 76, s.NOON).plain
    assert "◆ at the gate" in line
    assert "awaiting" not in line


@pytest.mark.parametrize("why", ["lag 71 s is over 60 s", ""])
def test_no_end_is_foretold_while_a_rollout_waits(why: str) -> None:
    waiting = WaitBegan(step=STEP, cause="lag", why=why, since=s.NOON - 60) if why else None
    view = rolling(why=why, waiting=waiting)
    texts = draw_summary(view, 200, s.NOON).plain, draw_progress(view, 100, s.NOON).plain
    assert [" left" in text for text in texts] == [not why, not why]
    assert (forecast_of(view, s.NOON) is None) is bool(why)


@pytest.mark.parametrize(
    ("changes", "mark"),
    [
        ({}, "▶ validate running"),
        ({"held": "failed"}, "✗ validate failed"),
        ({"held": "paused"}, "‖ validate paused"),
        ({"state": "cancelled"}, "· validate stopped"),
    ],
)
def test_a_step_is_running_only_while_its_rollout_is(changes: dict[str, Any], mark: str) -> None:
    validate = StepStatus(id="validate", state="running")
    view = rolling(**{"state": "validating", "steps": (validate,), **changes})
    assert " ".join(draw_progress(view, 100, s.NOON).plain.split()) == mark
    assert draw_steps_line(view, 100).plain == f"{mark[0]} compare"


def test_the_checks_are_ahead_although_all_rows_are_counted() -> None:
    view = rolling()
    steps = tuple(replace(step, rows_done=step.rows_total) if step.batch else step for step in view.status.steps)
    expected = forecast_of(rolling(steps=steps), s.NOON)
    assert expected is not None
    assert s.NOON < expected.gate.low < expected.gate.high


def test_the_log_of_a_rollout_begins_with_its_own_first_line() -> None:
    before = recorded((900, StepDone("create/older")), rollout="web-1")
    view = rolling(rollout="web-2", log=())
    view = replace(view, events=(*before, *recorded((60, ACCEPTED))))
    assert [entry.text.split("Z ")[1] for entry in LogEntries().of(view)] == ["r1 → r2, planned by ada"]


def test_the_time_of_a_region_that_is_away_ends_when_it_was_last_heard() -> None:
    view = replace(rolling(rollout="web-2"), events=recorded((7200, ACCEPTED), (7190, Entered("backfilling"))))
    away = replace(view, link="unreachable", heard=s.NOON - 3600)
    whole, known = accounted(view, s.NOON), accounted(away, s.NOON)
    assert whole
    assert known
    assert (whole.seconds, known.seconds) == (7200, 3600)
    assert "until 11:00:00Z" in slow_title(away, known)
    assert slow_line(away, 80, s.NOON).plain.startswith("1 h 00 m until 11:00:00Z: ")
    assert "all of it" in slow_title(view, whole)


def test_a_high_pane_goes_on_with_the_time_and_the_log() -> None:
    view = replace(rolling(rollout="web-2", log=()), events=recorded((120, ACCEPTED), (110, Entered("backfilling"))))

    def lines(height: int) -> list[str]:
        return draw_question(view, (), (100, height), s.NOON).plain.splitlines()

    low, high = lines(8), lines(44)
    assert "where the time went" not in "\n".join(low)
    assert high[: len(low)] == low
    assert "where the time went" in high
    assert any("planned by ada" in line for line in high)
    assert len(high) <= 44


async def test_a_message_covers_nothing_at_80x24() -> None:
    async with running_app(s.ScriptedCockpit(s.live(s.US), s.running(s.EU)), size=(80, 24)) as (app, pilot):
        await settle(pilot)
        keys = next(line for line in screen_text(app).splitlines() if "? keys" in line)
        await pilot.press("V")
        await settle(pilot)
        lines = screen_text(app).splitlines()
        assert "V verifies a rollout" in lines[-1]
        assert keys in lines
        assert any(line.startswith("╰") for line in lines)


def test_a_demo_that_is_built_does_not_take_itself_for_another_console(tmp_path: Path) -> None:
    demo = Demo.of(Path(__file__).parents[2])
    fleet = DemoFleet(demo, None, traffic=False)
    own = fleet.views["us"].console
    fleet._show(RegionView(region=Region(name="us", warehouse=str(tmp_path)), console="of the building fleet"))
    assert own
    assert fleet.views["us"].console == own


def test_figures_of_long_ago_have_their_time() -> None:
    view = replace(rolling(), samples=r.samples(True))
    for at, old in ((s.NOON, ""), (s.NOON + 7200, " at 11:59")):
        texts = rates_title(view, at), lag_title(view, at), rates_line(view, 80, at).plain
        assert [" at 1" in text for text in texts] == [bool(old)] * 3
        assert draw_question(view, (), (100, 0), at).plain.count(" at 1") == (2 if old else 0)
