"""Rules 1 and 2 from the log alone: epochs, positions and rivals of a feed that deltalake commits. No Java."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import app_ids, commit, foreign_commits
from console.agent.store import log, open_tables
from console.errors import FeedStopped
from tests.faults.rules.tables import SCHEMA, column_values, commit_rows, number, rows

pytestmark = pytest.mark.slow

FEED, NEXT = "live/t/every", "live/t/every/u"
NO_SPARK: Any = None


@pytest.fixture
def table(tmp_path: Path) -> str:
    """An empty version."""
    path = str(tmp_path / "copy")
    DeltaTable.create(path, schema=SCHEMA, partition_by=["day"])
    return path


class Rows:
    """What Spark computed, as Arrow."""

    def __init__(self, data: pa.Table) -> None:
        self._data = data

    def toArrow(self) -> pa.Table:
        return self._data


class RacingSpark:
    """A DataFrame whose write Delta passes over without a word, while somebody else commits."""

    def __init__(self, meanwhile: Callable[[str], Any]) -> None:
        self._meanwhile = meanwhile

    @property
    def write(self) -> "RacingSpark":
        return self

    def format(self, _: str) -> "RacingSpark":
        return self

    mode = format

    def options(self, **_: str) -> "RacingSpark":
        return self

    def save(self, path: str) -> None:
        self._meanwhile(path)


def reached(table: str) -> tuple[int, int] | None:
    latest = open_tables.position(table, FEED)
    return None if latest is None else app_ids.split(latest)


def carried(writer: commit.FeedWriter, position: int, *numbers: int) -> commit.CommitResult:
    done = commit.append_small(Rows(rows(*numbers)), writer, position, {"kind": "live"})
    assert done is not None
    return done


def test_a_number_is_an_epoch_and_a_position() -> None:
    for epoch, position in ((0, 0), (1, 0), (0, app_ids.POSITION_MASK), (7, app_ids.POSITION_MASK), (7, 3)):
        assert app_ids.split(epoch << app_ids.EPOCH_BITS | position) == (epoch, position)


@pytest.mark.parametrize("before", [0, 1])
def test_whoever_opens_a_feed_takes_the_next_epoch_in_one_commit(table: str, before: int) -> None:
    for n in range(before):  # the take-over's version is an odd one and an even one
        commit_rows(table, "live/t/other", n + 1, rows(n))
    for epoch in (1, 2, 3):
        writer = commit.open_feed(NO_SPARK, FEED, table, 4)
        assert (writer.epoch, writer.position) == (epoch, 4)
        assert reached(table) == (epoch, 4)
        assert log.latest_version(table) == before + epoch
        taken = log.commit(table, before + epoch)
        assert (taken.note, taken.added) == ({"kind": "take-over", "feed": FEED, "read": before + epoch - 1}, ())


def test_a_closed_feed_has_its_position_and_an_epoch_more(table: str) -> None:
    writer = commit.open_feed(NO_SPARK, FEED, table, 0)
    carried(writer, 5, 1)
    assert commit.close_feed(NO_SPARK, FEED, table) == 5
    assert reached(table) == (2, 5)
    with pytest.raises(FeedStopped) as late:
        carried(writer, 6, 2)
    assert (late.value.code, column_values(table)) == ("E_SKIPPED", [1])


def test_a_feed_without_a_position_is_neither_closed_nor_begun_at_none(table: str) -> None:
    with pytest.raises(FeedStopped) as error:
        commit.close_feed(NO_SPARK, FEED, table)
    assert error.value.code == "E_NO_POSITION"
    assert commit.open_feed(NO_SPARK, FEED, table, 0).position == 0


@pytest.mark.parametrize("position", [0, 2, 5, 9])
def test_a_feed_that_is_placed_goes_on_from_there_whatever_it_had_reached(table: str, position: int) -> None:
    old = commit.open_feed(NO_SPARK, FEED, table, 0)
    carried(old, 5, 1)
    commit.place_feed(NO_SPARK, FEED, table, position, {"kind": "moved"})
    assert reached(table) == (2, position)
    assert log.commit(table, log.latest_version(table)).note == {"kind": "moved"}
    with pytest.raises(FeedStopped) as late:
        carried(old, 10, 2)
    assert late.value.code == "E_SKIPPED"
    writer = commit.open_feed(NO_SPARK, FEED, table, -1)
    assert writer.position == position
    carried(writer, position + 1, 3)
    assert column_values(table) == [1, 3]


def test_a_feed_may_be_placed_before_anyone_opened_it(table: str) -> None:
    commit.place_feed(NO_SPARK, FEED, table, 7, {"kind": "moved"})
    assert reached(table) == (1, 7)


@pytest.mark.parametrize("known", [False, True])
def test_a_feed_is_replaced_by_another_in_one_commit(table: str, known: bool) -> None:
    old = commit.open_feed(NO_SPARK, FEED, table, 0)
    carried(old, 5, 1)
    earlier = commit.open_feed(NO_SPARK, NEXT, table, 90) if known else None  # it was live before
    before = log.latest_version(table)
    commit.replace_feed(NO_SPARK, FEED, NEXT, table, 70)
    assert log.latest_version(table) == before + 1
    done = log.commit(table, before + 1)
    assert done.note == {"kind": "rebind", "feed": NEXT, "after": FEED, "closed": 5, "read": before}
    assert done.added == ()
    assert done.txn == {FEED: number(2, 5), NEXT: number(2 if known else 1, 70)}
    for late in filter(None, (old, earlier)):
        with pytest.raises(FeedStopped) as refused:
            carried(late, late.position + 1, 2)
        assert refused.value.code == "E_SKIPPED"
    writer = commit.open_feed(NO_SPARK, NEXT, table, -1)
    assert writer.position == 70
    carried(writer, 71, 3)
    assert commit.open_feed(NO_SPARK, FEED, table, -1).position == 5
    assert column_values(table) == [1, 3]


def test_a_feed_without_a_position_is_not_replaced(table: str) -> None:
    with pytest.raises(FeedStopped) as error:
        commit.replace_feed(NO_SPARK, FEED, NEXT, table, 7)
    assert error.value.code == "E_NO_POSITION"
    assert (log.latest_version(table), open_tables.position(table, NEXT)) == (0, None)


@pytest.mark.parametrize("how", ["opened", "replaced"])
@pytest.mark.parametrize("moment", ["after the position was read", "right before the commit"])
@pytest.mark.parametrize("before", [0, 1])
def test_a_rival_that_commits_while_a_feed_is_taken_over_is_counted(
    table: str, monkeypatch: pytest.MonkeyPatch, moment: str, before: int, how: str
) -> None:
    commit_rows(table, FEED, number(1, 3), rows(1, 2, 3))
    for n in range(before):
        commit_rows(table, "live/t/other", n + 1, rows())
    rivals: list[int] = []

    def then_rival(real: Callable[..., Any]) -> Callable[..., Any]:
        def both(*args: Any, **more: Any) -> Any:
            outcome = real(*args, **more)
            if not rivals:
                rivals.append(commit_rows(table, FEED, number(1, 4), rows(4)))
            return outcome

        return both

    owner, name = (foreign_commits, "last_own") if moment == "right before the commit" else (open_tables, "position")
    monkeypatch.setattr(owner, name, then_rival(getattr(owner, name)))
    if how == "replaced":
        commit.replace_feed(NO_SPARK, FEED, NEXT, table, 7)
        assert log.commit(table, log.latest_version(table)).note["closed"] == 4
        assert reached(table) == (3, 4)
    else:
        assert commit.open_feed(NO_SPARK, FEED, table, -1).position == 4
    assert rivals


@pytest.mark.parametrize("kind", ["take-over", "rebind"])
def test_a_take_over_whose_maker_died_before_it_could_look_hides_no_rival(table: str, kind: str) -> None:
    read = commit_rows(table, FEED, number(1, 3), rows(1, 2, 3))
    commit_rows(table, FEED, number(1, 5), rows(5))  # the zombie's, after the position was read
    commit_rows(table, FEED, number(1, 4), rows(4))
    commit_rows(table, FEED, number(2, 3), rows(), kind=kind, read=read)  # and then the successor was killed
    assert commit.open_feed(NO_SPARK, FEED, table, -1).position == 5


def test_who_finds_a_rival_behind_each_take_over_gives_up_and_says_so(
    table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_rows(table, FEED, number(1, 3), rows())
    real, raced = open_tables.position, list[int]()

    def then_rival(*args: Any, **more: Any) -> int | None:
        outcome = real(*args, **more)
        raced.append(commit_rows(table, FEED, (outcome or 0) + 1, rows()))
        return outcome

    monkeypatch.setattr(open_tables, "position", then_rival)
    with pytest.raises(FeedStopped) as error:
        commit.open_feed(NO_SPARK, FEED, table, 0)
    assert (error.value.code, len(raced)) == ("E_RIVAL", 8)


def test_a_feed_goes_on_only_over_the_table_that_it_has_read(table: str) -> None:
    writer = commit.open_feed(NO_SPARK, FEED, table, 0, "one")
    carried(writer, 1, 1)
    assert log.commit(table, log.latest_version(table)).note == {"kind": "live", "source": "one"}
    assert commit.open_feed(NO_SPARK, FEED, table, 0, "one").position == 1
    assert commit.open_feed(NO_SPARK, FEED, table, 0).position == 1
    commit.open_feed(NO_SPARK, FEED, table, 0, "one")
    with pytest.raises(FeedStopped, match="has read table one, but other is in its place") as error:
        commit.open_feed(NO_SPARK, FEED, table, 0, "other")
    assert error.value.code == "E_REPLACED"


@pytest.mark.parametrize("position", [4, 5])
def test_a_position_that_is_not_after_the_last_is_refused_before_anything_is_written(table: str, position: int) -> None:
    writer = commit.open_feed(NO_SPARK, FEED, table, 5)
    before = log.latest_version(table)
    for go in (lambda: carried(writer, position, 1), lambda: commit.heartbeat(NO_SPARK, writer, position)):
        with pytest.raises(FeedStopped) as refused:
            go()
        assert refused.value.code == "E_ORDER"
    assert log.latest_version(table) == before


def test_a_heartbeat_moves_the_position_and_brings_no_row(table: str) -> None:
    writer = commit.open_feed(NO_SPARK, FEED, table, 0)
    commit.heartbeat(NO_SPARK, writer, 9)
    assert (writer.position, reached(table), column_values(table)) == (9, (1, 9), [])
    assert log.commit(table, log.latest_version(table)).note["kind"] == "position"


def test_what_a_commit_did_is_told_by_the_commit_itself(table: str) -> None:
    writer = commit.open_feed(NO_SPARK, FEED, table, 0)
    done = carried(writer, 1, 1, 2, 3)
    (file,) = log.commit(table, done.version).added
    assert (done.version, done.rows, done.bytes) == (2, 3, file.bytes)
    assert file.bytes > 0


@pytest.mark.parametrize("ahead", [number(1, 6), number(2, 1), number(9, 9)])
def test_a_write_that_delta_passed_over_is_never_taken_for_the_rivals_beside_it(table: str, ahead: int) -> None:
    writer = commit.open_feed(NO_SPARK, FEED, table, 0)
    passed_over: Any = RacingSpark(lambda path: commit_rows(path, FEED, ahead, rows(7)))
    with pytest.raises(FeedStopped) as error:
        commit.append(NO_SPARK, passed_over, writer, 5, {"kind": "live"})
    assert (error.value.code, writer.position) == ("E_SKIPPED", 0)


def test_a_hand_on_the_target_is_seen_before_the_next_rows_and_after_them(table: str) -> None:
    writer = commit.open_feed(NO_SPARK, FEED, table, 0)
    carried(writer, 1, 1)
    carried(writer, 2, 2)
    DeltaTable(table).delete("n = 1")
    write_deltalake(table, rows(9), mode="append", partition_by=["day"])
    with pytest.raises(FeedStopped) as error:
        carried(writer, 3, 3)
    assert (error.value.code, column_values(table)) == ("E_FOREIGN", [2, 9])


@pytest.mark.parametrize("commits", [1, 2])
def test_a_hand_in_the_first_commit_after_the_take_over_is_seen(table: str, commits: int) -> None:
    commit_rows(table, FEED, number(1, 0), rows(1))
    writer = commit.open_feed(NO_SPARK, FEED, table, 0)
    for position in range(1, commits):
        carried(writer, position, 1 + position)
    DeltaTable(table).delete("n = 1")
    with pytest.raises(FeedStopped) as error:
        carried(writer, 9, 9)
    assert error.value.code == "E_FOREIGN"
