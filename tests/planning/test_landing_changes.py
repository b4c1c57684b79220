"""A managed landing table whose declaration changes: no row moves, or the plan refuses with an alternative."""

from dataclasses import replace
from typing import Any

import pytest

from console.errors import Problem, Problems
from console.model.codec import dumps
from console.model.live import Intake, Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.schema import Column, Table
from console.model.step import AddColumns, Promote
from console.planning import baseline
from tests.planning.world import (
    LANDING,
    PARSE,
    actions,
    columns,
    empty,
    live,
    node,
    pipeline,
    planned,
    promoted,
    stats,
    with_sql,
    with_table,
)

RENAMED = columns(id="string", zone="string", ts="timestamp", payload="string")
RENAME = "* EXCEPT (region), region AS zone"
N = (*LANDING.columns, Column(name="n", type="int"))


def landing(**changes: Any) -> Table:
    return replace(LANDING, **changes)


def wanted(**changes: Any) -> Pipeline:
    return with_table(pipeline(), landing(**changes))


def renamed(**changes: Any) -> Pipeline:
    after = with_table(pipeline(), landing(columns=RENAMED, forward_query=RENAME, **changes))
    return with_sql(after, "parse", PARSE.replace("region AS host", "zone AS host"))


def state(done: Plan) -> Any:
    table = done.release.table("landing")
    assert table is not None
    return table


def refused(desired: Pipeline, region: Live | None = None) -> Problem:
    try:
        problems = planned(desired, region).refusals
    except Problems as error:
        problems = error.problems
    assert len(problems) == 1, problems
    return problems[0]


def test_a_renamed_column_moves_no_row_of_its_table_nor_of_those_below() -> None:
    done = planned(renamed())
    assert actions(done) == {"landing": "metadata"}
    assert done.steps == (Promote(),)
    assert node(done, "landing").why == "region becomes zone: no row moves"
    assert done.rollback.lossless
    assert Intake("zone", ("region",)) in state(done).intake
    assert "`region` AS `zone`" in state(done).read


@pytest.mark.slow
def test_a_table_below_may_go_on_reading_the_old_name_until_its_query_is_changed() -> None:
    assert any(p.code == "C104" for p in planned_problems(wanted(columns=RENAMED, forward_query=RENAME)))
    done = planned(renamed())
    (feed,) = (feed for feed in done.release.feeds if feed.source == "landing")
    assert "`landing`.`region`" in feed.sql
    assert state(done).read.endswith("`payload`, `region` FROM stored")


def planned_problems(desired: Pipeline) -> tuple[Problem, ...]:
    with pytest.raises(Problems) as error:
        planned(desired)
    return error.value.problems


@pytest.mark.slow
def test_a_renamed_column_is_settled_and_keeps_its_reading_through_later_plans() -> None:
    region = promoted(planned(renamed()), live())
    again = planned(
        with_sql(with_table(pipeline(), landing(columns=RENAMED)), "parse", PARSE.replace("region AS", "zone AS")),
        region,
    )
    assert actions(again) == {}
    more = (*RENAMED, Column(name="ext", type="string"))
    later = planned(
        with_sql(with_table(pipeline(), landing(columns=more)), "parse", PARSE.replace("region AS", "zone AS")), region
    )
    assert actions(later) == {"landing": "metadata"}
    assert "`region` AS `zone`" in state(later).read
    assert state(later).read.endswith(", `region` FROM stored")  # the feed of requests still reads it


@pytest.mark.slow
def test_a_name_that_became_free_gets_a_stored_column_of_its_own() -> None:
    region = promoted(planned(renamed()), live())
    more = (*RENAMED, Column(name="region", type="int"))
    desired = with_sql(with_table(pipeline(), landing(columns=more)), "parse", PARSE.replace("region AS", "zone AS"))
    done = planned(desired, region)
    assert Intake("region", ("region@2",)) in state(done).intake
    assert AddColumns("landing", (Column(name="region@2", type="int"),)) in done.steps
    # the live feed of requests reads another column under that name
    assert actions(done)["requests"] == "replay"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "stored", "read"),
    [
        ("int", "bigint", "n@bigint", "COALESCE(`n@bigint`, CAST(`n` AS BIGINT)) AS `n`"),
        ("float", "double", "n@double", "COALESCE(`n@double`, CAST(`n` AS DOUBLE)) AS `n`"),
        ("decimal(10,2)", "decimal(20,4)", "n@decimal-20-4", "CAST(`n` AS DECIMAL(20, 4))) AS `n`"),
        ("date", "timestamp", "n@timestamp", "COALESCE(`n@timestamp`, CAST(`n` AS TIMESTAMP)) AS `n`"),
        ("int", "string", "n@string", "COALESCE(`n@string`, CAST(`n` AS STRING)) AS `n`"),
    ],
)
def test_a_wider_type_is_stored_beside_the_values_that_are_there(old: str, new: str, stored: str, read: str) -> None:
    was = (*LANDING.columns, Column(name="n", type=old))
    region = promoted(planned(wanted(columns=was)), live())
    done = planned(wanted(columns=(*LANDING.columns, Column(name="n", type=new))), region)
    assert actions(done) == {"landing": "metadata"}
    assert done.steps == (AddColumns("landing", (Column(name=stored, type=new),)), Promote())
    assert state(done).intake[-1] == Intake("n", ("n", stored))
    assert read in state(done).read
    assert done.rollback.columns == ("landing.n",)
    assert done.rollback.why == f"values of landing.n that are not of type {old} are NULL there"


@pytest.mark.slow
def test_a_column_widens_again_and_is_renamed_with_all_that_it_stores() -> None:
    region = promoted(planned(wanted(columns=N)), live())
    for type in ("bigint", "decimal(30,2)"):
        region = promoted(planned(wanted(columns=(*LANDING.columns, Column(name="n", type=type))), region), region)
    more = (*LANDING.columns, Column(name="m", type="string"))
    done = planned(wanted(columns=more, forward_query="* EXCEPT (n), CAST(n AS string) AS m"), region)
    assert state(done).intake[-1] == Intake("m", ("n", "n@bigint", "n@decimal-30-2", "n@string"))


@pytest.mark.slow
def test_an_older_agent_refuses_a_release_whose_lines_it_would_store_elsewhere() -> None:
    assert '"intake!0.2.0"' in dumps(planned(renamed()).release)
    assert "intake" not in dumps(planned(wanted(columns=N)).release)


def test_a_new_column_with_a_default_may_be_without_null_and_older_rows_read_the_default() -> None:
    more = (*LANDING.columns, Column(name="tenant", type="string", nullable=False, default="''"))
    done = planned(wanted(columns=more))
    assert actions(done) == {"landing": "metadata"}
    assert "COALESCE(`tenant`, CAST('' AS STRING)) AS `tenant`" in state(done).read


@pytest.mark.slow
def test_a_type_that_a_forward_query_converts_is_computed_at_read_and_moves_no_row() -> None:
    was = (*LANDING.columns, Column(name="code", type="string"))
    region = promoted(planned(wanted(columns=was)), live())
    now = (*LANDING.columns, Column(name="code", type="int"))
    done = planned(
        wanted(columns=now, forward_query="* EXCEPT (code), coalesce(try_cast(code AS INT), -1) AS code"), region
    )
    assert (actions(done), done.refusals) == ({"landing": "metadata"}, ())
    assert done.steps == (AddColumns("landing", (Column(name="code@int", type="int"),)), Promote())
    assert state(done).intake[-1] == Intake("code", ("code", "code@int"))
    assert "COALESCE(`code@int`, CAST(COALESCE(TRY_CAST((`code`) AS INT), -1) AS INT)) AS `code`" in state(done).read
    assert done.rollback.why == "values of landing.code that are not of type string are NULL there"
    settled = planned(wanted(columns=now), promoted(done, region))
    assert actions(settled) == {}


@pytest.mark.slow
def test_a_new_column_is_computed_from_an_older_one_where_lines_do_not_give_it() -> None:
    more = (*LANDING.columns, Column(name="agent", type="string"))
    done = planned(wanted(columns=more, forward_query="*, get_json_object(payload, '$.agent') AS agent"))
    assert (actions(done), done.refusals) == ({"landing": "metadata"}, ())
    assert "COALESCE(`agent`, CAST(GET_JSON_OBJECT((`payload`), '$.agent') AS STRING)) AS `agent`" in state(done).read
    assert node(done, "landing").why == "agent is computed at read where lines do not give it: no row moves"


@pytest.mark.slow
@pytest.mark.parametrize(
    "expression",
    [
        "CAST(payload AS INT)", "length(payload) / 0", "element_at(split(payload, ','), 9)", "parse_url(payload, 'HOST')",
        "try_cast(ts AS INT)", "CASE WHEN payload = 1 THEN 1 ELSE 0 END", "CASE WHEN payload = 'a' THEN 1 END + 2147483647", "99999999999",
    ],
)  # fmt: skip
def test_an_expression_that_may_fail_for_a_row_is_never_read_through(expression: str) -> None:
    more = (*LANDING.columns, Column(name="x", type="int"))
    done = planned(wanted(columns=more, forward_query=f"*, {expression} AS x"))
    assert (actions(done)["landing"], done.refusals) == ("forward", ())
    assert state(done).read == "SELECT `id`, `region`, `ts`, `payload`, `x` FROM stored"


@pytest.mark.slow
def test_an_expression_that_gives_another_value_each_time_is_refused() -> None:
    more = (*LANDING.columns, Column(name="x", type="double"))
    problem = refused(wanted(columns=more, forward_query="*, rand() AS x"))
    assert (problem.code, "compute x in the queries that read landing" in problem.hint) == ("C130", True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "expression"),
    [("date", "timestamp", "try_cast(try_cast(x AS string) AS timestamp)"), ("string", "timestamp", "try_cast(x AS timestamp)"),
     ("bigint", "int", "try_cast(x AS int)"), ("string", "decimal(10,2)", "try_cast(x AS decimal(10,2))")],
)  # fmt: skip
def test_where_a_line_would_fit_both_shapes_another_name_is_asked_for(old: str, new: str, expression: str) -> None:
    region = promoted(planned(wanted(columns=(*LANDING.columns, Column(name="x", type=old)))), live())
    now = (*LANDING.columns, Column(name="x", type=new))
    problem = refused(wanted(columns=now, forward_query=f"* EXCEPT (x), {expression} AS x"), region)
    assert (problem.code, problem.hint.endswith("or give it as another column")) == ("C130", True)
    both = (*LANDING.columns, Column(name="x", type=old), Column(name="y", type=new))
    assert planned(wanted(columns=both, forward_query=f"*, {expression} AS y"), region).refusals == ()


@pytest.mark.slow
def test_the_day_until_which_older_names_are_taken_goes_with_the_release_and_is_moved_without_one() -> None:
    done = planned(renamed(accepts_until="2026-12-01"))
    assert state(done).older == (Intake("region", ("region",)),)
    region = promoted(done, live())
    later = planned(renamed(accepts_until="2026-12-24"), region)
    assert (actions(later), later.steps, later.refusals) == ({}, (), ())
    (messages,) = (problem for problem in later.problems if problem.code == "C134")
    assert (messages.severity, messages.hint) == ("note", "console accept-until")
    assert (
        messages.message == "landing takes lines of older shapes until 2026-12-01, and its file says until 2026-12-24"
    )
    assert region.release is not None
    moved = replace(region, release=region.release.accepting_until({"landing": "2026-12-24"}))
    assert [p.code for p in planned(renamed(accepts_until="2026-12-24"), moved).problems if p.code == "C134"] == []


@pytest.mark.slow
def test_a_release_with_another_change_takes_the_day_along() -> None:
    region = promoted(planned(renamed(accepts_until="2026-12-01")), live())
    other = replace(renamed(accepts_until="2026-12-24"), endpoints=())
    assert state(planned(other, region)).table.accepts_until == "2026-12-24"


@pytest.mark.slow
def test_older_names_are_kept_for_a_day_that_is_named_later_and_end_with_a_change_that_names_none() -> None:
    region = promoted(planned(renamed()), live())
    assert region.release is not None
    landing_state = region.release.table("landing")
    assert landing_state is not None
    assert landing_state.older == (Intake("region", ("region",)),)
    more = planned(renamed(description="other"), region)
    assert state(more).older == ()


@pytest.mark.slow
def test_a_table_that_is_gone_in_a_region_is_made_anew_as_it_is_declared() -> None:
    region = promoted(planned(renamed()), live())
    without = replace(region, stats=tuple(each for each in region.stats if each.name != "landing"))
    more = landing(columns=(*RENAMED, Column(name="ext", type="string")))
    done = planned(with_sql(with_table(pipeline(), more), "parse", PARSE.replace("region AS", "zone AS")), without)
    assert [column.name for column in state(done).version.columns] == ["id", "zone", "ts", "payload", "ext"]
    assert state(done).read == "SELECT `id`, `zone`, `ts`, `payload`, `ext`, NULL AS `region` FROM stored"
    assert state(done).intake == ()


def moved_to(name: str, **changes: Any) -> Pipeline:
    """The landing table under another name, and the query that reads it."""
    others = tuple(table for table in pipeline().tables if table.name != "landing")
    after = replace(pipeline(), tables=tuple(sorted((*others, landing(name=name, **changes)), key=lambda t: t.name)))
    return with_sql(after, "parse", PARSE.replace("FROM landing", f"FROM {name}"))


@pytest.mark.slow
def test_a_landing_table_goes_on_under_another_name_with_its_rows_and_its_feeds() -> None:
    done = planned(moved_to("events", was="landing"))
    assert (actions(done), done.steps, done.refusals) == ({"events": "metadata"}, (Promote(),), ())
    assert node(done, "events").why == "landing becomes events: no row moves"
    events = done.release.table("events")
    assert events is not None
    assert (events.version.path, events.table.was) == ("landing", "")
    (feed,) = (feed for feed in done.release.feeds if feed.target == "requests")
    assert feed.source == "events"
    assert "FROM `events` AS `landing`" in feed.sql
    region = promoted(done, live())
    assert actions(planned(moved_to("events", was="landing"), region)) == {}
    assert actions(planned(moved_to("events"), region)) == {}
    again = planned(moved_to("rows", was="events"), region)
    assert actions(again) == {"rows": "metadata"}
    assert again.release.feeds[0].sql.count("FROM `rows` AS `landing`") == 1


@pytest.mark.slow
def test_with_its_name_its_columns_may_change_too() -> None:
    after = moved_to("events", was="landing", columns=RENAMED, forward_query=RENAME)
    done = planned(
        with_sql(after, "parse", PARSE.replace("FROM landing", "FROM events").replace("region AS", "zone AS"))
    )
    assert (actions(done), done.refusals) == ({"events": "metadata"}, ())


@pytest.mark.slow
def test_a_table_of_that_name_which_is_there_already_is_no_renamed_one() -> None:
    region = live()
    there = replace(region, stats=(*region.stats, stats("events", "events", LANDING.columns)))
    assert actions(planned(moved_to("events", was="landing"), there))["landing"] == "drop"


def test_a_plan_of_a_renamed_table_is_bound_to_the_region_as_it_is() -> None:
    desired = moved_to("events", was="landing")
    assert planned(desired).content == baseline(desired, live()).digest


REFUSED = {
    "partitioned by a column that no row has": (
        wanted(columns=(*LANDING.columns, Column(name="day", type="date")), partition_by=("day",)), "C131", "drop `partition_by`",
    ),
    "a computed column": (
        wanted(forward_query="* EXCEPT (payload), upper(payload) AS payload"), "C130", "compute payload in the queries",
    ),
    "one column under two names": (
        wanted(columns=(*LANDING.columns, Column(name="zone", type="string")), forward_query="*, region AS zone"),
        "C130", "plan and promote the rename by itself first",
    ),
    "no longer NULL": (
        wanted(columns=tuple(replace(c, nullable=c.name != "id") for c in LANDING.columns)), "C132", "`nullable: true` for id",
    ),
    "a narrower type": (wanted(columns=columns(id="string", region="int", ts="timestamp", payload="string")), "C112", ""),
    "nothing to say": (wanted(forward_query="id, region, ts, payload"), "C108", "drop `forward_query`"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_need_other_rows_is_refused_and_told_what_would_do(name: str) -> None:
    desired, code, hint = REFUSED[name]
    problem = refused(desired)
    assert (problem.code, problem.node) == (code, "landing")
    assert hint in problem.hint
    assert problem.where == LANDING.where


@pytest.mark.slow
def test_the_time_column_keeps_its_type() -> None:
    day = landing(columns=columns(id="string", ts="date", payload="string", region="string"))
    start = empty(stats("landing", "landing", day.columns))
    region = promoted(planned(with_table(pipeline(), day), start), start)
    wide = replace(day, columns=tuple(replace(c, type="timestamp" if c.name == "ts" else c.type) for c in day.columns))
    assert "is the time column" in refused(with_table(pipeline(), wide), region).message


@pytest.mark.slow
def test_the_hint_of_each_refusal_leads_to_a_plan() -> None:
    assert planned(wanted()).refusals == ()  # partition_by or forward_query left out, the type left as it is
    both = (*LANDING.columns, Column(name="payload_2", type="string"))
    assert planned(wanted(columns=both)).refusals == ()


def test_a_forward_query_on_a_table_of_others_is_refused() -> None:
    foreign = promoted(planned(wanted(managed=False)), live())
    assert "its producers write this table" in refused(wanted(managed=False, forward_query="*"), foreign).message


def test_a_declared_partitioning_that_the_real_table_does_not_have_is_reported() -> None:
    region = promoted(planned(wanted(managed=False)), live())
    done = planned(wanted(managed=False, partition_by=("region",)), region)
    (messages,) = (problem for problem in done.problems if problem.code == "C131")
    assert (messages.severity, "is not partitioned in eu" in messages.message) == ("warn", True)


@pytest.mark.slow
def test_a_forward_query_that_made_the_live_release_is_only_left_over() -> None:
    region = promoted(planned(renamed()), live())
    done = planned(renamed(), region)
    assert (actions(done), [p.code for p in done.problems], done.refusals) == ({}, ["C109"], ())
