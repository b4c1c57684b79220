"""A managed landing table as of a version before columns were added to it, by the feeds' reading and by that of their judge."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from console.agent.feeds.live_feed import logical_rows
from console.agent.recount.pinned_tables import shown
from console.agent.rows.snapshot import stored_at
from console.model.schema import Column
from tests.faults.rules.tables import COLUMNS, foreign, rows, state

pytestmark = [pytest.mark.faults, pytest.mark.spark]
ADDED = (*COLUMNS, Column(name="zone", type="array<string>"))
BOTH = pytest.mark.parametrize("read", [logical_rows, shown])


@BOTH
def test_a_column_that_was_not_added_yet_is_null(session: Any, tmp_path: Path, read: Callable[..., Any]) -> None:
    path = foreign(tmp_path / "landing", rows(1, 2))
    shows = read(session, state("landing", ADDED, kind="landing", managed=True), stored_at(session, path, 0))
    assert shows.schema["zone"].dataType.simpleString() == "array<string>"
    assert sorted((row["n"], row["zone"]) for row in shows.collect()) == [(1, None), (2, None)]


@BOTH
@pytest.mark.parametrize("more", [{"kind": "landing"}, {"kind": "append"}])
def test_of_any_other_table_a_missing_column_is_an_error(
    session: Any, tmp_path: Path, read: Callable[..., Any], more: dict[str, Any]
) -> None:
    path = foreign(tmp_path / "landing", rows(1))
    with pytest.raises(AnalysisException, match="zone"):
        read(session, state("landing", ADDED, **more), stored_at(session, path, 0)).collect()
