"""A pipeline's gate across restarts of its agent, on real release tables. No Java: nothing here moves a row."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from console.agent.feeds.follow import Follower
from console.agent.line import Line
from console.agent.rollout.vigil import ATTACHED_SECONDS, Vigil
from console.agent.session import Settings, Spark
from console.errors import Conflict
from console.model.event import Accepted, Entered, Failed, Promoted
from console.model.live import Release
from console.model.plan import Plan
from console.model.status import Status
from console.model.step import Promote


def opened(place: Path) -> Line:
    """The line as a fresh agent finds it."""
    spark = Spark(Settings("eu"), -1)
    return Line(place, "web", spark, Follower(spark, 1.0, lambda *_: None), Settings("eu"))


@pytest.fixture
def promoting(tmp_path: Path) -> Path:
    """A region whose agent died while it promoted r1: the intention is recorded, the outcome is not."""
    line = opened(tmp_path)
    release = Release("r1", "web", "d", (), ())
    plan = Plan(1, "t", "web", "eu", "d", "", "c", (), (Promote(),), release)
    line.releases.propose(release, "web-1", "ada", "laptop")
    line.recorder.accept("web-1", plan, Accepted("r1", "", "digest", "ada", "laptop", (("promote", 0),)))
    line.recorder.store(Entered("awaiting-confirmation"))
    line.recorder.store(Entered("promoting"))
    return tmp_path


def test_a_promotion_whose_commit_was_made_is_recorded_once_by_the_next_agent(promoting: Path) -> None:
    opened(promoting).releases.swap("", "r1", "ada", "laptop")
    for _ in range(2):
        line = opened(promoting)
        line.resume()
        line.halt()
        assert line.recorder.status.state == "live"
    assert len(line.recorder.events(Promoted)) == 1
    with pytest.raises(Conflict, match="r1 was already promoted by ada from laptop at "):
        line.promote("web-1", "", "eve", "desk")


def test_a_promotion_whose_commit_was_not_made_stands_at_its_gate_again(promoting: Path) -> None:
    line = opened(promoting)
    line.resume()
    assert line.recorder.status.state == "awaiting-confirmation"
    assert line.promote("web-1", "", "eve", "desk").by == "eve"
    assert line.recorder.status.state == "live"


def failed(place: Path, ago_hours: float) -> Line:
    """A rollout that failed so long ago, as the agent of today finds it."""
    line = opened(place)
    release = Release("r1", "web", "d", (), ())
    line.releases.propose(release, "web-1", "ada", "laptop")
    plan = Plan(1, "t", "web", "eu", "d", "", "c", (), (Promote(),), release)
    line.recorder.accept("web-1", plan, Accepted("r1", "", "digest", "ada", "laptop", (("promote", 0),)))
    line.recorder.store(Failed("promote", "disk full", "make room"))
    line.recorder._status = replace(line.recorder.status, changed=time.time() - ago_hours * 3600)
    return line


def test_a_failed_rollout_keeps_what_it_built_for_its_time_and_is_then_discarded(tmp_path: Path) -> None:
    kept, over = failed(tmp_path / "kept", 71.9), failed(tmp_path / "over", 72.1)
    for line in (kept, over):
        line.mind()
    until = time.monotonic() + 10
    while over.recorder.status.state != "discarded" and time.monotonic() < until:
        time.sleep(0.01)
    assert over.recorder.status.state == "discarded"
    assert over.recorder.status.decided_by == "the agent, 72 h after the failure"
    assert (kept.recorder.status.state, kept.recorder.status.held) == ("planned", "failed")


def test_an_attached_rollout_pauses_only_when_nobody_has_watched_for_a_while() -> None:
    vigil = Vigil(72.0, attached=True)
    assert [vigil.due(Status(), watched, True) for watched in (True, False)] == [None, None]
    vigil._watched -= ATTACHED_SECONDS + 1
    assert vigil.due(Status(), True, True) is None
    vigil._watched -= ATTACHED_SECONDS + 1
    assert vigil.due(Status(), False, True) == ("pause", "the agent, since its console left")
    assert vigil.due(Status(), False, True) is None
