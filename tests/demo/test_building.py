"""The screen while a region of the demo is built: the days written, then the rollout of its first release."""

from dataclasses import replace
from datetime import date

import pytest

from console.demo import building
from console.demo.traffic.generate import DAYS, DayWritten
from console.model.event import State
from console.model.region import Region
from console.model.status import Status
from console.model.step_status import StepStatus
from console.runner.view import RegionView
from console.tui.actions import coach
from console.tui.drawing import stack_lines
from console.tui.labels import done_fraction, state_label
from console.tui.panes.steps import draw_steps
from console.tui.state import ScreenState

pytestmark = pytest.mark.slow

EU = Region(name="eu", warehouse="/data/eu")


def written(days: int) -> RegionView:
    view = building.begun(EU, 1000.0)
    for number in range(1, days + 1):
        day = DayWritten(day=date(2026, 11, number), rows=102_000, done=number, of=DAYS)
        view = building.with_day(view, day, 1000.0 + number)
    return view


def rolling(state: State = "backfilling") -> RegionView:
    """The same region in the fleet that rolls r1 out."""
    steps = (StepStatus(id="create/requests", state="done"), StepStatus(id="backfill/requests/parse", state="running", rows_done=500_000, rows_total=1_428_000, planned=1_428_000, slices=14, slices_done=5))  # fmt: skip
    status = Status(rollout="web-1", release="r1", state=state, seq=7, steps=steps, log=("took the lock of web",))
    return RegionView(region=replace(EU, canary=True), status=status)


def test_each_day_written_is_a_step_further_with_its_rows_and_a_line_in_the_log() -> None:
    view = written(3)
    assert view.note == f"building: 3 of {DAYS} days"
    assert "write/landing" in (text := draw_steps(view, 100, 0.0).plain)
    assert "306k / 1.64M" in text
    assert f"3/{DAYS} slices" in text
    assert "102k/s" in text
    assert view.status.log[-1] == "2026-11-03: 102,000 rows written to landing"
    assert 0 < done_fraction(view) < done_fraction(written(DAYS)) <= 0.5


def test_the_rollout_of_the_first_release_follows_the_days_and_the_bar_never_falls() -> None:
    days = written(DAYS)
    view = building.with_release(days, rolling())
    assert [step.id for step in view.status.steps] == ["write/landing", "create/requests", "backfill/requests/parse"]
    assert view.status.log == (*days.status.log, "took the lock of web")
    assert done_fraction(days) < done_fraction(view)
    assert (state_label(view).text, view.region) == ("backfilling", EU)


def test_rows_written_to_landing_say_nothing_about_the_rate_of_history() -> None:
    days = written(DAYS)
    before = building.with_release(
        days, replace(rolling(), status=replace(rolling().status, steps=rolling().status.steps[:1]))
    )
    assert (before.status.rate, before.status.eta_seconds) == (0.0, None)
    steps = tuple(replace(step, seconds=50.0 if step.rows_done else 0.0) for step in rolling().status.steps)
    carried = building.with_release(days, replace(rolling(), status=replace(rolling().status, steps=steps)))
    assert carried.status.rate == 10_000.0
    assert carried.status.eta_seconds == pytest.approx(92.8)


def test_it_asks_nobody_for_the_gate_of_its_first_release() -> None:
    view = building.with_release(written(DAYS), rolling("awaiting-confirmation"))
    assert state_label(view).text == "promoting"


def test_the_coach_offers_no_key_that_would_be_refused() -> None:
    for view in (written(2), building.with_release(written(DAYS), rolling())):
        advice = coach(ScreenState(views={"eu": view}), "eu").plain
        assert advice.startswith("this screen updates by itself")
        assert "pause" not in advice


def test_lines_of_the_guide_are_drawn_with_their_names_first() -> None:
    from console.tui.panes.guide import draw_guide

    view = RegionView(region=EU, guide=(f"{'bytes':<19}17.3 MB moved; 160.2 MB not moved",))
    assert draw_guide(view, 80).plain == view.guide[0]
    assert draw_guide(view, 40).plain.splitlines() == [f"{'bytes':<19}17.3 MB moved; 160.2", f"{'':<19}MB not moved"]
    assert draw_guide(RegionView(region=EU), 80).plain == stack_lines(()).plain == ""
