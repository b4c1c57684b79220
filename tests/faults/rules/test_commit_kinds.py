"""Rules 3 to 6: classification of a source's commits from the log alone; the commits are of another program. No Java."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from console.agent.feeds import ranges
from console.agent.store import log
from console.errors import FeedStopped, RegionError
from console.model.schema import OnRewrite
from tests.faults.rules.tables import foreign, rows

pytestmark = pytest.mark.slow

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
    removes_alone = rewrite is delete
    if policy == "replay_days" or (policy == "take_inserts" and not removes_alone):
        with pytest.raises(FeedStopped) as stopped:
            ranges.next_range(table, 2, 3, MANY, policy=policy)
        assert stopped.value.code == "E_REWRITE"
        return
    part = ranges.next_range(table, 2, 3, MANY, policy=policy)
    assert part is not None
    assert (part.skipped, part.files) == ((3,), ())


def test_rows_that_a_delete_leaves_in_place_are_no_inserts(tmp_path: Path) -> None:
    """Copy on write puts the other rows of the file into a new one."""
    table = foreign(tmp_path / "landing", rows(*range(1000)))
    DeltaTable(table).delete("n = 7")
    assert sum(file.rows for file in log.commit(table, 1).added) == 999
    with pytest.raises(FeedStopped, match="only appends flow") as stopped:
        ranges.next_range(table, 0, 1, MANY, policy="take_inserts")
    assert stopped.value.code == "E_REWRITE"


def by_hand(table: str, *actions: dict[str, Any]) -> None:
    """One more commit, as a writer of another language leaves it."""
    path = Path(table) / "_delta_log" / f"{log.latest_version(table) + 1:020}.json"
    path.write_text("".join(json.dumps(action) + "\n" for action in actions))


ADDED = {"path": "day=2026-11-01/f.parquet", "partitionValues": {"day": "2026-11-01"}, "size": 1, "dataChange": True}


def test_a_commit_that_keeps_a_change_feed_of_its_own_is_no_append(tmp_path: Path) -> None:
    """Its `cdc` files alone say what changed: rows that were updated may stand among those of its added files."""
    table = landing(tmp_path)
    cdc = {"path": "_change_data/c.parquet", "partitionValues": {"day": "2026-11-01"}, "size": 1}
    by_hand(table, {"commitInfo": {"operation": "MERGE"}}, {"add": ADDED}, {"cdc": cdc})
    with pytest.raises(FeedStopped, match="MERGE") as stopped:
        ranges.next_range(table, 2, 3, MANY)
    assert stopped.value.code == "E_REWRITE"


def test_where_inserts_are_taken_a_commit_that_only_adds_flows_though_it_keeps_a_change_feed(tmp_path: Path) -> None:
    """No row has left the table, so what its files add is all that changed."""
    table = landing(tmp_path)
    cdc = {"path": "_change_data/c.parquet", "partitionValues": {"day": "2026-11-01"}, "size": 1}
    by_hand(table, {"commitInfo": {"operation": "MERGE"}}, {"add": ADDED}, {"cdc": cdc})
    part = ranges.next_range(table, 2, 3, MANY, policy="take_inserts")
    assert part is not None
    assert [Path(file.path).name for file in part.files] == ["f.parquet"]


@pytest.mark.parametrize("policy", ["stop", "take_inserts"])
def test_a_clone_into_an_emptied_table_is_no_append(tmp_path: Path, policy: OnRewrite) -> None:
    """It removes nothing, and its files are another table's: their rows may have flowed before."""
    table = landing(tmp_path)
    DeltaTable(table).delete()
    by_hand(table, {"commitInfo": {"operation": "CLONE"}}, {"add": ADDED})
    with pytest.raises(FeedStopped, match="CLONE") as stopped:
        ranges.next_range(table, 3, 4, MANY, policy=policy)
    assert stopped.value.code == "E_REWRITE"


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


def without_statistics(table: str, version: int) -> None:
    """Somebody wrote this commit without statistics."""
    path = Path(table) / "_delta_log" / f"{version:020}.json"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line.get("add", {}).pop("stats", None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_rows_that_no_log_tells_count_for_none_in_a_range_and_in_a_lag(tmp_path: Path) -> None:
    table = foreign(tmp_path / "landing", rows(0), rows(1, 2), rows(3, 4, 5), rows(6))
    without_statistics(table, 2)
    part = ranges.next_range(table, 0, 3, 3)
    assert part is not None
    assert (part.first, part.last, part.rows, len(part.files)) == (1, 3, 3, 3)
    assert ranges.pending(table, 0, 3)[:2] == (3, 3)
    assert ranges.pending(table, 3, 3) == (0, 0, 0.0)


def test_a_lag_is_the_age_of_the_oldest_commit_with_rows_beside_the_newest(tmp_path: Path) -> None:
    table = foreign(tmp_path / "landing", *(rows(n) for n in range(5)))
    write_deltalake(table, rows(), mode="append", **PARTS)
    for version in range(6):
        path = Path(table) / "_delta_log" / f"{version:020}.json"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if "commitInfo" in line:
                line["commitInfo"]["timestamp"] = 1_800_000_000_000 + 1500 * version
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert ranges.pending(table, 1, 5) == (3, 3, 3.0)
    assert ranges.pending(table, 2, 5) == (2, 2, 1.5)
    assert ranges.pending(table, 3, 4) == (1, 1, 0.0)


def test_what_a_range_holds_is_added_up(tmp_path: Path) -> None:
    table = foreign(tmp_path / "landing", rows(0), rows(1, 2, 3), rows(4, 5, 6), rows(7, 8, 9))
    size = [sum(file.bytes for file in log.commit(table, version).added) for version in range(4)]
    for most, last in ((9, 3), (8, 2), (6, 2), (5, 1), (3, 1), (2, 1)):
        part = ranges.next_range(table, 0, 3, most)
        assert part is not None
        assert (part.first, part.last, part.rows) == (1, last, 3 * last)
    for most, last in ((sum(size[1:]), 3), (sum(size[1:]) - 1, 2), (size[1] + size[2], 2), (size[1] + size[2] - 1, 1)):
        part = ranges.next_range(table, 0, 3, MANY, bytes_limit=most)
        assert part is not None
        assert part.last == last
    assert [ranges.pending(table, position, 3)[:2] for position in range(4)] == [(3, 9), (2, 6), (1, 3), (0, 0)]


def test_a_clock_that_went_back_between_two_commits_makes_no_lag(tmp_path: Path) -> None:
    table = foreign(tmp_path / "landing", rows(0), rows(1), rows(2))
    for version in (1, 2):
        path = Path(table) / "_delta_log" / f"{version:020}.json"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            if "commitInfo" in line:
                line["commitInfo"]["timestamp"] = 1_800_000_000_000 - 5000 * version
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert ranges.pending(table, 0, 2) == (2, 2, 0.0)
