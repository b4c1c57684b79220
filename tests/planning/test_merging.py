"""How an aggregate's stored rows of one key become one: of which states, and in which releases that is known."""

from dataclasses import replace

import duckdb
import pytest

from console.model.live import Live, TableState
from console.model.merging import Merging
from console.model.plan import Plan
from tests.planning.test_aggregates import split
from tests.planning.world import live, pipeline, planned, promoted, release, with_column, with_sql, with_table

DAYS = """SELECT day, sum(i) AS x, max(i) AS y, avg(d) AS price, count_if(i > 2) AS big FROM t GROUP BY day"""
TYPES = {"day": "date", "x": "bigint", "y": "int", "price": "double", "big": "bigint"}


def test_every_stored_column_is_a_key_or_united_by_its_own_function() -> None:
    code = split(DAYS, **TYPES)
    assert code.split is not None
    merging = code.split.merging
    assert merging is not None
    assert (merging.keys, merging.columns) == (("day",), tuple(column.name for column in code.stored))
    made = duckdb.connect()
    made.execute(
        "CREATE TABLE stored (day DATE, x BIGINT, y INT, price__sum DECIMAL(38,2), price__count BIGINT, big BIGINT)"
    )
    for row in (
        ("2026-11-01", 1, 5, 1.5, 2, 1),
        ("2026-11-01", 2, None, None, 0, 2),
        (None, 7, 1, 1, 1, 0),
        (None, None, 9, 1, 1, 1),
    ):
        made.execute("INSERT INTO stored VALUES (?, ?, ?, ?, ?, ?)", row)
    before = made.execute(f"{translated(code.read)} ORDER BY ALL").fetchall()
    made.execute(f"CREATE TABLE merged AS {translated(merging.sql)}")
    assert made.execute("SELECT count(*), count(DISTINCT day) FROM merged").fetchall() == [(2, 1)]
    made.execute("DROP TABLE stored; ALTER TABLE merged RENAME TO stored")
    assert made.execute(f"{translated(code.read)} ORDER BY ALL").fetchall() == before
    assert (
        made.execute(f"{translated(merging.sql)} ORDER BY ALL").fetchall()
        == made.execute("FROM stored ORDER BY ALL").fetchall()
    )


def translated(sql: str) -> str:
    import sqlglot

    return str(sqlglot.transpile(sql, read="spark", write="duckdb")[0])


@pytest.mark.parametrize(
    ("call", "kind", "named"),
    [
        ("sum(f)", "double", "sums"),
        ("approx_count_distinct(s)", "bigint", "distinct"),
        ("approx_percentile(f, 0.5)", "double", "quantiles"),
        ("variance(f)", "double", "moments"),
        ("corr(i, f)", "double", "moments"),
    ],
)
def test_states_that_depend_on_the_order_of_rows_are_named(call: str, kind: str, named: str) -> None:
    code = split(f"SELECT day, {call} AS x FROM t GROUP BY day", day="date", x=kind)
    assert code.split is not None
    merging = code.split.merging
    assert merging is not None
    groups = {name: getattr(merging, name) for name in ("sums", "distinct", "quantiles", "moments")}
    assert groups.pop(named) == (code.stored[1].name,)
    assert not any(groups.values())


def test_a_value_that_is_any_of_several_is_not_merged() -> None:
    code = split("SELECT day, any_value(s) AS x FROM t GROUP BY day", day="date", x="string")
    assert code.split is not None
    assert code.split.merging is None


# -- releases


def hourly(plan: Plan) -> TableState:
    state = plan.release.table("requests_by_hour")
    assert state is not None
    return state


def merging_of(region: Live) -> Merging:
    state = release(region).table("requests_by_hour")
    assert state is not None
    assert state.merging is not None
    return state.merging


def unrecorded(region: Live) -> Live:
    """The same release as an older console wrote it."""
    older = release(region)
    return replace(region, release=replace(older, tables=tuple(replace(state, merging=None) for state in older.tables)))


SHORTER = """SELECT date_trunc('HOUR', ts) AS hour, day, count(*) AS hits, approx_percentile(ms, 0.95) AS p95,
  approx_count_distinct(ip) AS visitors FROM requests GROUP BY 1, day"""


def without_errors() -> Plan:
    table = pipeline().table("requests_by_hour")
    assert table is not None
    shorter = replace(table, columns=tuple(column for column in table.columns if column.name != "errors"))
    return planned(with_sql(with_table(pipeline(), shorter), "count_hours", SHORTER))


def test_a_new_version_records_it_and_a_version_that_stays_keeps_all_its_states() -> None:
    first = merging_of(live())
    assert set(first.columns) == {column.name for column in hourly(planned(pipeline())).version.columns}
    dropped = hourly(without_errors())
    assert dropped.version.path == live_path()
    assert dropped.merging == first, "the states of a column that is no longer shown are merged, too"


def test_a_release_of_before_records_it_with_the_next_plan_where_its_read_is_that_of_its_states() -> None:
    older = unrecorded(live())
    other = with_sql(
        pipeline(), "parse", next(m.sql for m in pipeline().materializations if m.name == "parse") + " WHERE true"
    )
    assert hourly(planned(other, older)).merging == merging_of(live())
    # a column was dropped by a console that recorded nothing: which function its states unite by is not known any more
    region = unrecorded(promoted(without_errors(), live()))
    again = hourly(
        planned(with_sql(with_table(pipeline(), hourly(without_errors()).table), "count_hours", SHORTER), region)
    )
    assert again.merging is None


SWAPPED = """SELECT date_trunc('HOUR', ts) AS hour, day, count(*) AS errors, count_if(status >= 500) AS hits,
  approx_percentile(ms, 0.95) AS p95, approx_count_distinct(ip) AS visitors FROM requests GROUP BY 1, day"""


def test_states_that_are_stored_under_each_other_s_names_are_not_united_by_the_query_s() -> None:
    """Both names are stored columns of the right type, and each holds what the other one says."""
    swapped = with_sql(pipeline(), "count_hours", SWAPPED)
    plan = planned(swapped)
    assert hourly(plan).version.path == live_path()
    assert hourly(plan).merging == merging_of(live()), "a version that stays is merged as before"
    again = planned(with_column(swapped, "extra", "string", "region"), unrecorded(promoted(plan, live())))
    assert hourly(again).version.path == live_path()
    assert hourly(again).merging is None


def live_path() -> str:
    state = release(live()).table("requests_by_hour")
    assert state is not None
    return state.version.path
