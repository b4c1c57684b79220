"""A promotion or a rollback that was committed but not recorded is found by the next agent. Real release tables, no Java."""

from pathlib import Path
from typing import Any

import pytest

from console.agent.feeds.follower import FeedFollower
from console.agent.pipeline import PipelineController
from console.agent.rollout.recover import record_missing_decision
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store.ops import Ops
from console.model.event import Accepted, Entered, Promoted, RolledBack
from console.model.live import Release
from console.model.step import Promote
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

EVE = "eve from desk"


def opened(place: Path) -> PipelineController:
    """The pipeline as a fresh agent finds it."""
    spark = SparkHandle(Settings(region="eu"), -1)
    return PipelineController(place, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu"))


def live(controller: PipelineController) -> str:
    releases = controller.releases.in_state("live")
    return releases.row.id if releases else ""


def at_the_gate(controller: PipelineController, number: int = 0) -> str:
    number, was = number or controller.acceptance.next_number(), live(controller)
    release = Release(id=f"r{number}", pipeline="web", digest="d", tables=(), feeds=())
    plan = bare_plan(desired=f"d{number}", live=was, steps=(Promote(),), release=release)
    controller.releases.propose(release, f"web-{number}", "ada", "laptop")
    controller.recorder.accept(
        f"web-{number}",
        plan,
        Accepted(release=release.id, was=was, plan="", by="ada", host="laptop", steps=(("promote", 0),)),
    )
    controller.recorder.store(Entered("awaiting-confirmation"))
    return f"web-{number}"


def decide(controller: PipelineController, story: str) -> None:
    """promoted, cancelled, discarded, back: one after the other."""
    for decision in story.split():
        match decision:
            case "promoted":
                controller.promote(at_the_gate(controller), live(controller), "ada", "laptop")
            case "cancelled" | "discarded":
                at_the_gate(controller)
                controller.control("cancel" if decision == "cancelled" else "discard", EVE)
            case "back":
                controller.rollback(live(controller), "bob", "phone")


def broken_off(controller: PipelineController) -> None:
    """The way back of an agent that dies between its commit and its record."""
    previous = controller.releases.in_state("previous")
    assert previous is not None
    controller.releases.swap(live(controller), previous.row.id, "bob", "phone")


def ends(controller: PipelineController) -> dict[str, Any]:
    """Everything that a region remembers of its decisions, but the times."""
    status = controller.recorder.status
    rows = [
        row
        for name in {r.rollout for r in controller.rollouts.all_events()}
        for row in Ops(controller.releases.path.parent).rows(name)
    ]
    return {
        "live": live(controller),
        "status": (status.rollout, status.state, status.seq, status.decided_by),
        "events": sorted((r.rollout, r.seq, repr(r.event)) for r in controller.rollouts.all_events()),
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
    for controller in (whole, broken):
        decide(controller, story)
    decide(whole, "back")
    broken_off(broken)
    for missing in (True, False):  # the second agent finds it recorded
        controller = opened(tmp_path / "broken")
        assert record_missing_decision(controller.recorder, controller.releases, controller.rollouts) is missing, (
            "other feeds are followed then"
        )
        controller.resume()
        assert ends(controller) == ends(whole)
        assert (controller.recorder.status.state, controller.recorder.status.decided_by) == ("rolled-back", "bob")


@pytest.mark.parametrize("story", ["cancelled", "promoted cancelled", "promoted promoted back cancelled"])
def test_where_nothing_is_missing_nothing_is_recorded(tmp_path: Path, story: str) -> None:
    controller = opened(tmp_path)
    decide(controller, story)
    before = ends(controller)
    again = opened(tmp_path)
    assert not record_missing_decision(again.recorder, again.releases, again.rollouts)
    again.resume()
    assert ends(again) == before


def test_the_last_decision_is_that_of_the_newest_rollout_however_many_events_an_older_one_has(tmp_path: Path) -> None:
    controller = opened(tmp_path)
    older = at_the_gate(controller, 9)
    for _ in range(4):
        controller.recorder.store(Entered("awaiting-confirmation"))
    controller.promote(older, "", "ada", "laptop")
    decide(controller, "promoted cancelled")
    before = ends(controller)
    again = opened(tmp_path)
    again.resume()
    assert ends(again) == before
    assert (before["live"], before["status"][:2]) == ("r10", ("web-11", "cancelled"))


@pytest.mark.parametrize("story", ["", "promoted cancelled"])
def test_a_rollout_that_was_cancelled_before_its_promotion_was_recorded_is_live_all_the_same(
    tmp_path: Path, story: str
) -> None:
    controller = opened(tmp_path)
    decide(controller, story)
    was, number = live(controller), at_the_gate(controller).rpartition("-")[2]
    controller.recorder.store(Entered("promoting"))
    controller.releases.swap(was, f"r{number}", "bob", "phone")
    controller.control("cancel", EVE)
    for missing in (True, False):
        again = opened(tmp_path)
        assert record_missing_decision(again.recorder, again.releases, again.rollouts) is missing
        again.resume()
        assert again.recorder.status.state == "live"
        assert again.recorder.events(RolledBack) == ()
        assert [(e.release, e.was, e.by) for e in again.recorder.events(Promoted)] == [(f"r{number}", was, "bob")]


@pytest.mark.parametrize("swapped", [False, True])
def test_an_agent_that_died_while_it_promoted_is_at_the_gate_again_or_through_it(tmp_path: Path, swapped: bool) -> None:
    controller = opened(tmp_path)
    at_the_gate(controller)
    controller.recorder.store(Entered("promoting"))
    if swapped:
        controller.releases.swap("", "r1", "bob", "phone")
    for missing in (swapped, False):
        again = opened(tmp_path)
        assert record_missing_decision(again.recorder, again.releases, again.rollouts) is missing
        assert again.recorder.status.state == ("live" if swapped else "awaiting-confirmation")
