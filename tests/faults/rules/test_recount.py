"""Live commits computed again from Delta's own reading: what a feed did wrong is found, and what it did right is not."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, write_deltalake
from deltalake.schema import PrimitiveType

from console.agent.feeds import commit, live_feed
from console.agent.feeds.live_feed import LiveFeed
from console.agent.recount import files, liveness
from console.agent.recount import rows as recounted
from console.agent.recount.live import RecountResult, pinned_feed, recount
from console.agent.recount.liveness import quiet
from console.agent.store import log
from console.model.live import Feed, TableState, Terms, Version
from console.model.schema import Column, Table

pytestmark = [pytest.mark.faults, pytest.mark.spark]

LANDING = (
    Column(name="k", type="bigint"), Column(name="city", type="string"), Column(name="x", type="double"), Column(name="tags", type="array<string>"), Column(name="at", type="timestamp")
)  # fmt: skip
COPY = (*LANDING[:3], Column(name="tag", type="string"), Column(name="owner", type="string"))
COPIED = """SELECT landing.k, landing.city, landing.x, tag, owners.name AS owner FROM landing
  LEFT JOIN owners ON owners.k = landing.k % 3 LATERAL VIEW explode(tags) AS tag WHERE landing.k <> 13"""
STATES = (
    Column(name="city", type="string"), Column(name="rows", type="bigint"), Column(name="total", type="double"), Column(name="most", type="double"),
    Column(name="who__hll", type="binary"), Column(name="mid__kll", type="binary"),
)  # fmt: skip
SUMMED = """SELECT city, count(*) AS rows, sum(x) AS total, max(x) AS most, hll_sketch_agg(k, 12) AS who__hll,
  kll_sketch_agg_double(x) AS mid__kll FROM landing GROUP BY city"""
TERMS = Terms(
    keys=("city",), sums=("total",), sketches=("who__hll", "mid__kll"), sql="SELECT city, x AS total FROM landing"
)
Row = tuple[int, str | None, float, list[str]]
ROWS: tuple[Row, ...] = (
    (1, "Zürich", 0.1, ["a"]),
    (2, "", 1e16, ["b", "b"]),
    (2, "x=1/%41 {*}", -1e16, []),
    (13, None, 5.0, ["c"]),
)
CANCEL: tuple[Row, ...] = tuple((1, "a", x, []) for x in (1e16, 1.0, -1e16, 1.0))
ARROW = pa.schema(
    [
        ("k", pa.int64()),
        ("city", pa.string()),
        ("x", pa.float64()),
        ("tags", pa.list_(pa.string())),
        ("at", pa.timestamp("us", "UTC")),
    ]
)


def timed(rows: tuple[Row, ...]) -> list[tuple[Any, ...]]:
    """With a time, to the microsecond; one row has none."""
    return [(*row, None if row[0] == 13 else datetime(2026, 11, 1 + row[0], 23, 59, 59, 999_999, UTC)) for row in rows]


def landing() -> TableState:
    return TableState(
        table=Table(name="landing", kind="landing", columns=LANDING, time="at"),
        version=Version(content="l", path="landing", columns=LANDING),
        read="SELECT * FROM stored",
        rows="",
        values={},
    )


def owners() -> TableState:
    columns = (Column(name="k", type="bigint"), Column(name="name", type="string"))
    return TableState(
        table=Table(name="owners", kind="append", columns=columns),
        version=Version(content="o", path="owners", columns=columns),
        read="SELECT * FROM stored",
        rows="",
        values={},
    )


def copy() -> TableState:
    return TableState(
        table=Table(name="copy", kind="append", columns=COPY),
        version=Version(content="c", path="copy", columns=COPY, partition_by=("city",)),
        read="SELECT * FROM stored",
        rows="",
        values={},
    )


def hours() -> TableState:
    return TableState(
        table=Table(name="hours", kind="aggregate", columns=STATES),
        version=Version(content="h", path="hours", columns=STATES),
        read="SELECT * FROM stored",
        rows="",
        values={},
    )


class World:
    """A landing table by Spark, three commits on, and two feeds of it: rows through a join, and partial states."""

    def __init__(self, place: Path, session: Any) -> None:
        self.place, self.session = place, session
        self.landing, self.owners = str(place / "landing"), str(place / "owners")
        self.owns(ada=0, bob=1)
        self.lands((0, "Rom", 1.0, ["a"]))  # history
        self.copy = self.feed(
            Feed(materialization="every", source="landing", target="copy", sql=COPIED, joins=("owners",)),
            copy(),
            ((owners(), self.owners),),
        )
        self.hours = self.feed(
            Feed(materialization="hours", source="landing", target="hours", sql=SUMMED, terms=TERMS), hours(), ()
        )

    def feed(self, feed: Feed, target: TableState, joins: tuple[tuple[TableState, str], ...]) -> LiveFeed:
        path = str(self.place / feed.target)
        commit.create(self.session, target, path, 24)
        made = LiveFeed(
            spec=feed,
            source=landing(),
            target=target,
            joins=joins,
            source_path=self.landing,
            target_path=path,
            start=log.latest_version(self.landing),
        )
        made.open(self.session)
        return made

    def lands(self, *rows: Row) -> None:
        columns = zip(*timed(rows or ROWS), strict=True)
        data = pa.Table.from_arrays([pa.array(c, f.type) for c, f in zip(columns, ARROW, strict=True)], schema=ARROW)
        write_deltalake(self.landing, data, mode="append", partition_by=["city"])

    def owns(self, **named: int) -> None:
        data = pa.table({"k": pa.array(named.values(), pa.int64()), "name": list(named)})
        write_deltalake(self.owners, data, mode="append")

    def moves(self) -> None:
        """Each feed, one range."""
        end = log.latest_version(self.landing)
        for feed in (self.copy, self.hours):
            feed.step(self.session, end)

    def again(self, feed: LiveFeed) -> RecountResult:
        result = recount(self.session, pinned_feed(feed, {}), "seed")
        assert result is not None
        return result


class Mapped(World):
    """The same by Spark, whose session maps columns to other names and has every feature on for new tables."""

    def lands(self, *rows: Row) -> None:
        made = self.session.createDataFrame(
            timed(rows or ROWS), "k BIGINT, city STRING, x DOUBLE, tags ARRAY<STRING>, at TIMESTAMP"
        )
        made.coalesce(1).write.format("delta").mode("append").partitionBy("city").save(self.landing)


@pytest.fixture
def world(tmp_path: Path, session: Any) -> World:
    return World(tmp_path, session)


def test_a_computed_text_that_no_partition_can_hold_is_no_difference(world: World) -> None:
    columns = (Column(name="k", type="bigint"), Column(name="tag", type="string"), Column(name="city", type="string"))
    parted = TableState(
        table=Table(name="parted", kind="append", columns=columns),
        version=Version(content="p", path="parted", columns=columns, partition_by=("tag",)),
        read="SELECT * FROM stored",
        rows="",
        values={},
    )
    sql = "SELECT k, tag, city FROM landing LATERAL VIEW explode(tags) AS tag"
    feed = world.feed(Feed(materialization="parted", source="landing", target="parted", sql=sql), parted, ())
    world.lands((5, "Rom", 1.0, ["", "__HIVE_DEFAULT_PARTITION__", "a", "a/b", "null"]))
    feed.step(world.session, log.latest_version(world.landing))
    stored = DeltaTable(feed.target_path).to_pyarrow_table()["tag"].to_pylist()
    assert sorted(map(str, stored)) == ["None", "None", "a", "a/b", "null"]
    again = world.again(feed)
    assert (again.ok, again.commits) == (True, 1), again


def test_what_was_moved_right_is_equal_whatever_became_of_the_tables_since(world: World) -> None:
    for owner in ("ann", "ben", "col"):
        world.lands()
        world.moves()
        world.owns(**{owner: 2})  # the join gives more rows now
    DeltaTable(world.landing).optimize.compact()
    world.lands((7, "Bern", 2.0, ["z"]))
    world.moves()
    DeltaTable(world.landing).delete("k = 1")
    for feed, rows in ((world.copy, 13), (world.hours, 13)):
        again = world.again(feed)
        assert (again.ok, again.commits, again.rows) == (True, 4, rows), again
        assert again.detail == "4 of 4 live commits (13 rows) computed again from landing: equal"


def test_a_mapped_table_with_deletion_vectors_is_read_as_delta_reads_it(tmp_path: Path, session: Any) -> None:
    world = Mapped(tmp_path, session)
    world.lands()
    world.moves()
    for feed in (world.copy, world.hours):
        again = world.again(feed)
        assert (again.ok, again.commits, again.rows) == (True, 1, 4), again
    assert (
        session.read.format("delta").load(world.copy.target_path).where("k IS NOT NULL AND x IS NOT NULL").count() == 3
    )


def test_of_a_large_table_little_more_is_read_than_the_commits_and_never_too_much(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rows in (ROWS, ROWS[:2]):
        world.lands(*rows)
        world.moves()
    monkeypatch.setattr(files, "SMALL", 0)
    for feed in (world.copy, world.hours):
        assert world.again(feed).detail == "2 of 2 live commits (6 rows) computed again from landing: equal"
    driving = pinned_feed(world.copy, {}).source.driving
    stored = driving.stored(world.session)
    for condition in files._conditions(
        stored, "at", dict.fromkeys(files._added(driving, files.Span(0, 2, 2)), 0), files.VersionFiles.of(driving, 2)
    ):
        stored = stored.where(condition)
    assert stored.count() == 4  # two places on two days, of seven rows
    monkeypatch.setattr(files, "BYTES", 0)
    again = world.again(world.copy)
    assert (again.ok, "to find its rows 0 GiB would have to be read" in again.detail) == (None, True), again


def nulls(rows: Any) -> Any:
    """All columns NULL: as a mapped table's files look under names that are not theirs."""
    from pyspark.sql.functions import lit

    return rows.select(*(lit(None).cast(field.dataType).alias(field.name) for field in rows.schema.fields))


def doubled(rows: Any) -> Any:
    return rows.union(rows)


def lost(rows: Any) -> Any:
    return rows.limit(1)


def mangled(rows: Any) -> Any:
    """`Zürich` as `ZÃ¼rich`: UTF-8 taken for Latin-1."""
    if "city" not in rows.columns:
        return rows
    return rows.selectExpr("* EXCEPT (city)", "decode(encode(city, 'UTF-8'), 'ISO-8859-1') AS city").select(
        rows.columns
    )


def emptied(rows: Any) -> Any:
    """NULL for an empty partition value is what Delta says, and '' what some readers make of it."""
    if "city" not in rows.columns:
        return rows
    return rows.selectExpr("* EXCEPT (city)", "coalesce(city, '') AS city").select(rows.columns)


@pytest.mark.parametrize("bug", [nulls, doubled, lost, mangled, emptied])
def test_a_bug_of_the_live_path_is_found_in_rows_and_in_states(
    world: World, monkeypatch: pytest.MonkeyPatch, bug: Callable[[Any], Any]
) -> None:
    right = live_feed.logical_rows
    monkeypatch.setattr(live_feed, "logical_rows", lambda session, state, rows: right(session, state, bug(rows)))
    world.lands((1, "Zürich", 0.1, ["a"]), (2, None, 1.0, ["b"]))
    world.moves()
    # a table that is partitioned by the text holds NULL for an empty one, whatever was computed
    for feed in (world.hours,) if bug is emptied else (world.copy, world.hours):
        again = world.again(feed)
        assert again.ok is False, again
        assert (again.commits, again.rows) == (1, 2)
        assert "than landing gives as Delta reads it" in again.detail


def test_a_live_commit_that_was_made_twice_is_found(world: World) -> None:
    world.lands()
    world.moves()
    writer = world.copy.writer
    assert writer is not None
    rows = world.session.read.format("delta").load(world.copy.target_path)
    note = {
        "kind": "live",
        "feed": writer.app_id,
        "from": 1,
        "to": writer.position,
        "rows_in": 4,
        "joins": {"owners": 1},
    }
    commit.append(world.session, rows, writer, writer.position + 1, note)
    assert "both hold commit 1 of the source" in world.again(world.copy).detail


def test_a_sum_in_another_order_is_equal_and_another_sum_is_not(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.lands(*CANCEL)
    compute = live_feed.compute
    for total, ok in (("0D", True), ("2D", True), ("70D", False)):
        columns = ("city", "rows", f"{total} AS total", "most", "who__hll", "mid__kll")
        monkeypatch.setattr(live_feed, "compute", lambda *given, columns=columns: compute(*given).selectExpr(*columns))
        world.hours.step(world.session, log.latest_version(world.landing))
        monkeypatch.setattr(live_feed, "compute", compute)
        again = world.again(world.hours)
        assert again.ok is ok, (total, again)
        world = World(world.place / total, world.session)
        world.lands(*CANCEL)


def test_a_sum_that_the_live_path_would_make_wrong_is_found_before_a_quiet_source_moves(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.lands(*CANCEL)
    compute = live_feed.compute
    for total, ok in (("total", True), ("2D", True), ("70D", False)):
        wrong = f"CASE WHEN city = 'a' THEN {total} ELSE total END AS total"
        columns = ("city", "rows", wrong, "most", "who__hll", "mid__kll")
        monkeypatch.setattr(live_feed, "compute", lambda *given, columns=columns: compute(*given).selectExpr(*columns))
        result = quiet(world.session, pinned_feed(world.hours, {}), world.hours.dry_run)
        assert result.ok is ok, (total, result)
    assert "1 sums that are not of the rows which Delta reads" in result.detail


def test_of_a_large_commit_of_a_quiet_source_the_same_sample_is_computed_on_both_paths(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "SAMPLED_ROWS", 5)
    world.lands(*((k, "a", float(k), ["x"]) for k in range(26) if k != 13))
    for feed in (world.copy, world.hours):
        right = quiet(world.session, pinned_feed(feed, {}), feed.dry_run)
        assert right.ok, right
        assert 0 < right.rows < 26, right
        assert f"({right.rows} of 26 rows)" in right.detail
    compute = live_feed.compute
    monkeypatch.setattr(live_feed, "compute", lambda *given: compute(*given).where("k <> 13").limit(2))
    wrong = quiet(world.session, pinned_feed(world.copy, {}), world.copy.dry_run)
    assert wrong.ok is False, wrong
    assert f"would lack {right.rows - 2} rows" in wrong.detail


def test_a_large_commit_of_a_quiet_source_whose_rows_share_one_time_is_computed_whole(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness, "SAMPLED_ROWS", 1)
    world.lands(*((5, "a", float(x), []) for x in range(12)))
    result = quiet(world.session, pinned_feed(world.copy, {}), world.copy.dry_run)
    assert (result.ok, result.rows) == (True, 13), result


def test_more_sums_than_are_settled_are_not_called_equal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recounted, "SUMS", 1)
    world.lands(*CANCEL, *((k, "b", x, tags) for k, _, x, tags in CANCEL))
    compute = live_feed.compute
    columns = ("city", "rows", "2D AS total", "most", "who__hll", "mid__kll")
    monkeypatch.setattr(live_feed, "compute", lambda *given: compute(*given).selectExpr(*columns))
    world.hours.step(world.session, log.latest_version(world.landing))
    monkeypatch.setattr(live_feed, "compute", compute)
    again = world.again(world.hours)
    assert (again.ok, "total of more than 1 groups" in again.detail) == (None, True), again


def test_inserts_of_a_commit_that_is_no_plain_append_are_computed_again_too(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = replace(world.hours.source.table, on_rewrite="take_inserts")
    world.hours.source = replace(world.hours.source, table=table)
    world.lands()
    newest = log.latest_version(world.landing)
    commit = Path(world.landing, "_delta_log", f"{newest:020}.json")
    commit.write_text(
        commit.read_text().rstrip()
        + '\n{"cdc":{"path":"_change_data/x","partitionValues":{},"size":1,"dataChange":false}}\n'
    )
    assert log.commit(world.landing, newest).kind == "rewrite"
    world.hours.step(world.session, newest)
    again = world.again(world.hours)
    assert (again.ok, again.commits, again.rows) == (True, 1, 4), again
    compute = live_feed.compute
    monkeypatch.setattr(live_feed, "compute", lambda *given: compute(*given).limit(1))
    world.lands()
    world.hours.step(world.session, newest + 1)
    assert world.again(world.hours).ok is False


def test_where_the_source_no_longer_has_them_the_date_is_reported(world: World) -> None:
    world.lands()
    world.moves()
    DeltaTable(world.landing).optimize.compact()
    DeltaTable(world.landing).create_checkpoint()
    for version in range(log.latest_version(world.landing)):
        (Path(world.landing) / "_delta_log" / f"{version:020}.json").unlink()
    again = world.again(world.copy)
    assert again.ok is None
    assert "can no longer be read; the live commits looked at are of 20" in again.detail


def test_a_commit_without_the_version_of_its_joined_table_is_left_out_by_name(world: World) -> None:
    reason = "the version of owners that was read is not recorded"
    writer = world.copy.writer
    assert writer is not None
    world.lands()
    version = log.latest_version(world.landing)
    note = {"kind": "live", "feed": writer.app_id, "from": version, "to": version, "rows_in": 4}
    stored = world.session.read.format("delta").load(world.copy.target_path)
    commit.append(world.session, stored, writer, version, note)
    alone = world.again(world.copy)
    assert (alone.ok, reason in alone.detail) == (None, True), alone
    world.copy.seen = version
    world.lands()
    world.moves()
    again = world.again(world.copy)
    assert (again.ok, again.commits, reason in again.detail) == (True, 1, True), again


def test_a_column_that_the_landing_got_between_two_commits_is_no_difference(world: World) -> None:
    world.lands()
    world.moves()
    DeltaTable(world.landing).alter.add_columns([Field("later", PrimitiveType("string"), nullable=True)])
    later = pa.schema([*ARROW, ("later", pa.string())])
    row = dict(zip(later.names, [*timed(((7, "Bern", 2.0, ["z"]),))[0], "x"], strict=True))
    write_deltalake(world.landing, pa.Table.from_pylist([row], schema=later), mode="append", partition_by=["city"])
    world.moves()
    for feed in (world.copy, world.hours):
        again = world.again(feed)
        assert (again.ok, again.commits, again.rows) == (True, 2, 5), again
