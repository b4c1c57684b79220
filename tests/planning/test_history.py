"""`history`: the operator's choice for the existing rows of a table that changes."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace

import duckdb
import pytest

from console.cli.plan.text import plan_text
from console.errors import Problem
from console.model.live import Day, Live
from console.model.pipeline import Pipeline
from console.model.plan import HistoryOption, Plan, Price
from console.model.schema import Column, Table, history_word
from console.model.step import Backfill, CatchUp, Validate
from console.planning import plan
from console.remedy import SetKey
from tests.planning.world import (
    CACHE,
    COUNT,
    HOURLY,
    LANDING,
    PARSE,
    REGION,
    REQUESTS,
    actions,
    live,
    node,
    pipeline,
    planned,
    promoted,
    stats,
    with_column,
    with_sql,
    with_table,
)

AGENT = with_column(pipeline(), "agent", "string", "get_json_object(payload, '$.agent')")


def chosen(desired: Pipeline, word: str, region: Live | None = None, table: str = "requests") -> Plan:
    return plan(desired, region or live(), REGION, "test", CACHE, history={table: word})


def in_file(desired: Pipeline, word: str, name: str = "requests") -> Pipeline:
    table = desired.table(name)
    assert table is not None
    return with_table(desired, replace(table, history=word))


def problems_of(done: Plan, *codes: str) -> list[Problem]:
    return [problem for problem in done.problems if problem.code in codes]


def landing_from(day: int) -> Live:
    was = live()
    days = tuple(Day(f"2026-11-{at:02}", 1000, 9000) for at in range(day, 15))
    stored = stats("landing", "landing", LANDING.columns, days)
    return replace(was, stats=tuple(stored if s.name == "landing" else s for s in was.stats))


def backfills(done: Plan, table: str = "requests") -> list[Backfill]:
    return [step for step in done.steps if isinstance(step, Backfill) and step.target == table]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", None),
        ("all", None),
        (" carry ", "carry"),
        ("since  2026-11-01", "since 2026-11-01"),
        ("from  now", "from now"),
    ],
)
def test_a_choice_has_one_spelling(text: str, word: str | None) -> None:
    assert history_word(text) is None if word is None else str(history_word(text)) == word


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("since", "expected"),
        ("since 2026-13-01", "not a day"),
        ("since 20261101x", "not a day"),
        ("none", "expected"),
    ],
)
def test_what_is_no_choice_says_what_one_is(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        history_word(text)


@pytest.mark.slow
def test_without_a_choice_every_row_is_computed() -> None:
    assert actions(planned(AGENT))["requests"] == "replay"
    assert actions(chosen(in_file(AGENT, "carry"), "all"))["requests"] == "replay"


def test_carry_copies_the_rows_that_are_there_and_goes_on_with_the_new_query() -> None:
    done = chosen(AGENT, "carry")
    assert (actions(done)["requests"], done.refusals) == ("forward", ())
    (copied,) = backfills(done)
    assert (copied.route, copied.materialization, copied.until, copied.since) == ("forward", "", "", "")
    assert [s.start for s in done.steps if isinstance(s, CatchUp) and s.target == "requests"] == ["vector"]
    about = node(done, "requests")
    assert (about.history, about.older_rows) == ("carry", "older rows: agent is NULL")
    assert [p.severity for p in problems_of(done, "C118")] == ["warn"]
    assert done.digest() != planned(AGENT).digest()


@pytest.mark.slow
def test_a_copied_row_keeps_its_values_and_has_null_or_the_default_in_new_columns() -> None:
    table = AGENT.table("requests")
    assert table is not None
    wider = replace(table, columns=(*table.columns, Column(name="n", type="int", default="7")))
    sql = with_sql(
        with_table(AGENT, wider),
        "parse",
        next(m.sql for m in AGENT.materializations if m.name == "parse")
        .replace("region AS host", "upper(region) AS host")
        .replace("\nFROM", ", length(payload) AS n\nFROM"),
    )
    (copied,) = backfills(chosen(sql, "carry"))
    query = copied.sql.replace("`", '"').replace("AS STRING", "AS VARCHAR")
    row = duckdb.sql(
        "WITH requests AS (SELECT 'e1' AS event_id, now() AS ts, current_date AS day, '::1' AS ip, 200 AS status,"
        f" 1.5 AS ms, 9 AS bytes, 'eu' AS host) SELECT event_id, host, agent, n FROM ({query})"
    ).fetchall()
    assert row == [("e1", "eu", None, 7)]


def test_the_gate_compares_what_carry_changes_nothing_of_and_says_why_it_leaves_out_the_rest() -> None:
    done = chosen(AGENT, "carry")
    (validate,) = [step for step in done.steps if isinstance(step, Validate)]
    (comparison,) = [each for each in validate.comparisons if each.table == "requests"]
    assert {pair.new for pair in comparison.pairs} == {column.name for column in REQUESTS.columns}
    assert comparison.left_out == (("agent", "agent is new"),)


@pytest.mark.slow
def test_rows_that_a_new_filter_would_drop_stay_and_the_plan_says_so() -> None:
    done = chosen(with_sql(pipeline(), "parse", f"{PARSE} WHERE region <> 'lab'"), "carry")
    assert (actions(done)["requests"], done.refusals) == ("forward", ())
    assert "rows that the new query would leave out stay" in node(done, "requests").older_rows
    assert not problems_of(done, "C121")


def test_since_computes_from_a_day_on_and_carries_what_is_older() -> None:
    done = chosen(AGENT, "since 2026-11-08")
    assert (actions(done)["requests"], done.refusals) == ("hybrid", ())
    older, newer = backfills(done)
    assert (older.route, older.until, older.days, older.rows) == ("forward", "2026-11-08", 7, 7000)
    assert (newer.route, newer.since, newer.days, newer.rows) == ("replay", "2026-11-08", 7, 7000)
    assert "agent is NULL" in node(done, "requests").older_rows
    assert len(problems_of(done, "C118")) == 1


def test_a_boundary_that_the_source_no_longer_holds_names_the_first_that_it_does() -> None:
    refused = chosen(AGENT, "since 2026-11-03", landing_from(6))
    (problem,) = problems_of(refused, "C140")
    assert problem.hint == "`history: since 2026-11-07`"
    assert not chosen(AGENT, problem.hint.strip("`").removeprefix("history: "), landing_from(6)).refusals


@pytest.mark.slow
def test_where_history_is_lost_the_hint_offers_carry_and_carry_leads_to_a_plan() -> None:
    (lost,) = problems_of(planned(AGENT, landing_from(10)), "C101")
    assert "`history: carry`" in lost.hint
    assert not chosen(AGENT, "carry", landing_from(10)).refusals
    strict = with_table(
        AGENT,
        replace(
            AGENT.table("requests") or REQUESTS,
            columns=(*REQUESTS.columns, Column(name="agent", type="string", nullable=False)),
        ),
    )
    (never,) = problems_of(planned(strict, landing_from(10)), "C101")
    assert "carry" not in never.hint
    (problem,) = problems_of(chosen(strict, "carry", landing_from(10)), "C140")
    assert problem.hint == "`default: …` for agent"


@pytest.mark.parametrize("word", ["carry", "since 2026-11-08"])
def test_a_choice_that_changes_nothing_warns_and_does_nothing(word: str) -> None:
    same = chosen(pipeline(), word)
    assert (actions(same), [p.severity for p in problems_of(same, "C141")]) == ({}, ["warn"])
    fresh = planned(in_file(pipeline(), word), replace(live(), release=None))
    assert [p.message.rpartition(": ")[2] for p in problems_of(fresh, "C141")] == ["the table is new"]
    landing = chosen(pipeline(), word, table="landing")
    assert (actions(landing), len(problems_of(landing, "C141"))) == ({}, 1)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["carry", "from now", "since 2026-11-08"])
def test_a_choice_for_a_table_that_does_not_change_leaves_its_read_as_it_is(word: str) -> None:
    region = live()
    done = planned(with_measure(bytes="sum(bytes)"), region, {"requests": word})
    assert region.release is not None
    assert {p.code for p in done.problems if p.node == "requests"} == {"C141"}
    assert done.release.table("requests") == region.release.table("requests")


@pytest.mark.parametrize("word", ["carry", "from now"])
def test_where_its_source_has_lost_days_a_warning_offers_the_first_that_it_still_has(word: str) -> None:
    (whole,) = problems_of(chosen(AGENT, word), "C118")
    assert [str(remedy) for remedy in whole.remedies] == ["`history: all` computes them by the new query"]
    lost = landing_from(10)
    (warned,) = problems_of(chosen(AGENT, word, lost), "C118")
    (since,) = warned.remedies
    assert isinstance(since, SetKey)
    assert (since.value, warned.hint) == ("since 2026-11-11", str(since))
    assert chosen(AGENT, since.value, lost).refusals == ()
    assert [p.remedies for p in problems_of(chosen(AGENT, since.value, lost), "C118")] == [()]


def test_a_day_before_the_first_row_recomputes_everything_and_warns() -> None:
    done = chosen(AGENT, "since 2026-11-01")
    assert (actions(done)["requests"], len(problems_of(done, "C141"))) == ("replay", 1)


def after(desired: Pipeline, choices: Mapping[str, str]) -> Live:
    start = live()
    return promoted(plan(desired, start, REGION, "test", CACHE, history=choices), start)


@pytest.mark.slow
def test_left_over_after_the_promotion_it_is_a_warning_and_never_a_change() -> None:
    written = in_file(AGENT, "carry")
    done = planned(written, after(written, {}))
    assert (actions(done), [p.severity for p in problems_of(done, "C109")]) == ({}, ["warn"])
    assert actions(planned(AGENT, after(written, {}))) == {}
    assert actions(planned(AGENT, after(AGENT, {"requests": "carry"}))) == {}
    again = planned(with_column(written, "lang", "string", "get_json_object(payload, '$.lang')"), after(written, {}))
    assert (actions(again)["requests"], again.refusals) == ("forward", ())
    assert [p.severity for p in problems_of(again, "C109")] == ["warn"]


@pytest.mark.slow
def test_what_was_carried_proves_nothing_and_is_not_compared_when_it_is_computed() -> None:
    was = after(AGENT, {"requests": "carry"})
    release = was.release
    assert release is not None
    carried = {state.table.name: state.carried for state in release.tables}
    assert carried == {"landing": (), "requests": ("agent",), "requests_by_hour": ()}
    upper = with_column(AGENT, "family", "string", "upper(get_json_object(payload, '$.agent'))")
    done = planned(upper, was)
    assert actions(done)["requests"] == "replay"
    (validate,) = [step for step in done.steps if isinstance(step, Validate)]
    (comparison,) = [each for each in validate.comparisons if each.table == "requests"]
    assert dict(comparison.left_out)["agent"] == "older rows of it were carried, and are computed now"


@pytest.mark.slow
def test_what_was_computed_from_carried_rows_is_computed_again_with_them() -> None:
    filtered = with_sql(pipeline(), "parse", f"{PARSE} WHERE region <> 'lab'")
    was = after(filtered, {"requests": "carry"})
    release = was.release
    assert release is not None
    assert all(state.carried for state in release.tables if state.table.kind != "landing")
    wider = with_column(filtered, "agent", "string", "get_json_object(payload, '$.agent')")
    done = planned(wider, was)
    assert actions(done) == {"requests": "replay", "requests_by_hour": "replay"}
    assert len(problems_of(done, "C118")) == 2
    double = planned(
        with_column(filtered, "double", "bigint", "CAST(get_json_object(payload, '$.bytes') AS BIGINT) * 2"), was
    )
    assert (
        "double is new and computed from landing.payload, and older rows of requests were carried"
        in node(double, "requests").why
    )


def with_measure(**more: str) -> Pipeline:
    name, expression = next(iter(more.items()))
    table = replace(HOURLY, columns=(*HOURLY.columns, Column(name=name, type="bigint")))
    return with_sql(
        with_table(pipeline(), table), "count_hours", COUNT.replace("\nFROM", f", {expression} AS {name}\nFROM")
    )


@pytest.mark.slow
def test_an_aggregate_carries_its_partial_states_where_they_merge() -> None:
    done = chosen(with_measure(bytes="sum(bytes)"), "carry", table="requests_by_hour")
    assert (actions(done)["requests_by_hour"], done.refusals) == ("forward", ())
    (copied,) = backfills(done, "requests_by_hour")
    assert copied.stored
    assert "CAST(NULL AS BIGINT) AS `bytes`" in copied.sql
    filtered = with_sql(pipeline(), "count_hours", COUNT.replace("GROUP", "WHERE status < 500 GROUP"))
    done = chosen(filtered, "carry", table="requests_by_hour")
    assert (actions(done)["requests_by_hour"], done.refusals) == ("forward", ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "word", "hint"),
    [
        (
            "date_trunc('HOUR', ts)",
            "date_trunc('MINUTE', ts)",
            "carry",
            "drop `history`: all rows are computed from the source",
        ),
        (
            "count(*) AS hits",
            "cast(avg(bytes) AS BIGINT) AS hits",
            "carry",
            "give the new hits another name: under that one older rows show NULL; or drop `history`",
        ),
        ("count(*) AS hits", "count(ip) AS hits", "since 2026-11-08", "`history: carry` copies all rows so far"),
    ],
)
def test_an_aggregate_that_cannot_be_carried_is_refused_with_a_remedy(old: str, new: str, word: str, hint: str) -> None:
    done = chosen(with_sql(pipeline(), "count_hours", COUNT.replace(old, new)), word, table="requests_by_hour")
    assert [p.hint for p in problems_of(done, "C140")] == [hint]
    assert done.refusals


@pytest.mark.slow
def test_below_a_rebuilt_table_there_is_no_position_to_go_on_from() -> None:
    done = chosen(with_sql(pipeline(), "parse", f"{PARSE} WHERE region <> 'lab'"), "carry", table="requests_by_hour")
    (problem,) = problems_of(done, "C140")
    assert problem.hint.startswith("drop `history`")


@pytest.mark.slow
@pytest.mark.parametrize("word", ["carry", "since 2026-11-08"])
def test_a_filter_that_could_be_applied_to_the_tables_own_rows_leaves_them_by_the_operators_word(word: str) -> None:
    narrower = with_sql(pipeline(), "parse", f"{PARSE} WHERE region <> 'lab'")
    assert (node(planned(narrower), "requests").action, node(planned(narrower), "requests").older_rows) == (
        "forward",
        "",
    )
    done = chosen(narrower, word)
    assert (done.refusals, problems_of(done, "C141")) == ((), [])
    assert "rows that the new query would leave out stay" in node(done, "requests").older_rows


def options(done: Plan, table: str = "requests") -> dict[str, HistoryOption]:
    return {option.history: option for option in node(done, table).options}


def test_every_choice_is_priced_beside_the_others_and_the_chosen_one_is_marked() -> None:
    by_word = options(planned(AGENT))
    assert list(by_word) == ["all", "since 2026-11-08", "carry", "from now"]
    assert [option.chosen for option in by_word.values()] == [True, False, False, False]
    assert not any(option.impossible for option in by_word.values())
    assert [option.price.rows for option in by_word.values()] == [14_000, 14_000, 14_000, 0]
    assert by_word["carry"].older_rows == "older rows: agent is NULL"
    taken = options(chosen(AGENT, "since 2026-11-10"))
    assert [word for word, option in taken.items() if option.chosen] == ["since 2026-11-10"]
    assert taken["since 2026-11-10"].price == node(chosen(AGENT, "since 2026-11-10"), "requests").price


@pytest.mark.slow
def test_a_choice_that_would_be_refused_has_the_reason_beside_it_and_leads_to_no_plan() -> None:
    short = landing_from(10)
    by_word = options(planned(AGENT, short))
    (lost,) = problems_of(planned(AGENT, short), "C101")
    assert by_word["all"].impossible == lost.message
    possible = [word for word, option in by_word.items() if not option.impossible]
    assert possible == ["since 2026-11-11", "carry", "from now"]
    assert not any(chosen(AGENT, word, short).refusals for word in possible)
    below = chosen(with_sql(pipeline(), "parse", f"{PARSE} WHERE region <> 'lab'"), "carry", table="requests_by_hour")
    assert "requests is rebuilt" in options(below, "requests_by_hour")["carry"].impossible


@pytest.mark.slow
def test_nothing_is_to_be_chosen_where_no_row_moves_or_every_choice_comes_to_the_same() -> None:
    assert not any(each.options for each in planned(pipeline()).nodes)
    laid = with_table(pipeline(), replace(REQUESTS, partition_by=("host",)))
    assert (node(planned(laid), "requests").action, options(planned(laid))) == ("forward", {})


def test_text_shows_the_choices_side_by_side_summed_over_regions_that_plan_the_same() -> None:
    text = plan_text([planned(AGENT), replace(planned(AGENT), region="us")])
    (row,) = [line.split() for line in text.splitlines() if line.strip().startswith("carry")]
    assert row[:3] == ["carry", "14", "28,000"]
    assert "all: not possible" in plan_text([planned(AGENT, landing_from(10))])


def test_from_now_takes_the_files_over_and_moves_no_row() -> None:
    done = chosen(AGENT, "from now")
    assert (actions(done)["requests"], done.refusals) == ("forward", ())
    (linked,) = backfills(done)
    assert (linked.linked, linked.rows, linked.bytes, linked.time) == (True, 0, 0, "")
    assert [s.start for s in done.steps if isinstance(s, CatchUp) and s.target == "requests"] == ["vector"]
    about = node(done, "requests")
    assert (about.price, about.history, about.older_rows) == (Price(), "from now", "older rows: agent is NULL")
    assert options(done)["from now"].chosen
    assert "no row is read or written" in plan_text([done], explain=True)
    assert actions(planned(AGENT, after(AGENT, {"requests": "from now"}))) == {}


def read_rows(done: Plan, table: str, stored: str) -> list[tuple[object, ...]]:
    state = done.release.table(table)
    assert state is not None
    read = state.read.replace("`", '"').replace("AS STRING", "AS VARCHAR")
    return duckdb.sql(f"WITH stored AS ({stored}) SELECT * FROM ({read})").fetchall()


@pytest.mark.slow
def test_what_older_files_lack_is_read_as_proven_as_its_default_or_as_null() -> None:
    table = AGENT.table("requests")
    assert table is not None
    given = Column(name="n", type="int", nullable=False, default="7")
    wider = replace(table, columns=(*table.columns, given, Column(name="loud", type="string")))
    parse = next(m.sql for m in AGENT.materializations if m.name == "parse")
    new = with_sql(
        with_table(AGENT, wider),
        "parse",
        parse.replace("\nFROM", ", length(payload) AS n, upper(region) AS loud\nFROM"),
    )
    done = chosen(new, "from now")
    assert done.refusals == ()
    row = "SELECT 'e' event_id, now() ts, current_date AS day, '::1' ip, 200 status, 1.5 ms, 9 bytes, 'eu' host"
    older = f'{row}, NULL agent, NULL n, NULL loud, NULL "later@1"'
    newer = f"{row}, 'x' agent, 3 n, 'EU' loud, true \"later@1\""
    without = f"{row}, 'x' agent, NULL n, 'EU' loud, true \"later@1\""  # no row is refused by `nullable: false`
    assert [item[-3:] for item in read_rows(done, "requests", f"{older} UNION ALL {newer} UNION ALL {without}")] == [
        (None, 7, "EU"),
        ("x", 3, "EU"),
        ("x", None, "EU"),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda t: replace(t, partition_by=("day", "host")), "another layout"),
        (lambda t: replace(t, partition_by=("date",), columns=tuple(
            replace(c, name="date") if c.name == "day" else c for c in t.columns)), "its partition column date is stored under another name"),
    ],
)  # fmt: skip
def test_files_that_cannot_be_rows_of_the_new_version_as_they_are_are_refused_and_carry_copies_them(
    change: Callable[[Table], Table], says: str
) -> None:
    table = AGENT.table("requests")
    assert table is not None
    wanted = with_table(AGENT, change(table))
    parse = next(m.sql for m in wanted.materializations if m.name == "parse")
    if "date" in says:
        wanted = with_sql(wanted, "parse", parse.replace("to_date(ts) AS day", "to_date(ts) AS date"))
        counted = next(m.sql for m in wanted.materializations if m.name == "count_hours")
        wanted = replace(wanted, endpoints=())
        wanted = with_sql(
            wanted, "count_hours", re.sub(r"\bday\b", "date", counted).replace(", date,", ", date AS day,")
        )
    (problem,) = problems_of(chosen(wanted, "from now"), "C140")
    assert says in problem.message
    assert "carry" in problem.hint
    assert not chosen(wanted, "carry").refusals


def filtered(desired: Pipeline, condition: str = "region <> 'lab'") -> Pipeline:
    parse = next(m.sql for m in desired.materializations if m.name == "parse")
    return with_sql(desired, "parse", f"{parse} WHERE {condition}")


def fed_rows(done: Plan, given: str) -> list[dict[str, object]]:
    """What the feed of `requests` writes for rows that its query gives, by stored column."""
    (feed,) = done.release.feeds_into("requests")
    head, _, rest = feed.sql.partition(" FROM (")
    assert rest.endswith(") AS declared")
    sql = head.replace("`", '"').replace("AS STRING", "AS VARCHAR")
    result = duckdb.sql(f"{sql} FROM ({given})")
    return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]


ROW = "'e' event_id, now()::timestamp ts, current_date AS day, '::1' ip, 200 status, 1.5 ms"


def test_from_now_goes_on_under_the_names_that_older_files_have() -> None:
    """After a column was renamed and another dropped, in earlier releases and in the change itself."""
    table = pipeline().table("requests")
    assert table is not None
    parse = next(m.sql for m in pipeline().materializations if m.name == "parse")
    named = tuple(replace(c, name="server") if c.name == "host" else c for c in table.columns)
    renamed = with_sql(
        with_table(pipeline(), replace(table, columns=named)), "parse", parse.replace("AS host", "AS server")
    )
    was = promoted(planned(renamed), live())
    without = tuple(replace(c, name="took") if c.name == "ms" else c for c in named if c.name != "bytes")
    sql = re.sub(r"\n.* AS bytes,", "", parse.replace("AS host", "AS server")).replace("AS ms", "AS took")
    changed = with_sql(with_table(renamed, replace(table, columns=without)), "parse", sql)
    counted = next(m.sql for m in changed.materializations if m.name == "count_hours")
    changed = with_sql(changed, "count_hours", re.sub(r"\bms\b", "took", counted))
    done = chosen(filtered(changed), "from now", was)
    assert done.refusals == ()
    state = done.release.table("requests")
    assert state is not None
    assert [c.name for c in state.version.columns] == ["event_id", "ts", "day", "ip", "status", "ms", "host", "bytes"]
    assert state.renamed == {"server": "host", "took": "ms"}
    (row,) = fed_rows(done, f"SELECT {ROW.replace(' ms', ' took')}, 'eu' AS server")
    assert (row["ms"], row["host"], row["bytes"]) == (1.5, "eu", None)
    (shown,) = read_rows(done, "requests", f"SELECT {ROW}, 'us' host, 9 bytes")
    assert shown[4:] == (200, 1.5, "us")
    assert actions(planned(filtered(changed), promoted(done, was))) == {}


@pytest.mark.slow
def test_from_now_can_be_chosen_again_over_what_older_files_lack() -> None:
    table = pipeline().table("requests")
    assert table is not None
    given = (Column(name="n", type="int", nullable=False, default="7"), Column(name="loud", type="string"))
    parse = next(m.sql for m in pipeline().materializations if m.name == "parse")
    sql = parse.replace("\nFROM", ", length(payload) AS n, upper(region) AS loud\nFROM")
    wider = with_sql(with_table(pipeline(), replace(table, columns=(*table.columns, *given))), "parse", sql)
    was = promoted(chosen(wider, "from now"), live())
    again = chosen(filtered(wider), "from now", was)
    assert again.refusals == ()
    row = f"SELECT {ROW}, 9 bytes, 'eu' host"
    marked = [f'{value} AS "later@1"' for value in ("NULL", "true")]
    stored = f"{row}, NULL n, NULL loud, {marked[0]} UNION ALL {row}, 3 n, 'EU' loud, {marked[1]}"
    assert [item[-2:] for item in read_rows(again, "requests", stored)] == [(7, "EU"), (3, "EU")]
    other = chosen(filtered(with_sql(wider, "parse", sql.replace("upper(region)", "lower(region)"))), "from now", was)
    more = [
        f'{loud} AS "loud@2", {later} AS "later@1", {later} AS "later@2"'
        for loud, later in (("NULL", "NULL"), ("'eu'", "true"))
    ]
    stored = f"{row}, NULL n, NULL loud, {more[0]} UNION ALL {row}, 3 n, NULL loud, {more[1]}"
    assert [item[-1] for item in read_rows(other, "requests", stored)] == ["EU", "eu"]
    moved = chosen(with_sql(wider, "parse", sql.replace("region AS host", "trim(region) AS host")), "from now", was)
    assert [item[-2:] for item in read_rows(moved, "requests", stored)] == [(7, "EU"), (3, "eu")]
    assert (other.refusals, moved.refusals) == ((), ())


@pytest.mark.slow
def test_a_new_column_under_the_stored_name_of_another_is_stored_under_a_name_of_its_own() -> None:
    table = pipeline().table("requests")
    assert table is not None
    parse = next(m.sql for m in pipeline().materializations if m.name == "parse")
    fewer = with_table(pipeline(), replace(table, columns=tuple(c for c in table.columns if c.name != "bytes")))
    was = promoted(planned(with_sql(fewer, "parse", re.sub(r"\n.* AS bytes,", "", parse))), live())
    done = chosen(filtered(with_sql(pipeline(), "parse", parse.replace("'$.bytes'", "'$.sent'"))), "from now", was)
    assert done.refusals == ()
    (row,) = fed_rows(done, f"SELECT {ROW}, 5 bytes, 'eu' AS host")
    assert (row["bytes@2"], row["bytes"]) == (5, None)
    stored = f"SELECT {ROW}, 9 bytes, 'us' host, NULL \"bytes@2\" UNION ALL SELECT {ROW}, NULL, 'eu', 5"
    assert [item[6:] for item in read_rows(done, "requests", stored)] == [(None, "us"), (5, "eu")]


@pytest.mark.slow
def test_a_default_of_older_rows_is_told_from_a_null_of_later_ones() -> None:
    table = AGENT.table("requests")
    assert table is not None
    wanted = with_table(AGENT, replace(table, columns=(*table.columns[:-1], replace(table.columns[-1], default="'?'"))))
    done = chosen(wanted, "from now")
    assert done.refusals == ()
    (fed,) = fed_rows(done, f"SELECT {ROW}, 9 bytes, 'eu' AS host, NULL AS agent")
    assert (fed["agent"], fed["later@1"]) == (None, True)
    row = f"SELECT {ROW}, 9 bytes, 'eu' host"
    stored = f"{row}, NULL agent, NULL \"later@1\" UNION ALL {row}, NULL, true UNION ALL {row}, 'x', true"
    assert [item[-1] for item in read_rows(done, "requests", stored)] == ["?", None, "x"]
    was = promoted(done, live())
    assert actions(planned(wanted, was)) == {}
    again = chosen(filtered(wanted), "from now", was)  # the flag goes on, and older rows are told by it
    (fed,) = fed_rows(again, f"SELECT {ROW}, 9 bytes, 'eu' AS host, NULL AS agent")
    assert fed["later@1"] is True
    assert [item[-1] for item in read_rows(again, "requests", stored)] == ["?", None, "x"]


@pytest.mark.slow
def test_an_aggregate_goes_on_from_its_stored_states_where_they_merge() -> None:
    done = chosen(with_measure(bytes="sum(bytes)"), "from now", table="requests_by_hour")
    (linked,) = backfills(done, "requests_by_hour")
    assert (linked.linked, done.refusals) == (True, ())
    mean = with_sql(pipeline(), "count_hours", COUNT.replace("count(*) AS hits", "cast(avg(bytes) AS BIGINT) AS hits"))
    assert "do not merge" in problems_of(chosen(mean, "from now", table="requests_by_hour"), "C140")[0].message


def kept_for(days: int) -> Pipeline:
    table = AGENT.table("requests")
    assert table is not None
    return with_table(AGENT, replace(table, retention_days=days))


@pytest.mark.parametrize("word", ["carry", "since 2026-11-08", "from now"])
def test_where_retention_ends_older_rows_the_plan_names_their_last_day(word: str) -> None:
    done = chosen(kept_for(30), word)
    assert node(done, "requests").older_until == "2026-12-14"
    assert "the last of them until 2026-12-14" in problems_of(done, "C118")[0].message
    assert done.chosen_history[0].endswith("the last of them expires on 2026-12-14")
    assert (len(done.showing_older("2026-12-14")), done.showing_older("2026-12-15")) == (1, ())
    assert node(chosen(AGENT, word), "requests").older_until == ""


@pytest.mark.slow
def test_a_column_computed_at_read_has_a_last_day_too() -> None:
    table = kept_for(7).table("requests")
    assert table is not None
    soon = with_table(
        pipeline(), replace(table, read_time_days=7, columns=(*REQUESTS.columns, Column(name="zone", type="string")))
    )
    done = planned(with_sql(soon, "parse", PARSE.replace("region AS host", "region AS host, upper(region) AS zone")))
    about = node(done, "requests")
    assert (about.action, about.older_until) == ("read", "2026-11-21")
    assert about.older_rows == "older rows: zone is computed at read"
