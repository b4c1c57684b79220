"""A feed's position from its target's newest commits is the one that the whole log gives, or none. No Java."""

from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.feeds import app_ids
from console.agent.feeds.recent_number import COMMITS, recent_number
from console.model.live import Feed
from tests.faults.rules.tables import SCHEMA, commit_rows, number, rows

FEED = Feed(materialization="every", source="landing", target="copy", sql="SELECT n, day FROM landing")
OTHER = Feed(materialization="every2", source="landing", target="copy", sql="SELECT n, day FROM landing")


def passes(target: str, position: int, feed: Feed = FEED) -> None:
    commit_rows(target, app_ids.live_id(target, feed), number(1, position), rows(position), kind="live")


def compacts(target: str) -> None:
    DeltaTable(target).optimize.compact()


def replaces(target: str) -> None:
    """A table under a new id, as after CREATE OR REPLACE."""
    DeltaTable.create(target, schema=SCHEMA, partition_by=["day"], mode="overwrite")


def sets_a_property(target: str) -> None:
    DeltaTable(target).alter.set_table_properties({"delta.logRetentionDuration": "interval 90 days"})


def is_rewritten(target: str) -> None:
    write_deltalake(target, rows(7), mode="overwrite", partition_by=["day"])


def is_cleaned_up(target: str) -> None:
    DeltaTable(target).create_checkpoint()
    newest = DeltaTable(target).version()
    for version in range(newest + 1):
        (Path(target) / "_delta_log" / f"{version:020}.json").unlink()


def is_cut_short(target: str) -> None:
    DeltaTable(target).create_checkpoint()
    (Path(target) / "_delta_log" / f"{DeltaTable(target).version():020}.json").write_text('{"txn":')


def has_many_others(target: str) -> None:
    for _ in range(COMMITS):
        write_deltalake(target, rows(9), mode="append", partition_by=["day"])


AFTERWARDS: tuple[tuple[Callable[[str], None], bool], ...] = (
    (lambda target: None, True),
    (lambda target: passes(target, 5), True),
    (lambda target: passes(target, 5, OTHER), True),
    (lambda target: passes(target, 2), True),  # a number that is not greater, as by a zombie
    (compacts, True),
    (is_rewritten, True),
    (sets_a_property, False),
    (replaces, False),
    (is_cleaned_up, False),
    (is_cut_short, False),
    (has_many_others, False),
)


@pytest.mark.parametrize(("afterwards", "known"), AFTERWARDS)
def test_the_newest_commits_give_the_position_that_the_whole_log_gives(
    afterwards: Callable[[str], None], known: bool, tmp_path: Path
) -> None:
    target = str(tmp_path / "copy")
    DeltaTable.create(target, schema=SCHEMA, partition_by=["day"])
    for position in (2, 3):
        passes(target, position)
    afterwards(target)
    found, whole = recent_number(target, FEED), app_ids.live_number(target, FEED)
    assert (found is not None) == known
    assert found in (None, whole)


def test_a_feed_that_has_made_no_commit_is_not_known(tmp_path: Path) -> None:
    target = str(tmp_path / "copy")
    DeltaTable.create(target, schema=SCHEMA, partition_by=["day"])
    assert recent_number(target, FEED) is None
    passes(target, 4, OTHER)
    assert recent_number(target, FEED) is None
    assert recent_number(target, OTHER) == app_ids.live_number(target, OTHER) == number(1, 4)
