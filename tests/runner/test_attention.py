"""Needs, judged from views alone: kind, cause, due date, and the key that applies."""

from dataclasses import replace
from typing import Any

import pytest

from console.model.event import Ailing, Checked, Logged, Recorded
from console.model.held_release import HeldRelease
from console.model.incident import TryFailed, WaitBegan
from console.model.region import Policy, Region
from console.model.status import Status
from console.model.step_status import StepStatus
from console.runner.outlook.attention import KEYS, Attention, NeedKind, attention, troubled, upcoming, well_since
from console.runner.view import RegionView

NOW = 1_793_620_800.0
HOUR = 3600.0
EU = Region(name="eu", warehouse="/w/eu")
RUNNING = Status(rollout="web-2", release="r2", was="r1", state="backfilling", started=NOW - HOUR, changed=NOW - 600)


def view(name: str = "eu", status: Status = RUNNING, **changes: Any) -> RegionView:
    region = replace(EU, name=name, policy=Policy(keep_failed_hours=72.0, rollback_window_hours=72.0))
    return replace(RegionView(region=region, link="connected", status=status, heard=NOW - 1), **changes)


def needs(*views: RegionView) -> list[tuple[str, NeedKind]]:
    return [(need.region, need.kind) for need in attention({each.region.name: each for each in views}, NOW)]


def test_a_fleet_in_order_needs_nobody_and_says_what_is_due_next() -> None:
    live = view(status=Status(state="live", changed=NOW - 10 * HOUR), live="r2", previous="r1")
    assert needs(view(), live) == []
    assert well_since({"eu": live}) == NOW - 10 * HOUR
    (due,) = upcoming({"eu": live}, NOW)
    assert (due.region, due.due) == ("eu", NOW + 62 * HOUR)
    assert "way back to r1" in due.cause


def test_a_release_on_hold_is_due_when_it_is_dropped() -> None:
    held = HeldRelease(release="r1", live="r2", at=NOW - HOUR, due=NOW + 30 * HOUR, by="ada")
    status = Status(state="live", changed=NOW - 10 * HOUR, on_hold=(held,))
    (due,) = upcoming({"eu": view(status=status, live="r2")}, NOW)
    assert (due.kind, due.due, due.cause) == (NeedKind.ON_HOLD, NOW + 30 * HOUR, "r1 is on hold")


@pytest.mark.parametrize(
    ("status", "kind", "cause", "due"),
    [
        (replace(RUNNING, held="paused", why="paused by ana", until=NOW + 43 * HOUR), NeedKind.PAUSED, "paused by ana", NOW + 43 * HOUR),
        (replace(RUNNING, held="failed", why="disk full"), NeedKind.FAILED, "disk full", NOW - 600 + 72 * HOUR),
        (replace(RUNNING, state="awaiting-confirmation", checks=(Checked(table="t", check="values", ok=True, detail="equal"),)), NeedKind.GATE, "1 of 1 checks passed", 0.0),
        (replace(RUNNING, state="awaiting-confirmation", checks=(Checked(table="t", check="values", ok=False, detail="11-16: 3 and 4"),)), NeedKind.DIFFERS, "t values: 11-16: 3 and 4", 0.0),
        (replace(RUNNING, state="awaiting-confirmation", checks=(Checked(table="t", check="latency", ok=None, detail="1.9 times slower"),)), NeedKind.GATE, "1.9 times slower", 0.0),
        (replace(RUNNING, why="lag 71 s is over 60 s", waiting=WaitBegan(step="s", cause="lag", why="lag 71 s", since=NOW - 120)), NeedKind.WAITING, "lag 71 s is over 60 s", 0.0),
        (replace(RUNNING, until=NOW + 1800, expiring=2), NeedKind.EXPIRING, "may not have read its history", NOW + 1800),
    ],
)  # fmt: skip
def test_each_situation_has_its_cause_its_date_and_a_key(
    status: Status, kind: NeedKind, cause: str, due: float
) -> None:
    (need,) = attention({"eu": view(status=status)}, NOW)
    assert (need.kind, need.region, need.due) == (kind, "eu", due)
    assert cause in need.cause
    assert (need.key, need.does) == KEYS[kind]
    assert need.since or need.due


def test_a_region_away_says_that_a_batch_may_be_running() -> None:
    away = view(link="unreachable", link_why="ssh: timed out", heard=NOW - 11 * HOUR)
    (need,) = attention({"eu": away}, NOW)
    assert (need.kind, need.cause, need.since) == (
        NeedKind.AWAY,
        "ssh: timed out; a batch may be running",
        NOW - 11 * HOUR,
    )


def test_a_stopped_feed_is_due_when_its_source_may_delete_the_oldest_row_that_it_has_not_read() -> None:
    still = Ailing(
        feed="parse", target="t", path="t/1", tries=9, standing=True, why="landing was replaced", code="E_REPLACED"
    )
    status = Status(state="live", ailing=(still,), lag_rows=1_200_000, lag_seconds=48 * HOUR)
    (need,) = attention({"eu": view(status=status)}, NOW)
    assert need.kind is NeedKind.FEED_STOPPED
    assert "feed parse stopped [E_REPLACED]: landing was replaced · 1,200,000 rows behind" in need.cause
    assert need.due == NOW - 1 - 48 * HOUR + 7 * 24 * HOUR


def test_failed_tries_are_counted_with_their_cause_while_the_batch_is_tried_again() -> None:
    tried = TryFailed(
        step="s", label="11-16", first=1, last=1, cause="memory", why="OOM", number=1, of=3, rows=250_000,
        rows_next=62_500, seconds=20.0,
    )  # fmt: skip
    events = (Recorded("web-2", 4, NOW - 60, Logged("batch failed", "warning", tried)),)
    status = replace(RUNNING, steps=(StepStatus(id="s", state="running", tries=2),))
    (need,) = attention({"eu": view(status=status, events=events)}, NOW)
    assert (need.kind, need.since, need.key) == (NeedKind.RETRIED, NOW - 60, "2")
    assert need.cause == "batch 11-16 failed 2 times: memory; now at most 62,500 rows"


def test_the_nearest_date_comes_first_then_what_has_waited_longest() -> None:
    gate = replace(RUNNING, state="awaiting-confirmation")
    paused = replace(RUNNING, held="paused", why="paused", until=NOW + 50 * HOUR)
    failed = replace(RUNNING, held="failed", why="disk full")
    result = needs(
        view("a", replace(gate, changed=NOW - 60)),
        view("b", replace(gate, changed=NOW - 7200)),
        view("c", failed),
        view("d", paused),
    )
    assert [name for name, _ in result] == ["d", "c", "b", "a"]


def test_a_region_that_waits_at_its_gate_in_order_is_not_in_trouble() -> None:
    views = {
        "a": view("a", replace(RUNNING, state="awaiting-confirmation")),
        "b": view("b", replace(RUNNING, held="failed", why="x")),
    }
    assert troubled(attention(views, NOW)) == {"b"}


def test_needs_that_are_kept_view_by_view_are_those_that_are_judged_anew() -> None:
    live = view("a", Status(state="live", changed=NOW), live="r2", previous="r1")
    reading = view("b", replace(RUNNING, until=NOW + 10 * HOUR))
    kept = Attention()
    hours = (0.0, 1.0, 9.0, 9.0 + 1 / 3600, 47.0, 48.0, 49.0, 72.0, 73.0, 1.0)
    for views in ({"a": live, "b": reading}, {"a": live, "b": replace(reading, problem="x")}, {"b": reading}):
        for hour in hours:
            assert kept.of(views, NOW + hour * HOUR) == attention(views, NOW + hour * HOUR), hour
