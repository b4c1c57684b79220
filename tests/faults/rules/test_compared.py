"""What a comparison records, day by day and column by column, and that a killed one goes on where it stopped."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from console.agent.compared import by_day
from console.agent.compared.comparison import compare
from console.agent.compared.examples import _examples
from console.agent.compared.records import ComparisonRecords
from console.agent.compared.round import ComparisonRound
from console.agent.queries import rows_of
from console.model.compared import ROWS, TOGETHER, ComparedColumn
from console.model.event import Checked
from tests.faults.rules import another
from tests.faults.rules.compared import (
    BAD_CAST,
    DAYS,
    LOST,
    PLAN,
    TWICE,
    compare_recorded,
    rows,
    sides,
    with_defects,
)

pytestmark = [pytest.mark.faults, pytest.mark.spark]


class Stored(list[ComparedColumn]):
    """Records as they are stored."""

    def __call__(self, records: Sequence[ComparedColumn]) -> None:
        self += records


def test_three_planted_defects_are_named_by_their_days_and_columns(session: Any, tmp_path: Path) -> None:
    old, new = sides(tmp_path, with_defects(rows(pa.float64())))
    stored = Stored()
    per_day, columns, changed = compare(session, PLAN, old, new, (), ComparisonRound(store=stored))
    assert (per_day.ok, columns.ok, changed.ok) == (False, False, True)
    assert per_day.detail == f"{LOST}: 60 → 59, {TWICE}: 60 → 61"
    assert {day.day: day.columns for day in per_day.days if not day.equal} == {
        BAD_CAST: ("bytes",),
        LOST: ("id", "ts", "day", "bytes"),
        TWICE: ("id", "ts", "day", "bytes"),
    }
    assert per_day.tally is not None
    assert (per_day.tally.days, per_day.tally.differing) == (DAYS, 3)
    assert len(stored) == DAYS * 6  # rows, four columns that must be equal, and one that is meant to change
    assert {(r.day, r.column) for r in stored if r.equal is False} == {
        (BAD_CAST, "bytes"),
        *((day, name) for day in (LOST, TWICE) for name in (ROWS, "id", "ts", "day", "bytes")),
    }
    # the numbers that cost holds now are what its texts said, except where they had no partner: on the day of the cast
    summary = changed.summaries[0]
    assert (summary.column, summary.rows_old, summary.rows_new, summary.nulls_new) == ("cost", 840, 840, 0)
    assert (summary.changed, summary.of) == (0, 840 - 44 - 1 - 1)


@pytest.mark.parametrize(("point", "portions"), [("before-comparison", 0), ("after-comparison", 1)])
def test_a_killed_comparison_compares_no_finished_day_again(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, portions: int
) -> None:
    old, new = sides(tmp_path, with_defects(rows(pa.float64())))
    another.dies(session, tmp_path / "armed", point, tmp_path, "compare")
    records = ComparisonRecords(tmp_path / "console")
    done = records.newest("web-1", "copy")
    assert {record.portion for record in done} == set(range(1, portions + 1))
    read: list[int] = []
    compared = by_day._compared
    monkeypatch.setattr(by_day, "_compared", lambda *a, portion: read.append(portion) or compared(*a, portion=portion))
    resumed = compare_recorded(session, tmp_path)
    assert read == [1, 2, 3, 4][portions:]
    whole = tuple(compare(session, PLAN, old, new))
    assert _verdicts(resumed) == _verdicts(whole)
    stored = records.newest("web-1", "copy")
    assert len(stored) == len({(record.day, record.column) for record in stored}) == DAYS * 6


def _verdicts(checks: Sequence[Checked]) -> list[Any]:
    return [(check.check, check.ok, check.detail, check.days, check.tally) for check in checks]


def test_rows_that_history_left_out_are_no_doubt_and_what_else_differs_is_a_difference(
    session: Any, tmp_path: Path
) -> None:
    correct = rows(pa.float64())
    lacking = duckdb.sql("SELECT * FROM correct WHERE id NOT IN ('e10', 'e700')").to_arrow_table().cast(correct.schema)
    old, new = sides(tmp_path, lacking)
    left_out = old.rows(session).where("id IN ('e10', 'e700')")
    per_day, columns, _ = compare(session, PLAN, old, new, (), ComparisonRound(left_out=left_out))
    assert (per_day.ok, columns.ok) == (True, True)
    assert per_day.detail == "838 rows in 14 days are equal; 2 rows in quarantine are not counted"
    too_few = old.rows(session).where("id = 'e10'")
    per_day, columns, _ = compare(session, PLAN, old, new, (), ComparisonRound(left_out=too_few))
    assert (per_day.ok, columns.ok) == (False, False)
    assert per_day.detail.startswith("2026-11-12: 60 → 59")
    others = old.rows(session).where("id IN ('e11', 'e700')")
    per_day, columns, _ = compare(session, PLAN, old, new, (), ComparisonRound(left_out=others))
    assert (per_day.ok, columns.ok) == (True, None), "of that day something is known to be missing: a person decides"


def test_values_that_have_changed_places_are_a_difference_of_the_rows(session: Any, tmp_path: Path) -> None:
    """Each column is the same multiset on its day; the rows are not."""
    correct = rows(pa.float64())
    swapped = (
        duckdb.sql(
            """
            SELECT id, ts, day, CAST(CASE id WHEN 'e0' THEN 1 WHEN 'e1' THEN 0 ELSE bytes END AS BIGINT) AS bytes, cost
            FROM correct
            """
        )
        .to_arrow_table()
        .cast(correct.schema)
    )
    old, new = sides(tmp_path, swapped)
    per_day, columns, _ = compare(session, PLAN, old, new)
    assert per_day.ok is True
    assert (columns.ok, columns.detail.partition(";")[0]) == (False, "differ: rows of equal columns on 2026-11-01")
    assert [day.columns for day in per_day.days if not day.equal] == [(TOGETHER,)]


def test_examples_are_the_rows_that_differ_and_ten_at_most(session: Any, tmp_path: Path) -> None:
    old, new = sides(tmp_path, with_defects(rows(pa.float64())))
    lost = _examples(session, PLAN, old, new, LOST, rows_of)
    assert ([row[0] for row in lost.differing.old], lost.differing.new) == (["e425"], ())
    assert [row[0] for row in _examples(session, PLAN, old, new, TWICE, rows_of).differing.new] == ["e601"]
    cast = _examples(session, PLAN, old, new, BAD_CAST, rows_of)
    assert [len(cast.differing.old), len(cast.differing.new)] == [10, 10]
    assert [row[0] for row in cast.differing.old] == [row[0] for row in cast.differing.new]
    assert (cast.ranges[0].old_least, cast.ranges[0].new_greatest) == (60.0, 74.75)
