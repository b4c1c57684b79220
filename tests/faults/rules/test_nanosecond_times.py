"""Times finer than a microsecond, written by other programs, are never truncated: neither live nor in history."""

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from console.agent.execution.backfill_step import check_nanoseconds
from console.agent.feeds import commit
from console.agent.feeds.live_feed import LiveFeed
from console.errors import FeedStopped
from console.model.live import Feed
from console.model.schema import Column
from tests.agent.test_nanoseconds import FINE, WHOLE, landing
from tests.faults.rules.tables import column_values, state

pytestmark = [pytest.mark.faults, pytest.mark.spark]
COLUMNS = (Column(name="id", type="string"), Column(name="ts", type="timestamp"))


@pytest.mark.parametrize("old", [True, False])
def test_a_live_row_that_would_be_cut_stops_its_feed_by_name_in_front_of_it(
    tmp_path: Path, session: Any, old: bool
) -> None:
    kept = WHOLE if old else WHOLE + 1  # the new type is refused whatever it holds
    source = landing(tmp_path, [WHOLE], [FINE], use_deprecated_int96_timestamps=old)
    target = str(tmp_path / "copy")
    copy = state("copy", COLUMNS, partition_by=())
    commit.create(session, copy, target, 72)
    theirs = state("landing", COLUMNS, kind="landing", partition_by=())
    feed = LiveFeed(
        spec=Feed(materialization="every", source="landing", target="copy", sql="SELECT id, ts FROM landing"),
        source=theirs,
        target=copy,
        joins=(),
        source_path=source,
        target_path=target,
        start=0,
    )
    if old:
        assert feed.step(session, 1) == 1
    with pytest.raises(
        FeedStopped, match=r"ts holds times finer than a microsecond in f\d.parquet: they would be truncated"
    ) as stopped:
        feed.step(session, 2)
    assert stopped.value.code == "E_NANOSECONDS"
    assert len(column_values(target, "id")) == old
    assert [time.timestamp() for time in column_values(target, "ts")] == [kept / 1e9] * old
    with pytest.raises(FeedStopped, match="finer than a microsecond"):
        check_nanoseconds(theirs, source, DeltaTable(source).version())
