"""Aggregates that are compared group by group: values, estimates within their error, and what went into quantiles."""

from pathlib import Path
from typing import Any

import pytest

from console.agent.compared.comparison import compare
from console.agent.recount.pinned_tables import Pinned
from console.agent.store import log
from console.model.event import Checked
from console.model.live import TableState, Version
from console.model.schema import Column, Table
from console.model.step import Comparison, Pair

pytestmark = [pytest.mark.faults, pytest.mark.spark]
# group, a value that is counted exactly, an estimate, and what its quantile has seen
Group = tuple[str | None, int | None, int | None, tuple[float, ...]]
GROUPS: tuple[Group, ...] = (
    ("a", 1, 1000, (1.0, 2.0, 3.0)),
    ("b", 2, 0, (4.0,)),
    ("c", None, None, ()),
    (None, 4, 100, (5.0, 6.0)),
)


def text(value: str | None) -> str:
    return "NULL" if value is None else f"'{value}'"


def whole(value: int | None) -> str:
    return "CAST(NULL AS BIGINT)" if value is None else f"{value}L"


def side(session: Any, place: Path, groups: tuple[Group, ...], old: str = "") -> Pinned:
    """A version whose columns have this before their names; each group's quantile is kept as its sketch."""
    values = ", ".join(
        f"({text(k)}, {whole(n)}, {whole(u)}, CAST(array({', '.join(map(str, seen))}) AS ARRAY<DOUBLE>))"
        for k, n, u, seen in groups
    )
    one = f"SELECT k, n, u, explode_outer(seen) AS x FROM VALUES {values} AS v(k, n, u, seen)"
    stored = session.sql(
        f"SELECT k AS {old}k, n AS {old}n, u AS {old}u, CAST(NULL AS BINARY) AS {old}u__hll,"
        f" kll_sketch_agg_double(x) AS {old}p__kll FROM ({one}) GROUP BY k, n, u"
    )
    path = str(place)
    stored.write.format("delta").save(path)
    shown = (
        Column(name=f"{old}k", type="string"),
        Column(name=f"{old}n", type="bigint"),
        Column(name=f"{old}u", type="bigint"),
        Column(name=f"{old}p", type="double"),
    )
    kept = (*shown[:3], Column(name=f"{old}u__hll", type="binary"), Column(name=f"{old}p__kll", type="binary"))
    read = f"SELECT {old}k, {old}n, {old}u, CAST(7 AS DOUBLE) AS {old}p FROM stored"
    table = TableState(
        table=Table(name="hours", kind="aggregate", columns=shown),
        version=Version(content="c", path="hours", columns=kept),
        read=read,
        rows="",
        values={},
    )
    return Pinned(table, path, log.latest_version(path))


def judged(session: Any, place: Path, *groups: Group) -> dict[str, Checked]:
    """What the gate says of `GROUPS` in the live version, whose columns have other names, and of these in the new one."""
    pairs = (Pair("z_k", "k"), Pair("z_n", "n"), Pair("z_u", "u", False), Pair("z_p", "p", False))
    old, new = side(session, place / "old", GROUPS, "z_"), side(session, place / "new", groups)
    return {
        check.check: check for check in compare(session, Comparison(table="hours", pairs=pairs, keys=("k",)), old, new)
    }


def test_equal_groups_pass_and_estimates_may_be_off_by_their_error(session: Any, tmp_path: Path) -> None:
    near: tuple[Group, ...] = (("a", 1, 1080, (3.0, 1.0, 9.0)), ("b", 2, 2, (4.0,)), *GROUPS[2:])
    verdict = judged(session, tmp_path, *near)
    assert {name: (check.ok, check.detail) for name, check in verdict.items()} == {
        "groups": (True, "4 groups are equal"),
        "values": (True, "1 equal, 1 estimates within 8%"),
        "values behind p": (True, "as many in every group"),
    }


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ([("2026-11-01 03:00", 1), ("2026-11-01 04:00", 2), ("2026-11-02 03:00", 3)], {}),
        ([("2026-11-01 03:00", 1), ("2026-11-01 04:00", 5), ("2026-11-02 03:00", 3)], {"2026-11-01": (2, 2, ("n",))}),
        ([("2026-11-01 03:00", 1), ("2026-11-01 04:00", 2)], {"2026-11-02": (1, 0, ())}),
        ([("2026-11-01 03:00", 1), ("2026-11-01 09:00", 2), ("2026-11-02 03:00", 3)], {"2026-11-01": (2, 2, ("hour",))}),
    ],
    ids=["equal", "another value", "a group is missing", "another group stands in for one"],
)  # fmt: skip
def test_groups_that_differ_name_their_day(
    session: Any, tmp_path: Path, now: list[tuple[str, int]], expected: dict[str, tuple[int, int, tuple[str, ...]]]
) -> None:
    was = [("2026-11-01 03:00", 1), ("2026-11-01 04:00", 2), ("2026-11-02 03:00", 3)]
    columns = (Column(name="hour", type="timestamp"), Column(name="n", type="bigint"))
    sides = []
    for name, groups in (("old", was), ("new", now)):
        path = str(tmp_path / name)
        values = ", ".join(f"(TIMESTAMP '{hour}', {n}L)" for hour, n in groups)
        session.sql(f"SELECT * FROM VALUES {values} AS v(hour, n)").write.format("delta").save(path)
        table = TableState(
            table=Table(name="hours", kind="aggregate", columns=columns, time="hour"),
            version=Version(content="c", path="hours", columns=columns), read="SELECT hour, n FROM stored", rows="", values={},
        )  # fmt: skip
        sides.append(Pinned(table, path, log.latest_version(path)))
    pairs = (Pair("hour", "hour"), Pair("n", "n"))
    plan = Comparison(table="hours", pairs=pairs, keys=("hour",), time="hour")
    checks = {check.check: check for check in compare(session, plan, *sides)}
    days = checks["groups"].days
    assert [day.day for day in days] == ["2026-11-01", "2026-11-02"]
    assert {day.day: (day.old, day.new, day.columns) for day in days if not day.equal} == expected


def test_what_is_off_is_counted_group_by_group(session: Any, tmp_path: Path) -> None:
    off: tuple[Group, ...] = (
        ("a", 1, 1100, (1.0, 2.0)),
        ("b", 3, None, (4.0, 4.0)),
        ("c", None, 5, ()),
        ("d", 9, 9, (9.0,)),
    )
    verdict = judged(session, tmp_path, *off)
    assert {name: (check.ok, check.detail) for name, check in verdict.items()} == {
        "groups": (False, "1 groups only in the old version, 1 only in the new"),
        "values": (False, "differ: n: 1 groups; u: 3 groups"),
        "values behind p": (False, "4 groups differ in their number"),
    }
