"""Rivals at one pipeline's gate, round after round, on real release tables: one wins, the other learns who. No Java."""

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from console.agent.feeds.follower import FeedFollower
from console.agent.pipeline import PipelineController
from console.agent.rollout import ownership
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.errors import Conflict
from console.model.event import Accepted, Entered, Promoted, RolledBack, TakenOver
from console.model.live import Release
from console.model.step import Promote
from tests.plans import bare_plan

pytestmark = pytest.mark.faults
ROUNDS = 15
WHO = {"ada": "laptop", "eve": "desk"}


def opened(place: Path) -> PipelineController:
    spark = SparkHandle(Settings(region="eu"), -1)
    return PipelineController(place, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), Settings(region="eu"))


def at_the_gate(controller: PipelineController, number: int, live: str) -> None:
    release = Release(id=f"r{number}", pipeline="web", digest="d", tables=(), feeds=())
    plan = bare_plan(desired=f"d{number}", live=live, steps=(Promote(),), release=release)
    controller.releases.propose(release, f"web-{number}", "ada", "laptop")
    controller.recorder.accept(
        f"web-{number}",
        plan,
        Accepted(release=release.id, was=live, plan="", by="ada", host="laptop", steps=(("promote", 0),)),
    )
    controller.recorder.store(Entered("awaiting-confirmation"))


def at_once(action: Callable[[str, str], Any]) -> tuple[list[Any], list[Conflict]]:
    """Both do it at the same moment: the results, and the errors of the losers."""
    ready = Barrier(len(WHO))

    def one(name: str) -> Any:
        ready.wait()
        try:
            return action(name, WHO[name])
        except Conflict as error:
            return error

    with ThreadPoolExecutor(len(WHO)) as pool:
        ends = list(pool.map(one, WHO))
    return [e for e in ends if not isinstance(e, Conflict)], [e for e in ends if isinstance(e, Conflict)]


def test_of_two_who_promote_or_roll_back_at_once_exactly_one_does_and_the_other_learns_who(tmp_path: Path) -> None:
    controller, live = opened(tmp_path), ""
    wins = dict.fromkeys(WHO, 0)
    for number in range(1, ROUNDS + 1):
        at_the_gate(controller, number, live)
        before = controller.releases.version()
        done, refused = at_once(lambda by, host, n=number, was=live: controller.promote(f"web-{n}", was, by, host))
        assert (len(done), len(refused)) == (1, 1)
        assert controller.releases.version() == before + 1, "one commit promotes"
        (winner,) = done
        wins[winner.by] += 1
        text = rf"r{number} was already promoted by {winner.by} from {winner.host} at 20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ"
        assert re.search(text, str(refused[0])), refused[0]
        assert refused[0].exit_code == 4
        assert len(controller.recorder.events(Promoted)) == 1
        live = f"r{number}"
        if number > 1 and number % 5 == 0:
            done, refused = at_once(lambda by, host, was=live: controller.rollback(was, by, host))
            assert (len(done), len(refused)) == (1, 1)
            assert "is live, not" in str(refused[0])
            assert len(controller.recorder.events(RolledBack)) == 1
            live = f"r{number - 1}"
        releases = controller.releases.in_state("live")
        assert releases is not None
        assert releases.row.id == live
    assert sum(wins.values()) == ROUNDS


def test_a_console_whose_rollout_was_taken_over_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    controller = opened(tmp_path)
    at_the_gate(controller, 1, "")
    seen: list[Any] = []
    controller.recorder.watch(0, lambda recorded: seen.append(recorded.event))
    ownership.take_over(controller, "console-of-eve", "eve", "desk")
    assert seen[-1] == TakenOver("eve", "desk", "console-of-eve"), "whoever watches is told"
    with (
        pytest.raises(Conflict, match=r"web-1: eve on desk took it over at 20.*Z; this console only watches") as error,
        ownership.owned(controller, "console-of-ada"),
    ):
        controller.promote("web-1", "", "ada", "laptop")
    assert error.value.exit_code == 4
    assert controller.releases.in_state("live") is None
    again = opened(tmp_path)  # it is in the region: the next agent knows it as well
    with pytest.raises(Conflict), ownership.owned(again, "console-of-ada"):
        again.control("cancel", "ada")
    with ownership.owned(again, "console-of-eve"):
        assert again.promote("web-1", "", "eve", "desk").by == "eve"


def test_a_deed_that_a_person_types_is_theirs_whoever_steers(tmp_path: Path) -> None:
    controller = opened(tmp_path)
    at_the_gate(controller, 1, "")
    ownership.take_over(controller, "console-of-eve", "eve", "desk")
    with ownership.owned(controller, ""):
        assert controller.control("cancel", "ada").state == "cancelled"


def test_taking_over_twice_is_told_once_and_what_has_ended_cannot_be_taken(tmp_path: Path) -> None:
    controller = opened(tmp_path)
    with pytest.raises(Conflict, match="nothing is under way"):
        ownership.take_over(controller, "c1", "eve", "desk")
    at_the_gate(controller, 1, "")
    for console in ("c1", "c1", "c2"):
        ownership.take_over(controller, console, "eve", "desk")
    assert [event.console for event in controller.recorder.events(TakenOver)] == ["c1", "c2"]
    at_the_gate(controller, 2, "")
    assert controller.recorder.status.console == "", "the next rollout is steered by who began it"
