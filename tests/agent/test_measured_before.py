"""What an earlier step has measured as its target is taken for the source of the next, with the rows that came in between. No Java."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from console.agent.feeds.checksum import Sum
from console.agent.receipts import step_receipts
from console.agent.receipts.measured_before import measured_before
from console.agent.rollout.context import RolloutContext
from console.agent.store import log, open_tables
from console.model.receipt import Measured, Place, Receipt
from tests.agent.test_backfill_step import context
from tests.agent.test_ops import RECEIPTS
from tests.faults.rules.tables import commit_rows, foreign, number, rows

pytestmark = pytest.mark.slow

FIRST, SECOND = "2026-11-01", "2026-11-02"
SUMS = {FIRST: Sum(2, 255, 1 << 40), "": Sum(1, 0, 7)}
APP = "history/t/every@3"


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A history of three rows, a day of them, and one without a day."""
    return foreign(tmp_path / "requests", rows(1, 2), rows(3, day=None))


def place(table: str, version: int) -> Place:
    return Place(
        path="requests", id=open_tables.table_id(table), version=version, time="day", columns=(("n", "bigint"),)
    )


def measured(target: Place, step: str = "backfill/requests/parse", sums: dict[str, Sum] = SUMS) -> list[Receipt]:
    how = Measured(source=place_of_landing, target=target)
    return [
        replace(RECEIPTS[0], step=step, day=day, version=target.version, rows_out=each.rows, checksum_out=each.text, how=how)
        for day, each in sums.items()
    ]  # fmt: skip


place_of_landing = Place(path="landing", id="i", version=3)


def test_the_same_rows_are_not_read_again(table: str) -> None:
    found = measured_before(measured(place(table, 1)), place(table, 1), table)
    assert found is not None
    assert (found.sums, found.files) == (SUMS, ())
    with_no_row = [*measured(place(table, 1)), *measured(place(table, 1), sums={SECOND: Sum()})]
    assert measured_before(with_no_row, place(table, 1), table) == found, (
        "a day of the source without rows in the target"
    )


def test_rows_that_came_in_between_are_read_and_no_others(table: str) -> None:
    commit_rows(table, APP, number(2, 0), rows(0).slice(0, 0), kind="take-over")
    commit_rows(table, APP, number(2, 1), rows(4, 5, day=2))
    commit_rows(table, APP, number(2, 2), rows(6))
    found = measured_before(measured(place(table, 1)), place(table, 3), table)
    assert found is not None
    assert found.sums == SUMS
    assert [file.rows for file in found.files] == [2]


def test_the_newest_measurement_is_taken_whole(table: str) -> None:
    commit_rows(table, APP, number(2, 1), rows(4, day=2))
    newer = {SECOND: Sum(4, 4, 4)}
    both = [*measured(place(table, 1)), *measured(place(table, 2), "backfill/requests/more", newer)]
    found = measured_before(both, place(table, 2), table)
    assert found is not None
    assert (found.sums, found.files) == (newer, ())
    assert measured_before(both, place(table, 0), table) is None, "both are later"


def test_rows_that_moved_into_other_files_are_still_the_same(table: str) -> None:
    commit_rows(table, APP, number(2, 1), rows(4))
    DeltaTable(table).optimize.compact()
    found = measured_before(measured(place(table, 1)), place(table, DeltaTable(table).version()), table)
    assert found is not None
    assert [file.rows for file in found.files] == [1]


def test_after_a_delete_or_a_merge_of_states_all_is_read(table: str) -> None:
    commit_rows(table, APP, number(2, 1), rows(4), kind=log.MERGE)
    assert measured_before(measured(place(table, 1)), place(table, 2), table) is None
    assert measured_before(measured(place(table, 2)), place(table, 2), table) is not None
    DeltaTable(table).delete("n = 1")
    assert measured_before(measured(place(table, 2)), place(table, 3), table) is None


@pytest.mark.parametrize(
    "other",
    [
        {"path": "requests/v-2"}, {"id": "another"}, {"time": "ts"}, {"time": ""}, {"columns": (("n", "int"),)},
        {"before": 0}, {"feed": APP},
    ],
)  # fmt: skip
def test_other_rows_or_other_sums_of_them_are_no_measurement(table: str, other: dict[str, Any]) -> None:
    own = place(table, 1)
    assert measured_before(measured(replace(own, **other)), own, table) is None
    assert measured_before(measured(own), replace(own, **other), table) is None
    assert measured_before([replace(receipt, how=None) for receipt in measured(own)], own, table) is None


# -- the step below


def sums_of_source(rollout: RolloutContext, table: str, version: int) -> dict[str, Sum]:
    """As of the step's own receipts, without a Spark that could read the table."""
    return step_receipts._source_sums(None, rollout, place(table, version))


def test_a_step_reads_only_what_no_earlier_step_has_measured(
    table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = context(tmp_path)
    with pytest.raises(AttributeError, match="'read'"):
        sums_of_source(rollout, table, 1)
    step_receipts.ops_of(tmp_path, "web").store_receipts(measured(place(table, 1)))
    assert sums_of_source(rollout, table, 1) == SUMS
    commit_rows(table, APP, number(2, 1), rows(4, day=2))
    with pytest.raises(AttributeError):
        sums_of_source(rollout, table, 2)
    later = {FIRST: Sum(1, 1, 1), SECOND: Sum(1, 2, 3)}
    monkeypatch.setattr(step_receipts, "row_sums_per_day", lambda *_: later)
    monkeypatch.setattr(step_receipts.appended, "rows", lambda *_: None)
    assert sums_of_source(rollout, table, 2) == {FIRST: Sum(3, 256, (1 << 40) + 1), SECOND: Sum(1, 2, 3), "": SUMS[""]}


def test_receipts_that_no_longer_decode_are_not_used(table: str, tmp_path: Path) -> None:
    ops = step_receipts.ops_of(tmp_path, "web")
    ops.store_receipts(measured(place(table, 1)))
    DeltaTable(str(ops.path)).update(updates={"how": "'{'"}, predicate=f"day = '{FIRST}'")
    with pytest.raises(AttributeError, match="'read'"):
        sums_of_source(context(tmp_path), table, 1)


def test_a_sum_is_read_from_its_text() -> None:
    for each in (Sum(), Sum(1), Sum(5, 255, 16), Sum(2, 1 << 60, 0)):
        assert Sum.of(each.rows, each.text) == each
    assert Sum(1, 2, 3) + Sum(4, 5, 6) == Sum(5, 7, 9)
