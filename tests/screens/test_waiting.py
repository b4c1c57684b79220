"""The wait of a region, and the limit of a pause, in the list and in the summary."""

from dataclasses import replace

import pytest

from console.model.event import BatchStarted, Entered, Recorded, StepStarted, Waiting
from console.model.region import Region
from console.model.status import Status, fold
from console.model.step_status import StepStatus
from console.runner.view import RegionView
from console.tui.fleet.figures import reason
from console.tui.panes.summary import draw_summary

pytestmark = pytest.mark.slow

NOW = 1_794_000_000.0
WHY = "outside of 22:00-06:00 Europe/Madrid; continues at 22:00, in 9 h 00 min"
STEP = "backfill/requests/parse"


def waiting() -> RegionView:
    status = Status(
        rollout="web-2", release="r2", was="r1", state="planned", steps=(StepStatus(id=STEP, rows_total=6000),)
    )
    for event in (Entered("backfilling"), StepStarted(STEP), Waiting(WHY)):
        status = fold(status, Recorded("web-2", 0, NOW, event))
    return RegionView(
        region=Region(name="eu", warehouse="/w/eu", zone="Europe/Madrid"), link="connected", status=status, live="r1"
    )


def test_the_list_and_the_summary_say_what_a_region_waits_for() -> None:
    assert reason(waiting()).text == WHY
    assert WHY in draw_summary(waiting(), 200, NOW).plain


def test_once_a_batch_runs_it_waits_for_nothing() -> None:
    view = waiting()
    moved = view.status
    for event in (Waiting(""), BatchStarted(step=STEP, label="2026-11-07", first=1, last=1, of=3, rows=2000)):
        moved = fold(moved, Recorded("web-2", 0, NOW, event))
    assert WHY not in draw_summary(replace(view, status=moved), 200, NOW).plain


def test_a_pause_shows_how_long_it_can_last() -> None:
    view = waiting()
    paused = replace(view.status, held="paused", why="paused by ada", until=NOW + 5 * 86_400 + 3 * 3600)
    assert "paused by ada; can stay paused for 5 d 3 h" in draw_summary(replace(view, status=paused), 200, NOW).plain
    later = draw_summary(replace(view, status=paused), 200, NOW + 6 * 86_400).plain
    assert "files of its history may already be deleted" in later
    promoted = replace(view, status=replace(paused, state="validating"))
    assert "can stay paused" not in draw_summary(promoted, 200, NOW).plain
