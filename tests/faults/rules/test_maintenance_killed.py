"""Killed around a compaction and around a retention delete: the next pass ends the same, and no feed below notices."""

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from console.agent.feeds.live_feed import LiveFeed
from console.agent.maintenance.compaction import crowded
from console.agent.maintenance.retention import expire
from console.agent.store import log
from tests.faults.rules import another
from tests.faults.rules.tables import SCHEMA, column_values, copying_feed, foreign, rows

pytestmark = [pytest.mark.faults, pytest.mark.spark]


def below(session: Any, warehouse: Path, table: str) -> LiveFeed:
    """A feed that has carried the table's first two commits."""
    copy = str(warehouse / "c")
    DeltaTable.create(copy, schema=pa.schema(SCHEMA))
    feed = copying_feed(table, copy)
    assert feed.step(session, 1) == 1
    return feed


def notes(table: str, kind: str) -> int:
    results = (log.commit(table, version).note for version in range(log.latest_version(table) + 1))
    return sum(note.get("kind") == kind for note in results)


def carried(session: Any, feed: LiveFeed) -> list[int]:
    while feed.step(session, log.latest_version(feed.source_path)) >= 0:
        pass
    return column_values(feed.target_path)


@pytest.mark.parametrize(("point", "done"), [("before-commit-compact", 0), ("after-commit-compact", 1)])
def test_killed_around_a_compaction_the_next_one_finds_it_done_or_does_it_and_every_row_flows_once(
    tmp_path: Path, session: Any, point: str, done: int
) -> None:
    lake = tmp_path / "lake"
    table = foreign(lake / "landing", *(rows(n) for n in range(5)), rows(9, day=2))
    feed = below(session, lake, table)
    another.dies(session, tmp_path / "armed", point, lake, "compact")
    assert (notes(table, "compact"), column_values(table)) == (done, [0, 1, 2, 3, 4, 9])
    another.compacted(session, lake)
    assert (notes(table, "compact"), column_values(table)) == (1, [0, 1, 2, 3, 4, 9])
    assert crowded(table, many=3) == ()
    assert carried(session, feed) == [1, 2, 3, 4, 9]


@pytest.mark.parametrize(("point", "left"), [("before-commit-retention", 2), ("after-commit-retention", 0)])
def test_killed_around_a_retention_delete_whole_days_are_gone_once_and_no_feed_below_notices(
    tmp_path: Path, session: Any, point: str, left: int
) -> None:
    lake, keep = tmp_path / "lake", date(2026, 11, 2)
    table = foreign(lake / "landing", rows(), rows(0), rows(1, 2, day=3), rows(3, day=None), rows(4))
    feed = below(session, lake, table)
    another.dies(session, tmp_path / "armed", point, lake, "expire", keep.isoformat())
    assert len(column_values(table)) == 3 + left
    assert expire(session, table, another.SHORT, keep) == left
    assert (notes(table, log.RETENTION), column_values(table)) == (1, [1, 2, 3])
    assert carried(session, feed) == [0, 1, 2, 3, 4], "what had landed flows, however soon it was to expire"
