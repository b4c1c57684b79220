"""Whole rollouts in the process of the tests, over real Spark and real logs: their batches, messages and comparisons."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from console import crash
from console.agent.feeds import app_ids
from console.agent.feeds.follower import FeedFollower
from console.agent.pipeline import PipelineController
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log, open_tables
from console.model.event import BatchDone, BatchStarted, Checked, Fenced
from console.model.live import Feed, Release, TableState
from console.model.step import Backfill, CatchUp, Comparison, CreateTable, Pair, Promote, Step, Validate
from tests.faults.rules.tables import column_values, foreign, rows, state
from tests.plans import bare_plan

pytestmark = [pytest.mark.faults, pytest.mark.spark]
SQL = "SELECT n, day FROM landing"
FEED = Feed(materialization="every", source="landing", target="copy", sql=SQL)
EVERY = Backfill(
    materialization="every",
    source="landing",
    target="copy",
    route="replay",
    sql=SQL,
    time="day",
    rows=9,
    bytes=1,
    days=4,
    batches=4,
)
FORWARD = Backfill(
    materialization="",
    source="copy",
    target="copy",
    route="forward",
    sql="SELECT n, day FROM copy",
    time="day",
    rows=9,
    bytes=1,
    days=4,
    batches=4,
)
COMPARED = Comparison(table="copy", pairs=(Pair("n", "n"), Pair("day", "day")), time="day")
KEPT_HOURS = 96
TASKS = "spark.sql.files.maxPartitionNum"


def to_be(content: str) -> TableState:
    """A version of `copy` that is to be built."""
    made = state("copy")
    return replace(made, version=replace(made.version, content=content, path=""))


class World:
    """An agent's part over a landing table of others: five rows on 1 November, two and one on the next days, one without."""

    def __init__(self, place: Path, spark: SparkHandle, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.spark = place, spark
        data = (rows(1, 2, 3, 4, 5), rows(6, 7, day=2), rows(8, day=3), rows(9, day=None))
        self.landing = foreign(place / "landing", *data)
        (place / "_console").mkdir()
        (place / "_console" / "marker.json").write_text("{}")
        self.building: list[Any] = []
        monkeypatch.setattr(spark, "build_session", self._build_session)
        self.start()

    def _build_session(self) -> Any:
        self.building.append(SparkHandle.build_session(self.spark))
        return self.building[-1]

    def start(self) -> None:
        """As a fresh agent does."""
        self.follower = FeedFollower(self.spark, 0.05, lambda *_: None)
        settings = Settings(region="eu", rollback_window_hours=KEPT_HOURS)
        self.line = PipelineController(self.place, "web", self.spark, self.follower, settings)
        self.follower.start()

    def stop(self) -> None:
        self.follower.stop()
        self.line.halt()
        self.follower.join(60)

    def accept(self, content: str, *steps: Step, feed: Feed = FEED, copy: TableState | None = None) -> None:
        live = self.line.releases.in_state("live")
        wanted = Release(
            id="",
            pipeline="web",
            digest=content,
            tables=(state("landing", kind="landing"), copy or to_be(content)),
            feeds=(feed,),
        )
        plan = bare_plan(
            desired=content, live=live.row.id if live else "", steps=(*steps, Promote()), release=wanted, rows_limit=3
        )
        self.line.accept(plan, "ada", "laptop")

    def ends(self) -> str:
        """Where the rollout comes to rest."""
        until = time.monotonic() + 120
        while self.shown not in ("awaiting-confirmation", "failed") and time.monotonic() < until:
            time.sleep(0.05)
        return self.shown

    @property
    def shown(self) -> str:
        return self.line.recorder.status.shown

    def promote(self) -> None:
        live = self.line.releases.in_state("live")
        self.line.promote(self.line.recorder.rollout, live.row.id if live else "", "ada", "laptop")

    def copy(self) -> str:
        """Where the version lies that is being built, or was last."""
        plan = self.line.recorder.plan
        result = plan.release.table("copy") if plan else None
        assert result is not None
        return self.line.path(result.version.path)

    def arrive(self, *numbers: int) -> None:
        write_deltalake(self.landing, rows(*numbers, day=4), mode="append", partition_by=["day"])

    def done(self) -> list[BatchDone]:
        return self.line.recorder.events(BatchDone)

    def has(self, *numbers: int) -> bool:
        until = time.monotonic() + 30
        while column_values(self.copy()) != list(numbers) and time.monotonic() < until:
            time.sleep(0.05)
        return column_values(self.copy()) == list(numbers)


@pytest.fixture
def world(tmp_path: Path, session: Any, spark: SparkHandle, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    its_world = World(tmp_path, spark, monkeypatch)
    yield its_world
    its_world.stop()


FIRST = (CreateTable("copy"), EVERY, CatchUp("every", "landing", "copy", "fence"), Validate(()))
# position, label, rows in
BATCHES = [(2, "2026-11-03 … 2026-11-02", 3), (3, "2026-11-01", 5), (4, "no day", 1)]


def test_a_first_release_has_all_of_history_batch_by_batch_and_what_comes_meanwhile(world: World) -> None:
    before = time.time()
    world.accept("a", *FIRST)
    assert world.ends() == "awaiting-confirmation", world.line.recorder.status
    path = world.copy()
    assert column_values(path) == list(range(1, 10))
    (fenced,) = world.line.recorder.events(Fenced)
    assert (fenced.source, fenced.version, fenced.slices, fenced.rows) == ("landing", 3, 4, 9)
    kept = KEPT_HOURS + 24 * 7
    assert 168 * 3600 <= fenced.until - before <= 168 * 3600 + 120, "what others write is kept for a week"
    report = DeltaTable(path).metadata().configuration
    assert report["delta.deletedFileRetentionDuration"] == f"interval {kept} hours"
    assert report["delta.logRetentionDuration"] == f"interval {2 * kept} hours"
    assert [(done.position, done.of, done.rows_in, done.rows_out) for done in world.done()] == [
        (position, 4, many, many) for position, _, many in BATCHES
    ]
    begun = world.line.recorder.events(BatchStarted)
    assert [(each.first, each.last, each.rows) for each in begun] == [(1, 2, 3), (3, 3, 5), (4, 4, 1)]
    assert all(0 < done.seconds < 60 for done in world.done())
    notes = [log.commit(path, done.version).note for done in world.done()]
    assert [note["slices"] for note in notes] == [[1, 2], [3, 3], [4, 4]]
    assert {note["feed"].rpartition("/")[2] for note in notes} == {"every@3"}
    tasks = [session.conf.get(TASKS) for session in world.building]
    assert tasks == [str(world.spark.slots - 1)] * 2, "history's and its receipts'"
    assert [(check.check, check.ok) for check in world.line.recorder.events(Checked)][-1] == (
        "history is complete",
        True,
    )
    world.arrive(10)
    assert world.has(*range(1, 11))
    world.promote()
    world.arrive(11)
    assert world.has(*range(1, 12))


@pytest.mark.soak
def test_a_rebuilt_table_is_copied_from_the_live_one_and_compared_with_it(world: World) -> None:
    world.accept("a", *FIRST)
    assert world.ends() == "awaiting-confirmation", world.line.recorder.status
    world.promote()
    world.arrive(10)
    assert world.has(*range(1, 11))
    other = replace(FORWARD, sql="SELECT if(n = 8, 80, n) AS n, day FROM copy")
    for number, (content, forward) in enumerate((("b", other), ("c", FORWARD))):
        steps = (CreateTable("copy"), forward, CatchUp("every", "landing", "copy", "vector"), Validate((COMPARED,)))
        world.accept(content, *steps)
        assert world.ends() == "awaiting-confirmation", world.line.recorder.status
        checks = {(check.table, check.check): check for check in world.line.recorder.events(Checked)}
        compared = [checks["copy", check] for check in ("rows per day", "unchanged columns")]
        assert [check.ok for check in compared] == [True, forward is FORWARD], checks
        assert ("n on 2026-11-03" in compared[1].detail) is (forward is other)
        assert world.line.recorder.events(Fenced)[-1].rows == 10 + number
        last = log.commit(world.copy(), world.done()[-1].version).note
        assert last["feed"].rpartition("/")[2].startswith("forward@")
        world.arrive(11 + number)
        seen = range(1, 12 + number)
        assert world.has(*([n for n in seen if n != 8] + [80] if forward is other else seen))
        if forward is other:
            world.line.control("discard", "ada")


def test_batches_of_an_agent_that_died_behind_a_commit_are_told_by_the_next_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    deaths = iter((False, True))

    def point(name: str) -> None:
        if name == "after-commit-history" and next(deaths, False):
            raise SystemExit  # ends its thread alone

    with monkeypatch.context() as patched:
        patched.setattr(crash, "point", point)
        patched.setattr(threading, "excepthook", lambda _: None)
        world.accept("a", *FIRST)
        assert world.line.execution.executor is not None
        world.line.execution.executor.join(120)
    world.stop()
    assert [done.position for done in world.done()] == [2], "nobody told the second one"
    assert column_values(world.copy()) == list(range(1, 9))
    first = log.latest_version(world.copy())
    world.start()
    world.line.resume()
    assert world.ends() == "awaiting-confirmation", world.line.recorder.status
    assert [(done.position, done.label, done.rows_in, done.rows_out) for done in world.done()] == [
        (position, label, many, many) for position, label, many in BATCHES
    ]
    assert len(world.line.recorder.events(Fenced)) == 1, "history ends where it ended before"
    second = world.done()[1]
    assert (second.version, second.of, second.seconds) == (first, 4, 0.0)
    assert second.bytes == sum(file.bytes for file in log.commit(world.copy(), first).added)
    assert column_values(world.copy()) == list(range(1, 10))


def test_a_table_below_a_rebuilt_one_is_read_off_its_log_from_the_beginning(world: World) -> None:
    below = state("below")
    below = replace(below, version=replace(below.version, content="z", path=""))
    more = Feed(materialization="more", source="copy", target="below", sql="SELECT n, day FROM copy")
    wanted = Release(
        id="",
        pipeline="web",
        digest="a",
        tables=(state("landing", kind="landing"), to_be("a"), below),
        feeds=(FEED, more),
    )
    steps = (CreateTable("copy"), CreateTable("below"), EVERY, CatchUp("every", "landing", "copy", "fence"))
    steps_below = (CatchUp("more", "copy", "below", "log"), Validate(()), Promote())
    world.line.accept(
        bare_plan(desired="a", steps=(*steps, *steps_below), release=wanted),
        "ada",
        "laptop",
    )
    assert world.ends() == "awaiting-confirmation", world.line.recorder.status
    plan = world.line.recorder.plan
    assert plan is not None
    made = plan.release.table("below")
    assert made is not None
    path = world.line.path(made.version.path)
    assert column_values(path) == list(range(1, 10))
    opened = log.commit(path, 1)
    assert opened.note["kind"] == "take-over"
    assert app_ids.split(next(iter(opened.txn.values()))) == (1, 0)
    assert json.loads(open_tables.schema_json(path))["fields"][0]["name"] == "n"
