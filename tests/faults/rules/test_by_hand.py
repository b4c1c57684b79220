"""Somebody writes to the new version by hand before it is promoted: the comparison finds it, and the gate stays shut (F26)."""

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, write_deltalake

from console.agent.compared.comparison import compare
from console.agent.recount.pinned_tables import Pinned
from console.agent.store import log
from console.errors import AtGate, CheckFailed
from console.model.event import Checked, Promoted
from console.model.step import Comparison, Pair
from tests.faults.rivals.test_steering import at_the_gate, opened
from tests.faults.rules.tables import foreign, rows, state

pytestmark = pytest.mark.faults
COMPARED = Comparison(table="copy", pairs=(Pair("n", "n"), Pair("day", "day")), time="day")
DAY = date(2026, 11, 2)


def nothing(table: str) -> None:
    """A hand that moves no row: OPTIMIZE."""
    DeltaTable(table).optimize.compact()


def insert(table: str) -> None:
    write_deltalake(table, rows(9, day=2), mode="append", partition_by=["day"])


def delete(table: str) -> None:
    DeltaTable(table).delete("n = 3")


def update(table: str) -> None:
    DeltaTable(table).update(updates={"n": "7"}, predicate="n = 3")


def exchange(table: str) -> None:
    """As many rows as before, and the same sum."""
    DeltaTable(table).update(updates={"n": "CASE WHEN n = 2 THEN 1 ELSE 4 END"}, predicate="n IN (2, 3)")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("hand", "message"),
    [
        (nothing, ""),
        (insert, "2026-11-02: 2 → 3"),
        (delete, "2026-11-02: 2 → 1"),
        (update, "differ: n on 2026-11-02"),
        (exchange, "differ: n on 2026-11-02"),
    ],
)
def test_what_somebody_wrote_to_the_new_version_is_a_difference_named_by_its_day(
    tmp_path: Path, session: Any, hand: Callable[[str], None], message: str
) -> None:
    data = (rows(0, 1), rows(2, 3, day=2), rows(4, day=None))
    old, new = foreign(tmp_path / "old", *data), foreign(tmp_path / "new", *data)
    hand(new)
    sides = (Pinned(state("copy"), path, log.latest_version(path)) for path in (old, new))
    results = tuple(compare(session, COMPARED, *sides))
    assert [check.check for check in results] == ["rows per day", "unchanged columns"]
    assert all(check.ok for check in results) is (hand is nothing), results
    assert message in "; ".join(check.detail for check in results)
    assert [day.day for day in results[0].days] == ["", "2026-11-01", "2026-11-02"]
    assert [day.day for day in results[0].days if not day.equal] == ([] if hand is nothing else ["2026-11-02"])


@pytest.mark.parametrize("ok", [True, None, False])
def test_no_gate_opens_past_a_check_that_found_a_difference(tmp_path: Path, ok: bool | None) -> None:
    line = opened(tmp_path)
    at_the_gate(line, 1, "")
    line.recorder.store(Checked(table="copy", check="rows per day", ok=True, detail="4 rows in 2 days are equal"))
    line.recorder.store(Checked(table="copy", check="unchanged columns", ok=ok, detail=f"differ: n on {DAY}"))
    if ok:
        assert line.promote("web-1", "", "ada", "laptop").release == "r1"
        return
    # an inconclusive check waits for a person who accepts it by name
    expected = ("E_INCONCLUSIVE", 3) if ok is None else ("E_CHECK", 1)
    with pytest.raises((CheckFailed, AtGate), match=rf"copy: unchanged columns.*: differ: n on {DAY}") as shut:
        line.promote("web-1", "", "ada", "laptop")
    assert (shut.value.code, shut.value.exit_code) == expected
    assert line.releases.in_state("live") is None
    assert line.recorder.events(Promoted) == ()
    assert line.recorder.status.shown == "awaiting-confirmation"
