"""Mistakes are reported all at once, with their places; risks are reported with stable codes."""

from dataclasses import replace
from typing import Any

import pytest

from console.errors import Problem, Problems
from console.model.live import Day, Live
from console.model.pipeline import Endpoint, Materialization, Parameter, Pipeline
from console.model.schema import Column
from console.planning import check, plan
from console.planning.rules import region_problems
from console.remedy import AnotherColumn, DropKey
from tests.planning.world import (
    COUNT,
    LANDING,
    PARSE,
    REGION,
    REQUESTS,
    actions,
    empty,
    live,
    pipeline,
    planned,
    stats,
    with_column,
    with_sql,
    with_table,
)


def codes(problems: tuple[Problem, ...]) -> list[str]:
    return sorted({problem.code for problem in problems})


def raised(desired: Pipeline, region: Live | None = None) -> tuple[Problem, ...]:
    with pytest.raises(Problems) as caught:
        planned(desired, region or live())
    assert caught.value.exit_code == 65
    return caught.value.problems


def test_a_good_pipeline_has_no_problems() -> None:
    assert check(pipeline()) == ()


def test_everything_wrong_is_reported_at_once_with_its_place() -> None:
    broken = with_sql(pipeline(), "parse", PARSE.replace("payload, '$.ip'", "paylod, '$.ip'"))
    broken = with_sql(broken, "count_hours", COUNT.replace("FROM requests", "FROM request"))
    more = Materialization(name="stray", into="nowhere", sql="SELECT reflect('a') AS x", where="stray.sql:1:1")
    endpoint = Endpoint(
        name="e",
        sql="SELECT ip FROM requests WHERE day = :dey",
        parameters=(Parameter("day", "date"),),
        where="e.sql:2:1",
    )
    broken = replace(broken, materializations=(*broken.materializations, more), endpoints=(endpoint,))
    checked = check(broken)
    assert codes(checked) == ["C003", "S107", "S108", "S111"]
    where = {problem.where for problem in checked}
    assert "plans/web/materializations/parse.sql:4:64" in where
    assert "plans/web/materializations/count_hours.sql:6:6" in where
    assert "e.sql:2:37" in where
    assert {"did you mean payload?", "did you mean requests?", "did you mean day?"} <= {p.hint for p in checked}


@pytest.mark.slow
def test_a_circle_is_named_by_its_path() -> None:
    back = Materialization(
        name="back", into="requests", sql=PARSE.replace("FROM landing", "FROM requests"), where="back.sql:1:1"
    )
    checked = check(replace(pipeline(), materializations=(*pipeline().materializations, back)))
    assert any(p.code == "C001" and "requests → requests" in p.message and p.where == "back.sql:1:1" for p in checked)


STRUCTURE = {
    "C002": lambda p: replace(p, materializations=p.materializations[:1]),
    "C003": lambda p: replace(
        p,
        materializations=(*p.materializations, Materialization(name="x", into="landing", sql="SELECT * FROM requests")),
    ),
    "C004": lambda p: replace(p, copies=(replace(p.copies[0], into="requests"),)),
    "C005": lambda p: with_table(p, replace(REQUESTS, columns=(*REQUESTS.columns, Column(name="IP", type="string")))),
    "C006": lambda p: with_table(p, replace(REQUESTS, partition_by=("dya",))),
    "C007": lambda p: with_table(p, replace(p.table("requests_by_hour"), partition_by=())),
    "C008": lambda p: with_sql(
        p,
        "parse",
        "SELECT hits AS event_id, hour AS ts, day, '' ip, 1 status, p95 AS ms, 1 AS bytes, '' host FROM requests_by_hour",
    ),
    "S110": lambda p: with_sql(p, "parse", PARSE.replace("AS host", "AS hosst")),
    "S112": lambda p: with_sql(p, "count_hours", COUNT.replace("count(*)", "count(DISTINCT ip)")),
    "S113": lambda p: with_sql(p, "parse", PARSE.replace("SELECT", "SELECT DISTINCT")),
}


@pytest.mark.parametrize("code", STRUCTURE)
def test_a_structure_that_cannot_work_is_refused(code: str) -> None:
    assert code in codes(check(STRUCTURE[code](pipeline())))


@pytest.mark.parametrize(
    "sql",
    [
        PARSE + " UNION ALL " + PARSE.replace("landing", "elsewhere"),
        PARSE + " l RIGHT JOIN requests_by_hour r ON r.hour = l.ts",
        PARSE.replace("region AS host", "CAST(row_number() OVER (ORDER BY ts) AS STRING) AS host"),
        PARSE + " LIMIT 10",
        PARSE.replace("region AS host", "max(region) AS host") + " GROUP BY ALL",
    ],
)
def test_what_a_commit_alone_would_answer_wrongly_is_refused(sql: str) -> None:
    desired = with_table(pipeline(), replace(LANDING, name="elsewhere"))
    assert "S113" in codes(check(with_sql(desired, "parse", sql)))


def test_a_dropped_column_that_an_endpoint_reads_has_its_own_code() -> None:
    desired = with_table(pipeline(), replace(REQUESTS, columns=tuple(c for c in REQUESTS.columns if c.name != "ip")))
    desired = with_sql(desired, "parse", PARSE.replace(" get_json_object(payload, '$.ip') AS ip,", ""))
    failure = raised(desired)
    assert codes(failure) == ["C104"]
    assert {problem.node for problem in failure} == {"top_errors", "count_hours"}


def test_a_landing_table_that_is_not_what_the_files_say_is_refused() -> None:
    foreign = with_table(pipeline(), replace(LANDING, managed=False))
    assert codes(raised(foreign, replace(empty(), stats=()))) == ["C110"]
    narrow = empty(stats("landing", "landing", LANDING.columns[:2]))
    assert codes(raised(foreign, narrow)) == ["C111"]
    other = empty(stats("landing", "landing", tuple(replace(c, type="bigint") for c in LANDING.columns)))
    assert codes(raised(pipeline(), other)) == ["C112"]
    strange = replace(
        stats("landing", "landing", LANDING.columns), reader=("columnMapping", "deletionVectors", "catalogManaged")
    )
    failure = raised(pipeline(), empty(strange))
    assert codes(failure) == ["C127"]
    assert "catalogManaged" in failure[0].message


@pytest.mark.parametrize(("type", "result"), [("decimal(10,2)", ["C129"]), ("double", ["C129"]), ("binary", ["C129"]),
                                             ("decimal(10,0)", []), ("string", []), ("float", [])])  # fmt: skip
def test_a_managed_landing_table_is_not_partitioned_by_what_would_be_misspelt(type: str, result: list[str]) -> None:
    odd = replace(LANDING, columns=(*LANDING.columns, Column(name="p", type=type)), partition_by=("p",))
    there = replace(stats("landing", "landing", odd.columns), partition_by=("p",))
    for table, item in (
        (odd, replace(empty(), stats=())),
        (replace(odd, partition_by=()), empty(there)),
    ):
        assert codes(tuple(region_problems(with_table(pipeline(), table), item))) == result
        others = replace(table, managed=False)
        assert "C129" not in codes(tuple(region_problems(with_table(pipeline(), others), item)))


def test_times_that_would_be_cut_are_refused_where_the_column_is_read() -> None:
    stored = empty(replace(stats("landing", "landing", LANDING.columns), finer=("TS", "unread")))
    assert codes(raised(with_table(pipeline(), replace(LANDING, managed=False)), stored)) == ["C128"]


def wider(**landing: Any) -> Pipeline:
    desired = with_column(pipeline(), "ua", "string", "get_json_object(payload, '$.ua')")
    return with_table(desired, replace(LANDING, **landing))


def test_history_that_the_source_no_longer_holds_refuses_a_replay() -> None:
    was = live()
    short = tuple(Day(f"2026-11-{day:02}", 1000, 9000) for day in range(10, 15))
    tables = tuple(stats("landing", "landing", LANDING.columns, short) if s.name == "landing" else s for s in was.stats)
    both = with_sql(wider(retention_days=5), "count_hours", COUNT.replace(">= 500", ">= 400"))
    refused = planned(both, replace(was, stats=tables)).refusals
    assert [(p.code, p.message.split(" (")[0]) for p in refused] == [
        ("C101", "9 days of requests"),
        ("C101", "9 days of requests_by_hour"),
    ]


def landing_holds(*days: Day) -> Live:
    was = live()
    tables = tuple(stats("landing", "landing", LANDING.columns, days) if s.name == "landing" else s for s in was.stats)
    return replace(was, stats=tables)


def test_a_late_row_does_not_make_a_day_whole_again() -> None:
    late = (Day("2026-11-01", 3, 30), *(Day(f"2026-11-{day:02}", 1000, 9000) for day in range(10, 15)))
    refused = planned(wider(), landing_holds(*late)).refusals
    assert refused[0].message.startswith("9 days of requests (2026-11-01 … 2026-11-09)")


def test_where_days_are_only_guessed_fewer_rows_are_reason_enough() -> None:
    guessed = tuple(Day(f"2026-11-{day:02}", 900, 9000, exact=False) for day in range(1, 15))
    refused = planned(wider(), landing_holds(*guessed)).refusals
    assert refused[0].message.startswith("landing holds 1,400 rows less than requests was made of")


def test_short_retention_that_has_lost_nothing_yet_only_warns() -> None:
    done = planned(wider(retention_days=5))
    assert ({p.code for p in done.problems}, done.refusals) == ({"C101"}, ())
    assert {p.code for p in planned(wider(retention_days=0)).problems} == {"C102"}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("*", "C106"),
        ("*, upper(ip) AS up, 1 AS extra", "C106"),
        ("*, '' AS up FROM requests", "C107"),
        ("*, nope AS up", "S108"),
        ("*, reflect('a') AS up", "S105"),
    ],
)
def test_a_forward_query_that_does_not_fit_refuses(query: str, code: str) -> None:
    desired = with_column(pipeline(), "up", "string", "upper(get_json_object(payload, '$.ip'))")
    table = desired.table("requests")
    assert table is not None
    done = planned(with_table(desired, replace(table, forward_query=query)))
    assert codes(done.refusals) == [code]
    assert all(p.where == REQUESTS.where for p in done.refusals)


def test_a_forward_query_on_an_unchanged_table_may_only_be_everything() -> None:
    def codes_of(query: str, was: str = "") -> list[tuple[str, str]]:
        region = live(with_table(pipeline(), replace(REQUESTS, forward_query=was))) if was else live()
        done = planned(with_table(pipeline(), replace(REQUESTS, forward_query=query, owner="me")), region)
        return [(p.code, p.severity) for p in done.problems]

    assert codes_of("*, 1 AS x") == [("C108", "refuse")]
    assert codes_of("SELECT *") == [("C108", "warn")]
    assert codes_of("*, 1 AS x", was="*, 1 AS x") == [("C109", "warn")]


def test_a_forward_query_left_over_from_the_live_release_is_not_taken_for_another_change() -> None:
    left = replace(REQUESTS, forward_query="*")
    region = live(with_table(pipeline(), left))
    changed = with_sql(with_table(pipeline(), left), "parse", PARSE.replace("'$.ip'", "'$.addr'"))
    assert [(p.code, p.severity) for p in planned(changed, region).refusals] == [("C109", "refuse")]


@pytest.mark.slow
def test_a_column_beside_the_one_that_would_be_cut_meets_no_other_refusal_of_a_forward_query_left_over() -> None:
    left = with_table(pipeline(), replace(REQUESTS, forward_query="*"))
    region, cut = live(left), "CAST(get_json_object(payload, '$.ms') AS FLOAT)"
    columns = tuple(replace(c, type="float") if c.name == "ms" else c for c in REQUESTS.columns)
    narrowed = with_table(left, replace(REQUESTS, forward_query="*", columns=columns))
    narrowed = with_sql(narrowed, "parse", PARSE.replace(cut.replace("FLOAT", "DOUBLE"), cut))
    refused = planned(narrowed, region).refusals
    assert codes(refused) == ["C103", "C109"]
    (another,) = [r for p in refused for r in p.remedies if isinstance(r, AnotherColumn)]
    assert str(another) == "give the new ms another name: the forward_query computes it under that name"

    beside = with_column(left, "new_ms", "float", cut)
    (stale,) = planned(beside, region).refusals
    assert (stale.code, DropKey(node="requests", key="forward_query") in stale.remedies) == ("C109", True)
    table = beside.table("requests")
    assert table is not None
    for query in ("", "*, CAST(ms AS FLOAT) AS new_ms"):
        assert planned(with_table(beside, replace(table, forward_query=query)), region).refusals == ()


@pytest.mark.slow
def test_narrowing_that_loses_silently_refuses_and_one_that_fails_loudly_warns() -> None:
    def typed(type: str, expression: str) -> list[tuple[str, str]]:
        columns = tuple(replace(c, type=type) if c.name == "ms" else c for c in REQUESTS.columns)
        desired = with_table(pipeline(), replace(REQUESTS, columns=columns))
        sql = PARSE.replace("CAST(get_json_object(payload, '$.ms') AS DOUBLE)", expression)
        return [(p.code, p.severity) for p in planned(with_sql(desired, "parse", sql)).problems if p.code == "C103"]

    assert typed("float", "CAST(get_json_object(payload, '$.ms') AS FLOAT)") == [("C103", "refuse")]
    assert typed("date", "CAST(get_json_object(payload, '$.ms') AS DATE)") == [("C103", "warn")]
    assert typed("float", "try_cast(get_json_object(payload, '$.ms') AS FLOAT)") == []


def test_no_room_for_the_copy_is_reported() -> None:
    assert "C120" in [p.code for p in planned(wider(), replace(live(), free_bytes=1000)).problems]


def test_variables_are_literals_and_never_sql() -> None:
    desired = replace(pipeline(), variables=(("zone", "eu' OR '1'='1"),))
    done = planned(with_sql(desired, "parse", PARSE + " WHERE region = :zone"))
    feed = done.release.feeds_into("requests")[0]
    assert feed.sql.endswith("= 'eu\\' OR \\'1\\'=\\'1'")


@pytest.mark.slow
def test_a_key_that_nothing_reads_is_a_warning_of_check_and_of_every_plan() -> None:
    idle = Problem(code="P050", message="`schedule` has no effect", severity="warn", where="plans/web/copies/c.sql:1:4")
    soak = Problem(code="P050", message="`policy.soak` has no effect", severity="warn", where="regions/eu.yaml:2:1")
    desired, region = replace(pipeline(), ineffective=(idle,)), replace(REGION, ineffective=(soak,))
    assert check(desired) == (idle,)
    assert plan(desired, live(), region, "test").problems == (idle, soak)
    assert plan(desired, live(), region, "test").desired == planned(pipeline()).desired


def test_estimates_are_said_to_change_only_where_they_are_computed_otherwise() -> None:
    otherwise = planned(with_sql(pipeline(), "count_hours", COUNT.replace("0.95", "0.99")))
    filtered = planned(with_sql(pipeline(), "parse", f"{PARSE} WHERE region = 'eu'"))
    assert "C115" in codes(otherwise.problems)
    assert "C115" not in codes(filtered.problems)


@pytest.mark.parametrize(
    ("was", "now"),
    [("0.95", "0.950"), ("0.95", "0.95, 100"), ("approx_count_distinct(ip)", "approx_count_distinct(ip, 0.2)")],
)
def test_estimates_of_the_same_sketch_read_in_the_same_way_are_not_said_to_change(was: str, now: str) -> None:
    done = planned(with_sql(pipeline(), "count_hours", COUNT.replace(was, now)))
    assert (actions(done), codes(done.problems)) == ({"requests_by_hour": "metadata"}, [])
