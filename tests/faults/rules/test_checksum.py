"""Both halves of a checksum count: values whose hashes share one half are told apart by the other, by whole rows and by column."""

from pathlib import Path
from typing import Any

import pytest

from console.agent.feeds.checksum import of_days
from console.agent.feeds.verify import compare
from console.agent.recount.pinned import Pinned
from console.agent.store import log
from console.model.schema import Column
from console.model.step import Comparison, Pair
from tests.faults.rules.tables import foreign, rows, state

pytestmark = [pytest.mark.faults, pytest.mark.spark]
ENOUGH = 400_000  # numbers, among which some twenty pairs share a half of 32 bits
N = (Column("n", "bigint"), Column("day", "date"))


def alike(session: Any, half: str, hash: str) -> tuple[int, int]:
    """Two numbers whose hashes differ, and not in this half."""
    found = session.range(ENOUGH).selectExpr("id", f"{half.format(hash)} AS half").groupBy("half")
    pairs = found.agg({"id": "collect_list"}).where("size(`collect_list(id)`) > 1").limit(1).collect()
    first, second, *_ = pairs[0][1]
    return first, second


HALVES = {"low": "{} & 4294967295", "high": "shiftrightunsigned({}, 32)"}


@pytest.mark.parametrize("half", HALVES)
def test_two_values_with_one_half_of_a_hash_in_common_are_two_values(session: Any, tmp_path: Path, half: str) -> None:
    one, other = alike(session, HALVES[half], "xxhash64(id)")
    paths = foreign(tmp_path / "old", rows(one, 5)), foreign(tmp_path / "new", rows(other, 5))
    sides = (Pinned(state("copy"), path, log.latest_version(path)) for path in paths)
    plan = Comparison("copy", (Pair("n", "n"), Pair("day", "day")), time="day")
    counted, columns = compare(session, plan, *sides)
    assert (counted.ok, columns.ok) == (True, False), (one, other)
    assert columns.detail == "differ: n on 2026-11-01"


@pytest.mark.parametrize("half", HALVES)
def test_two_rows_with_one_half_of_a_hash_in_common_have_two_checksums(session: Any, half: str) -> None:
    pair = alike(session, HALVES[half], "xxhash64(false, id)")
    sums = [of_days(session.range(n, n + 1), "", [("id", "bigint")])[""] for n in pair]
    assert sums[0].rows == sums[1].rows == 1
    assert sums[0].text != sums[1].text, pair
    assert sums[0] - sums[1] != sums[0] - sums[0]
