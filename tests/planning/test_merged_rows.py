"""Tables that keep one row of each key, copied from themselves where their merged rows give the wanted ones. DuckDB has the rows of both."""

import itertools
from collections.abc import Iterator
from dataclasses import replace

import duckdb
import pytest

from console.model.pipeline import Materialization, Pipeline
from console.model.plan import Plan
from console.model.schema import Table
from tests.planning.test_narrower import SOURCE, VALUES, copied, routed
from tests.planning.world import columns, empty, planned, promoted, stats

EQUAL = Table(name="small", kind="append", columns=columns(a="int", b="int"), key=("a", "b"))
FEWER = replace(EQUAL, columns=columns(a="int"), key=("a",))
OTHER = replace(EQUAL, columns=columns(c="int", b="int"), key=("c", "b"))
LISTS = {"x AS a, y AS b": EQUAL, "x AS a": FEWER, "x + y AS c, y AS b": OTHER}
NEWEST = replace(EQUAL, columns=columns(a="int", b="int", c="int"), key=("a",), order_by=("b", "c"))
BY_KEY = ["true", "x > 0", "x > 1", "x IS NULL", "x IN (1, NULL)", "coalesce(x, 0) < 2"]
BY_OTHERS = ["y > 0", "x > 0 AND y > 0", "z = 1", "x + y = 2"]


def small(table: Table, items: str, condition: str) -> Pipeline:
    sql = f"SELECT {items} FROM landing WHERE {condition}"
    feed = Materialization(name="fill", into="small", sql=sql)
    return Pipeline(name="web", tables=(SOURCE, table), materializations=(feed,))


def change(old: Pipeline, new: Pipeline) -> Plan:
    start = empty(stats("landing", "landing", SOURCE.columns))
    return planned(new, promoted(planned(old, start), start))


def carried(old: Pipeline, new: Pipeline) -> Plan:
    start = empty(stats("landing", "landing", SOURCE.columns))
    return planned(new, promoted(planned(old, start), start), {"small": "carry"})


@pytest.fixture
def base() -> duckdb.DuckDBPyConnection:
    made = duckdb.connect()
    made.execute("CREATE TABLE landing (x INT, y INT, z INT)")
    made.executemany("INSERT INTO landing VALUES (?, ?, ?)", list(itertools.product(VALUES, repeat=3)))
    return made


def same(base: duckdb.DuckDBPyConnection, was: str, plan: Plan, wished: str, merged: str) -> None:
    """merged: over the copied rows, in SQL"""
    base.execute(f"CREATE OR REPLACE TABLE small AS {was}")
    copy = copied(plan).replace("`", '"')
    got = base.execute(f"{merged.format(copy)} ORDER BY ALL").fetchall()
    assert got == base.execute(f"{wished} ORDER BY ALL").fetchall(), (was, wished, copy)


def of_equal_rows() -> Iterator[tuple[str, str, str]]:
    for condition in (*BY_KEY, *BY_OTHERS):
        yield "x AS a, y AS b", "x AS a, y AS b", condition
    yield from (("x AS a, y AS b", items, condition) for items in LISTS for condition in ("true", "x > 1", "z = 1"))
    yield "x AS a", "x AS a, y AS b", "x > 1"
    yield "x + y AS c, y AS b", "x AS a, y AS b", "x > 1"


@pytest.mark.slow
def test_where_equal_rows_are_one_whatever_their_columns_give_is_copied(base: duckdb.DuckDBPyConnection) -> None:
    taken: set[tuple[str, str]] = set()
    for before, after, condition in of_equal_rows():
        plan = change(small(LISTS[before], before, "true"), small(LISTS[after], after, condition))
        if routed(plan, "small") == "forward":
            taken.add((after, condition))
            was, wished = (
                f"SELECT DISTINCT {before} FROM landing",
                f"SELECT DISTINCT {after} FROM landing WHERE {condition}",
            )
            same(base, was, plan, wished, "SELECT DISTINCT * FROM ({})")
    whole = "x AS a, y AS b"
    assert {*((items, "true") for items in LISTS if items != whole)} <= taken
    assert {(whole, condition) for condition in ("x > 1", "y > 0", "x + y = 2")} <= taken
    assert not [condition for _, condition in taken if "z" in condition]


@pytest.mark.slow
def test_of_a_key_the_newest_row_is_copied_where_the_filter_asks_of_the_key_alone(
    base: duckdb.DuckDBPyConnection,
) -> None:
    items, taken = "x AS a, y AS b, z AS c", set()
    merged = "SELECT * FROM ({}) QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST, c DESC NULLS LAST) = 1"
    for condition in (*BY_KEY[1:], *BY_OTHERS):
        plan = change(small(NEWEST, items, "true"), small(NEWEST, items, condition))
        if routed(plan, "small") != "forward":
            continue
        taken.add(condition)
        was, wished = (merged.format(f"SELECT {items} FROM landing WHERE {where}") for where in ("true", condition))
        same(base, was, plan, wished, "SELECT * FROM ({})")
    assert taken == {*BY_KEY[1:]}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("after", "table", "condition", "older"),
    [
        ("x AS a, y AS b, z AS c", replace(EQUAL, columns=columns(a="int", b="int", c="int"), key=("a", "b", "c")), "true", "a, b, NULL AS c"),
        ("x AS a, y AS b", EQUAL, "z = 1", "a, b"),
        ("x AS a, z AS b", EQUAL, "true", "a, b"),
    ],
)  # fmt: skip
def test_equal_rows_are_carried_by_the_operators_word(
    base: duckdb.DuckDBPyConnection, after: str, table: Table, condition: str, older: str
) -> None:
    """None of them hides another, so that all of them are there to be copied."""
    before = "x AS a, y AS b"
    plan = carried(small(EQUAL, before, "true"), small(table, after, condition))
    assert (routed(plan, "small"), plan.refusals) == ("forward", ())
    was = f"SELECT DISTINCT {before} FROM landing"
    same(base, was, plan, f"SELECT {older} FROM ({was})", "SELECT DISTINCT * FROM ({})")


@pytest.mark.slow
def test_what_was_hidden_behind_another_row_cannot_be_carried() -> None:
    items = "x AS a, y AS b, z AS c"
    every = replace(NEWEST, key=("a", "b", "c"), order_by=())
    for old, new in itertools.permutations(
        (every, NEWEST, replace(NEWEST, key=(), order_by=()), replace(NEWEST, key=("b",))), 2
    ):
        assert [p.code for p in carried(small(old, items, "true"), small(new, items, "true")).refusals] == ["C140"], (
            old,
            new,
        )


def test_another_key_or_order_is_computed_from_the_source() -> None:
    items = "x AS a, y AS b, z AS c"
    for other in (replace(NEWEST, key=("b",)), replace(NEWEST, order_by=("c",)), replace(NEWEST, key=(), order_by=())):
        plan = change(small(NEWEST, items, "true"), small(other, items, "x > 0"))
        assert routed(plan, "small") == "replay"
