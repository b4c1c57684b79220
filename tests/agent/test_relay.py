"""A landing table changes its version under a writer that never stops, is interrupted by a kill at every point, and is rolled back. Real logs, no Java."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.errors import NumberFormatException

from console import crash
from console.agent.errors import WriteSkipped
from console.agent.feeds import app_ids, commit
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import RELAY, LiveFeed, relay_feeds
from console.agent.ingest import loads
from console.agent.ingest.landing import LandingWriter
from console.agent.pipeline import PipelineController
from console.agent.relay import switch
from console.agent.settings import Settings
from console.errors import Conflict, FeedStopped
from console.model.event import Accepted, Entered
from console.model.live import Feed, Relay, Release, TableState
from console.model.load import START, EventRun, chain_of
from console.model.step import Promote
from tests.agent.copying import Rows, by_arrow
from tests.faults.rules.tables import COLUMNS, SCHEMA, column_values, commit_rows, number, rows, state
from tests.plans import bare_plan

pytestmark = pytest.mark.slow

OLD, NEW, THIRD, SHARED = "landing", "landing.versions/b-2", "landing.versions/c-3", "copy/a-1"
BELOW = Feed(materialization="every", source="landing", target="copy", sql="SELECT n, day FROM landing")
OWN = Feed(materialization="some", source="landing", target="made", sql="SELECT n, day FROM landing")
SAME = "SELECT n, day FROM landing"


class Killed(Exception):
    """The agent dies here."""


def table(name: str, path: str, *partition_by: str, **more: Any) -> TableState:
    made = state(name, partition_by=partition_by, **more)
    return replace(made, version=replace(made.version, path=path))


def release(id: str, landing: str, made: str, *partition_by: str, relays: tuple[Relay, ...] = ()) -> Release:
    tables = (
        table("landing", landing, *partition_by, kind="landing", managed=True),
        table("copy", SHARED),
        table("made", made),
    )
    feeds = (replace(BELOW, moved=bool(relays)), OWN)
    return Release(id=id, pipeline="web", digest="d", tables=tables, feeds=feeds, relays=relays)


def relay(lost: tuple[str, ...] = ()) -> Relay:
    return Relay(table="landing", older=OLD, forward=SAME, backward=SAME, columns=COLUMNS, lost=lost)


class Region:
    """r1 is live; r2 is at the gate, with a landing version of its own that has caught up, and a table built from that."""

    def __init__(self, place: Path, lost: tuple[str, ...] = ()) -> None:
        self.place = place
        (place / "_console").mkdir()
        (place / "_console" / "marker.json").write_text("{}")
        self.r1 = release("r1", OLD, "made/a-1")
        self.r2 = release("r2", NEW, "made/a-2", "day", relays=(relay(lost),))
        for path, by in ((OLD, []), (NEW, ["day"]), (SHARED, ["day"]), ("made/a-1", ["day"]), ("made/a-2", ["day"])):
            DeltaTable.create(self.path(path), schema=SCHEMA, partition_by=by)
        self.begin(SHARED, BELOW)
        self.begin("made/a-1", OWN)
        self.begin("made/a-2", OWN)
        (there,) = relay_feeds(self.r1, self.r2, self.path)
        commit_rows(self.path(NEW), there.app_id, number(1, 0), rows())
        self.sent: list[int] = []
        self.acknowledged: list[str] = []
        self.waits: list[float] = []
        self.start()
        self.line.releases.propose(self.r1, "web-1", "ada", "laptop")
        self.line.releases.swap("", "r1", "ada", "laptop")
        self.line.releases.propose(self.r2, "web-2", "ada", "laptop")
        plan = bare_plan(live="r1", steps=(Promote(),), release=self.r2)
        accepted = Accepted(release="r2", was="r1", plan="", by="ada", host="laptop", steps=(("promote", 0),))
        self.line.recorder.accept("web-2", plan, accepted)
        self.line.recorder.store(Entered("awaiting-confirmation"))
        self.line.resume()

    r3: Release

    def path(self, version: str) -> str:
        return str(self.place / version)

    def begin(self, path: str, feed: Feed) -> None:
        commit_rows(self.path(path), app_ids.live_id(self.path(path), feed), number(1, 0), rows())

    def start(self) -> None:
        """An agent, as after a death."""
        spark = cast(
            Any,
            SimpleNamespace(
                session=lambda **_: None,
                live_session=lambda **_: None,
                give_up=lambda _: None,
                lost=False,
                started=False,
            ),
        )
        self.follower = FeedFollower(spark, 0.01, lambda *_: None)
        self.line = PipelineController(self.place, "web", spark, self.follower, Settings(region="eu"))
        self.line.resume()
        self.follower.start()

    def stop(self) -> None:
        self.follower.stop()
        self.follower.join(20)

    def live(self) -> str:
        stored = self.line.releases.in_state("live")
        assert stored is not None
        return stored.row.id

    def switch(self) -> None:
        """To the other release, by promotion or the way back."""
        if self.line.recorder.status.shown == "awaiting-confirmation":
            self.line.promote("web-2", "r1", "ada", "laptop")
        else:
            self.line.rollback(self.live(), "ada", "laptop")

    def send(self, *, batch: str = "", run: EventRun | None = None, lines: int = 3) -> dict[str, Any]:
        numbers = [] if batch else list(range(len(self.sent), len(self.sent) + lines))
        texts = [json.dumps({"n": n, "day": "2026-11-01"}) for n in numbers] or [json.dumps({"n": -1})]
        name = batch or f"b{len(self.acknowledged)}"
        started = time.monotonic()
        done = LandingWriter(self.line).append("landing", name, texts, run)
        self.waits.append(time.monotonic() - started)
        if not batch:
            self.sent += numbers
            self.acknowledged.append(name)
        return done

    def settle(self) -> None:
        """Every feed has what is in the landing table now. A promotion's drain would do with the position of the last tick."""
        self.follower.align("web").result(20)

    def versions(self) -> list[list[int]]:
        return [column_values(self.path(path)) for path in (OLD, NEW, SHARED, "made/a-1", "made/a-2")]


@pytest.fixture
def region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Region]:
    by_arrow(monkeypatch)
    loads.forget()
    made = Region(tmp_path)
    yield made
    made.stop()


def whole(region: Region) -> None:
    """Every version of every table has every row once."""
    region.settle()
    assert region.versions() == [sorted(region.sent)] * 5


def test_rows_follow_the_live_version_forth_and_back_and_forth_again(region: Region) -> None:
    region.send()
    for _ in range(3):
        region.switch()
        region.send()
        whole(region)
    assert region.live() == "r2"
    (feed,) = (feed for feed in region.follower.feeds("web") if feed.spec.materialization == RELAY)
    assert (feed.source_path, feed.target_path) == (region.path(NEW), region.path(OLD))


def test_a_row_that_does_not_convert_shuts_the_switch_by_its_own_code(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the switch meets it before the follower does."""
    region.send()
    region.switch()
    (feed,) = (feed for feed in region.follower.feeds("web") if feed.spec.materialization == RELAY)

    def failing(*_: Any) -> int:
        raise NumberFormatException(
            "[CAST_INVALID_INPUT] The value 'x' of the type \"STRING\" cannot be cast. SQLSTATE: 22018"
        )

    with region.follower.hold("web", 5, aligned=False):
        region.send()
        monkeypatch.setattr(LiveFeed, "step", failing)
        with pytest.raises(FeedStopped, match="does not convert") as refused:
            switch.drain(None, region.follower, "web", feed)
    assert (refused.value.code, "in the forward_query of landing" in refused.value.hint) == ("C301", True)
    assert feed.health.stopped is not None


def test_the_pair_of_versions_that_hold_the_same_rows_is_on_record(region: Region) -> None:
    region.send()
    region.switch()
    (note,) = (
        json.loads(commit["userMetadata"])
        for commit in DeltaTable(region.path(OLD)).history()
        if '"kind": "relay"' in commit.get("userMetadata", "")
    )
    before = DeltaTable(region.path(OLD), version=note["closed"]).to_pyarrow_table().num_rows
    assert before == DeltaTable(region.path(NEW), version=note["at"]).to_pyarrow_table().num_rows == 3


def test_a_batch_that_one_version_has_taken_counts_in_the_other(region: Region) -> None:
    region.send()
    region.switch()
    assert region.send(batch="b0")["already"] is True
    region.send()
    region.switch()
    assert [region.send(batch=name)["already"] for name in ("b0", "b1")] == [True, True]
    whole(region)


def test_a_file_of_which_each_version_has_taken_a_part_goes_on_where_it_stands(region: Region) -> None:
    lines = [json.dumps({"n": n, "day": "2026-11-01"}) for n in range(4)]
    chains = [START]
    for line in lines:
        chains.append(chain_of(chains[-1], [line])[0])

    def send(first: int, last: int) -> dict[str, Any]:
        run = EventRun(
            load="day1", first=chains[1].hex(), after=first, before=chains[first].hex(), at=((first + 1, last - first),)
        )
        return LandingWriter(region.line).append("landing", "", lines[first:last], run)

    assert send(0, 2) == {"rows": 2, "already": False}
    region.switch()
    assert send(0, 2)["already"] is True
    assert send(2, 4) == {"rows": 2, "already": False}
    region.switch()
    assert send(2, 4)["already"] is True
    result = LandingWriter(region.line).load_state("landing", "day1", chains[1].hex(), named=True, batch="", after=0)
    assert [head.rows for head in result.heads] == [4]
    region.sent = [0, 1, 2, 3]
    whole(region)


def test_a_writer_that_never_stops_waits_for_the_switch_and_loses_nothing(region: Region) -> None:
    enough, failed = threading.Event(), list[Exception]()

    def write() -> None:
        try:
            while not enough.is_set():
                region.send(lines=20)
                time.sleep(0.05)
        except Exception as error:
            failed.append(error)

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(3):
        time.sleep(0.5)
        region.switch()
    enough.set()
    writer.join()
    assert not failed
    assert sorted(region.waits)[-1] < 2
    whole(region)


POINTS = (
    "before-commit-live", "after-commit-live", "before-commit-take-over", "after-commit-take-over", "before-commit-relay",
    "after-commit-relay", "before-commit-rebind", "after-commit-rebind", "before-swap", "after-swap",
)  # fmt: skip


# on the way back the same code runs with the sides exchanged: one death on each side of its own commit in every run
BACK = ("before-swap", "after-swap")


@pytest.mark.parametrize(
    ("turn", "point"),
    [
        *((0, point) for point in POINTS),
        *(pytest.param(1, point, marks=() if point in BACK else pytest.mark.soak) for point in POINTS),
    ],
)
def test_a_death_at_any_point_of_a_switch_leaves_every_row_once(
    region: Region, point: str, turn: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """turn  0: of the promotion, 1: of the way back"""
    if turn:
        region.switch()
    region.settle()
    armed = {point}

    def die(reached: str) -> None:
        if reached in armed and threading.current_thread() is threading.main_thread():
            armed.clear()
            raise Killed

    monkeypatch.setattr(crash, "point", die)
    with region.follower._tick_lock:  # what comes now is left to the switch
        region.send()
    try:
        region.switch()
        assert "live" in point  # the follower may have been faster than the switch
    except Killed:
        region.stop()
        region.start()
    region.send()
    assert region.send(batch="b0")["already"] is True
    whole(region)
    region.switch()
    region.send()
    whole(region)


def test_a_late_commit_of_the_relay_that_was_closed_does_not_count(region: Region) -> None:
    region.send()
    region.settle()
    (there,) = (feed for feed in region.follower.feeds("web") if feed.spec.materialization == RELAY)
    late = there.writer
    assert late is not None
    region.switch()
    with pytest.raises(WriteSkipped):
        commit.append_small(Rows(rows(99)), replace(late, seen=late.seen), late.position + 1, {"kind": "live"})
    region.send()
    whole(region)


def third(region: Region) -> None:
    """r3 at the gate, with a third version of the landing table, built before the first one is cleaned up."""
    region.r3 = release("r3", THIRD, "made/a-3", relays=(replace(relay(), older=NEW),))
    for path in (THIRD, "made/a-3"):
        DeltaTable.create(region.path(path), schema=SCHEMA, partition_by=["day"] if path != THIRD else [])
    region.begin("made/a-3", OWN)
    (there,) = relay_feeds(region.r2, region.r3, region.path)
    rows_so_far = DeltaTable(region.path(NEW)).to_pyarrow_table().select(SCHEMA.names).cast(SCHEMA)
    at = DeltaTable(region.path(NEW)).version()
    commit_rows(region.path(THIRD), there.app_id, number(1, at), rows_so_far)
    region.line.releases.propose(region.r3, "web-3", "ada", "laptop")
    plan = bare_plan(live="r2", steps=(Promote(),), release=region.r3)
    accepted = Accepted(release="r3", was="r2", plan="", by="ada", host="laptop", steps=(("promote", 0),))
    region.line.recorder.accept("web-3", plan, accepted)
    region.line.recorder.store(Entered("awaiting-confirmation"))
    region.line.resume()


def test_two_changes_in_a_day_and_back_through_both(region: Region) -> None:
    region.send()
    region.switch()
    region.send()
    region.settle()
    third(region)
    region.send()
    region.line.promote("web-3", "r2", "ada", "laptop")
    region.send()
    assert [region.send(batch=f"b{n}")["already"] for n in range(4)] == [True] * 4
    region.settle()
    everything = sorted(region.sent)
    new = [column_values(region.path(path)) for path in (NEW, THIRD, SHARED, "made/a-2", "made/a-3")]
    assert new == [everything] * 5
    region.line.rollback("r3", "ada", "laptop")
    region.send()
    region.settle()
    assert region.live() == "r2"
    everything = sorted(region.sent)
    assert [column_values(region.path(path)) for path in (NEW, THIRD, SHARED)] == [everything] * 3
    # the first version went with its release; nothing is followed into it any more
    assert region.path(OLD) not in {feed.target_path for feed in region.follower.feeds("web")}


def test_a_version_that_is_dropped_leaves_its_ids_to_the_live_one(region: Region) -> None:
    region.send()
    region.switch()
    region.send()
    region.switch()
    whole(region)
    assert set(region.line.cleanup("ada", dry_run=False, previous=True)) == {NEW, "made/a-2"}
    assert not (region.place / NEW).exists()
    loads.forget()
    assert [region.send(batch=name)["already"] for name in ("b0", "b1")] == [True, True]
    assert column_values(region.path(OLD)) == sorted(region.sent)


@pytest.mark.parametrize("point", ["before-commit-ids", "after-commit-ids"])
def test_a_death_while_ids_are_carried_over_leaves_them_to_the_next_cleanup(
    region: Region, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    region.send()
    region.switch()
    region.send()
    region.switch()
    armed = {point}

    def die(reached: str) -> None:
        if reached in armed:
            armed.clear()
            raise Killed

    monkeypatch.setattr(crash, "point", die)
    with pytest.raises(Killed):
        region.line.cleanup("ada", dry_run=False, previous=True)
    assert not armed
    assert (region.place / NEW).exists()
    region.stop()
    region.start()
    assert NEW in region.line.cleanup("ada", dry_run=False, previous=True)
    loads.forget()
    assert [region.send(batch=name)["already"] for name in ("b0", "b1")] == [True, True]
    assert column_values(region.path(OLD)) == sorted(region.sent)


def test_the_last_copy_of_values_is_dropped_by_the_operators_word_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_arrow(monkeypatch)
    region = Region(tmp_path, lost=("n",))
    try:
        region.switch()
        region.switch()
        for others in ((), ("made",)):
            with pytest.raises(
                Conflict, match="its version of landing holds values, and no other release does"
            ) as refused:
                region.line.cleanup("ada", dry_run=True, previous=True, let_go=others)
            assert (refused.value.code, "--allow-destructive landing" in refused.value.hint) == ("E_LAST_COPY", True)
        assert (region.place / NEW).exists()
        assert NEW in region.line.cleanup("ada", dry_run=False, previous=True, let_go=("landing",))
    finally:
        region.stop()


def test_a_version_with_rows_that_the_next_one_has_in_quarantine_is_a_last_copy(region: Region) -> None:
    region.send()
    region.switch()
    region.settle()
    third(region)
    ledger = pa.Table.from_pylist([{"rollout": "web-3", "source": "landing", "target": "landing", "key": "n=0"}])
    write_deltalake(str(region.place / "_console" / "web" / "quarantine"), ledger)
    region.line.promote("web-3", "r2", "ada", "laptop")
    with pytest.raises(Conflict, match="r2: its version of landing holds rows that are in quarantine"):
        region.line.cleanup("ada", dry_run=True, previous=True)
    assert region.line.cleanup("ada", dry_run=False, previous=False) == ("made/a-1",)
    assert NEW in region.line.cleanup("ada", dry_run=False, previous=True, let_go=("landing",))


def test_the_first_version_keeps_its_folder(region: Region) -> None:
    region.switch()
    assert region.line.cleanup("ada", dry_run=False, previous=True) == ("made/a-1",)
    assert (region.place / OLD).exists()
