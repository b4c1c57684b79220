"""An additional filter over stored columns is read from the table itself; anything else is read from the source."""

import itertools
from dataclasses import replace

import duckdb
import pytest

from console.model.pipeline import Materialization, Pipeline
from console.model.plan import Plan
from console.model.schema import Table
from console.model.step import Backfill
from tests.planning.world import (
    COUNT,
    LANDING,
    PARSE,
    REQUESTS,
    actions,
    columns,
    empty,
    live,
    pipeline,
    planned,
    promoted,
    stats,
    with_column,
    with_sql,
    with_table,
)

LIVE = "payload <> '' AND length(region) > 1"
KEPT = {
    "region = 'eu'": "`host` = 'eu'",
    "CAST(get_json_object(payload, '$.status') AS INT) >= 500": "`status` >= 500",
    "CAST(get_json_object(payload, '$.status') AS BIGINT) >= 500": "CAST(`status` AS BIGINT) >= 500",
    "upper(region) <=> 'EU' AND NOT region IS NULL": "UPPER(`host`) <=> 'EU' AND NOT `host` IS NULL",
    "region IN ('eu', NULL) OR id IS NULL": "`host` IN ('eu', NULL) OR `event_id` IS NULL",
}
LOST = [
    "payload IS NOT NULL",
    "region = 'eu' OR payload = 'x'",
    "rand() > 0.5",
    "ts > current_timestamp()",
    "CAST(get_json_object(payload, '$.status') AS DOUBLE) >= 500",
    "region IN (SELECT region FROM landing)",
]


def filtered(condition: str, desired: Pipeline | None = None) -> Pipeline:
    return with_sql(desired or pipeline(), "parse", f"{PARSE} WHERE {condition}")


def routed(plan: Plan, name: str = "requests") -> str:
    return next(node.action for node in plan.nodes if node.name == name)


def copied(plan: Plan) -> str:
    (step,) = (step for step in plan.steps if isinstance(step, Backfill) and step.route == "forward")
    return step.sql


@pytest.mark.slow
@pytest.mark.parametrize(("wider", "read"), [("bigint", "CAST(`status` AS INT) >= 500"), ("double", "")])
def test_a_column_that_was_widened_where_it_is_stores_the_same_numbers(wider: str, read: str) -> None:
    typed = tuple(replace(c, type=wider) if c.name == "status" else c for c in REQUESTS.columns)
    widened = with_table(pipeline(), replace(REQUESTS, columns=typed))
    first = planned(widened, live())
    assert routed(first) == "metadata"
    then = planned(
        filtered("CAST(get_json_object(payload, '$.status') AS INT) >= 500", widened), promoted(first, live())
    )
    assert routed(then) == ("forward" if read else "replay")
    assert not read or copied(then).endswith(f"WHERE {read}")


@pytest.mark.parametrize("condition", KEPT)
def test_a_filter_over_kept_columns_copies_the_table_itself(condition: str) -> None:
    plan = planned(filtered(condition))
    assert routed(plan) == "forward"
    assert copied(plan).endswith(f" WHERE {KEPT[condition]}")
    assert "C121" in {problem.code for problem in plan.problems}


@pytest.mark.slow
@pytest.mark.parametrize("condition", LOST)
def test_a_filter_over_what_it_does_not_keep_or_cannot_repeat_reads_the_source(condition: str) -> None:
    plan = planned(filtered(condition))
    assert routed(plan) == "replay"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "route", "where"),
    [
        (f"{LIVE} AND region = 'eu'", "forward", "`host` = 'eu'"),
        ("length(region) > 5 AND payload <> ''", "forward", "LENGTH(`host`) > 5"),
        ("region = 'eu'", "replay", ""),  # rows without a payload are wanted, and were never stored
        ("payload <> '' AND length(region) > 0", "replay", ""),
        ("payload = '' AND length(region) > 1", "replay", ""),
    ],
)
def test_a_filter_in_the_place_of_another_is_narrower_or_needs_the_source(
    condition: str, route: str, where: str
) -> None:
    plan = planned(filtered(condition), live(filtered(LIVE)))
    assert routed(plan) == route
    assert not where or copied(plan).endswith(f" WHERE {where}")


@pytest.mark.slow
def test_a_new_column_beside_the_filter_is_proven_too() -> None:
    loud = with_column(filtered("region = 'eu'"), "loud", "string", "upper(region)")
    lost = with_column(filtered("region = 'eu'"), "agent", "string", "get_json_object(payload, '$.agent')")
    assert (routed(planned(loud)), routed(planned(lost))) == ("forward", "replay")


@pytest.mark.slow
def test_days_that_the_filter_takes_out_are_refused_as_in_a_replay() -> None:
    plan = planned(filtered("ts >= '2026-11-08'"))
    assert routed(plan) == "forward"
    assert {"C119", "C121"} <= {problem.code for problem in plan.problems}


def test_rows_that_the_source_has_lost_are_kept() -> None:
    region = live()
    later = replace(region, stats=tuple(replace(s, rows=1, days=s.days[-1:]) if s.name == "landing" else s for s in region.stats))  # fmt: skip
    plan = planned(filtered("region = 'eu'"), later)
    assert routed(plan) == "forward"
    assert "C101" not in {problem.code for problem in plan.problems}


@pytest.mark.slow
def test_of_two_feeds_nothing_tells_which_one_a_row_came_from() -> None:
    other = Materialization(name="parse_b", into="requests", sql=PARSE.replace("region AS", "'b' AS"))
    both = replace(pipeline(), materializations=(*pipeline().materializations, other))
    assert routed(planned(filtered("region = 'eu'", both), live(both))) == "replay"


VALUES = [None, 0, 1, 2]
SMALL = Table(name="small", kind="append", columns=columns(a="int", b="int"))
SOURCE = replace(LANDING, columns=columns(x="int", y="int", z="int"), time="")
CONDITIONS = [
    "x > 0", "x >= 0", "x > 1", "x = 1", "x <> 1", "x IS NULL", "x IS NOT NULL", "NOT x = 1", "x IN (1, 2)", "x IN (1, NULL)",
    "x NOT IN (1, NULL)", "x > y", "x + y = 2", "coalesce(x, 0) > 0", "x BETWEEN 0 AND 1", "z = 1", "z IS NULL", "x > 0 OR z = 1",
    "x > 0 AND y > 0", "x > 0 AND z > 0", "(x > 0 OR y > 0) AND x IS NOT NULL", "CASE WHEN x > 0 THEN y > 0 ELSE false END", "true", "false",
]  # fmt: skip


def small(condition: str) -> Pipeline:
    sql = f"SELECT x AS a, y AS b FROM landing WHERE {condition}"
    return Pipeline(
        name="web",
        tables=(SOURCE, SMALL),
        materializations=(Materialization(name="fill", into="small", sql=sql),),
    )


@pytest.mark.slow
def test_the_copied_rows_are_those_that_the_new_query_gives_of_the_source() -> None:
    """DuckDB runs the operator's texts over every row of three columns, and the copy over what the first text gave."""
    base = duckdb.connect()
    base.execute("CREATE TABLE landing (x INT, y INT, z INT)")
    base.executemany("INSERT INTO landing VALUES (?, ?, ?)", list(itertools.product(VALUES, repeat=3)))
    start = empty(stats("landing", "landing", SOURCE.columns))
    taken = 0
    for old, new in itertools.permutations(CONDITIONS, 2):
        plan = planned(small(new), promoted(planned(small(old), start), start))
        if routed(plan, "small") != "forward":
            continue
        taken += 1
        base.execute(f"CREATE OR REPLACE TABLE small AS SELECT x AS a, y AS b FROM landing WHERE {old}")
        got = base.execute(copied(plan).replace("`", '"') + " ORDER BY ALL").fetchall()
        wished = base.execute(f"SELECT x AS a, y AS b FROM landing WHERE {new} ORDER BY ALL").fetchall()
        assert got == wished, (old, new, copied(plan))
    assert taken > 40, "the narrower ones of these pairs are recognised"


@pytest.mark.slow
def test_a_retyped_column_is_another_type_to_its_readers() -> None:
    wide = tuple(replace(c, type="bigint") if c.name == "status" else c for c in REQUESTS.columns)
    desired = with_table(pipeline(), replace(REQUESTS, columns=wide))
    recast = with_sql(desired, "parse", PARSE.replace("'$.status') AS INT", "'$.status') AS BIGINT"))
    assert [answer.why for answer in planned(desired).answers] == ["requests.status has another type"]
    assert [answer.why for answer in planned(recast).answers] == [
        "requests.status has another type, by another expression"
    ]


@pytest.mark.parametrize(
    "same",
    [
        "count(*) FILTER (WHERE status >= 500)",
        "count(CASE WHEN status >= 500 THEN 1 END)",
        "sum(CASE WHEN status >= 500 THEN 1 ELSE 0 END)",
    ],
)
def test_a_count_of_a_condition_is_no_change_however_it_is_written(same: str) -> None:
    plan = planned(with_sql(pipeline(), "count_hours", COUNT.replace("count_if(status >= 500)", same)))
    assert plan.changes == ()


def retyped(expression: str, type: str) -> Pipeline:
    table = replace(
        REQUESTS, columns=tuple(replace(c, type=type) if c.name == "status" else c for c in REQUESTS.columns)
    )
    parse = PARSE.replace("CAST(get_json_object(payload, '$.status') AS INT)", expression)
    return with_sql(with_table(pipeline(), table), "parse", parse)


def test_a_wider_cast_of_what_it_keeps_narrower_is_read_from_the_table_itself() -> None:
    done = planned(retyped("CAST(get_json_object(payload, '$.status') AS BIGINT)", "bigint"))
    (copied,) = [step for step in done.steps if isinstance(step, Backfill) and step.target == "requests"]
    assert (copied.route, copied.source) == ("forward", "requests")
    assert "CAST(`status` AS BIGINT) AS `status`" in copied.sql


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stored", "type", "action"),
    [
        ("CAST(get_json_object(payload, '$.status') AS INT)", "bigint", "forward"),
        ("try_cast(get_json_object(payload, '$.status') AS INT)", "bigint", "forward"),
        ("CAST(get_json_object(payload, '$.status') AS INT)", "double", "replay"),
    ],
)
def test_what_is_stored_in_a_wider_type_gives_the_narrower_value_too(stored: str, type: str, action: str) -> None:
    was = retyped(stored, type)
    done = planned(with_column(was, "family", "int", f"{stored} * 2"), live(was))
    assert actions(done)["requests"] == action
    copied = next(step for step in done.steps if isinstance(step, Backfill) and step.target == "requests")
    assert ("CAST(`status` AS INT) * 2" in copied.sql) == (action == "forward")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("expression", "type"),
    [
        ("try_cast(get_json_object(payload, '$.status') AS BIGINT)", "bigint"),
        ("CAST(get_json_object(payload, '$.code') AS BIGINT)", "bigint"),
        ("CAST(get_json_object(payload, '$.status') AS DOUBLE)", "double"),  # `1.5` was no int
    ],
)
def test_another_cast_is_computed_from_the_source(expression: str, type: str) -> None:
    assert actions(planned(retyped(expression, type)))["requests"] == "replay"


PEOPLE = Table(name="people", kind="landing", columns=columns(host="string", owner="string"), managed=True)
NAMED = (
    "SELECT e.id AS event_id, e.region AS host, p.owner AS owner FROM landing e LEFT JOIN people p ON p.host = e.region"
)


def joined(sql: str) -> Pipeline:
    table = Table(name="named", kind="append", columns=columns(event_id="string", host="string", owner="string"))
    feed = Materialization(name="name", into="named", sql=sql)
    base = with_table(with_table(pipeline(), PEOPLE), table)
    return replace(base, materializations=tuple(sorted((*base.materializations, feed), key=lambda node: node.name)))


@pytest.mark.parametrize(
    ("after", "action"),
    [
        (f"{NAMED} WHERE e.region <> 'lab'", "forward"),
        (f"{NAMED} WHERE p.owner = 'ada' AND e.region <> 'lab'", "forward"),
        (f"{NAMED} WHERE e.payload <> ''", "replay"),
        (f"{NAMED} AND p.owner <> 'ada' WHERE e.region <> 'lab'", "replay"),
        (f"{NAMED.replace('LEFT JOIN', 'JOIN')} WHERE e.region <> 'lab'", "replay"),
    ],
)
def test_a_filter_over_a_join_asks_what_was_joined_when_the_row_came(after: str, action: str) -> None:
    people = stats("people", "people", PEOPLE.columns)
    start = empty(stats("landing", "landing", LANDING.columns), people)
    was = promoted(planned(joined(NAMED), start), start)
    assert actions(planned(joined(after), was))["named"] == action


@pytest.mark.slow
def test_a_tried_cast_stores_null_where_a_wider_one_has_a_value() -> None:
    tried = with_sql(
        pipeline(), "parse", PARSE.replace("CAST(get_json_object(payload, '$.status') AS INT)", "try_cast(get_json_object(payload, '$.status') AS INT)")
    )  # fmt: skip
    wanted = retyped("CAST(get_json_object(payload, '$.status') AS BIGINT)", "bigint")
    assert actions(planned(wanted, live(tried)))["requests"] == "replay"
    again = retyped("try_cast(get_json_object(payload, '$.status') AS BIGINT)", "bigint")
    assert actions(planned(again, live(tried)))["requests"] == "replay"


@pytest.mark.slow
def test_another_join_under_the_filter_makes_other_rows_though_no_column_shows_it() -> None:
    bare = NAMED.replace("p.owner AS owner", "e.region AS owner")
    people = stats("people", "people", PEOPLE.columns)
    start = empty(stats("landing", "landing", LANDING.columns), people)
    was = promoted(planned(joined(bare), start), start)
    filtered = f"{bare} WHERE e.region <> 'lab'"
    assert actions(planned(joined(filtered), was))["named"] == "forward"
    assert actions(planned(joined(filtered.replace("LEFT JOIN", "JOIN")), was))["named"] == "replay"
