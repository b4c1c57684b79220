"""Every change takes the cheapest exact route, and unchanged files plan nothing."""

import time
from dataclasses import replace
from typing import Any

import pytest

from console.model.codec import decode, dumps, loads
from console.model.live import Day, Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan, numbered
from console.model.schema import Column
from console.model.step import AddColumns, Backfill, CatchUp, CreateTable, Pair, Promote, Validate
from console.planning import plan
from tests.planning.world import (
    COUNT,
    HOURLY,
    LANDING,
    PARSE,
    REGION,
    REQUESTS,
    actions,
    empty,
    live,
    node,
    pipeline,
    planned,
    promoted,
    release,
    stats,
    with_column,
    with_sql,
    with_table,
)

UA = "get_json_object(payload, '$.user_agent')"


def with_agent(desired: Pipeline) -> Pipeline:
    return with_column(with_column(desired, "user_agent", "string", UA), "family", "string", f"split({UA}, '/')[0]")


def requests(desired: Pipeline, **changes: Any) -> Pipeline:
    table = desired.table("requests")
    assert table is not None
    return with_table(desired, replace(table, **changes))


def retyped(name: str, type: str) -> tuple[Column, ...]:
    return tuple(replace(c, type=type) if c.name == name else c for c in REQUESTS.columns)


NOTHING = {
    "reformatted": lambda p: with_sql(p, "parse", " ".join(PARSE.lower().split()) + " -- done"),
    "aliases and a cte": lambda p: with_sql(
        p, "parse", PARSE.replace("FROM landing", "FROM (SELECT * FROM landing) x")
    ),
    "a renamed file": lambda p: replace(
        p, materializations=tuple(replace(m, name=f"{m.name}_2", where="else:1:1") for m in p.materializations)
    ),
    "moved files": lambda p: requests(p, where="plans/web/tables/elsewhere.yaml:9:9"),
    "columns of the query in another order": lambda p: with_sql(
        p, "parse", "SELECT region AS host," + PARSE[len("SELECT") :].replace(",\n  region AS host", "")
    ),
    "a forward query left over": lambda p: requests(p, forward_query="*"),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_change_of_nothing_has_no_steps(name: str) -> None:
    done = planned(NOTHING[name](pipeline()))
    assert (actions(done), done.steps) == ({}, ())


def test_a_first_plan_creates_everything_and_compares_nothing() -> None:
    done = planned(pipeline(), empty())
    assert {n.action for n in done.nodes} == {"create"}
    assert [step.id for step in done.steps] == [
        "create/requests", "create/requests_by_hour", "backfill/requests/parse", "catch-up/requests/parse",
        "catch-up/requests_by_hour/count_hours", "validate", "promote",
    ]  # fmt: skip
    assert next(s for s in done.steps if isinstance(s, Validate)).comparisons == ()


def test_a_managed_landing_table_that_is_absent_is_created_first() -> None:
    done = planned(pipeline(), replace(empty(), stats=()))
    assert done.steps[0] == CreateTable("landing")
    state = done.release.table("landing")
    assert state is not None
    assert state.version.path == "landing"


def and_another_count(desired: Pipeline) -> Pipeline:
    """The aggregate below changes as well, so that it is rebuilt from its source's new log."""
    return with_sql(desired, "count_hours", COUNT.replace(">= 500", ">= 400"))


def test_a_new_column_from_the_payload_replays_its_table_and_what_changes_below_from_its_log() -> None:
    done = planned(and_another_count(with_agent(pipeline())))
    assert actions(done) == {"requests": "replay", "requests_by_hour": "replay"}
    assert [type(step) for step in done.steps] == [
        CreateTable,
        CreateTable,
        Backfill,
        CatchUp,
        CatchUp,
        Validate,
        Promote,
    ]
    backfill = next(step for step in done.steps if isinstance(step, Backfill))
    assert (backfill.source, backfill.time, backfill.route, backfill.rows, backfill.days) == (
        "landing",
        "ts",
        "replay",
        14000,
        14,
    )
    assert [step.start for step in done.steps if isinstance(step, CatchUp)] == ["fence", "log"]
    why = node(done, "requests").why
    assert why.startswith(
        "user_agent and family are new and computed from landing.payload, which requests does not keep"
    )
    assert done.problems == ()


def test_unchanged_columns_must_be_equal_and_new_ones_are_named_as_left_out() -> None:
    done = planned(and_another_count(with_agent(pipeline())))
    first, second = next(s for s in done.steps if isinstance(s, Validate)).comparisons
    assert [pair.new for pair in first.pairs] == [column.name for column in REQUESTS.columns]
    assert [name for name, _ in first.left_out] == ["user_agent", "family"]
    assert second.keys == ("hour", "day")
    assert Pair("hits", "hits", True) in second.pairs
    assert {pair.new for pair in second.pairs if not pair.exact} == {"p95", "visitors"}
    assert [name for name, _ in second.left_out] == ["errors"]


def test_a_rebuilt_table_gets_a_path_of_its_rollout_and_kept_ones_stay() -> None:
    was = live()
    done = planned(with_column(pipeline(), "n", "bigint", "length(payload)"), was)
    paths = {s.table.name: s.version.path for s in numbered(done, 4).release.tables}
    assert paths["landing"] == "landing"
    assert paths["requests"].startswith("requests/")
    assert paths["requests"].endswith("-4")
    assert all(state.version.path != paths["requests"] for state in release(was).tables)


METADATA = {
    "a description": lambda p: requests(p, description="All requests"),
    "an owner": lambda p: requests(p, owner="web"),
    "retention": lambda p: requests(p, retention_days=30),
    "a comment": lambda p: requests(p, columns=tuple(replace(c, comment="?") for c in REQUESTS.columns)),
    "the order of columns": lambda p: requests(p, columns=REQUESTS.columns[::-1]),
    "a column dropped that nothing reads": lambda p: with_sql(
        requests(p, columns=REQUESTS.columns[:-1]), "parse", PARSE.replace(",\n  region AS host", "")
    ),
    "a column renamed": lambda p: with_sql(
        requests(p, columns=(*REQUESTS.columns[:-1], Column(name="origin", type="string"))),
        "parse",
        PARSE.replace("AS host", "AS origin"),
    ),
    "a constant column": lambda p: with_column(p, "schema", "int", "2"),
    "a NULL column": lambda p: with_column(p, "later", "string", "NULL"),
    "a wider type of the same ints": lambda p: requests(p, columns=retyped("status", "bigint")),
}


@pytest.mark.parametrize("name", METADATA)
def test_metadata_moves_no_row_and_keeps_version_and_feed(name: str) -> None:
    was = live()
    done = planned(METADATA[name](pipeline()), was)
    touched = {n: a for n, a in actions(done).items() if n != "requests_by_hour"}
    assert touched == {"requests": "metadata"}
    new, old = done.release.table("requests"), release(was).table("requests")
    assert new is not None
    assert old is not None
    assert new.version == old.version
    assert done.release.feeds_into("requests") == release(was).feeds_into("requests")
    if "wider" not in name:
        assert done.steps == (Promote(),)


def test_read_supplies_what_the_stored_table_lacks() -> None:
    def read(desired: Pipeline) -> str:
        state = planned(desired).release.table("requests")
        assert state is not None
        return state.read

    assert "`host` AS `origin`" in read(METADATA["a column renamed"](pipeline()))
    assert "CAST(2 AS INT) AS `schema`" in read(METADATA["a constant column"](pipeline()))
    assert "CAST(`status` AS BIGINT) AS `status`" in read(METADATA["a wider type of the same ints"](pipeline()))
    assert "host" not in read(METADATA["a column dropped that nothing reads"](pipeline()))


def test_metadata_upon_metadata_still_reads_the_stored_name() -> None:
    once = METADATA["a column renamed"](pipeline())
    was = live()
    region = promoted(planned(once, was), was)
    twice = with_sql(
        requests(pipeline(), columns=(*REQUESTS.columns[:-1], Column(name="zone", type="string"))),
        "parse",
        PARSE.replace("AS host", "AS zone"),
    )
    state = planned(twice, region).release.table("requests")
    assert state is not None
    assert "`host` AS `zone`" in state.read
    assert planned(once, region).steps == ()


def test_a_feed_that_stays_still_finds_a_column_renamed_or_hidden_above_it() -> None:
    desired = with_sql(
        requests(
            pipeline(), columns=tuple(replace(c, name="address") if c.name == "ip" else c for c in REQUESTS.columns)
        ),
        "parse",
        PARSE.replace("AS ip", "AS address"),
    )
    desired = with_sql(desired, "count_hours", COUNT.replace("(ip)", "(address)"))
    ends = tuple(replace(e, sql=e.sql.replace("ip", "address")) for e in desired.endpoints)
    done = planned(replace(desired, endpoints=ends))
    assert actions(done) == {"requests": "metadata", "top_errors": "metadata"}
    state = done.release.table("requests")
    assert state is not None
    assert "`ip` AS `address`" in state.read
    assert "`ip` AS `ip`" in state.read
    assert done.release.feeds_into("requests_by_hour")[0].sql.count("`ip`") == 1


REPLAY = {
    "a filter": lambda p: with_sql(p, "parse", PARSE + " WHERE payload <> ''"),
    "another expression": lambda p: with_sql(p, "parse", PARSE.replace("'$.ip'", "'$.addr'")),
    "a type that its text may not fit": lambda p: with_sql(
        requests(p, columns=retyped("ms", "int")),
        "parse",
        PARSE.replace(
            "CAST(get_json_object(payload, '$.ms') AS DOUBLE)", "try_cast(get_json_object(payload, '$.ms') AS INT)"
        ),
    ),
    "more rows": lambda p: with_column(p, "part", "string", "explode(split(region, '-'))"),
    "not null": lambda p: requests(p, columns=tuple(replace(c, nullable=c.name != "ip") for c in REQUESTS.columns)),
}


@pytest.mark.parametrize("name", REPLAY)
def test_what_changes_rows_or_stored_values_is_replayed(name: str) -> None:
    assert actions(planned(REPLAY[name](pipeline())))["requests"] == "replay"


@pytest.mark.parametrize(("type", "action"), [("bigint", "forward"), ("double", "replay")])
def test_a_wider_whole_number_is_the_stored_one_and_a_fraction_may_have_been_cut(type: str, action: str) -> None:
    bare = with_sql(
        pipeline(), "parse", PARSE.replace("CAST(get_json_object(payload, '$.status') AS INT)", "length(payload) * 1")
    )
    assert actions(planned(requests(bare, columns=retyped("status", type)), live(bare)))["requests"] == action


def test_other_rows_are_not_compared() -> None:
    compared = next(s for s in planned(REPLAY["a filter"](pipeline())).steps if isinstance(s, Validate)).comparisons
    assert all(not c.pairs and c.left_out for c in compared)


def test_a_change_below_moves_nothing_above() -> None:
    done = planned(with_sql(pipeline(), "count_hours", COUNT.replace(">= 500", ">= 400")))
    assert actions(done) == {"requests_by_hour": "replay"}
    backfill = next(step for step in done.steps if isinstance(step, Backfill))
    assert (backfill.source, backfill.rows) == ("requests", 14000)
    assert done.price.rows < done.everything.rows


def test_an_aggregates_declared_type_is_met_at_read() -> None:
    desired = with_table(
        pipeline(),
        replace(HOURLY, columns=tuple(replace(c, type="int") if c.name == "hits" else c for c in HOURLY.columns)),
    )
    done = planned(replace(desired, copies=(), sinks=()))
    assert actions(done)["requests_by_hour"] == "metadata"


PROVEN = {
    "a cast of a kept column": (
        "kb",
        "bigint",
        "CAST(get_json_object(payload, '$.bytes') AS BIGINT) div 1024",
        "`bytes` DIV 1024",
    ),
    "a function of one": ("up", "string", "upper(get_json_object(payload, '$.ip'))", "UPPER(`ip`)"),
    "of two, one of them renamed": (
        "at",
        "string",
        "concat(region, date_trunc('HOUR', ts))",
        "CONCAT(`host`, DATE_TRUNC('HOUR', `ts`))",
    ),
    "a bare text as another type": ("zone", "int", "try_cast(region AS INT)", "TRY_CAST(`host` AS INT)"),
    "a lambda": ("n", "int", "transform(array(length(region)), x -> x + 1)[0]", "LENGTH(`host`)"),
}


@pytest.mark.parametrize("name", PROVEN)
def test_a_column_proven_to_be_a_function_of_kept_ones_is_copied_forward(name: str) -> None:
    column, type, expression, over = PROVEN[name]
    done = planned(with_column(pipeline(), column, type, expression))
    assert actions(done)["requests"] == "forward"
    backfill = next(step for step in done.steps if isinstance(step, Backfill))
    assert over in backfill.sql
    assert "payload" not in backfill.sql
    assert backfill.sql.endswith("FROM `requests`")
    assert "landing" not in {step.source for step in done.steps if isinstance(step, Backfill)}
    assert done.refusals == ()


def test_a_changed_column_is_proven_from_others_and_from_itself() -> None:
    other = with_sql(pipeline(), "parse", PARSE.replace("region AS host", "concat(region, '-1') AS host"))
    assert "CONCAT(`host`, '-1')" in next(s for s in planned(other).steps if isinstance(s, Backfill)).sql
    wrapped = with_column(pipeline(), "up", "string", "upper(q.ip)")
    wrapped = with_sql(wrapped, "parse", f"SELECT *, upper(ip) AS up FROM ({PARSE}) q")
    assert actions(planned(wrapped))["requests"] == "forward"


NOT_PROVEN = {
    "the source's own column": "get_json_object(payload, '$.ua')",
    "half of it": "concat(get_json_object(payload, '$.ip'), id, payload)",
    "chance": "concat(region, rand())",
    "a part that the stored type has cut": "CAST(get_json_object(payload, '$.bytes') AS STRING) || payload",
    "a subquery": "(SELECT max(host) FROM requests_by_hour)",
}


@pytest.mark.parametrize("name", NOT_PROVEN)
def test_what_is_not_proven_is_re_read_from_its_source(name: str) -> None:
    desired = with_column(pipeline(), "x", "string", NOT_PROVEN[name].replace("max(host)", "CAST(max(hits) AS STRING)"))
    if name == "a subquery":
        table = desired.table("requests")
        assert table is not None
        desired = replace(
            desired,
            tables=(LANDING, table),
            materializations=desired.materializations[1:],
            copies=(),
            sinks=(),
        )
        desired = with_sql(
            desired,
            "parse",
            desired.materializations[0]
            .sql.replace("requests_by_hour", "landing l2")
            .replace("max(hits)", "max(l2.id)"),
        )
    assert actions(planned(desired))["requests"] == "replay"


def test_a_stored_type_that_may_have_cut_the_value_proves_nothing() -> None:
    bare = with_sql(
        pipeline(), "parse", PARSE.replace("CAST(get_json_object(payload, '$.status') AS INT)", "length(payload) * 1")
    )
    more = with_sql(with_column(bare, "twice", "bigint", "0"), "parse", "")
    more = with_sql(
        more, "parse", bare.materializations[1].sql.replace("\nFROM", ", (length(payload) * 1) * 2 AS twice\nFROM")
    )
    assert actions(planned(more, live(bare)))["requests"] == "replay"


@pytest.mark.slow
def test_feeds_that_compute_a_column_alike_prove_it_and_else_not() -> None:
    second = replace(pipeline().materializations[1], name="parse_b", sql=PARSE + " WHERE region = 'b'")
    both = replace(pipeline(), materializations=(*pipeline().materializations, second))
    region = live(both)

    def wider(other: str) -> Pipeline:
        desired = with_column(both, "up", "string", "upper(get_json_object(payload, '$.ip'))")
        return with_sql(desired, "parse_b", second.sql.replace("\nFROM", f", {other} AS up\nFROM"))

    assert actions(planned(wider("upper(get_json_object(payload, '$.ip'))"), region))["requests"] == "forward"
    assert actions(planned(wider("lower(get_json_object(payload, '$.ip'))"), region))["requests"] == "replay"


def kb(desired: Pipeline, **changes: object) -> Pipeline:
    return requests(
        with_column(desired, "kb", "bigint", "CAST(get_json_object(payload, '$.bytes') AS BIGINT) div 1024"), **changes
    )


@pytest.mark.parametrize("allowed", [{"backfill": "read"}, {"retention_days": 7, "read_time_days": 7}])
def test_a_proven_column_may_be_computed_at_read(allowed: dict[str, object]) -> None:
    was = live(requests(pipeline(), **allowed))
    done = planned(kb(pipeline(), **allowed), was)
    assert actions(done) == {"requests": "read"}
    assert done.steps == (Promote(),)
    new, old = done.release.table("requests"), release(was).table("requests")
    assert new is not None
    assert old is not None
    assert new.version == old.version
    assert done.release.feeds_into("requests") == release(was).feeds_into("requests")
    assert "CAST((`bytes`) DIV 1024 AS BIGINT) AS `kb`" in new.read
    assert ("2026-11-21" in node(done, "requests").why) == ("retention_days" in allowed)


def test_a_column_computed_at_read_stays_so_and_can_be_built_upon() -> None:
    start = requests(pipeline(), backfill="read")
    was = live(start)
    once = kb(pipeline(), backfill="read")
    region = promoted(planned(once, was), was)
    assert planned(once, region).steps == ()
    twice = with_column(once, "mb", "bigint", "(CAST(get_json_object(payload, '$.bytes') AS BIGINT) div 1024) div 1024")
    state = planned(twice, region).release.table("requests")
    assert state is not None
    assert "AS `mb`" in state.read
    assert actions(planned(twice, region)) == {"requests": "read"}


def test_what_partitions_a_table_is_never_computed_at_read() -> None:
    start = requests(pipeline(), backfill="read")
    other = with_sql(start, "parse", PARSE.replace("to_date(ts) AS day", "date_add(to_date(ts), 1) AS day"))
    assert actions(planned(other, live(start)))["requests"] == "forward"


def test_an_aggregate_laid_out_otherwise_copies_its_states() -> None:
    done = planned(with_table(pipeline(), replace(HOURLY, partition_by=("day", "hour"))))
    assert actions(done) == {"requests_by_hour": "forward"}
    backfill = next(step for step in done.steps if isinstance(step, Backfill))
    assert (backfill.stored, backfill.source) == (True, "requests_by_hour")
    assert "`visitors__hll`" in backfill.sql
    compared = next(s for s in done.steps if isinstance(s, Validate)).comparisons[0]
    assert {pair.new for pair in compared.pairs} == {column.name for column in HOURLY.columns}


def with_short_landing(desired: Pipeline, first: int) -> Live:
    """The region where landing has lost its days before the first."""
    was = live(desired)
    short = tuple(Day(f"2026-11-{day:02}", 1000, 9000) for day in range(first, 15))
    tables = tuple(stats("landing", "landing", LANDING.columns, short) if s.name == "landing" else s for s in was.stats)
    return replace(was, stats=tables)


def test_days_that_the_source_has_lost_are_carried_forward_with_declared_defaults() -> None:
    desired = with_agent(pipeline())
    table = desired.table("requests")
    assert table is not None
    defaulted = tuple(
        replace(c, default="'unknown'") if c.name in ("user_agent", "family") else c for c in table.columns
    )
    done = planned(requests(desired, columns=defaulted), with_short_landing(pipeline(), 10))
    assert actions(done)["requests"] == "hybrid"
    older, newer = [step for step in done.steps if isinstance(step, Backfill)]
    assert (older.route, older.until, older.since, older.days, older.rows) == ("forward", "2026-11-11", "", 10, 10000)
    assert (newer.route, newer.since, newer.until, newer.days, newer.rows) == ("replay", "2026-11-11", "", 4, 4000)
    assert "CAST('unknown' AS STRING) AS `user_agent`" in older.sql
    assert node(done, "requests").price.days == 14
    assert done.refusals == ()
    guessed = with_short_landing(pipeline(), 10)
    vague = tuple(replace(s, days=tuple(replace(day, exact=False) for day in s.days)) for s in guessed.stats)
    refused = planned(requests(desired, columns=defaulted), replace(guessed, stats=vague))
    assert (actions(refused)["requests"], {p.code for p in refused.refusals}) == ("replay", {"C101"})
    undeclared = planned(desired, with_short_landing(pipeline(), 10))
    assert (actions(undeclared)["requests"], {p.code for p in undeclared.refusals}) == ("replay", {"C101"})


def test_a_forward_query_reads_the_live_table_and_goes_on_from_its_positions() -> None:
    desired = with_column(pipeline(), "kb", "bigint", "CAST(get_json_object(payload, '$.bytes') AS BIGINT) div 1024")
    desired = requests(desired, forward_query="*, bytes div 1024 AS kb")
    done = planned(and_another_count(desired))
    assert actions(done) == {"requests": "forward", "requests_by_hour": "replay"}
    backfill = next(step for step in done.steps if isinstance(step, Backfill))
    assert (backfill.materialization, backfill.source, backfill.route, backfill.time) == (
        "",
        "requests",
        "forward",
        "ts",
    )
    assert "CAST(`requests`.`bytes` DIV 1024 AS BIGINT) AS `kb` FROM `requests`" in backfill.sql
    assert [s.start for s in done.steps if isinstance(s, CatchUp)] == ["vector", "log"]
    assert done.refusals == ()


def test_another_layout_is_copied_forward_column_by_column() -> None:
    done = planned(requests(pipeline(), partition_by=("day", "host")))
    assert actions(done)["requests"] == "forward"
    state = done.release.table("requests")
    assert state is not None
    assert state.version.partition_by == ("day", "host")
    compared = next(s for s in done.steps if isinstance(s, Validate)).comparisons[0]
    assert len(compared.pairs) == len(REQUESTS.columns)


def test_a_managed_landing_table_takes_a_new_column_and_nothing_moves() -> None:
    wider = replace(LANDING, columns=(*LANDING.columns, Column(name="ext_id", type="string")))
    done = planned(with_table(pipeline(), wider))
    assert actions(done) == {"landing": "metadata"}
    assert done.steps == (AddColumns("landing", (Column(name="ext_id", type="string"),)), Promote())


def test_what_is_removed_is_dropped_and_nothing_else_moves() -> None:
    small = replace(
        pipeline(),
        tables=(LANDING, REQUESTS),
        materializations=pipeline().materializations[1:],
        copies=(),
        sinks=(),
        endpoints=(),
    )
    done = planned(small)
    assert actions(done) == {"requests_by_hour": "drop", "top_errors": "drop", "daily": "drop", "export": "drop"}
    assert done.steps == (Promote(),)
    assert [state.table.name for state in done.release.tables] == ["landing", "requests"]


def test_a_plan_survives_json_and_is_the_same_twice() -> None:
    done = planned(with_agent(pipeline()))
    assert decode(Plan, loads(dumps(done))) == done
    assert planned(with_agent(pipeline())).digest() == done.digest()


def test_new_rows_do_not_make_a_plan_stale_and_a_new_schema_does() -> None:
    was = live()
    tables = tuple(replace(s, version=s.version + 500, rows=s.rows + 9) for s in was.stats)
    assert planned(pipeline(), replace(was, stats=tables)).content == planned(pipeline(), was).content
    wider = tuple(
        stats("landing", "landing", (*LANDING.columns, Column(name="x", type="int"))) if s.name == "landing" else s
        for s in was.stats
    )
    assert planned(pipeline(), replace(was, stats=wider)).content != planned(pipeline(), was).content


def test_a_join_is_replayed_with_a_warning_and_without_comparing_what_it_gives() -> None:
    rates = replace(
        LANDING, name="rates", columns=(Column(name="host", type="string"), Column(name="rate", type="double")), time=""
    )
    joined = "SELECT r.event_id, r.ts, r.day, p.rate FROM requests r LEFT JOIN rates p ON p.host = r.host"
    priced = replace(REQUESTS, name="priced", columns=(*REQUESTS.columns[:3], Column(name="rate", type="double")))
    parse = pipeline().materializations[1]
    desired = replace(
        with_table(with_table(pipeline(), rates), priced),
        materializations=(*pipeline().materializations, replace(parse, name="price", into="priced", sql=joined)),
    )
    was = empty(stats("landing", "landing", LANDING.columns), stats("rates", "rates", rates.columns, ()))
    region = promoted(planned(desired, was), was)
    assert release(region).feeds_into("priced")[0].joins == ("rates",)
    wider = with_table(desired, replace(priced, columns=(*priced.columns, Column(name="ip", type="string"))))
    done = planned(with_sql(wider, "price", joined.replace("p.rate", "p.rate, r.ip")), region)
    assert actions(done)["priced"] == "replay"
    compared = next(c for s in done.steps if isinstance(s, Validate) for c in s.comparisons if c.table == "priced")
    assert [name for name, _ in compared.left_out] == ["rate", "ip"]
    assert [p.code for p in done.problems] == ["C113"]


@pytest.mark.slow
def test_a_region_is_planned_in_a_fraction_of_a_second() -> None:
    was, desired = live(), with_agent(pipeline())
    plan(desired, was, REGION, "test")
    start = time.process_time()
    plan(desired, was, REGION, "test")
    assert time.process_time() - start < 1.0
