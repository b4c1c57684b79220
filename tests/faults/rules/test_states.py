"""Partial states on Spark: however rows fall into commits, what is read is what the rows themselves give.

The judge is Python over the rows: fractions for sums and moments, a sort for orders; nothing of the product takes part.
"""

import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from operator import and_, or_, xor
from pathlib import Path
from typing import Any

import pytest

from console.agent import failure
from console.agent.compared.comparison import compare
from console.agent.recount.pinned_tables import Pinned
from console.agent.store import log
from console.model.live import TableState, Version
from console.model.pipeline import Materialization, Pipeline
from console.model.schema import Column, Table
from console.model.step import Backfill, Comparison, Pair
from tests.planning.test_aggregates import split
from tests.planning.world import empty, planned, promoted, stats

pytestmark = [pytest.mark.faults, pytest.mark.spark]
NAN, INF = math.nan, math.inf
SCHEMA = "n INT, k STRING, day DATE, i INT, l BIGINT, d DECIMAL(10,2), f DOUBLE, s STRING"
QUERY = """SELECT k, day, count(*) AS hits, any_value(s) AS some, max_by(s, l) AS latest, min_by(s, l) AS earliest,
  max_by(i, f) FILTER (WHERE i > 0) AS at_most, variance(f) AS var, stddev_pop(f) AS dev, std(i) AS dev_i,
  var_pop(f) FILTER (WHERE s = 'x') AS var_x, corr(i, f) AS pair, covar_samp(i, d) AS together,
  bool_and(i > 2) AS every, some(i > 2) AS one, collect_set(s) AS seen, collect_set(f) AS numbers,
  bit_or(i) AS bor, bit_and(i) AS band, bit_xor(l) AS bxor
FROM t GROUP BY k, day"""
TYPES = {
    "k": "string", "day": "date", "hits": "bigint", "some": "string", "latest": "string", "earliest": "string",
    "at_most": "int", "var": "double", "dev": "double", "dev_i": "double", "var_x": "double", "pair": "double",
    "together": "double", "every": "boolean", "one": "boolean", "seen": "array<string>", "numbers": "array<double>",
    "bor": "int", "band": "int", "bxor": "bigint",
}  # fmt: skip
MOMENTS = (
    ("var", "var", "f"), ("dev", "std_pop", "f"), ("dev_i", "std", "i"), ("var_x", "var_pop", "f"),
    ("pair", "corr", "i f"), ("together", "cov", "i d"),
)  # fmt: skip
DAYS = (date(2026, 11, 1), date(2026, 11, 2))
Row = tuple[Any, ...]


def drawn(rng: random.Random, rows: int) -> list[Row]:
    """Rows with ties, NULLs, NaN, both zeros and infinities; one group's doubles lie far from zero and close together."""
    made = []
    for _ in range(rows):
        k = rng.choice(["a", "b", "far", "none", None])
        number = rng.choice([None, 0.0, -0.0, 1.5, -2.25, rng.uniform(-9, 9)])
        if k == "b":
            number = rng.choice([number, NAN, INF, -INF])
        if k == "far":
            number = 1.7e9 + rng.uniform(0, 3)
        i = rng.choice([None, *range(-4, 7)])
        text = rng.choice(["x", "y", "z", "", None])
        order = rng.choice([None, 1, 2, 3])  # few, so that they tie
        if k == "none":
            i = number = text = order = None
        price = None if i is None else Decimal(i) / 4
        made.append((k, rng.choice(DAYS), i, order, price, number, text))
    return made


def cut(rng: random.Random, rows: Sequence[Row], commits: int) -> list[Row]:
    return [(rng.randrange(commits), *row) for row in rows]


def read_after(session: Any, place: Path, rows: Sequence[Row], commits: int) -> dict[tuple[Any, Any], Any]:
    """What the compiled read shows once each commit's partial rows are stored in a Delta table."""
    code = split(QUERY, **TYPES)
    given = session.createDataFrame(list(rows), SCHEMA).cache()
    for commit in range(commits):
        given.where(f"n = {commit}").drop("n").createOrReplaceTempView("t")
        session.sql(code.feed.sql).write.format("delta").mode("append").save(str(place))
    session.read.format("delta").load(str(place)).createOrReplaceTempView("stored")
    return {(row["k"], row["day"]): row for row in session.sql(code.read).collect()}


def exactly(xs: Sequence[float], ys: Sequence[float]) -> Fraction | None:
    """n² times the covariance; None where a value is not finite."""
    if not all(map(math.isfinite, (*xs, *ys))):
        return None
    a, b = [Fraction(x) for x in xs], [Fraction(y) for y in ys]
    return len(a) * sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0)) - sum(a) * sum(b)


def near(shown: float | None, wanted: float | None, size: float = 1.0) -> bool:
    """size: of the largest value in units of the deviation, by which rounding grows"""
    if shown is None or wanted is None:
        return shown is wanted
    if math.isnan(shown) or math.isnan(wanted):
        return math.isnan(shown) and math.isnan(wanted)
    return abs(shown - wanted) <= 1e-12 * size * max(abs(wanted), 1e-9)


def sound_moments(rows: Sequence[Row], row: Any) -> Callable[[str, str, str], bool]:
    at = {"i": 2, "l": 3, "d": 4, "f": 5, "s": 6}

    def sound(column: str, kind: str, of: str) -> bool:
        names = of.split()
        kept = [
            r for r in rows if all(r[at[name]] is not None for name in names) and (column != "var_x" or r[6] == "x")
        ]
        xs, ys = ([float(r[at[name]]) for r in kept] for name in (names[0], names[-1]))
        n = len(kept)
        if n == 0 or (n == 1 and kind in ("var", "std", "cov", "corr")):
            return row[column] is None
        whole = [exactly(a, b) for a, b in ((xs, ys), (xs, xs), (ys, ys))]
        if any(part is None for part in whole):
            return row[column] is not None and math.isnan(row[column])
        xy, xx, yy = (float(part) for part in whole if part is not None)
        wanted = {
            "var": lambda: xy / n / (n - 1), "var_pop": lambda: xy / n / n, "std": lambda: math.sqrt(xx / n / (n - 1)),
            "std_pop": lambda: math.sqrt(xx / n / n), "cov": lambda: xy / n / (n - 1),
            "corr": lambda: None if not xx or not yy else xy / math.sqrt(xx) / math.sqrt(yy),
        }[kind]()  # fmt: skip
        largest = max((abs(x) for x in (*xs, *ys)), default=1.0)
        spread = max(math.sqrt(max(xx, yy, 0.0)) / n, 1e-3)
        return near(row[column], wanted, max(1.0, 64 * largest / spread))

    return sound


def by_order(rows: Sequence[Row], value: int, order: int, greatest: bool) -> Any:
    """The value beside the greatest order; of several the greatest, NULL being the smallest."""
    ordered = [r for r in rows if r[order] is not None]
    if not ordered:
        return None

    def rank(number: Any) -> tuple[bool, Any]:
        return (False, 0) if number is None else (True, number)

    def spoken(r: Row) -> tuple[Any, Any]:
        nan = isinstance(r[order], float) and math.isnan(r[order])
        return (nan, 0.0 if nan else r[order]), rank(r[value])

    return (max if greatest else min)(ordered, key=spoken)[value]


def numbers(values: Sequence[float]) -> set[Any]:
    return {"NaN" if math.isnan(value) else value + 0.0 for value in values}


def unsound(rows: Sequence[Row], row: Any) -> list[str]:
    """Columns of one group that show something else than its rows give."""
    moments = sound_moments(rows, row)
    integers, orders = [r[2] for r in rows if r[2] is not None], [r[3] for r in rows if r[3] is not None]
    texts = sorted({r[6] for r in rows if r[6] is not None})
    shown = {
        "hits": row["hits"] == len(rows),
        "some": row["some"] in texts or (row["some"] is None and not texts),
        "latest": row["latest"] == by_order(rows, 6, 3, True),
        "earliest": row["earliest"] == by_order(rows, 6, 3, False),
        "at_most": row["at_most"] == by_order([r for r in rows if (r[2] or 0) > 0], 2, 5, True),
        "every": row["every"] == (all(i > 2 for i in integers) if integers else None),
        "one": row["one"] == (any(i > 2 for i in integers) if integers else None),
        "seen": row["seen"] == texts,
        "numbers": numbers(row["numbers"]) == numbers([r[5] for r in rows if r[5] is not None])
        and len(row["numbers"]) == len(numbers(row["numbers"])),
        "bor": row["bor"] == (reduce(or_, integers) if integers else None),
        "band": row["band"] == (reduce(and_, integers) if integers else None),
        "bxor": row["bxor"] == (reduce(xor, orders) if orders else None),
        **{column: moments(column, kind, of) for column, kind, of in MOMENTS},
    }
    return [column for column, right in shown.items() if not right]


@pytest.mark.parametrize("seed", range(3))
def test_rows_in_any_commits_give_what_they_give_at_once(session: Any, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    commits = rng.choice([2, 3, 5])
    rows = cut(rng, drawn(rng, 160), commits)
    shown = read_after(session, tmp_path / "agg", rows, commits)
    groups = defaultdict(list)
    for row in rows:
        groups[(row[1], row[2])].append(row[1:])
    assert shown.keys() == groups.keys()
    wrong = {key: unsound(group, shown[key]) for key, group in groups.items()}
    assert {key: columns for key, columns in wrong.items() if columns} == {}


def test_a_variance_far_from_zero_keeps_its_digits(session: Any, tmp_path: Path) -> None:
    """Sums of squares would have lost them all: 1.7e9² has no digit left below 256."""
    rows = [(at % 7, "far", DAYS[0], None, None, None, 1.7e9 + at % 3, None) for at in range(210)]
    (row,) = read_after(session, tmp_path / "agg", rows, 7).values()
    assert abs(row["var"] - 2 / 3 * 210 / 209) < 1e-6


def of_days(session: Any, place: Path) -> dict[Any, Any]:
    """The stored states without their key `k` and its value `b`, as a plan copies them and the new release reads them."""

    def pipeline(sql: str, types: dict[str, str]) -> Pipeline:
        columns = tuple(Column(name=name, type=kind) for name, kind in types.items())
        source = tuple(Column(name=name, type=kind) for name, kind in (c.split() for c in SCHEMA.split(", ")[1:]))
        tables = (
            Table(name="agg", kind="aggregate", columns=columns, partition_by=("day",)),
            Table(name="t", kind="landing", columns=source, managed=True),
        )
        return Pipeline(name="web", tables=tables, materializations=(Materialization(name="m", into="agg", sql=sql),))

    without = {name: kind for name, kind in TYPES.items() if name != "k"}
    sql = QUERY.replace("k, day, count", "day, count").replace(
        "FROM t GROUP BY k, day", "FROM t WHERE k <> 'b' GROUP BY day"
    )
    source = stats("t", "t", pipeline(QUERY, TYPES).tables[1].columns)
    was = promoted(planned(pipeline(QUERY, TYPES), empty(source)), empty(source))
    done = planned(pipeline(sql, without), was)
    (step,) = [step for step in done.steps if isinstance(step, Backfill)]
    assert (step.route, step.stored) == ("forward", True)
    session.read.format("delta").load(str(place)).createOrReplaceTempView("agg")
    session.sql(step.sql).createOrReplaceTempView("stored")
    after = done.release.table("agg")
    assert after is not None
    return {row["day"]: row for row in session.sql(after.read).collect()}


def test_fewer_keys_give_what_their_rows_give_at_once(session: Any, tmp_path: Path) -> None:
    rng = random.Random(11)
    rows = cut(rng, drawn(rng, 200), 3)
    read_after(session, tmp_path / "agg", rows, 3)
    shown = of_days(session, tmp_path / "agg")
    groups = defaultdict(list)
    for row in rows:
        if row[1] not in ("b", None):
            groups[row[2]].append(row[1:])
    assert shown.keys() == groups.keys()
    assert {day: columns for day, group in groups.items() if (columns := unsound(group, shown[day]))} == {}


@pytest.mark.parametrize(("kind", "most"), [("BIGINT", 2**63 - 1), ("DECIMAL(38,0)", 10**38 - 1)])
def test_a_total_beyond_its_type_stops_the_batch_that_unites_it(session: Any, kind: str, most: int) -> None:
    """Two groups that fit, and one of both that does not: no number is cut, and the reason is a value (C301)."""
    stored = f"SELECT * FROM VALUES ('a', CAST({most} AS {kind})), ('b', CAST(1 AS {kind})) AS v(k, total)"
    whole = f"SELECT CAST(SUM(total) AS {kind}) AS total FROM ({stored})"
    with pytest.raises(Exception, match=r"overflow|OUT_OF_RANGE") as failed:
        session.sql(whole).collect()
    assert failure.kind(failed.value) == "value"


COMPARED = """SELECT k, day, variance(f) AS var, corr(i, f) AS pair, stddev(f) / avg(f) AS spread, max_by(s, l) AS latest,
  collect_set(f) AS numbers, hll_sketch_agg(s) AS sketch, any_value(s) AS some FROM t GROUP BY k, day"""
COMPARED_TYPES = {
    "k": "string", "day": "date", "var": "double", "pair": "double", "spread": "double", "latest": "string",
    "numbers": "array<double>", "sketch": "binary", "some": "string",
}  # fmt: skip


def version(session: Any, place: Path, rows: Sequence[Row], commits: int) -> Pinned:
    """A version of the table whose partial rows came in these commits."""
    code = split(COMPARED, **COMPARED_TYPES)
    for commit in range(commits):
        session.createDataFrame([row for row in rows if row[0] == commit], SCHEMA).drop("n").createOrReplaceTempView(
            "t"
        )
        session.sql(code.feed.sql).write.format("delta").mode("append").save(str(place))
    shown = tuple(Column(name=name, type=kind) for name, kind in COMPARED_TYPES.items())
    table = TableState(
        table=Table(name="agg", kind="aggregate", columns=shown),
        version=Version(content="", path=str(place), columns=code.stored),
        read=code.read,
        rows="",
        values={},
    )
    return Pinned(table, str(place), log.latest_version(str(place)))


def checks(session: Any, place: Path, old: Sequence[Row], new: Sequence[Row]) -> dict[str, bool | None]:
    compared = ("var", "pair", "spread", "latest", "numbers", "sketch")
    inexact = ("var", "pair", "spread", "sketch")
    pairs = tuple(Pair(name, name, name not in inexact) for name in compared)
    sides = version(session, place / "old", old, 3), version(session, place / "new", new, 2)
    comparison = compare(session, Comparison(table="agg", pairs=pairs, keys=("k", "day")), *sides)
    return {check.check: check.ok for check in comparison}


def test_the_same_rows_in_other_commits_are_equal_and_other_rows_are_not(session: Any, tmp_path: Path) -> None:
    rng = random.Random(5)
    rows = drawn(rng, 120)
    again = rng.sample(rows, len(rows))
    same = checks(session, tmp_path / "same", cut(rng, rows, 3), cut(rng, again, 2))
    assert same == {
        "groups": True, "values": True, "sums": True, "moments of var": True, "moments of pair": True,
        "moments of spread": True,
    }  # fmt: skip
    at = next(at for at, row in enumerate(again) if row[0] == "far")
    other = [*again[:at], (*again[at][:5], again[at][5] + 2.0, again[at][6]), *again[at + 1 :]]
    off = checks(session, tmp_path / "other", cut(rng, rows, 3), cut(rng, other, 2))
    assert not off["moments of var"]
    assert not off["moments of spread"]
