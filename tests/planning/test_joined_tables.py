"""Tables that a feed joins: the effect of their change, its limits, and the order in which history is filled."""

from dataclasses import replace

import pytest

from console.model.pipeline import Materialization, Pipeline
from console.model.plan import Plan
from console.model.schema import Table
from console.model.step import Backfill, CatchUp, Validate
from console.planning.reuse import through_joins
from tests.planning.edits import AGENT
from tests.planning.world import (
    LANDING,
    REQUESTS,
    actions,
    columns,
    empty,
    node,
    pipeline,
    planned,
    promoted,
    stats,
    with_sql,
    with_table,
)

NAMES = replace(LANDING, name="names", columns=columns(host="string", data="string", at="timestamp"), time="at")
HOSTS = Table(
    name="hosts",
    kind="append",
    columns=columns(host="string", rate="double", team="string", at="timestamp"),
    time="at",
)
PRICED = replace(REQUESTS, name="priced", columns=columns(event_id="string", ts="timestamp", day="date", rate="double"))
HOST = """SELECT host, CAST(get_json_object(data, '$.rate') AS DOUBLE) AS rate,
  get_json_object(data, '$.team') AS team, at FROM names"""
PRICE = "SELECT r.event_id, r.ts, r.day, h.rate FROM requests r LEFT JOIN hosts h ON h.host = r.host"
OF_X = " WHERE get_json_object(data, '$.team') = 'x'"


def fed(desired: Pipeline, table: Table, name: str, sql: str) -> Pipeline:
    feed = Materialization(name=name, into=table.name, sql=sql, where=f"{name}.sql:1:1")
    return replace(with_table(desired, table), materializations=(*desired.materializations, feed))


def priced(host: str = HOST, price: str = PRICE, hosts: Table = HOSTS, table: Table = PRICED) -> Pipeline:
    return fed(fed(with_table(pipeline(), NAMES), hosts, "host", host), table, "price", price)


def change(before: Pipeline, wanted: Pipeline) -> Plan:
    bare = empty(stats("landing", "landing", LANDING.columns), stats("names", "names", NAMES.columns))
    return planned(wanted, promoted(planned(before, bare), bare))


UNREAD = {
    "a column more": (
        PRICE,
        priced(
            HOST.replace(", at FROM", ", get_json_object(data, '$.zone') AS zone, at FROM"),
            hosts=replace(HOSTS, columns=(*HOSTS.columns, *columns(zone="string"))),
        ),
    ),
    "another value in a column": (PRICE, priced(HOST.replace("$.team", "$.group"))),
    "another layout": (PRICE, priced(hosts=replace(HOSTS, partition_by=("team",)))),
    "rows that its condition leaves out": (f"{PRICE} AND h.team = 'x'", None),
    "rows that its filter leaves out": (f"{PRICE.replace('LEFT ', '')} WHERE h.team = 'x' AND r.status > 0", None),
}


@pytest.mark.parametrize("what", UNREAD)
def test_what_a_feed_does_not_read_of_a_joined_table_moves_nothing_below_it(what: str) -> None:
    price, wanted = UNREAD[what]
    done = change(priced(price=price), wanted or priced(f"{HOST}{OF_X}", price))
    assert set(actions(done)) == {"hosts"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("price", "host"),
    [
        (PRICE, f"{HOST}{OF_X}"),  # rows of other teams are read
        (f"{PRICE} AND h.team = 'y'", f"{HOST}{OF_X}"),
        (f"{PRICE} AND h.team = 'x'", f"{HOST} WHERE host = 'x'"),
        (f"{PRICE} WHERE h.team = 'x' OR h.team IS NULL", f"{HOST}{OF_X}"),  # NULL is also what LEFT JOIN adds
    ],
)
def test_rows_that_it_may_read_do(price: str, host: str) -> None:
    done = change(priced(price=price), priced(host, price))
    assert actions(done)["priced"] == "replay"
    assert node(done, "priced").why == "hosts, which priced joins, holds other rows: history is re-read from requests"


@pytest.mark.slow
def test_a_table_below_stays_as_well_and_one_that_is_changed_too_is_computed() -> None:
    price = f"{PRICE} AND h.team = 'x'"
    daily = Table(
        name="daily", kind="aggregate", columns=columns(day="date", cost="double"), time="day", partition_by=("day",)
    )
    before = fed(priced(price=price), daily, "sum_days", "SELECT day, sum(rate) AS cost FROM priced GROUP BY day")
    after = with_sql(before, "host", f"{HOST}{OF_X}")
    assert set(actions(change(before, after))) == {"hosts"}
    twice = price.replace("h.rate", "h.rate * 2 AS rate")
    done = change(before, with_sql(after, "price", twice))
    assert (actions(done)["priced"], node(done, "priced").why.partition(":")[0]) == (
        "replay",
        "the expression of rate changed",
    )


@pytest.mark.slow
def test_other_values_of_a_column_that_is_read_are_said_to_come_from_there() -> None:
    done = change(priced(), priced(HOST.replace("$.rate", "$.fee")))
    assert actions(done) == {"hosts": "replay", "priced": "replay"}
    assert node(done, "priced").why.startswith("rate is read from hosts.rate, which is now computed differently")
    (warned,) = [problem for problem in done.problems if problem.code == "C113"]
    assert warned.message.endswith(
        "rate show the values of hosts at that time, not those when rows arrived, and are not compared"
    )
    assert warned.hint == "review the list; or `history: carry` keeps what was joined"


@pytest.mark.slow
def test_a_driving_table_that_is_rebuilt_leaves_what_it_was_joined_with() -> None:
    assert actions(change(priced(), AGENT(priced())))["priced"] == "rebind"


@pytest.mark.parametrize(("history", "route"), [("", "replay"), ("carry", "forward"), ("since 2026-11-05", "hybrid")])
def test_history_is_a_choice_below_a_joined_table_too(history: str, route: str) -> None:
    done = change(priced(), priced(HOST.replace("$.rate", "$.fee"), table=replace(PRICED, history=history)))
    assert (actions(done)["priced"], [p for p in done.problems if p.severity == "refuse"]) == (route, [])
    (comparison,) = [c for s in done.steps if isinstance(s, Validate) for c in s.comparisons if c.table == "priced"]
    assert comparison.joins == (() if history == "carry" else ("hosts",))
    assert "rate" not in {pair.new for pair in comparison.pairs}


@pytest.mark.slow
def test_a_joined_table_that_is_fed_from_a_log_has_its_rows_before_history_is_joined_with_it() -> None:
    raw = replace(HOSTS, name="raw")
    before = fed(with_sql(priced(), "host", "SELECT host, rate, team, at FROM raw"), raw, "raw", HOST)
    done = change(before, with_sql(before, "raw", HOST.replace("$.rate", "$.fee")))
    filling = [(type(step), step.target) for step in done.steps if isinstance(step, Backfill | CatchUp)]
    assert filling == [
        (Backfill, "raw"),
        (CatchUp, "raw"),
        (CatchUp, "hosts"),
        (Backfill, "priced"),
        (CatchUp, "priced"),
    ]


def test_only_the_reads_of_joined_tables_are_looked_at() -> None:
    """Of 500 tables few are joined; parsing every read took as long as the rest of a plan whose queries are known."""
    bare = empty(stats("landing", "landing", LANDING.columns), stats("names", "names", NAMES.columns))
    release = promoted(planned(priced(), bare), bare).release
    assert release is not None
    reads = {"requests": "SELECT (", "hosts": "SELECT host, rate * 2 AS rate FROM stored"}
    tables = tuple(replace(state, read=reads.get(state.table.name, state.read)) for state in release.tables)
    side = through_joins.of_release(replace(release, tables=tables), lambda feed: {})
    assert (side.opaque("priced"), side.opaque("hosts")) == (False, True)
