"""What a comparison records, day by day and column by column, and that a killed one goes on where it stopped."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.compared.examples import _examples
from console.agent.compared.records import ComparisonRecords
from console.agent.compared.round import ComparisonRound, portions
from console.agent.feeds.comparison import compare
from console.agent.queries import rows_of
from console.agent.recount.pinned_tables import Pinned
from console.agent.store import log
from console.agent.store.table_stats import table_stats
from console.model.compared import ROWS, TOGETHER, ComparedColumn
from console.model.event import Checked
from console.model.schema import Column
from console.model.step import Comparison, Pair
from tests.faults.rules.tables import state

pytestmark = [pytest.mark.faults, pytest.mark.spark]
DAYS, A_DAY = 14, 60
FIRST = datetime(2026, 11, 1, tzinfo=UTC)
COLUMNS = (
    Column(name="id", type="string"),
    Column(name="at", type="timestamp"),
    Column(name="day", type="date"),
    Column(name="bytes", type="bigint"),
    Column(name="cost", type="double"),
)
OLD = (*COLUMNS[:4], Column(name="cost", type="string"))
PLAN = Comparison(
    table="copy",
    pairs=tuple(Pair(name, name) for name in ("id", "at", "day", "bytes")),
    left_out=(("cost", "its type changes"),),
    time="at",
    changed=(Pair("cost", "cost", exact=False),),
)
BAD_CAST, LOST, TWICE = "2026-11-05", "2026-11-08", "2026-11-11"


def rows(cost: pa.DataType) -> pa.Table:
    """Fourteen days of requests; `cost` as text or as a number."""
    at = [FIRST + timedelta(days=n // A_DAY, minutes=n % A_DAY) for n in range(DAYS * A_DAY)]
    numbers = [n / 4 for n in range(len(at))]
    return pa.table(
        {
            "id": [f"e{n}" for n in range(len(at))],
            "at": pa.array(at, pa.timestamp("us", "UTC")),
            "day": [moment.date() for moment in at],
            "bytes": pa.array(range(len(at)), pa.int64()),
            "cost": pa.array([str(n) if cost == pa.string() else n for n in numbers], cost),
        }
    )


def with_defects(right: pa.Table) -> pa.Table:
    """A wrong cast on one day, a row lost on another and one duplicated on a third."""
    made: pa.Table = duckdb.sql(
        f"""
        SELECT id, at, day, CAST(CASE WHEN day = '{BAD_CAST}' THEN bytes % 256 ELSE bytes END AS BIGINT) AS bytes, cost
        FROM right WHERE NOT (day = '{LOST}' AND id = 'e425')
        UNION ALL SELECT * FROM right WHERE day = '{TWICE}' AND id = 'e601'
        """
    ).to_arrow_table()
    return made.cast(right.schema)


def written(place: Path, table: pa.Table) -> str:
    write_deltalake(str(place), table, partition_by=["day"])
    return str(place)


def sides(tmp_path: Path, new: pa.Table) -> tuple[Pinned, Pinned]:
    paths = written(tmp_path / "old", rows(pa.string())), written(tmp_path / "new", new)
    states = state("copy", OLD), state("copy", COLUMNS)
    old, new_side = (Pinned(s, path, log.latest_version(path)) for s, path in zip(states, paths, strict=True))
    return old, new_side


def days_of(side: Pinned) -> Any:
    found = table_stats("copy", side.path, "day")
    assert found is not None
    return found.days


class Stored(list[ComparedColumn]):
    """Records as they are stored; with a number, the agent is killed behind so many portions."""

    def __init__(self, killed_after: int = 0) -> None:
        self.portions, self.killed_after = 0, killed_after

    def __call__(self, records: Sequence[ComparedColumn]) -> None:
        self += records
        self.portions += 1
        if self.portions == self.killed_after:
            raise KeyboardInterrupt


def test_three_planted_defects_are_named_by_their_days_and_columns(session: Any, tmp_path: Path) -> None:
    old, new = sides(tmp_path, with_defects(rows(pa.float64())))
    stored = Stored()
    per_day, columns, changed = compare(session, PLAN, old, new, (), ComparisonRound(store=stored))
    assert (per_day.ok, columns.ok, changed.ok) == (False, False, True)
    assert per_day.detail == f"{LOST}: 60 → 59, {TWICE}: 60 → 61"
    assert {day.day: day.columns for day in per_day.days if not day.equal} == {
        BAD_CAST: ("bytes",),
        LOST: ("id", "at", "day", "bytes"),
        TWICE: ("id", "at", "day", "bytes"),
    }
    assert per_day.tally is not None
    assert (per_day.tally.days, per_day.tally.differing) == (DAYS, 3)
    assert len(stored) == DAYS * 6  # rows, four columns that must be equal, and one that is meant to change
    assert {(r.day, r.column) for r in stored if r.equal is False} == {
        (BAD_CAST, "bytes"),
        *((day, name) for day in (LOST, TWICE) for name in (ROWS, "id", "at", "day", "bytes")),
    }
    # the numbers that cost holds now are what its texts said, except where they had no partner: on the day of the cast
    summary = changed.summaries[0]
    assert (summary.column, summary.rows_old, summary.rows_new, summary.nulls_new) == ("cost", 840, 840, 0)
    assert (summary.changed, summary.of) == (0, 840 - 44 - 1 - 1)


def test_a_killed_comparison_compares_no_finished_day_again(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = sides(tmp_path, with_defects(rows(pa.float64())))
    parts = portions(days_of(new), rows_limit=A_DAY // 2)
    assert len(parts) == 4  # eight batches of 30 rows: four days each
    stored = Stored(killed_after=2)
    with pytest.raises(KeyboardInterrupt):
        tuple(compare(session, PLAN, old, new, (), ComparisonRound(portions=parts, store=stored)))
    records = ComparisonRecords(tmp_path / "console")
    records.append("web-1", stored)
    done = records.newest("web-1", "copy")
    assert {record.portion for record in done} == {1, 2}
    again = Stored()
    resumed = tuple(compare(session, PLAN, old, new, (), ComparisonRound(portions=parts, done=done, store=again)))
    assert {record.portion for record in again} == {3, 4}
    assert not {record.day for record in again} & {record.day for record in done}
    whole = tuple(compare(session, PLAN, old, new))
    assert _verdicts(resumed) == _verdicts(whole)


def _verdicts(checks: Sequence[Checked]) -> list[Any]:
    return [(check.check, check.ok, check.detail, check.days, check.tally) for check in checks]


def test_rows_that_history_left_out_are_no_doubt_and_what_else_differs_is_a_difference(
    session: Any, tmp_path: Path
) -> None:
    right = rows(pa.float64())
    lacking = duckdb.sql("SELECT * FROM right WHERE id NOT IN ('e10', 'e700')").to_arrow_table().cast(right.schema)
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
    right = rows(pa.float64())
    swapped = (
        duckdb.sql(
            """
            SELECT id, at, day, CAST(CASE id WHEN 'e0' THEN 1 WHEN 'e1' THEN 0 ELSE bytes END AS BIGINT) AS bytes, cost
            FROM right
            """
        )
        .to_arrow_table()
        .cast(right.schema)
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
