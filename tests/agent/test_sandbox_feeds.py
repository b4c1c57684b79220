"""Live rows of sandboxes, without Java: the real logs, positions, commits and threads; Arrow reads what Spark would."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console import crash
from console.agent.execution.executor import PlanExecutor
from console.agent.feeds.follower import FeedFollower
from console.agent.maintenance.maintainer import fed_tables, needs
from console.agent.pipeline import PipelineController
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log
from console.model.event import StepDone
from console.model.plan import Plan
from tests.agent.copying import by_arrow
from tests.agent.test_sandboxes import order
from tests.faults.rules.tables import SCHEMA, column_values, foreign, rows
from tests.model.test_sandbox_plan import plan

pytestmark = pytest.mark.slow
SECONDS = 20.0


class FedRegion:
    """r1 is live, and `events` holds row 1. Builds do nothing but open the feeds, as a build does at its fence."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.controller = self._opened()

    def _opened(self) -> PipelineController:
        settings = Settings(region="eu", tick_seconds=0.05, follow_share=1.0)
        spark = SparkHandle(settings, -1)
        return PipelineController(
            self.place, "web", spark, FeedFollower(spark, 1.0, lambda *_: None, settings.follow), settings
        )

    def another_agent(self) -> None:
        self.controller.sandboxes.stop()
        self.controller = self._opened()
        self.controller.resume()

    def land(self, *numbers: int) -> None:
        foreign(self.place / "events", rows(*numbers))

    def build(self, name: str, *, follows: bool = True, what: Plan | None = None) -> None:
        """A sandbox whose history is row 1."""
        self.controller.preview(what or plan(), replace(order(name), follows=follows))
        (sandbox,) = (each for each in self.controller.sandboxes.opened() if each.order.name == name)
        for feed in self.controller.sandboxes.feeds.of(sandbox.plan):
            write_deltalake(feed.target_path, SCHEMA.empty_table(), partition_by=["day"])
            feed.start = 0 if feed.spec.source == "requests" else log.latest_version(feed.source_path)
            feed.open(None)
        for step in sandbox.plan.steps:
            sandbox.recorder.store(StepDone(step.id))
        self.tick()

    def tick(self, seconds: float = 0.0) -> None:
        """What the agent does each second. seconds: by which its clock is ahead"""
        if self.controller.sandboxes.due(time.time() + seconds):
            self.controller.sandboxes.tick(time.time() + seconds)

    def tables(self, name: str) -> dict[str, str]:
        """The sandbox's own tables: name → path."""
        (sandbox,) = (each for each in self.controller.sandboxes.opened() if each.order.name == name)
        return {feed.spec.target: feed.target_path for feed in self.controller.sandboxes.feeds.of(sandbox.plan)}

    def shows(self, name: str, *numbers: int) -> None:
        """Wait until the last of the rows has passed both feeds; then each must be there once."""
        for path in self.tables(name).values():
            wait(lambda path=path: set(numbers) <= set(column_values(path)))
            assert column_values(path) == sorted(numbers)

    def stays(self, name: str, *numbers: int) -> None:
        """While rows land, nothing is committed to the sandbox."""
        before = {path: log.latest_version(path) for path in self.tables(name).values()}
        self.land(*numbers)
        time.sleep(0.5)
        assert {path: log.latest_version(path) for path in before} == before


def wait(reached: Callable[[], bool]) -> None:
    until = time.monotonic() + SECONDS
    while not reached():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FedRegion]:
    (tmp_path / "_console").mkdir()
    (tmp_path / "_console" / "marker.json").write_text("{}")
    monkeypatch.setattr(PlanExecutor, "run", lambda _: None)
    monkeypatch.setattr(SparkHandle, "session", lambda *_, **__: object())
    by_arrow(monkeypatch)
    made = FedRegion(tmp_path)
    releases = made.controller.releases
    live = replace(plan().release, id="r1", tables=plan().release.tables[:2], feeds=plan().release.feeds[2:])
    releases.propose(live, "web-1", "ada", "laptop")
    releases.swap("", "r1", "ada", "laptop")
    made.land(1)
    write_deltalake(str(tmp_path / "kept/k-1"), pa.table({"id": ["e1"]}))
    yield made
    made.controller.sandboxes.stop()


def test_rows_that_arrive_later_flow_into_it_once_and_the_next_agent_goes_on(region: FedRegion) -> None:
    region.build("one")
    region.land(2, 3)
    region.shows("one", 2, 3)
    region.another_agent()
    region.land(4)
    region.tick()
    region.shows("one", 2, 3, 4)
    (listed,) = region.controller.sandboxes.listed()
    assert (listed.follows, listed.live_rows) == (True, "yes")


def test_a_commit_whose_outcome_was_lost_is_not_repeated(region: FedRegion, monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[str] = []

    def lose(name: str) -> None:
        if name == "after-commit-live" and len(lost) < 2:
            lost.append(name)
            raise ConnectionError("the answer is lost")

    monkeypatch.setattr(crash, "point", lose)
    region.build("one")
    region.land(2)
    region.land(3)
    region.shows("one", 2, 3)
    assert len(lost) == 2


def test_nothing_flows_into_one_that_did_not_ask_for_it(region: FedRegion) -> None:
    region.build("one", follows=False)
    region.stays("one", 2)
    assert not region.controller.sandboxes.due(time.time())
    region.controller.preview(plan(), replace(order("one"), follows=True))
    region.shows("one", 2)
    region.controller.preview(plan(), order("one"))
    region.stays("one", 3)


@pytest.mark.parametrize("ended", ["dropped", "expired"])
def test_nothing_is_written_once_it_is_gone(region: FedRegion, ended: str) -> None:
    region.build("one")
    region.land(2)
    region.shows("one", 2)
    paths = tuple(region.tables("one").values())
    if ended == "dropped":
        region.controller.drop_preview("one")
    else:
        region.tick(2 * 3600.0)
    assert region.controller.sandboxes.feeds.fed == frozenset()
    region.land(3)
    time.sleep(0.3)
    assert not any(Path(path).exists() for path in paths)


def test_a_rollout_takes_the_feeds_over_and_gives_them_back_if_it_is_cancelled(region: FedRegion) -> None:
    region.build("one")
    region.land(2)
    region.shows("one", 2)
    region.controller.accept(plan(), "ada", "laptop")
    assert region.controller.sandboxes.feeds.fed == frozenset()  # before the rollout's own build opens them
    region.tick()
    assert [each.state for each in region.controller.sandboxes.listed()] == ["adopted"]
    region.stays("one", 3)
    region.controller.control("cancel", "ada")
    region.tick()
    region.shows("one", 2, 3)


def test_a_rollout_builds_anew_what_a_log_no_longer_tells_in_full(region: FedRegion) -> None:
    region.build("one")
    own = set(region.tables("one").values())
    (Path(region.tables("one")["requests"]) / "_delta_log" / f"{0:020}.json").unlink()
    region.controller.accept(plan(), "ada", "laptop")
    stored = region.controller.recorder.plan
    assert stored is not None
    assert own.isdisjoint(region.controller.path(state.version.path) for state in stored.release.tables)
    assert region.controller.sandboxes.feeds.fed == {"one"}


def test_several_side_by_side_get_the_same_rows_and_one_that_stops_stops_alone(region: FedRegion) -> None:
    region.build("one")
    region.build("two")
    requests = region.tables("one")["requests"]
    DeltaTable(requests).delete("n = 99")  # without rows: no rewrite
    region.land(2)
    for name in ("one", "two"):
        region.shows(name, 2)
    DeltaTable(requests).delete("n = 2")
    region.land(3)
    region.shows("two", 2, 3)
    wait(lambda: region.controller.sandboxes.listed()[0].live_rows == "stopped")
    one, two = region.controller.sandboxes.listed()
    assert "not ours" in one.text("r1", time.time())
    assert two.live_rows == "yes"
    assert region.controller.feeds.follower.feeds("web") == ()  # neither an alignment nor a promotion waits for it


def test_what_it_has_not_read_is_needed_and_its_tables_are_compacted(region: FedRegion) -> None:
    region.build("one")
    region.land(2)
    region.shows("one", 2)
    needed = needs([region.controller])[str(region.place / "events")]
    assert [need.version for need in needed if "into requests of preview one" in need.why] == [1]
    assert set(fed_tables(region.controller)) == set(region.tables("one").values())
    region.controller.drop_preview("one")
    assert not any("preview" in need.why for need in needs([region.controller])[str(region.place / "events")])
    assert fed_tables(region.controller) == {}


def test_spark_sleeps_beside_one_to_which_no_row_comes(region: FedRegion) -> None:
    region.build("one")
    region.land(2)
    region.shows("one", 2)
    feeds = region.controller.sandboxes.feeds
    wait(lambda: feeds.let_go(0.0))
    assert feeds.last_used > 0.0
    assert not feeds.let_go(3600.0)
