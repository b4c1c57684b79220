"""Rules 3 to 6: what a commit of a source is taken for. Told from the log alone; the commits are a stranger's. No Java."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from console.agent.feeds import ranges
from console.agent.store import log
from console.errors import FeedStopped, RegionError
from console.model.schema import OnRewrite
from tests.faults.rules.tables import foreign, rows

MANY = 10**9
PARTS = {"partition_by": ["day"]}


def delete(table: str) -> None:
    DeltaTable(table).delete("n = 1")


def update(table: str) -> None:
    DeltaTable(table).update(updates={"n": "100"}, predicate="n = 1")


def merge(table: str) -> None:
    merged = DeltaTable(table).merge(rows(1, 7), "s.n = t.n", "s", "t")
    merged.when_matched_update_all().when_not_matched_insert_all().execute()


def overwrite(table: str) -> None:
    write_deltalake(table, rows(7), mode="overwrite")


def replace_where(table: str) -> None:
    write_deltalake(table, rows(7), mode="overwrite", predicate="day = '2026-11-01'")


def restore(table: str) -> None:
    DeltaTable(table).restore(0)


def replace(table: str) -> None:
    DeltaTable.create(table, schema=pa.schema([("other", pa.string())]), mode="overwrite")


REWRITES = [delete, update, merge, overwrite, replace_where, restore, replace]


def landing(place: Path) -> str:
    return foreign(place / "landing", rows(0), rows(1), rows(2, day=2))


@pytest.mark.parametrize("rewrite", REWRITES)
def test_a_rewriting_commit_stops_the_feed_in_front_of_it(tmp_path: Path, rewrite: Callable[[str], None]) -> None:
    table = landing(tmp_path)
    rewrite(table)
    before = ranges.next_range(table, 0, 3, MANY)
    assert before is not None
    assert (before.last, before.rows) == (2, 2)
    with pytest.raises(FeedStopped, match=r"version 3 .* only appends flow") as stopped:
        ranges.next_range(table, 2, 3, MANY)
    assert stopped.value.code == "E_REWRITE"


@pytest.mark.parametrize("rewrite", REWRITES)
@pytest.mark.parametrize("policy", ["ignore", "take_inserts", "replay_days"])
def test_the_sources_policy_decides_and_what_it_passes_over_is_named(
    tmp_path: Path, rewrite: Callable[[str], None], policy: OnRewrite
) -> None:
    table = landing(tmp_path)
    rewrite(table)
    if policy == "replay_days" or (policy == "take_inserts" and rewrite in (restore, replace)):
        with pytest.raises(FeedStopped):
            ranges.next_range(table, 2, 3, MANY, policy=policy)
        return
    part = ranges.next_range(table, 2, 3, MANY, policy=policy)
    assert part is not None
    assert part.skipped == (3,)
    assert part.files == (log.commit(table, 3).added if policy == "take_inserts" else ())


@pytest.mark.parametrize("policy", ["stop", "take_inserts"])
def test_a_restore_that_only_brings_rows_back_is_no_append(tmp_path: Path, policy: OnRewrite) -> None:
    """After a DELETE of everything a RESTORE has nothing to remove: its log shows added files alone."""
    table = landing(tmp_path)
    DeltaTable(table).delete()
    DeltaTable(table).restore(2)
    assert log.commit(table, 4).removed == 0
    assert len(log.commit(table, 4).added) == 3
    with pytest.raises(FeedStopped, match="RESTORE"):
        ranges.next_range(table, 3, 4, MANY, policy=policy)


def test_a_merge_that_only_inserts_flows(tmp_path: Path) -> None:
    table = landing(tmp_path)
    DeltaTable(table).merge(rows(1, 7), "s.n = t.n", "s", "t").when_not_matched_insert_all().execute()
    part = ranges.next_range(table, 2, 3, MANY)
    assert part is not None
    assert (part.rows, part.skipped) == (1, ())


@pytest.mark.parametrize("policy", ["stop", "ignore", "take_inserts"])
def test_deletes_by_our_own_retention_pass_without_a_word_under_every_policy(tmp_path: Path, policy: OnRewrite) -> None:
    table = foreign(tmp_path / "landing", rows(0, 1, 2, 3), rows(4))
    ours = CommitProperties(custom_metadata={"userMetadata": '{"kind": "retention"}'})
    DeltaTable(table).delete("n < 2", commit_properties=ours)
    write_deltalake(table, rows(5), mode="append", **PARTS)
    assert log.commit(table, 2).added, "the files that held expired rows were written anew"
    part = ranges.next_range(table, 0, 3, MANY, policy=policy)
    assert part is not None
    assert (part.last, part.rows, part.skipped) == (3, 2, (2,))


def test_maintenance_is_quiet_and_rows_around_it_flow_once(tmp_path: Path) -> None:
    table = landing(tmp_path)
    DeltaTable(table).optimize.compact()
    DeltaTable(table).optimize.z_order(["n"])
    write_deltalake(table, rows(9), mode="append", **PARTS)
    end = log.latest_version(table)
    part = ranges.next_range(table, -1, end, MANY)
    assert part is not None
    assert (part.first, part.last, part.rows) == (0, end, 4)


def test_a_range_past_the_end_of_the_log_is_refused_and_never_clamped(tmp_path: Path) -> None:
    """Taken for the whole of what was asked, a shortened range would move the position over rows still to come."""
    table = landing(tmp_path)
    with pytest.raises(RegionError, match="commit 3 is gone from the log"):
        ranges.next_range(table, 0, 7, MANY)


def test_a_source_shorter_than_its_feeds_position_was_replaced(tmp_path: Path) -> None:
    with pytest.raises(FeedStopped, match="before position 5") as stopped:
        ranges.next_range(landing(tmp_path), 5, 2, MANY)
    assert stopped.value.code == "E_BEHIND"


def test_a_range_ends_in_front_of_a_metadata_action(tmp_path: Path) -> None:
    table = landing(tmp_path)
    wider = rows(3).append_column("note", pa.array(["x"]))
    write_deltalake(table, wider, mode="append", schema_mode="merge", **PARTS)
    write_deltalake(table, wider, mode="append", **PARTS)
    reached, seen = -1, []
    while part := ranges.next_range(table, reached, 4, MANY):
        seen.append((part.first, part.last, part.rows))
        reached = part.last
    assert seen == [(0, 2, 3), (3, 4, 2)]


def test_one_range_holds_no_more_than_its_limits_of_rows_and_of_bytes(tmp_path: Path) -> None:
    table = foreign(tmp_path / "landing", rows(*range(10)), rows(*range(10)), rows(*range(30)), rows(*range(5)))
    size = sum(file.bytes for file in log.commit(table, 0).added)
    for limits, steps in (({"rows_limit": 20}, [1, 2, 3]), ({"rows_limit": MANY, "bytes_limit": 2 * size}, [1, 2, 3])):
        reached, seen = -1, []
        while part := ranges.next_range(table, reached, 3, **limits):
            reached = part.last
            seen.append(reached)
        assert seen == steps


def test_commits_older_than_the_log_are_refused_and_never_passed_over(tmp_path: Path) -> None:
    """Delta cleans its log by age, whoever still has to read it."""
    table = landing(tmp_path)
    (Path(table) / "_delta_log" / f"{1:020}.json").unlink()
    with pytest.raises(RegionError) as gone:
        ranges.next_range(table, 0, 2, MANY)
    assert gone.value.code == "E_LOG_GONE"
