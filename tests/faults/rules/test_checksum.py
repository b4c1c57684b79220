"""Both halves of a checksum count: values whose hashes share one half are told apart by the other, by whole rows and by column."""

from pathlib import Path
from typing import Any

import pytest

from console.agent.compared.comparison import compare
from console.agent.feeds.checksum import Sum, can_hash, row_sums_per_day, sums_per_day
from console.agent.recount.pinned_tables import Pinned
from console.agent.store import log
from console.model.schema import Column
from console.model.step import Comparison, Pair
from tests.faults.rules.tables import foreign, rows, state

pytestmark = [pytest.mark.faults, pytest.mark.spark]
ENOUGH = 400_000  # numbers, among which some twenty pairs share a half of 32 bits
N = (Column(name="n", type="bigint"), Column(name="day", type="date"))


def alike(session: Any, half: str, hash: str) -> tuple[int, int]:
    """Two numbers whose hashes differ, and not in this half."""
    result = session.range(ENOUGH).selectExpr("id", f"{half.format(hash)} AS half").groupBy("half")
    pairs = result.agg({"id": "collect_list"}).where("size(`collect_list(id)`) > 1").limit(1).collect()
    first, second, *_ = pairs[0][1]
    return first, second


HALVES = {"low": "{} & 4294967295", "high": "shiftrightunsigned({}, 32)"}


@pytest.mark.parametrize("half", HALVES)
def test_two_values_with_one_half_of_a_hash_in_common_are_two_values(session: Any, tmp_path: Path, half: str) -> None:
    one, other = alike(session, HALVES[half], "xxhash64(id)")
    paths = foreign(tmp_path / "old", rows(one, 5)), foreign(tmp_path / "new", rows(other, 5))
    sides = (Pinned(state("copy"), path, log.latest_version(path)) for path in paths)
    plan = Comparison(table="copy", pairs=(Pair("n", "n"), Pair("day", "day")), time="day")
    counted, columns = compare(session, plan, *sides)
    assert (counted.ok, columns.ok) == (True, False), (one, other)
    assert columns.detail == "differ: n on 2026-11-01"


@pytest.mark.parametrize("half", HALVES)
def test_two_rows_with_one_half_of_a_hash_in_common_have_two_checksums(session: Any, half: str) -> None:
    pair = alike(session, HALVES[half], "xxhash64(false, id)")
    sums = [row_sums_per_day(session.range(n, n + 1), "", [("id", "bigint")])[""] for n in pair]
    assert sums[0].rows == sums[1].rows == 1
    assert sums[0].text != sums[1].text, pair
    assert sums[0] - sums[1] != sums[0] - sums[0]


COLUMNS = (("a", "bigint"), ("s", "string"), ("m", "map<string,bigint>"))
DRAWN = (
    "(1L, 'x', map('k', 1L, 'j', 2L), TIMESTAMP '2026-11-01 01:00:00')",
    "(1L, 'x', map('j', 2L, 'k', 1L), TIMESTAMP '2026-11-01 23:59:59')",
    "(2L, NULL, NULL, TIMESTAMP '2026-11-02 00:00:00')",
    "(NULL, 'y', map('k', NULL), TIMESTAMP '2026-11-02 12:00:00')",
    "(3L, '', map(), NULL)",
    "(-4L, 'z', NULL, timestamp_micros(-62200000000000000))",
)
DAYS = {"2026-11-01": 2, "2026-11-02": 2, "": 1, "0000 and before": 1}
SORTED = "array_sort(map_entries(m))"
WHOLE = f"xxhash64(a IS NULL, a, s IS NULL, s, {SORTED} IS NULL, {SORTED})"


def halves(hashes: list[int]) -> tuple[int, int]:
    """Of hashes of 64 bits with a sign: the sums of their lower and of their upper 32 bits."""
    bits = [hash % 2**64 for hash in hashes]
    return sum(each % 2**32 for each in bits), sum(each // 2**32 for each in bits)


@pytest.fixture
def drawn(session: Any) -> Any:
    return session.sql(f"SELECT a, s, m, t FROM VALUES {', '.join(DRAWN)} AS v(a, s, m, t)")


def hashed(rows: Any, expression: str) -> dict[str, list[int]]:
    """Day → what Spark's own hash says of each of its rows."""
    day = "CASE WHEN t < '0001-01-01' THEN '0000 and before' ELSE coalesce(CAST(to_date(t) AS STRING), '') END AS day"
    results: dict[str, list[int]] = {}
    for row in rows.selectExpr(day, f"{expression} AS hash").collect():
        results.setdefault(row["day"], []).append(row["hash"])
    return results


def test_a_days_checksum_is_what_its_rows_hashes_add_up_to(drawn: Any) -> None:
    expected = {day: Sum(len(item), *halves(item)) for day, item in hashed(drawn, WHOLE).items()}
    assert {day: sum.rows for day, sum in expected.items()} == DAYS
    assert row_sums_per_day(drawn, "t", COLUMNS) == expected
    assert len({sum.text for sum in expected.values()}) == len(DAYS)


def test_all_rows_are_one_day_where_no_column_tells_it(drawn: Any) -> None:
    everything = [hash for value in hashed(drawn, WHOLE).values() for hash in value]
    assert row_sums_per_day(drawn, "", COLUMNS) == {"": Sum(len(DRAWN), *halves(everything))}


def test_without_columns_rows_are_counted(drawn: Any) -> None:
    assert row_sums_per_day(drawn, "t", ()) == {day: Sum(count) for day, count in DAYS.items()}


def test_each_column_has_its_count_and_its_own_sums(drawn: Any) -> None:
    results = {row["day"] or "": row.asDict() for row in sums_per_day(drawn, "t", COLUMNS).collect()}
    whole = hashed(drawn, WHOLE)
    assert {day: (row["rows"], row["lo"], row["hi"]) for day, row in results.items()} == {
        day: (len(hashes), *halves(hashes)) for day, hashes in whole.items()
    }
    for i, value in enumerate(("a", "s", SORTED)):
        counts = {row["day"]: row["n"] for row in _counts(drawn, value)}
        for day, hashes in hashed(drawn, f"xxhash64({value})").items():
            assert (results[day][f"n{i}"], results[day][f"lo{i}"], results[day][f"hi{i}"]) == (
                counts[day],
                *halves(hashes),
            )


def _counts(rows: Any, value: str) -> list[Any]:
    day = "CASE WHEN t < '0001-01-01' THEN '0000 and before' ELSE coalesce(CAST(to_date(t) AS STRING), '') END"
    rows.createOrReplaceTempView("drawn")
    result: list[Any] = rows.sparkSession.sql(
        f"SELECT {day} AS day, count({value}) AS n FROM drawn GROUP BY 1"
    ).collect()
    return result


def test_a_value_is_hashed_as_the_type_that_was_asked_for(session: Any) -> None:
    narrow, wide = (session.sql(f"SELECT CAST(7 AS {kind}) AS a") for kind in ("int", "bigint"))
    assert row_sums_per_day(narrow, "", [("a", "bigint")]) == row_sums_per_day(wide, "", [("a", "bigint")])


def test_sums_of_disjoint_rows_add_up_and_are_told_in_hex() -> None:
    assert Sum(9, 300, 50) - Sum(4, 100, 20) == Sum(5, 200, 30)
    assert (Sum(5, 255, 16).text, Sum(1).text, Sum().text) == ("ff-10", "0-0", "")
    assert Sum() == Sum(0, 0, 0)


@pytest.mark.parametrize(
    ("kind", "hashed"),
    [
        ("bigint", True),
        ("array<struct<a:string>>", True),
        ("map<string,bigint>", True),
        ("map<string,map<string,bigint>>", False),
        ("array<map<string,bigint>>", False),
        ("struct<m:map<int,int>>", False),
        ("variant", False),
        ("map<string,variant>", False),
        ("interval day to second", False),
        ("void", False),
    ],
)
def test_what_spark_cannot_hash_has_no_checksum(kind: str, hashed: bool) -> None:
    assert can_hash(kind) is hashed
