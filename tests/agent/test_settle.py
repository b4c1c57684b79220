"""A promotion or a way back that was committed and not recorded, found by the next agent. Real release tables, no Java."""

from pathlib import Path
from typing import Any

import pytest

from console.agent.feeds.follower import FeedFollower
from console.agent.pipeline import PipelineController
from console.agent.receipts.ops import Ops
from console.agent.rollout.recover import settle
from console.agent.spark_session import Settings, SparkHandle
from console.model.event import Accepted, Entered, Promoted, RolledBack
from console.model.live import Release
from console.model.plan import Plan
from console.model.step import Promote

EVE = "eve from desk"


def opened(place: Path) -> PipelineController:
    """The line as a fresh agent finds it."""
    spark = SparkHandle(Settings("eu"), -1)
    return PipelineController(place, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings("eu"))


def live(line: PipelineController) -> str:
    held = line.releases.in_state("live")
    return held.row.id if held else ""


def at_the_gate(line: PipelineController, number: int = 0) -> str:
    number, was = number or line._next_number(), live(line)
    release = Release(f"r{number}", "web", "d", (), ())
    plan = Plan(1, "t", "web", "eu", f"d{number}", was, "c", (), (Promote(),), release)
    line.releases.propose(release, f"web-{number}", "ada", "laptop")
    line.recorder.accept(f"web-{number}", plan, Accepted(release.id, was, "", "ada", "laptop", (("promote", 0),)))
    line.recorder.store(Entered("awaiting-confirmation"))
    return f"web-{number}"


def told(line: PipelineController, story: str) -> None:
    """promoted, cancelled, discarded, back: one after the other."""
    for deed in story.split():
        match deed:
            case "promoted":
                line.promote(at_the_gate(line), live(line), "ada", "laptop")
            case "cancelled" | "discarded":
                at_the_gate(line)
                line.control("cancel" if deed == "cancelled" else "discard", EVE)
            case "back":
                line.rollback(live(line), "bob", "phone")


def broken_off(line: PipelineController) -> None:
    """The way back of an agent that dies between its commit and its record."""
    previous = line.releases.in_state("previous")
    assert previous is not None
    line.releases.swap(live(line), previous.row.id, "bob", "phone")


def ends(line: PipelineController) -> dict[str, Any]:
    """Everything that a region remembers of its decisions, but the times."""
    status = line.recorder.status
    rows = [
        row
        for name in {r.rollout for r in line.rollouts.all_events()}
        for row in Ops(line.releases.path.parent).rows(name)
    ]
    return {
        "live": live(line),
        "status": (status.rollout, status.state, status.seq, status.decided_by),
        "events": sorted((r.rollout, r.seq, repr(r.event)) for r in line.rollouts.all_events()),
        "ops": sorted((row["rollout"], row["seq"], row["kind"], row["who"], row["release"]) for row in rows),
    }  # fmt: skip


@pytest.mark.parametrize(
    "story",
    [
        "promoted promoted",
        "promoted promoted cancelled",
        "promoted promoted cancelled discarded",
        "promoted promoted back cancelled",
    ],
)
def test_a_way_back_that_was_not_recorded_ends_like_an_unbroken_one(tmp_path: Path, story: str) -> None:
    whole, broken = opened(tmp_path / "whole"), opened(tmp_path / "broken")
    for line in (whole, broken):
        told(line, story)
    told(whole, "back")
    broken_off(broken)
    for missing in (True, False):  # the second agent finds it recorded
        line = opened(tmp_path / "broken")
        assert settle(line.recorder, line.releases, line.rollouts) is missing, "other feeds are followed then"
        line.resume()
        assert ends(line) == ends(whole)
        assert (line.recorder.status.state, line.recorder.status.decided_by) == ("rolled-back", "bob")


@pytest.mark.parametrize("story", ["cancelled", "promoted cancelled", "promoted promoted back cancelled"])
def test_where_nothing_is_missing_nothing_is_recorded(tmp_path: Path, story: str) -> None:
    line = opened(tmp_path)
    told(line, story)
    before = ends(line)
    again = opened(tmp_path)
    assert not settle(again.recorder, again.releases, again.rollouts)
    again.resume()
    assert ends(again) == before


def test_the_last_decision_is_that_of_the_newest_rollout_however_many_events_an_older_one_has(tmp_path: Path) -> None:
    line = opened(tmp_path)
    older = at_the_gate(line, 9)
    for _ in range(4):
        line.recorder.store(Entered("awaiting-confirmation"))
    line.promote(older, "", "ada", "laptop")
    told(line, "promoted cancelled")
    before = ends(line)
    again = opened(tmp_path)
    again.resume()
    assert ends(again) == before
    assert (before["live"], before["status"][:2]) == ("r10", ("web-11", "cancelled"))


@pytest.mark.parametrize("story", ["", "promoted cancelled"])
def test_a_rollout_that_was_cancelled_before_its_promotion_was_recorded_is_live_all_the_same(
    tmp_path: Path, story: str
) -> None:
    line = opened(tmp_path)
    told(line, story)
    was, number = live(line), at_the_gate(line).rpartition("-")[2]
    line.recorder.store(Entered("promoting"))
    line.releases.swap(was, f"r{number}", "bob", "phone")
    line.control("cancel", EVE)
    for missing in (True, False):
        again = opened(tmp_path)
        assert settle(again.recorder, again.releases, again.rollouts) is missing
        again.resume()
        assert again.recorder.status.state == "live"
        assert again.recorder.events(RolledBack) == ()
        assert [(e.release, e.was, e.by) for e in again.recorder.events(Promoted)] == [(f"r{number}", was, "bob")]


@pytest.mark.parametrize("swapped", [False, True])
def test_an_agent_that_died_while_it_promoted_is_at_the_gate_again_or_through_it(tmp_path: Path, swapped: bool) -> None:
    line = opened(tmp_path)
    at_the_gate(line)
    line.recorder.store(Entered("promoting"))
    if swapped:
        line.releases.swap("", "r1", "bob", "phone")
    for missing in (swapped, False):
        again = opened(tmp_path)
        assert settle(again.recorder, again.releases, again.rollouts) is missing
        assert again.recorder.status.state == ("live" if swapped else "awaiting-confirmation")
