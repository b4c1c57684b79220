"""A pipeline's gate across restarts of its agent, on real release tables. No Java: nothing here moves a row."""

from pathlib import Path

import pytest

from console.agent.feeds.follow import Follower
from console.agent.line import Line
from console.agent.session import Settings, Spark
from console.errors import Conflict
from console.model.event import Accepted, Entered, Promoted
from console.model.live import Release
from console.model.plan import Plan
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
