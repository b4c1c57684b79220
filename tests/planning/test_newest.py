"""Tables of kind `latest` and `distinct`: the rows that their changes move, and the refusals with their alternatives."""

from dataclasses import replace

import pytest

from console.errors import Problem, Problems
from console.model.codec import decode, encode
from console.model.live import Live, Release, TableState
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.schema import Table
from console.model.step import Comparison, Validate
from tests.planning.test_joined_tables import fed
from tests.planning.world import (
    LANDING,
    actions,
    columns,
    live,
    node,
    pipeline,
    planned,
    promoted,
    stats,
    with_sql,
    with_table,
)

LAST = Table(
    name="last_seen",
    kind="append",
    columns=columns(ip="string", ts="timestamp", status="int", host="string"),
    time="ts",
    key=("ip",),
    order_by=("ts",),
)
LOOK = "SELECT ip, ts, status, host FROM requests"
AGENT = "get_json_object(payload, '$.user_agent')"


def seen(table: Table = LAST, sql: str = LOOK) -> Pipeline:
    return fed(pipeline(), table, "look", sql)


def change(wanted: Pipeline, before: Pipeline | None = None) -> Plan:
    return planned(wanted, live(before or seen()))


def state(done: Plan) -> TableState:
    table = done.release.table("last_seen")
    assert table is not None
    return table


def test_it_is_stored_by_a_hash_of_its_key_and_read_merged() -> None:
    made = state(change(seen(), pipeline()))
    assert made.version.partition_by == ("_bucket",)
    assert [column.name for column in made.version.columns] == ["ip", "ts", "status", "host", "_row_hash", "_bucket"]
    assert "GROUP BY `ip`" in made.read
    by_key = state(change(seen(replace(LAST, partition_by=("ip",))), pipeline()))
    assert (by_key.version.partition_by, by_key.version.columns[-1].name) == (("ip",), "_row_hash")
    assert decode(Release, encode(change(seen()).release)) == change(seen()).release


WIDER = replace(LAST, columns=(*LAST.columns, *columns(agent="string")))
ROUTES = {
    "nothing": (seen(), ""),
    "another description": (seen(replace(LAST, description="x")), "metadata"),
    "a constant": (seen(WIDER, LOOK.replace(", host", ", host, 'x' AS agent")), "metadata"),
    "a new name of its key": (
        seen(
            replace(
                LAST, columns=columns(address="string", ts="timestamp", status="int", host="string"), key=("address",)
            ),
            LOOK.replace("ip,", "ip AS address,"),
        ),
        "metadata",
    ),
    "a column of its own": (seen(WIDER, LOOK.replace(", host", ", host, upper(host) AS agent")), "forward"),
    "another partitioning": (seen(replace(LAST, partition_by=("ip",))), "forward"),
    "a column of its source": (seen(WIDER, LOOK.replace(", host", ", host, CAST(bytes AS STRING) AS agent")), "replay"),
    "another value": (seen(sql=LOOK.replace("status,", "status + 1 AS status,")), "forward"),
    "another order": (seen(replace(LAST, order_by=("status",))), "replay"),
    "another key": (seen(replace(LAST, key=("ip", "host"))), "replay"),
    "every row": (seen(replace(LAST, key=(), order_by=())), "replay"),
    # the newest row that passes may have been replaced by one that does not
    "a filter": (seen(sql=f"{LOOK} WHERE status < 500"), "replay"),
}


@pytest.mark.parametrize("what", ROUTES)
def test_a_change_takes_the_cheapest_exact_route(what: str) -> None:
    wanted, route = ROUTES[what]
    assert actions(change(wanted)).get("last_seen", "") == route


@pytest.mark.slow
def test_what_decided_between_rows_of_one_order_goes_on_deciding() -> None:
    was = state(change(seen())).newest
    assert was is not None
    assert was.tie == ("host", "ip", "status", "ts")
    wider = change(ROUTES["a column of its source"][0])
    now = state(wider).newest
    assert now is not None
    assert now.tie == was.tie
    assert not compared(wider).ties
    other = change(seen(sql=LOOK.replace("status,", "CAST(bytes AS INT) AS status,")))
    assert actions(other)["last_seen"] == "replay"
    assert compared(other).ties
    renamed = change(ROUTES["a new name of its key"][0])
    assert state(renamed).newest == was
    region = promoted(renamed, live(seen()))
    table = replace(
        LAST,
        columns=columns(address="string", ts="timestamp", status="int", host="string", size="bigint"),
        key=("address",),
    )
    again = planned(seen(table, "SELECT ip AS address, ts, status, host, bytes AS size FROM requests"), region)
    assert (actions(again)["last_seen"], compared(again).ties) == ("replay", False)
    kept = state(again).newest
    assert kept is not None
    assert (kept.key, kept.tie) == (("address",), ("host", "address", "status", "ts"))


def compared(done: Plan) -> Comparison:
    return next(c for s in done.steps if isinstance(s, Validate) for c in s.comparisons if c.table == "last_seen")


def test_it_is_compared_by_its_merged_rows() -> None:
    comparison = compared(change(seen(replace(LAST, partition_by=("ip",)))))
    assert comparison.keys == ("ip",)
    assert {pair.new for pair in comparison.pairs} == {"ip", "ts", "status", "host"}


def test_why_it_is_computed_anew_names_key_and_order() -> None:
    by_status = node(change(ROUTES["another order"][0]), "last_seen").why
    assert by_status == "last_seen is ordered by status instead of ts: it is recomputed from requests"
    by_host = node(change(ROUTES["another key"][0]), "last_seen").why
    assert by_host.startswith("last_seen keeps one row of each ip and host instead of ip")
    plain = node(change(ROUTES["every row"][0]), "last_seen").why
    assert plain.startswith("last_seen is now of kind append, and was of kind latest")


@pytest.mark.slow
def test_carrying_its_rows_is_refused_where_another_row_may_be_the_newest() -> None:
    done = change(seen(replace(LAST, order_by=("status",), history="carry")))
    refused = [problem for problem in done.problems if problem.code == "C140"]
    assert "another row of a key may be the newest now" in refused[0].message
    fine = change(
        seen(replace(WIDER, history="carry"), LOOK.replace(", host", ", host, CAST(bytes AS STRING) AS agent"))
    )
    assert actions(fine)["last_seen"] == "forward"


@pytest.mark.slow
@pytest.mark.parametrize("word", ["carry", "from now", "since 2026-11-08"])
def test_of_a_filter_over_its_key_the_refusal_says_that_other_keys_would_stay(word: str) -> None:
    def refused(sql: str, table: Table = LAST) -> Problem:
        done = change(seen(replace(table, history=word), sql))
        return next(problem for problem in done.problems if problem.code == "C140")

    filtered = f"{LOOK} WHERE ip <> '192.0.2.7'"
    assert "its filter leaves out whole keys" in refused(filtered).message
    assert "the newest rows of all other keys are copied" in refused(filtered).hint
    assert actions(change(seen(sql=filtered)))["last_seen"] == "forward"
    size = filtered.replace(", host", ", host, CAST(bytes AS STRING) AS agent")
    assert "its filter leaves out whole keys" in refused(size, WIDER).message
    assert "all rows are computed from the source" in refused(size, WIDER).hint
    by_value = refused(f"{LOOK} WHERE status < 500")
    assert "another row of a key may be the newest now" in by_value.message
    without_filter = change(seen(replace(LAST, history=word)), seen(sql=filtered))
    assert "another row of a key may be the newest now" in without_filter.problems[0].message


def test_a_feed_below_it_is_refused_with_the_endpoint_that_does_it_and_a_join_is_not() -> None:
    below = replace(LAST, name="below", key=(), order_by=())
    with pytest.raises(Problems) as error:
        change(fed(seen(), below, "copy_on", "SELECT ip, ts, status, host FROM last_seen"))
    (problem,) = error.value.problems
    assert problem.code == "C008"
    assert "a table of kind latest: a row that a newer one replaces would stay below" in problem.message
    assert problem.hint == "endpoints/copy_on.sql: the same query as an endpoint computes it over whole tables"
    joined = "SELECT r.ip, r.ts, l.status, l.host FROM requests r LEFT JOIN last_seen l ON l.ip = r.ip"
    assert actions(change(fed(seen(), below, "look_up", joined)))["below"] == "create"


def test_distinct_rows_are_a_kind_of_table() -> None:
    pairs = Table(name="last_seen", kind="append", columns=columns(ip="string", host="string"), key=("ip", "host"))
    done = change(seen(pairs, "SELECT DISTINCT ip, host FROM requests"), pipeline())
    assert actions(done)["last_seen"] == "create"
    assert done.release.feeds_into("last_seen")[0].sql.startswith("SELECT `requests`.`ip` AS `ip`")
    assert (
        actions(
            change(seen(pairs, "SELECT ip, host FROM requests"), seen(pairs, "SELECT DISTINCT ip, host FROM requests"))
        )
        == {}
    )
    with pytest.raises(Problems, match="DISTINCT would be taken over each commit alone"):
        change(seen(sql="SELECT DISTINCT ip, ts, status, host FROM requests"))


def test_a_plan_says_that_retention_drops_keys_whose_newest_row_is_old() -> None:
    done = change(seen(replace(LAST, retention_days=30)))
    (note,) = [problem for problem in done.problems if problem.code == "C145"]
    assert note.message == "last_seen: a key whose newest row is older than 30 days, or has no time, is dropped with it"
    assert note.severity == "note"
    assert not [
        p
        for p in change(seen(replace(LAST, retention_days=30)), seen(replace(LAST, retention_days=30))).problems
        if p.code == "C145"
    ]


def unfed(region: Live) -> Live:
    """Landing holds only the last days."""
    days = tuple(day for s in region.stats if s.name == "requests" for day in s.days if day.day >= "2026-11-10")
    tables = tuple(
        stats("landing", "landing", LANDING.columns, days) if s.name == "landing" else s for s in region.stats
    )
    return replace(region, stats=tables)


@pytest.mark.slow
def test_rows_that_its_source_has_lost_stop_a_replay() -> None:
    direct = fed(pipeline(), LAST, "look", "SELECT id AS ip, ts, 1 AS status, region AS host FROM landing")
    wanted = with_sql(with_table(direct, replace(LAST, order_by=("host",))), "look", direct.materializations[-1].sql)
    done = planned(wanted, unfed(live(direct)))
    assert "C101" in {problem.code for problem in done.problems}


NEWEST_BY_WINDOW = (
    "SELECT ip, ts, status, host FROM requests QUALIFY row_number() OVER (PARTITION BY ip ORDER BY ts DESC) = 1"
)
INSTEAD = {
    "SELECT DISTINCT ip, ts, status, host FROM requests": "`kind: distinct` keeps each row once; or endpoints/look.sql",
    NEWEST_BY_WINDOW: "`kind: latest` keeps the newest row of each key; or endpoints/look.sql",
    f"{LOOK} LIMIT 5": "endpoints/look.sql: the same query",
    "SELECT ip, ts, lag(status) OVER (ORDER BY ts) AS status, host FROM requests": "endpoints/look.sql: the same query",
    f"{LOOK} r FULL JOIN landing l ON l.region = r.host": "use LEFT JOIN, or endpoints/look.sql",
    f"{LOOK} r RIGHT JOIN landing l ON l.region = r.host": "use LEFT JOIN, or endpoints/look.sql",
}


@pytest.mark.parametrize("sql", INSTEAD)
def test_what_no_commit_can_tell_alone_is_refused_with_what_does_it(sql: str) -> None:
    plain = replace(LAST, key=(), order_by=())
    sql = sql.replace("SELECT ip, ts", "SELECT r.ip, r.ts") if " JOIN " in sql else sql
    with pytest.raises(Problems) as error:
        change(seen(plain, sql), pipeline())
    assert [
        problem.hint
        for problem in error.value.problems
        if problem.hint.startswith(INSTEAD[sql.replace("r.ip, r.ts", "ip, ts")])
    ]
