"""A table between two steps, on real Spark: what the step above has measured, and the files of what came since, are all that is there."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from console.agent.receipts import step_receipts
from console.agent.store import log, open_tables
from console.model.receipt import Measured, Place
from tests.agent.test_backfill_step import context
from tests.agent.test_ops import RECEIPTS
from tests.faults.rules.tables import commit_rows, foreign, number, rows, state

pytestmark = [pytest.mark.faults, pytest.mark.spark]


def test_what_was_measured_and_what_came_since_is_all_that_is_there(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = foreign(tmp_path / "copy", rows(1, 2, 2), rows(3, day=None))

    def newest() -> Place:
        version = log.latest_version(table)
        day, columns = step_receipts.sum_definition(state("copy"), table, version, "day")
        return Place(path="copy", id=open_tables.table_id(table), version=version, time=day, columns=columns)

    above = Measured(source=newest(), target=newest())
    measured = step_receipts.sums_by_day(session, tmp_path, above.target)
    assert {day: each.rows for day, each in measured.items()} == {"2026-11-01": 3, "": 1}
    step_receipts.ops_of(tmp_path, "web").store_receipts(
        [
            replace(
                RECEIPTS[0],
                day=day,
                version=above.target.version,
                rows_out=each.rows,
                checksum_out=each.text,
                how=above,
            )
            for day, each in measured.items()
        ]
    )
    commit_rows(table, "live/t/every", number(1, 1), rows(4, 4, day=2))
    commit_rows(table, "live/t/every", number(1, 2), rows(5))
    DeltaTable(table).optimize.compact()
    whole = step_receipts.sums_by_day(session, tmp_path, newest())
    monkeypatch.setattr(step_receipts, "sums_by_day", None)  # reads a table as a whole
    assert step_receipts._source_sums(session, context(tmp_path), newest()) == whole
    assert {day: each.rows for day, each in whole.items()} == {"2026-11-01": 4, "2026-11-02": 2, "": 1}
