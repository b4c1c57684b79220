"""Feeds and comparisons over one session of Spark Connect, whose DataFrames are analysed when they are run: the tests of a feed's
rules that read, and what a name means that is used again.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

from console.agent.failure import kind
from console.agent.feeds.live_feed import LiveFeed, compute, join_versions
from console.agent.maintenance.merged_values import key_differences
from console.agent.query_over import query_over
from console.agent.recount.pinned_tables import Pinned, PinnedSource
from console.agent.rows.snapshot import stored_at
from console.model.live import Feed, Release
from console.model.merging import Merging
from console.model.schema import Column
from console.release import OpenRelease
from tests.faults.rules import test_batches as batches
from tests.faults.rules import test_compaction_and_vacuum as compaction_and_vacuum
from tests.faults.rules import test_compared as compared
from tests.faults.rules import test_failure_kinds as failure_kinds
from tests.faults.rules import test_read_by_log as read_by_log
from tests.faults.rules.tables import COLUMNS, foreign, rows, state

pytestmark = [pytest.mark.cluster, pytest.mark.s3]

# the tests themselves, with this folder's session: one or more of each rule that reads
test_a_joined_table_stays_at_one_version_while_a_commit_is_computed = (
    batches.test_a_joined_table_stays_at_one_version_while_a_commit_is_computed
)
test_a_range_reads_the_rows_its_commits_added_in_the_schema_of_its_end_without_a_change_feed = (
    batches.test_a_range_reads_the_rows_its_commits_added_in_the_schema_of_its_end_without_a_change_feed
)
test_days_are_half_open_with_one_batch_for_the_rows_without_a_time_and_read_no_other_days_files = (
    batches.test_days_are_half_open_with_one_batch_for_the_rows_without_a_time_and_read_no_other_days_files
)
test_states_keep_their_types_through_every_merge_and_end_in_the_declared_ones = (
    batches.test_states_keep_their_types_through_every_merge_and_end_in_the_declared_ones
)
test_sums_do_not_depend_on_order_take_maps_and_do_not_overflow = (
    batches.test_sums_do_not_depend_on_order_take_maps_and_do_not_overflow
)
test_sums_see_in_which_column_a_null_stands = batches.test_sums_see_in_which_column_a_null_stands
test_sums_tell_apart_what_weaker_sums_do_not = batches.test_sums_tell_apart_what_weaker_sums_do_not
test_a_fence_older_than_the_file_retention_can_still_be_read = (
    compaction_and_vacuum.test_a_fence_older_than_the_file_retention_can_still_be_read
)
test_a_file_that_is_damaged_is_never_passed_over = (
    compaction_and_vacuum.test_a_file_that_is_damaged_is_never_passed_over
)
test_three_planted_defects_are_named_by_their_days_and_columns = (
    compared.test_three_planted_defects_are_named_by_their_days_and_columns
)
source = failure_kinds.source
test_files_and_versions_that_are_gone = failure_kinds.test_files_and_versions_that_are_gone
test_a_path_is_no_pattern = read_by_log.test_a_path_is_no_pattern
test_values_of_partitions_come_from_the_log_and_an_empty_one_is_null = (
    read_by_log.test_values_of_partitions_come_from_the_log_and_an_empty_one_is_null
)
test_what_deletion_vectors_delete_is_neither_read_nor_counted = (
    read_by_log.test_what_deletion_vectors_delete_is_neither_read_nor_counted
)


OWNED = "SELECT n, day, name FROM landing LEFT JOIN owners USING (n)"


def test_two_versions_that_differ_in_a_row_are_found_to_differ(session: Any, tmp_path: Path) -> None:
    """Both are shown by the same name, one after the other, and are looked at when both were."""
    old, new = (
        Pinned(state("copy"), foreign(tmp_path / name, rows(1, 2), rows(n)), 1) for name, n in (("old", 3), ("new", 4))
    )
    before, after = old.rows(session), new.rows(session)
    assert [row["n"] for row in after.exceptAll(before).collect()] == [4]
    assert [row["n"] for row in before.exceptAll(after).collect()] == [3]


def test_a_source_and_a_joined_table_keep_their_own_rows(session: Any, tmp_path: Path) -> None:
    """In a live step and where its commit is computed again; the joined table is called like no other one in between."""
    landing = foreign(tmp_path / "landing", rows(1, 2))
    owners = foreign(tmp_path / "owners", pa.table({"n": [1], "name": ["ada"]}), partition_by=())
    columns = (*COLUMNS, Column(name="name", type="string"))
    named = state("owners", (columns[0], columns[2]), partition_by=())
    feed = Feed(materialization="owned", source="landing", target="copy", sql=OWNED, joins=("owners",))
    renamed = replace(state("landing", kind="landing"), read="SELECT n + 0 AS n, day FROM stored")
    live = LiveFeed(
        spec=feed, source=renamed, target=state("copy", columns), joins=((named, owners),), source_path=landing,
        target_path=str(tmp_path / "copy"),
    )  # fmt: skip
    moved = compute(session, live, stored_at(session, landing, 0), join_versions(live.joins))
    pinned = PinnedSource(feed, Pinned(renamed, landing, 0), (Pinned(named, owners, 0),))
    again = pinned.run_query(session, pinned.driving.stored(session), feed.sql)
    for name in ("landing", "owners", "stored"):
        session.sql("SELECT 9 AS n, current_date() AS day, 'eve' AS name").createOrReplaceTempView(name)
    for computed in (moved, again):
        assert sorted((row["n"], row["name"]) for row in computed.collect()) == [(1, "ada"), (2, None)]


def test_a_query_may_give_its_own_names_and_has_any_text(session: Any) -> None:
    one, two = (session.sql(f"SELECT {n} AS n") for n in (1, 2))
    sql = """WITH a AS (SELECT n + 10 AS n FROM a), c AS (SELECT n FROM `{b}`) -- {x} :y
        SELECT a.n, c.n AS m, '{"k": "{{}}"}' AS t, '%s :d' AS u FROM a, c"""
    result = query_over(session, sql, {"a": one, "{b}": two})
    query_over(session, "SELECT * FROM a", {"a": two}).createOrReplaceTempView("a")
    assert [tuple(row) for row in result.collect()] == [(11, 2, '{"k": "{{}}"}', "%s :d")]


def test_two_tables_of_an_open_release_keep_their_own_rows(session: Any, tmp_path: Path) -> None:
    for name, n in (("copy", 1), ("sums", 2)):
        foreign(tmp_path / name, rows(n))
    tables = tuple(state(name) for name in ("copy", "sums"))
    release = OpenRelease(tmp_path, Release(id="r1", pipeline="web", digest="d", tables=tables, feeds=()))
    first, second = (release.spark(name, session) for name in ("copy", "sums"))
    assert [row["n"] for row in first.unionAll(second).collect()] == [1, 2]


def test_states_that_do_not_unite_to_the_same_value_are_found(session: Any) -> None:
    """Both sides of a merge are shown by the same name, too."""
    merging = Merging(
        sql="SELECT k, sum(n) AS n FROM stored GROUP BY k", columns=("k", "n"), keys=("k",)
    )  # fmt: skip
    before, same, other = (
        session.sql(f"SELECT * FROM VALUES {values} AS t(k, n)")
        for values in ("('a', 1L), ('a', 2L), ('b', 5L)", "('a', 3L), ('b', 5L)", "('a', 4L), ('b', 5L), ('c', 1L)")
    )
    assert not key_differences(session, merging, before, same)
    found = key_differences(session, merging, before, other)
    assert (found.lost, found.added, found.columns) == (0, 1, {"n": 1})


def test_a_job_that_writes_tells_the_cause_of_its_failure(session: Any, tmp_path: Path) -> None:
    """In front of it stands that a task has failed; the cause is in the server's stack trace."""
    given = session.sql("SELECT 'DIVIDE_BY_ZERO' AS text, 1 AS n")
    outside = "if(n = 1, raise_error('PARTITION_DAY_OUT_OF_RANGE: t.day of a row lies outside'), n)"
    for query, expected in (("CAST(text AS int)", "value"), (outside, "day")):
        with pytest.raises(PySparkException) as broken:
            given.selectExpr(f"{query} AS a").write.format("delta").save(str(tmp_path / "target"))
        assert kind(broken.value) == expected
