"""A shared table moves between two versions of its source, back and forth, and has every row once. No Java: real logs."""

import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from console import crash
from console.agent.feeds import commit, ranges
from console.agent.feeds.follower import FeedFollower
from console.agent.feeds.live_feed import LiveFeed, feeds_to_follow, live_feeds_of, ranked
from console.agent.rollout import rebind
from console.agent.store.ledger import StoredRelease
from console.errors import CheckFailed, FeedStopped
from console.model.live import Feed, Release, ReleaseRow, ReleaseState, TableState, Version
from console.model.schema import Column, Table

pytestmark = pytest.mark.slow

SCHEMA = pa.schema([("n", pa.int64())])
COLUMNS = (Column(name="n", type="bigint"),)


class Killed(Exception):
    """The agent dies here."""


@dataclass(slots=True)
class Copying(LiveFeed):
    """Copies its source's rows as they are, by the real positions and commits."""

    def step(self, session: Any, end: int, rows_limit: int = 0, readings: Any = None) -> int:
        writer = self.open(session)
        part = ranges.next_range(self.source_path, self.seen, end, 1_000_000)
        if part is None:
            return -1
        if part.files:
            rows = pa.concat_tables(pq.read_table(file.path, schema=SCHEMA) for file in part.files)
            data = SimpleNamespace(toArrow=lambda: rows)
            assert commit.append_small(data, writer, part.last, {"kind": "live", "feed": writer.app_id})
        self.seen = part.last
        return part.rows


def state(name: str, path: str) -> TableState:
    kind = "landing" if name == "landing" else "append"
    return TableState(
        table=Table(name=name, kind=kind, columns=COLUMNS),
        version=Version(content="c", path=path, columns=COLUMNS),
        read="SELECT n FROM stored",
        rows="",
        values={},
    )


def release(id: str, parsed: str, *, moved: bool) -> Release:
    tables = (state("landing", "landing"), state("parsed", parsed), state("counted", "counted"))
    feeds = (
        Feed(materialization="parse", source="landing", target="parsed", sql="SELECT n FROM landing"),
        Feed(materialization="count", source="parsed", target="counted", sql="SELECT n FROM parsed", moved=moved),
    )
    return Release(id=id, pipeline="web", digest="d", tables=tables, feeds=feeds)


def fronted() -> dict[str, Release]:
    """`counted` is fed from the landing table itself, and then from an adapter in front of it."""
    count = Feed(materialization="count", source="landing", target="counted", sql="SELECT n FROM landing")
    adapter = release("r2", "parsed2", moved=True)
    tables = tuple(table for table in adapter.tables if table.table.name != "parsed")
    return {"r1": replace(adapter, id="r1", tables=tables, feeds=(count,)), "r2": adapter}


class Region:
    """Two releases that share `counted` and have versions of `parsed` of their own, as an agent finds them."""

    def __init__(self, place: Path, releases: dict[str, Release] | None = None) -> None:
        self.place = place
        for name in ("landing", "parsed1", "parsed2", "counted"):
            DeltaTable.create(str(place / name), SCHEMA)
        own = {"r1": release("r1", "parsed1", moved=False), "r2": release("r2", "parsed2", moved=True)}
        self.releases = releases or own
        self.live = "r1"
        self.rows = 0
        self.start()

    def start(self) -> None:
        spark = cast(Any, SimpleNamespace(session=lambda: None, live_session=lambda: None, give_up=lambda _: None))
        self.spark, self.follower = spark, FeedFollower(spark, 0.01, lambda *_: None)
        self.refollow()

    def path(self, version: str) -> str:
        return str(self.place / version)

    def stored(self) -> tuple[StoredRelease, ...]:
        states: dict[str, ReleaseState] = {id: "live" if id == self.live else "previous" for id in self.releases}
        return tuple(
            StoredRelease(ReleaseRow(id=id, state=states[id]), each_release, "")
            for id, each_release in self.releases.items()
        )

    def refollow(self) -> None:
        each = [live_feeds_of(item.release, self.path) for item in ranked(self.stored())]
        self.follower.follow("web", tuple(self._copying(feed) for feed in feeds_to_follow(each)))

    def _copying(self, feed: LiveFeed) -> LiveFeed:
        start = -1 if feed.spec.moved else 0  # a feed that moved begins where it was placed, and nowhere else
        return Copying(
            spec=feed.spec, source=feed.source, target=feed.target, joins=feed.joins, source_path=feed.source_path,
            target_path=feed.target_path, start=start,
        )  # fmt: skip

    def tick(self) -> None:
        self.follower._move_pipeline("web")

    def arrive(self) -> None:
        write_deltalake(self.path("landing"), pa.table({"n": [self.rows]}, SCHEMA), mode="append")
        self.rows += 1

    def swap(self, to: str, *, at: str = "") -> None:
        """Change releases as the agent does; `at` breaks off before or after the swap itself."""
        stored = self.stored()
        changing = rebind.rebindings_for(stored, to, self.path)
        moved = rebind.rebound(self.spark, self.follower, "web", changing, self.refollow) if changing else nullcontext()
        with rebind.level(self.follower, "web", stored, to, self.path, all_feeds=bool(changing)), moved:
            if at == "before":
                raise Killed
            self.live = to
            if at == "after":
                raise Killed
            self.refollow()

    def shared(self) -> list[int]:
        table = DeltaTable(self.path("counted")).to_pyarrow_table()
        return sorted(table.column("n").to_pylist())

    def settle(self) -> None:
        for _ in range(3):
            self.tick()
        assert {feed.health.stopped for feed in self.follower.feeds("web")} == {None}


@pytest.fixture
def region(tmp_path: Path) -> Region:
    return Region(tmp_path)


def armed(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Die at the next crash point of that name, once."""

    def point(reached: str) -> None:
        if reached == name:
            monkeypatch.undo()
            raise Killed

    monkeypatch.setattr(crash, "point", point)


CUTS = ("", "before-commit-take-over", "after-commit-take-over", "before-commit-rebind", "after-commit-rebind")


@pytest.mark.parametrize("releases", [dict, fronted], ids=["of two versions", "of an adapter"])
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in (1, 2, 3))])
def test_whatever_breaks_off_the_shared_table_has_every_row_once(
    tmp_path: Path, seed: int, releases: Callable[[], dict[str, Release]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows arrive, releases change hands and are cut short anywhere, the agent goes on or is started anew."""
    rng, region = random.Random(seed), Region(tmp_path, releases())
    for _ in range(14):
        for _ in range(rng.randrange(3)):
            region.arrive()
        if rng.random() < 0.3:
            region.tick()  # one tick may leave some of the feeds behind
        else:
            region.settle()
            for _ in range(rng.randrange(3)):
                region.arrive()  # what came since the tick is taken up by whoever feeds the table then
        if not region.follower.is_aligned("web"):
            continue
        to = "r2" if region.live == "r1" else "r1"
        at, cut = rng.choice(["", "", "before", "after"]), rng.choice(CUTS)
        if cut:
            armed(monkeypatch, cut)
        try:
            region.swap(to, at=at)
        except Killed:
            if rng.random() < 0.5:
                region.start()
        monkeypatch.undo()
    region.settle()
    assert region.shared() == list(range(region.rows))


def test_the_new_feed_begins_after_what_the_old_one_brought(region: Region) -> None:
    for _ in range(3):
        region.arrive()
    region.settle()
    region.swap("r2")
    assert [feed.key[0] for feed in region.follower.feeds("web")] == [
        region.path(name) for name in ("landing", "parsed2", "landing")
    ]
    region.arrive()
    region.settle()
    assert region.shared() == [0, 1, 2, 3]
    notes = [
        commit["userMetadata"] for commit in DeltaTable(region.path("counted")).history() if "userMetadata" in commit
    ]
    assert sum('"kind": "rebind"' in note for note in notes) == 1


def test_rows_that_others_write_meanwhile_neither_delay_an_adapter_nor_get_lost(tmp_path: Path) -> None:
    region = Region(tmp_path, fronted())
    for to in ("r2", "r1", "r2"):
        region.arrive()
        region.settle()
        region.arrive()  # its producers do not wait for anybody
        region.swap(to)
    region.settle()
    assert region.shared() == list(range(6))


def test_a_late_commit_of_the_feed_that_was_closed_is_refused(region: Region) -> None:
    region.arrive()
    region.settle()
    late = next(feed for feed in region.follower.feeds("web") if feed.target_path == region.path("counted")).writer
    assert late is not None
    writer = replace(late)
    region.arrive()
    region.settle()
    region.swap("r2")
    rows = SimpleNamespace(toArrow=lambda: pa.table({"n": [1]}, SCHEMA))
    with pytest.raises(FeedStopped, match="another writer"):
        commit.append_small(rows, writer, writer.position + 100, {"kind": "live"})
    region.settle()
    assert region.shared() == [0, 1]


def test_where_it_cannot_be_told_what_is_followed_now_neither_feed_moves(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    region.arrive()
    region.settle()

    def unreadable() -> None:
        raise OSError("disk full")

    monkeypatch.setattr(region, "refollow", unreadable)
    with pytest.raises(OSError, match="disk full"):
        region.swap("r2")
    region.arrive()
    for _ in range(2):
        region.tick()
    assert region.shared() == [0]
    monkeypatch.undo()
    region.refollow()
    region.settle()
    assert region.shared() == [0, 1]


def test_where_the_sources_do_not_stand_level_nothing_changes_hands(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebind, "ALIGN_SECONDS", 0.0)
    region.arrive()
    with pytest.raises(CheckFailed, match="did not catch up"):
        region.swap("r2")
    assert region.live == "r1"


def test_releases_that_share_nothing_with_another_source_change_hands_once_they_stand_level(
    region: Region, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebind, "ALIGN_SECONDS", 0.0)
    region.releases["r2"] = replace(region.releases["r1"], id="r2")
    assert rebind.rebindings_for(region.stored(), "r2", region.path) == ()
    with pytest.raises(CheckFailed, match="did not catch up"):
        region.swap("r2")  # without a tick, so nothing stands level
    assert region.live == "r1"
    region.settle()
    region.swap("r2")
    assert region.live == "r2"


def test_a_version_that_several_releases_name_is_fed_by_the_first_of_them(region: Region) -> None:
    first, second = (live_feeds_of(region.releases[id], region.path) for id in ("r1", "r2"))
    fed = [(feed.source_path, feed.target_path) for feed in feeds_to_follow([second, first])]
    names = [(Path(source).name, Path(target).name) for source, target in fed]
    assert names == [("landing", "parsed2"), ("parsed2", "counted"), ("landing", "parsed1")]


# -- drained before the gate opens


def standing(region: Region, *names: str) -> None:
    """The feeds into these tables stand still from now on."""
    for feed in region.follower.feeds("web"):
        if Path(feed.target_path).name in names:
            feed.health.stop(FeedStopped(f"{Path(feed.target_path).name} stands", code="E_REWRITE"))


def drained(region: Region, to: str, stored: tuple[StoredRelease, ...] = ()) -> None:
    with rebind.level(region.follower, "web", stored or region.stored(), to, region.path):
        pass


@pytest.mark.parametrize("order", [1, -1])
def test_only_the_feeds_of_the_release_that_is_to_answer_have_to_move(region: Region, order: int) -> None:
    """Its neighbour may stand still: what replaces it is how it is mended."""
    stored = region.stored()[::order]
    region.settle()
    drained(region, "r1", stored)
    drained(region, "r2", stored)
    standing(region, "parsed2")
    region.tick()
    drained(region, "r1", stored)
    with pytest.raises(FeedStopped, match="parsed2 stands"):
        drained(region, "r2", stored)
    region.start()
    region.settle()
    standing(region, "parsed1", "counted")
    region.tick()
    drained(region, "r2", stored)
    with pytest.raises(FeedStopped, match="parsed1 stands"):
        drained(region, "r1", stored)


def test_a_feed_that_stands_still_goes_on_by_what_the_release_to_come_says_of_it(region: Region) -> None:
    region.arrive()
    region.settle()
    standing(region, "parsed1")
    region.arrive()
    region.follower.start()
    try:
        with pytest.raises(FeedStopped, match="parsed1 stands"):
            drained(region, "r1")
        landing, *others = region.releases["r1"].tables
        lenient = replace(landing, table=replace(landing.table, on_rewrite="ignore"))
        region.releases["r1"] = replace(region.releases["r1"], tables=(lenient, *others))
        drained(region, "r1")
    finally:
        region.follower.stop()
        region.follower.join(30)
    assert region.shared() == [0, 1]
    assert {feed.source.table.on_rewrite for feed in region.follower.feeds("web") if feed.spec.target == "parsed"} == {
        "ignore",
        "stop",
    }
