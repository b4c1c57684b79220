"""A screen that is opened late shows earlier events: the log, and the steps of the last rollout."""

from dataclasses import replace

import pytest

from console.model.event import DriverLost, Failed, Logged, Paused
from console.model.logline import level_of, logline
from console.model.status import replay
from console.tui.panes.steps import draw_steps
from console.tui.rollout.log import LogEntries, log_lines
from tests.cli.sample import story
from tests.screens import recorded as r
from tests.screens import scripted as s

pytestmark = pytest.mark.slow


def test_the_log_has_the_whole_rollout_with_times() -> None:
    view = s.RegionView(region=s.US, status=replay(story()))
    lines = [line.plain.removeprefix("· ") for line in log_lines(LogEntries().of(view))]
    assert lines[0] == "00:16:41Z r7 → r8, planned by ada@laptop"
    assert "00:16:47Z backfill/requests: 100 rows of landing up to version 41, in 2 slices" in lines
    assert "00:16:50Z backfill/requests 2026-11-07: 60 rows in 3.0 s, 1 of 2 slices" in lines
    assert "00:16:53Z failed in backfill/requests: disk full" in lines
    assert "00:17:00Z check requests live rows: inconclusive (no row arrived)" in lines
    assert lines[-1] == "00:17:02Z r8 is live, it was r7: promoted by ada@laptop"


def test_steps_of_a_rollout_that_is_over_are_not_shown_as_those_of_one_under_way() -> None:
    over = s.RegionView(region=s.US, status=replay(story()))
    assert draw_steps(over, 80, 0.0).plain.startswith("no rollout is under way; steps of the last one, web-8 (live):\n")
    going = replace(over, status=replay(story()[:10]))
    assert "no rollout is under way" not in draw_steps(going, 80, 0.0).plain
    planned = replace(over, plan=s.waiting(s.US, 400).plan)
    assert "web-8" not in draw_steps(planned, 80, 0.0).plain
    assert draw_steps(planned, 80, 0.0).plain.startswith("· ")


def test_a_line_of_the_log_has_the_level_of_its_event() -> None:
    events = (
        Failed("s", "disk full"),
        Logged("x", "error"),
        DriverLost("s", "gone"),
        Logged("failed x"),
        Paused("ada"),
    )
    assert [level_of(logline(event, s.NOON)) for event in events] == ["error", "error", "warning", "info", "info"]


def test_every_line_of_the_log_begins_with_its_time() -> None:
    events = (Logged("x"), Logged("x", "warning"), DriverLost("s", "gone"), Paused("ada"))
    assert {logline(event, s.NOON)[:10] for event in events} == {"12:00:00Z "}
    assert level_of("warning: as older agents write it") == "warning"


def test_no_step_of_a_release_that_is_live_waits() -> None:
    promoted = r.promoted().status
    assert (promoted.steps[-1].id, promoted.steps[-1].state) == ("promote", "done")
    assert r.slow().status.steps[-1].state == "waiting"
