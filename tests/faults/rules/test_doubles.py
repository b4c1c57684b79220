"""Sums of doubles at the gate, on Spark: groups of random values, some in another order and some with another value. What
they add up to is told by Python's fractions.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from console.agent.compared.comparison import compare
from console.agent.recount.doubles import Addends, addends, addends_by_group
from console.agent.recount.pinned_tables import Pinned, PinnedSource
from console.agent.store import log
from console.model.event import Checked
from console.model.live import Feed, TableState, Terms, Version
from console.model.schema import Column, Table
from console.model.step import Comparison, Pair
from tests.faults.rules.tables import state

pytestmark = [pytest.mark.faults, pytest.mark.spark]

DAY = date(2026, 11, 2)
STORED = (
    Column(name="day", type="date"),
    Column(name="total", type="double"),
    Column(name="mean__sum", type="double"),
    Column(name="mean__count", type="bigint"),
)
SHOWN = (Column(name="day", type="date"), Column(name="total", type="double"), Column(name="mean", type="double"))
READ = "SELECT day, sum(total) AS total, sum(mean__sum) / nullif(sum(mean__count), 0) AS mean FROM stored GROUP BY day"
SQL = "SELECT day, sum(x) AS total, sum(x) AS mean__sum, count(x) AS mean__count FROM landing GROUP BY day"
TERMS = Terms(keys=("day",), sums=("total", "mean__sum"), sql="SELECT day, x AS total, x AS mean__sum FROM landing")
FEED = Feed(materialization="hours", source="landing", target="hours", sql=SQL, terms=TERMS)
PLAN = Comparison(
    table="hours", pairs=(Pair("day", "day"), Pair("total", "total", False), Pair("mean", "mean", False)), keys=("day",)
)
Group = list[float]


def hours() -> TableState:
    return TableState(
        table=Table(name="hours", kind="aggregate", columns=SHOWN),
        version=Version(content="c", path="hours", columns=STORED),
        read=READ,
        rows="",
        values={},
        inexact=("total", "mean"),
    )


def written(place: Path, *commits: pa.Table) -> str:
    for commit in commits:
        write_deltalake(str(place), commit, mode="append")
    return str(place)


def landed(place: Path, groups: Sequence[Group]) -> str:
    days = [number(at) for at, group in enumerate(groups) for _ in group]
    return written(place, pa.table({"day": days, "x": pa.array([x for group in groups for x in group], pa.float64())}))


def kept(place: Path, groups: Sequence[Group], rng: random.Random) -> str:
    """Partial states of each group, in some three commits and in a random order."""
    commits = []
    parts: list[list[Group]] = [[[], [], []] for _ in groups]
    for at, group in enumerate(groups):
        for x in rng.sample(group, len(group)):
            parts[at][rng.randrange(3)].append(x)
    for i in range(3):
        own = [(number(at), part[i]) for at, part in enumerate(parts) if part[i]]
        # added up one after the other, as Spark does; Python's own sum of floats would compensate
        sums = pa.array([folded(values) for _, values in own], pa.float64())
        counts = [len(values) for _, values in own]
        days = pa.array([day for day, _ in own], pa.date32())
        commits.append(
            pa.table({"day": days, "total": sums, "mean__sum": sums, "mean__count": pa.array(counts, pa.int64())})
        )
    return written(place, *commits)


def folded(values: Group) -> float:
    total = 0.0
    for value in values:
        total = total + value
    return total


def number(at: int) -> date:
    return date.fromordinal(DAY.toordinal() + at)


def judged(session: Any, place: Path, groups: Sequence[Group], other: Sequence[Group], *, feed: Feed = FEED) -> Checked:
    """What the gate says of sums of `groups` in the live version and of `other` in the new one, landing having `groups`."""
    rng = random.Random(len(groups))
    paths = kept(place / "old", groups, rng), kept(place / "new", other, rng), landed(place / "landing", groups)
    old, new = (Pinned(hours(), path, log.latest_version(path)) for path in paths[:2])
    columns = (Column(name="day", type="date"), Column(name="x", type="double"))
    source = PinnedSource(
        feed, Pinned(state("landing", columns, kind="landing"), paths[2], log.latest_version(paths[2]))
    )
    results = {check.check: check for check in compare(session, PLAN, old, new, (source,))}
    assert results["groups"].ok is True, results
    assert results["values"].ok is True, results
    return results["sums"]


def test_sums_that_are_not_the_same_shut_the_gate(session: Any, tmp_path: Path) -> None:
    was = [[400.0, 600.0], [1.0, math.inf], [1.0, math.nan], [1.0, 2.0], [math.inf, 1.0], [1e6, 1.0], [3.0]]
    now = [[400.0, 550.0], [1.0, 4.0], [1.0, 4.0], [1.0, math.inf], [-math.inf, 1.0], [1e6, 1.1], [3.0]]
    check = judged(session, tmp_path, was, now)
    assert (check.ok, check.detail.partition(":")[0]) == (False, "12 differ"), check  # total and mean of six days


def test_what_is_within_a_billionth_passes_without_its_source_being_read(session: Any, tmp_path: Path) -> None:
    unreadable = replace(FEED, terms=replace(TERMS, sql="SELECT nothing FROM nowhere"))
    check = judged(
        session, tmp_path, [[0.1] * 30, [math.nan], [math.inf]], [[0.1] * 30, [math.nan], [math.inf]], feed=unreadable
    )
    assert (check.ok, check.detail) == (True, "2 sums of doubles are within 1e-9 in every group")


def test_thousands_of_doubles_that_cancel_pass_in_another_order_and_not_with_another_value(
    session: Any, tmp_path: Path
) -> None:
    rng = random.Random(3)
    values = [rng.uniform(-1e12, 1e12) for _ in range(10_000)]
    values += [-value for value in values] + [1e-3]
    same = judged(session, tmp_path / "same", [values], [values])
    assert (same.ok, "in another order" in same.detail) == (True, True), same
    other = judged(session, tmp_path / "other", [values], [[*values[:-2], 1e-3]])
    assert other.ok is False, other


def test_where_the_source_is_gone_nothing_is_reported(session: Any, tmp_path: Path) -> None:
    values, others = [1000.0], [950.0]
    assert judged(session, tmp_path / "there", [values], [others]).ok is False
    gone = replace(FEED, terms=replace(TERMS, sql=f"SELECT * FROM delta.`{tmp_path}/gone`"))
    check = judged(session, tmp_path / "gone", [values], [others], feed=gone)
    assert (check.ok, "landing cannot be read as of version 0" in check.detail) == (None, True), check
    older = judged(session, tmp_path / "older", [values], [others], feed=replace(FEED, terms=None))
    assert (older.ok, "an older console" in older.detail) == (None, True), older


def test_groups_of_days_that_no_calendar_of_python_has_are_settled_like_any_other(session: Any, tmp_path: Path) -> None:
    born = pa.array([20_776_010, 20_776_010, -800_000, 20_000, None], pa.int32()).cast(pa.date32())
    far = 1_795_004_800_000_000_000  # microseconds: a row with milliseconds taken for seconds
    at = pa.array([far, far, -far, 0, None], pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns = (Column(name="born", type="date"), Column(name="at", type="timestamp"))
    aggregate = TableState(
        table=Table(name="hours", kind="aggregate", columns=(*columns, Column(name="total", type="double"))),
        version=Version(content="c", path="hours", columns=(*columns, Column(name="total", type="double"))),
        read="SELECT born, at, sum(total) AS total FROM stored GROUP BY born, at", rows="", values={}, inexact=("total",),
    )  # fmt: skip
    plan = Comparison(
        table="hours",
        pairs=(Pair("born", "born"), Pair("at", "at"), Pair("total", "total", False)),
        keys=("born", "at"),
    )
    terms = Terms(keys=("born", "at"), sums=("total",), sql="SELECT born, at, x AS total FROM landing")
    feed = Feed(
        materialization="hours",
        source="landing",
        target="hours",
        sql="SELECT born, at, sum(x) AS total FROM landing GROUP BY ALL",
        terms=terms,
    )
    landing = written(tmp_path / "landing", pa.table({"born": born, "at": at, "x": [1e16, -1e16, 1.0, 2.0, 5.0]}))
    source = PinnedSource(
        feed, Pinned(state("landing", (*columns, Column(name="x", type="double")), kind="landing"), landing, 0)
    )

    def sums(name: str, first: float, *others: float) -> Checked:
        keys = {"born": born.slice(1), "at": at.slice(1)}
        path = written(tmp_path / name, pa.table({**keys, "total": [first, *others]}))
        old = Pinned(aggregate, written(tmp_path / f"was-{name}", pa.table({**keys, "total": [0.0, 1.0, 2.0, 5.0]})), 0)
        results = {check.check: check for check in compare(session, plan, old, Pinned(aggregate, path, 0), (source,))}
        return results["sums"]

    same = sums("same", 1e-3, 1.0, 2.0, 5.0)
    assert (same.ok, same.detail) == (
        True, "further apart than 1e-9, but sums of their source in another order: 1 group",
    )  # fmt: skip
    other = sums("other", 0.0, 1.5, 2.0, 6.0)
    assert other.ok is False
    assert other.detail.startswith("2 differ: total of born None, at None, total of born -0221-"), other


def drawn(rng: random.Random) -> Group:
    """A group of any kind: values that cancel, of any size, not finite, zero with either sign."""
    size = rng.randrange(1, 30)
    match rng.randrange(5):
        case 0:
            half = [rng.uniform(-1e15, 1e15) for _ in range(size)]
            return [*half, *(-value for value in half), rng.uniform(-1, 1)]
        case 1:
            return [math.ldexp(rng.uniform(-1, 1), rng.randrange(-1074, 900)) for _ in range(size)]
        case 2:
            return [*(rng.uniform(-9, 9) for _ in range(size)), rng.choice([math.inf, -math.inf, math.nan])]
        case 3:
            return [rng.choice([0.0, -0.0, 5e-324, -5e-324]) for _ in range(size)]
    return [rng.uniform(0, 1e6) for _ in range(size)]


def distinguished(was: Group, now: Group) -> bool:
    """Whether no order of adding up could take one for the other, by fractions."""
    if not all(map(math.isfinite, (*was, *now))):
        return any(map(math.isfinite, (folded(was), folded(now))))
    size = sum(abs(Fraction(x)) for x in (*was, *now))
    sums = [Fraction(math.fsum(group)) for group in (was, now)]
    return abs(sums[0] - sums[1]) > 4 * len(was) * Fraction(1, 2**53) * size + Fraction(1e-8) * max(map(abs, sums))


def test_of_random_groups_equal_data_passes_and_a_changed_value_never_does(session: Any, tmp_path: Path) -> None:
    rng = random.Random(11)
    groups = [drawn(rng) for _ in range(250)]
    same = judged(session, tmp_path / "same", groups, groups)
    assert (same.ok, "in another order" in same.detail) == (True, True), same
    pairs = [(group, [rng.choice([group[0] + 1.0, 7.0, -group[0], math.inf]), *group[1:]]) for group in groups]
    pairs = [(was, now) for was, now in pairs if distinguished(was, now)]
    assert len(pairs) > 100
    other = judged(session, tmp_path / "other", *map(list, zip(*pairs, strict=True)))
    assert other.ok is False
    assert other.detail.startswith(f"{2 * len(pairs)} differ: "), (len(pairs), other.detail)


def test_what_spark_adds_up_is_what_fractions_add_up_to_the_last_bit(session: Any) -> None:
    rng = random.Random(13)
    groups = [drawn(rng) for _ in range(200)]
    edges = [sign * nearly_equal for k in range(-134, 128) for at in [2.0 ** max(8 * k, -1074)] for sign in (1, -1)
             for nearly_equal in (at, math.nextafter(at, 0.0), math.nextafter(at, math.inf))]  # fmt: skip
    rows = [(at, x) for at, group in enumerate([*groups, edges]) for x in group]
    table = pa.table({"g": [at for at, _ in rows], "x": [x for _, x in rows]})
    result = addends_by_group(session.createDataFrame(table), "g", ["x"])
    assert result == {(at, "x"): addends(group) for at, group in enumerate([*groups, edges])}
    assert result[(200, "x")] != Addends()
