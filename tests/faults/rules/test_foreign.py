"""Rules 1 and 5 from the log alone: whose commits a target holds, and which of them took rows away. No Java."""

import json
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from console.agent.feeds import foreign_commits
from console.agent.store import log
from console.errors import FeedStopped, RegionError
from tests.faults.rules.tables import SCHEMA, commit_rows, rows

pytestmark = pytest.mark.slow

OWN, OTHER = "live/t/every", "live/t/some"


@pytest.fixture
def table(tmp_path: Path) -> str:
    """Version 0: an empty table by day; version 1: what OWN carried."""
    path = str(tmp_path / "copy")
    DeltaTable.create(path, schema=SCHEMA, partition_by=["day"])
    commit_rows(path, OWN, 1, rows(1, 2))
    return path


def noted(kind: str) -> CommitProperties:
    return CommitProperties(custom_metadata={"userMetadata": json.dumps({"kind": kind})})


def accept(table: str) -> None:
    write_deltalake(table, rows(), mode="append", commit_properties=noted(log.ACCEPTED))


def stopped(table: str, app_id: str = OWN) -> str:
    with pytest.raises(FeedStopped) as refused:
        foreign_commits.last_own(table, app_id, log.latest_version(table))
    return refused.value.code


def own(table: str, app_id: str = OWN) -> int | None:
    last_commit = foreign_commits.last_own(table, app_id, log.latest_version(table))
    return None if last_commit is None else last_commit.version


def test_the_last_commit_of_a_feed_is_found_behind_what_others_append(table: str) -> None:
    assert own(table) == 1
    commit_rows(table, OWN, 2, rows(3))
    commit_rows(table, OTHER, 9, rows(4))
    write_deltalake(table, rows(5), mode="append")
    assert own(table) == 2
    assert own(table, OTHER) == 3
    assert own(table, "live/t/none") is None


def test_commits_behind_the_version_asked_for_are_not_looked_at(table: str) -> None:
    commit_rows(table, OWN, 2, rows(3))
    DeltaTable(table).delete()
    last_commit = foreign_commits.last_own(table, OWN, 1)
    assert last_commit is not None
    assert last_commit.version == 1


def test_a_feed_may_have_begun_with_the_table_itself(tmp_path: Path) -> None:
    path = str(tmp_path / "copy")
    properties = CommitProperties(app_transactions=[Transaction(OWN, 1)])
    write_deltalake(path, rows(1), commit_properties=properties)
    write_deltalake(path, rows(2), mode="append")
    assert own(path) == 0


def test_rows_that_somebody_took_away_stop_the_feed_until_a_person_accepts_it(table: str) -> None:
    DeltaTable(table).delete("n = 1")
    write_deltalake(table, rows(5), mode="append")
    assert stopped(table) == "E_FOREIGN"
    accept(table)
    assert own(table) == 1
    accept(table)  # twice is once
    assert own(table) == 1
    DeltaTable(table).delete("n = 2")  # and what was accepted once holds for nothing that comes after
    assert stopped(table) == "E_FOREIGN"


def test_a_note_of_another_kind_accepts_nothing(table: str) -> None:
    DeltaTable(table).delete("n = 1")
    for kind in ("aaa", "live", "zzz"):
        write_deltalake(table, rows(), mode="append", commit_properties=noted(kind))
    assert stopped(table) == "E_FOREIGN"


def test_what_retention_lets_go_is_nobodys_loss(table: str) -> None:
    DeltaTable(table).delete("n = 1", commit_properties=noted(log.RETENTION))
    assert log.commit(table, 2).kind == "rewrite"
    assert own(table) == 1
    foreign_commits.check(table, 0, 2)


def test_maintenance_by_another_hand_takes_no_rows(table: str) -> None:
    commit_rows(table, OTHER, 1, rows(3))
    DeltaTable(table).optimize.compact()
    assert log.commit(table, 3).kind == "quiet"
    assert own(table) == 1
    foreign_commits.check(table, 0, 3)


def test_of_commits_between_two_looks_each_is_looked_at(table: str) -> None:
    DeltaTable(table).delete("n = 1")
    write_deltalake(table, rows(5), mode="append")
    foreign_commits.check(table, 0, 1)
    foreign_commits.check(table, 3, 3)
    for first, last in ((2, 2), (1, 2), (2, 3)):
        with pytest.raises(FeedStopped, match=r"version 2 \(DELETE\) is not ours and removed 1 files") as refused:
            foreign_commits.check(table, first, last)
        assert refused.value.code == "E_FOREIGN"


def test_where_the_log_was_cleaned_before_the_last_own_commit_none_is_reported(table: str) -> None:
    write_deltalake(table, rows(5), mode="append")
    DeltaTable(table).create_checkpoint()
    for version in (0, 1):
        (Path(table) / "_delta_log" / f"{version:020}.json").unlink()
    assert own(table) is None


def test_a_damaged_commit_is_not_taken_for_one_that_was_cleaned(table: str) -> None:
    write_deltalake(table, rows(5), mode="append")
    (Path(table) / "_delta_log" / f"{2:020}.json").write_text("")
    with pytest.raises(RegionError) as error:
        own(table)
    assert error.value.code == "E_LOG_EMPTY"


# -- where a feed may begin

MINE = "history/t/every@4"


@pytest.mark.parametrize("app_id", [OWN, MINE])
def test_a_feed_begins_in_an_empty_table_and_beside_rows_of_other_feeds(tmp_path: Path, app_id: str) -> None:
    path = str(tmp_path / "copy")
    DeltaTable.create(path, schema=SCHEMA, partition_by=["day"])
    foreign_commits.check_unclaimed(path, app_id)
    for other in (OTHER, "history/t/some@4", "history/t/everything@4"):
        commit_rows(path, other, 1, rows(1))
    DeltaTable(path).optimize.compact()
    foreign_commits.check_unclaimed(path, app_id)


@pytest.mark.parametrize(
    ("app_id", "holds", "message"),
    [
        (OWN, OWN, f"of {OWN}"),
        (MINE, MINE, f"of {MINE}"),
        (MINE, "history/t/every@3", "of history/t/every@3"),
        (OWN, "", "without a position"),
        (MINE, "", "without a position"),
    ],
)
def test_a_feed_never_begins_where_rows_may_be_its_own_already(
    tmp_path: Path, app_id: str, holds: str, message: str
) -> None:
    path = str(tmp_path / "copy")
    DeltaTable.create(path, schema=SCHEMA, partition_by=["day"])
    commit_rows(path, OTHER, 1, rows(1))
    if holds:
        commit_rows(path, holds, 1, rows(2))
    else:
        write_deltalake(path, rows(2), mode="append")
    commit_rows(path, OTHER, 2, rows(3))
    with pytest.raises(FeedStopped, match=f"version 2 holds rows {message}, so {app_id} cannot begin") as refused:
        foreign_commits.check_unclaimed(path, app_id)
    assert refused.value.code == "E_NO_POSITION"


def test_rows_that_came_with_the_table_itself_are_somebodys_as_well(tmp_path: Path) -> None:
    path = str(tmp_path / "copy")
    write_deltalake(path, rows(1), partition_by=["day"])
    with pytest.raises(FeedStopped, match="version 0 holds rows without a position"):
        foreign_commits.check_unclaimed(path, OWN)


def test_a_table_that_lets_positions_expire_is_not_fed(table: str) -> None:
    foreign_commits.check_retains_positions(table)
    DeltaTable(table).alter.set_table_properties({"delta.setTransactionRetentionDuration": "interval 1 days"})
    with pytest.raises(FeedStopped, match="positions of its feeds would be forgotten") as refused:
        foreign_commits.check_retains_positions(table)
    assert refused.value.code == "E_TXN_RETENTION"
