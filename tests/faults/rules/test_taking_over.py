"""Rules 1, 2 and 5 on real Spark: who may write a feed, from where, and when it must stop."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import app_ids, commit, foreign_commits
from console.agent.feeds.follower import FeedFollower
from console.agent.maintenance import maintainer
from console.agent.pipeline import PipelineController
from console.agent.settings import Settings
from console.agent.spark_session import SparkHandle
from console.agent.store import log, open_tables, write_lock
from console.errors import FeedStopped
from console.model.live import Feed, Release
from tests.faults.rules.tables import SCHEMA, column_values, commit_rows, copying_feed, number, rows, state
from tests.faults.rules.tables import foreign as landing

pytestmark = [pytest.mark.faults, pytest.mark.spark]
FEED = Feed(materialization="every", source="landing", target="copy", sql="")
NO_SPARK: Any = None


def target(place: Path) -> str:
    """An empty version, as far as its log is concerned."""
    path = str(place / "copy")
    DeltaTable.create(path, schema=SCHEMA, partition_by=["day"])
    return path


def data(session: Any, *numbers: int) -> Any:
    values = ", ".join(f"(CAST({n} AS BIGINT))" for n in numbers)
    return session.sql(f"SELECT col1 AS n, DATE '2026-11-01' AS day FROM VALUES {values}")


# -- rule 1: whose position it is


def test_a_replaced_table_never_looks_as_if_it_were_fed_already(tmp_path: Path) -> None:
    table = target(tmp_path)
    app_id = app_ids.live_id(table, FEED)
    commit_rows(table, app_id, number(1, 9), rows(1))
    assert open_tables.position(table, app_id) == number(1, 9)
    DeltaTable.create(table, schema=SCHEMA, mode="overwrite")
    with pytest.raises(FeedStopped) as stopped:
        commit.open_feed(NO_SPARK, app_ids.live_id(table, FEED), table, -1)
    assert stopped.value.code == "E_NO_POSITION"


@pytest.mark.parametrize("whose", ["", "history/{id}/every@3", "history/{id}/every@4"])
def test_a_missing_position_is_never_taken_for_zero(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    """Rows of nobody, rows of the same history by another fence, and its own whose position Delta forgot."""
    table = target(tmp_path)
    if whose:
        commit_rows(table, whose.format(id=open_tables.table_id(table)), number(1, 3), rows(1))
        monkeypatch.setattr(open_tables, "position", lambda *_, **__: None)
    else:
        write_deltalake(table, rows(1), mode="append")
    with pytest.raises(FeedStopped) as stopped:
        commit.open_feed(NO_SPARK, app_ids.history_id(table, "every", 4), table, 0)
    assert stopped.value.code == "E_NO_POSITION"


def test_a_table_that_may_forget_positions_is_not_fed(tmp_path: Path) -> None:
    table = target(tmp_path)
    forgets = {"delta.setTransactionRetentionDuration": "interval 1 days"}
    DeltaTable(table).alter.set_table_properties(forgets)
    with pytest.raises(FeedStopped) as stopped:
        commit.open_feed(NO_SPARK, app_ids.live_id(table, FEED), table, 0)
    assert stopped.value.code == "E_TXN_RETENTION"


# -- rule 2: one writer, fenced by epochs


@pytest.mark.parametrize("through", ["spark", "deltalake"])
def test_a_zombie_that_writes_between_its_successors_read_and_write_changes_nothing(
    tmp_path: Path, session: Any, through: str
) -> None:
    """It overlaps with no write of the successor, so that Delta's own conflict check lets it through."""
    table = target(tmp_path)
    app_id = app_ids.live_id(table, FEED)
    zombie = commit.open_feed(session, app_id, table, 0)
    successor = commit.open_feed(session, app_id, table, 0)
    write = partial(commit.append, session) if through == "spark" else commit.append_small
    with pytest.raises(FeedStopped) as stopped:
        write(data(session, 1, 2), zombie, 1, {"kind": "live"})
    assert stopped.value.code == "E_SKIPPED"
    commit.append(session, data(session, 1, 2), successor, 1, {"kind": "live"})
    assert column_values(table) == [1, 2]


@pytest.mark.parametrize("moment", ["after the position was read", "right before the commit"])
def test_a_rival_that_commits_while_a_feed_is_taken_over_is_counted(
    tmp_path: Path, session: Any, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    table = target(tmp_path)
    app_id = app_ids.live_id(table, FEED)
    commit_rows(table, app_id, number(1, 3), rows(1, 2, 3))
    rivals: list[int] = []

    def then_rival(real: Callable[..., Any]) -> Callable[..., Any]:
        def both(*args: Any, **more: Any) -> Any:
            outcome = real(*args, **more)
            if not rivals:
                rivals.append(commit_rows(table, app_id, number(1, 4), rows(4)))
            return outcome

        return both

    if moment == "right before the commit":
        monkeypatch.setattr(foreign_commits, "last_own", then_rival(foreign_commits.last_own))
    else:
        monkeypatch.setattr(open_tables, "position", then_rival(open_tables.position))
    writer = commit.open_feed(session, app_id, table, -1)
    assert rivals
    assert writer.position == 4


def test_a_take_over_whose_maker_died_before_it_could_look_hides_no_rival(tmp_path: Path, session: Any) -> None:
    table = target(tmp_path)
    app_id = app_ids.live_id(table, FEED)
    read = commit_rows(table, app_id, number(1, 3), rows(1, 2, 3))
    commit_rows(table, app_id, number(1, 4), rows(4))  # the zombie's, after the position was read
    commit_rows(table, app_id, number(2, 3), rows(), kind="take-over", read=read)  # and then the successor was killed
    assert commit.open_feed(session, app_id, table, -1).position == 4


def test_a_feed_is_replaced_in_two_commits_while_spark_writes_the_table(tmp_path: Path, session: Any) -> None:
    table = target(tmp_path)
    old = commit.open_feed(session, app_ids.live_id(table, FEED), table, 3)
    with write_lock.shared(table):
        commit.replace_feed(session, old.app_id, "live/next", table, 70)
    *_, closed, placed = (log.commit(table, version) for version in range(log.latest_version(table) + 1))
    assert (closed.txn, placed.txn) == ({old.app_id: number(2, 3)}, {"live/next": number(1, 70)})
    assert placed.note == {"kind": "rebind", "feed": "live/next", "after": old.app_id, "closed": 3}


def test_a_late_position_is_refused_and_a_skipped_write_is_noticed(tmp_path: Path, session: Any) -> None:
    """Day 5, then day 4: Delta skips it without a word."""
    table = target(tmp_path)
    writer = commit.open_feed(session, app_ids.history_id(table, "every", 7), table, 0)
    commit.append(session, data(session, 5), writer, 5, {"kind": "history"})
    with pytest.raises(FeedStopped) as early:
        commit.append(session, data(session, 4), writer, 4, {"kind": "history"})
    unaware = commit.FeedWriter(app_id=writer.app_id, target=table, epoch=writer.epoch, position=3)
    with pytest.raises(FeedStopped) as skipped:
        commit.append(session, data(session, 4), unaware, 4, {"kind": "history"})
    assert (early.value.code, skipped.value.code) == ("E_ORDER", "E_SKIPPED")
    assert column_values(table) == [5]


def test_a_batch_done_twice_counts_once(tmp_path: Path, session: Any) -> None:
    table = target(tmp_path)
    writer = commit.open_feed(session, app_ids.history_id(table, "every", 7), table, 0)
    commit.append(session, data(session, 5), writer, 5, {"kind": "history"})
    again = commit.open_feed(session, writer.app_id, table, 0)
    assert again.position == 5
    with pytest.raises(FeedStopped):
        commit.append(session, data(session, 5), again, 5, {"kind": "history"})
    assert column_values(table) == [5]


# -- what Spark refuses


@pytest.mark.parametrize("small", [True, False])
def test_a_live_row_that_does_not_convert_stops_its_feed_and_is_not_told(
    tmp_path: Path, spark: SparkHandle, small: bool
) -> None:
    """In Spark's own words, by either way into the table."""
    source, table = landing(tmp_path / "landing", rows(1), rows(2), rows(13)), target(tmp_path)
    feed = copying_feed(source, table)
    feed.spec = replace(FEED, sql="SELECT CAST(IF(n = 13, 'c4rd', CAST(n AS STRING)) AS BIGINT) AS n, day FROM landing")
    feed.small_appends = small
    lines: list[tuple[str, ...]] = []
    follower = FeedFollower(spark, 1.0, lambda *each: lines.append(each))
    follower.follow("web", (feed,))
    for _ in range(3):
        follower._move_pipeline("web")
    assert feed.health.stopped is not None, lines
    assert feed.health.stopped.code == "C301"
    assert "c4rd" not in str(lines)
    assert (log.latest_version(table), column_values(table)) == (1, [])


# -- rule 5: another's hand on a target


def restore(table: str) -> None:
    DeltaTable(table).restore(log.latest_version(table) - 1)


def overwrite(table: str) -> None:
    write_deltalake(table, rows(7), mode="overwrite")


@pytest.mark.parametrize("hand", [restore, overwrite])
def test_a_target_that_somebody_restored_or_overwrote_is_not_fed_on_until_a_person_decides(
    tmp_path: Path, spark: SparkHandle, session: Any, hand: Callable[[str], None]
) -> None:
    source, table = landing(tmp_path / "landing", rows(1), rows(2)), target(tmp_path)
    feed = copying_feed(source, table)
    assert feed.step(session, 1) == 1  # version 0 is where it opened
    hand(table)
    missing = column_values(table)
    assert 2 not in missing
    write_deltalake(source, rows(3), mode="append", partition_by=["day"])
    for process in (feed, copying_feed(source, table), copying_feed(source, table)):  # this one, and every later one
        with pytest.raises(FeedStopped) as stopped:
            process.step(session, 2)
        assert stopped.value.code == "E_FOREIGN"
        assert column_values(table) == missing
    line = in_a_release(tmp_path)
    maintainer.accept(line, FeedFollower(spark, 1.0, lambda *_: None), "copy", "ada")
    assert copying_feed(source, table).step(session, 2) == 1
    assert column_values(table) == sorted([*missing, 3])


def in_a_release(warehouse: Path) -> PipelineController:
    """The pipeline whose one release has the table `copy`."""
    settings = Settings(region="eu")
    spark = SparkHandle(settings, -1)
    line = PipelineController(warehouse, "web", spark, FeedFollower(spark, 1.0, lambda *_: None), settings)
    line.releases.propose(
        Release(id="r1", pipeline="web", digest="d", tables=(state("copy"),), feeds=()), "web-1", "ada", "laptop"
    )
    return line
