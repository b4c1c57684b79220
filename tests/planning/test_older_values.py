"""The values that older rows show for new and changed columns, by the operator's choice: computed, as default or as NULL, each copied or with its files."""

from dataclasses import replace

import pytest

from console.model.pipeline import Pipeline
from console.model.plan import Price
from console.model.schema import Column
from console.remedy import DropKey, SetKey
from tests.planning.test_history import AGENT, backfills, chosen, kept_for, options, problems_of, read_rows
from tests.planning.world import PARSE, REQUESTS, actions, live, node, pipeline, planned, with_sql, with_table

ROW = "SELECT 'e' event_id, now() ts, current_date AS day, '::1' ip, 200 status, 1.5 ms, 9 bytes, 'eu' host"


def with_loud(**column: object) -> Pipeline:
    """`loud` is proven to be computable from host."""
    loud = replace(Column(name="loud", type="string", default="'none'"), **column)
    table = replace(REQUESTS, columns=(*REQUESTS.columns, loud))
    return with_sql(with_table(pipeline(), table), "parse", PARSE.replace("\nFROM", ", upper(region) AS loud\nFROM"))


def older(desired: Pipeline, word: str) -> str:
    done = chosen(desired, word)
    assert (done.refusals, node(done, "requests").history) == ((), word)
    return node(done, "requests").older_rows


def test_each_word_is_carried_out_and_says_what_is_shown() -> None:
    assert older(with_loud(), "carry as null") == "older rows: loud is NULL"
    assert older(with_loud(), "carry as default") == "older rows: loud is 'none'"
    copied = {word: backfills(chosen(with_loud(), f"carry as {word}"))[0].sql for word in ("null", "default")}
    assert "CAST(NULL AS STRING) AS `loud`" in copied["null"]
    assert "CAST('none' AS STRING) AS `loud`" in copied["default"]
    assert older(with_loud(), "since 2026-11-10 as null").startswith(
        "before 2026-11-10 as carried (older rows: loud is NULL)"
    )


@pytest.mark.parametrize(
    ("word", "value"), [("", "EU"), (" as computed", "EU"), (" as default", "none"), (" as null", None)]
)
def test_files_that_are_taken_over_show_what_the_word_says(word: str, value: str | None) -> None:
    done = chosen(with_loud(), f"from now{word}")
    assert (actions(done)["requests"], done.refusals, node(done, "requests").price) == ("forward", (), Price())
    rows = read_rows(done, "requests", f"{ROW}, NULL loud, NULL \"later@1\" UNION ALL {ROW}, 'x' loud, true")
    assert [row[-1] for row in rows] == [value, "x"]


@pytest.mark.slow
def test_a_changed_column_of_older_rows_is_as_the_word_says() -> None:
    loud = Column(name="host", type="string", default="'none'")
    table = replace(REQUESTS, columns=tuple(loud if c.name == "host" else c for c in REQUESTS.columns))
    sql = PARSE.replace("region AS host", "get_json_object(payload, '$.h') AS host")
    changed = with_sql(with_table(pipeline(), table), "parse", sql)
    assert older(changed, "carry") == "older rows: host keeps its values"
    assert older(changed, "carry as null") == "older rows: host is NULL"
    assert older(changed, "carry as default") == "older rows: host is 'none'"
    assert older(changed, "from now as null") == "older rows: host is NULL"
    assert older(changed, "from now as default") == "older rows: host is 'none'"


@pytest.mark.parametrize(
    ("desired", "word", "says", "instead"),
    [
        (AGENT, "carry as computed", "agent is not proven to be computable", "carry"),
        (AGENT, "from now as computed", "agent is not proven to be computable", "from now"),
        (AGENT, "carry as default", "agent has no default", "carry"),
        (AGENT, "since 2026-11-10 as default", "agent has no default", "since 2026-11-10"),
        (with_loud(nullable=False), "carry as null", "loud may not be NULL", "carry"),
        (with_sql(pipeline(), "parse", f"{PARSE} WHERE region <> 'lab'"), "carry as null", "none of its columns", "carry"),
    ],
)  # fmt: skip
def test_a_word_that_cannot_be_kept_is_refused_with_one_that_can(
    desired: Pipeline, word: str, says: str, instead: str
) -> None:
    (problem,) = problems_of(chosen(desired, word), "C140")
    assert (problem.severity, says in problem.message) == ("refuse", True)
    assert f"`history: {instead}`" in problem.hint
    assert not chosen(desired, instead).refusals


@pytest.mark.parametrize("plain", ["from now", "carry"])
def test_a_word_is_not_offered_where_it_is_refused_as_well(plain: str) -> None:
    table = replace(REQUESTS, columns=(*REQUESTS.columns, Column(name="agent", type="string", nullable=False)))
    (problem,) = problems_of(chosen(with_table(AGENT, table), f"{plain} as null"), "C140")
    assert f"`history: {plain}`" not in problem.hint


@pytest.mark.slow
def test_what_would_be_refused_as_well_is_not_offered_where_values_do_not_survive_another_type() -> None:
    """Neither a copy nor the files; a default of the column stands for all of its older values."""
    table = replace(
        REQUESTS, columns=tuple(replace(c, type="boolean") if c.name == "status" else c for c in REQUESTS.columns)
    )
    desired = with_sql(
        with_table(pipeline(), table), "parse", PARSE.replace("AS INT) AS status", "AS BOOLEAN) AS status")
    )
    (problem,) = problems_of(chosen(desired, "from now as computed"), "C140")
    assert "not proven to be computable" in problem.message
    assert [type(remedy) for remedy in problem.remedies] == [DropKey]
    (problem,) = problems_of(chosen(desired, "from now as default"), "C140")
    assert problem.remedies == (SetKey(node="requests", key="default", columns=("status",)),)
    declared = replace(
        table, columns=tuple(replace(c, default="false") if c.name == "status" else c for c in table.columns)
    )
    done = chosen(with_table(desired, declared), "from now as default")
    assert node(done, "requests").older_rows == "older rows: status is false"
    assert {problem.code for problem in done.refusals} == {"C103"}  # as without a choice
    assert not problems_of(chosen(desired, "all"), "C140")


@pytest.mark.slow
def test_a_word_is_not_offered_where_a_table_below_keeps_days_that_this_one_has_lost() -> None:
    """Computed anew from landing it has them again; with its own rows alone the one below would be refused."""
    filtered = with_sql(pipeline(), "parse", f"{PARSE} WHERE region <> 'lab'")
    was = live()
    fewer = tuple(replace(s, days=s.days[3:]) if s.name == "requests" else s for s in was.stats)
    offered = [
        problems_of(chosen(filtered, "from now as null", region), "C140")[0].remedies
        for region in (was, replace(was, stats=fewer))
    ]
    assert offered == [
        (SetKey(node="requests", key="history", value="from now"),),
        (DropKey(node="requests", key="history"),),
    ]


@pytest.mark.slow
def test_the_chosen_word_is_priced_beside_the_other_choices() -> None:
    by_word = options(chosen(kept_for(7), "from now as null"))
    assert list(by_word) == ["all", "since 2026-11-08", "carry", "from now as null"]
    assert by_word["from now as null"].chosen


@pytest.mark.slow
def test_what_would_be_computed_at_read_is_null_by_the_operators_word_until_the_last_row_expires() -> None:
    soon = {"retention_days": 7, "read_time_days": 7}
    table = replace(with_loud().table("requests") or REQUESTS, **soon)
    desired = with_table(with_loud(), table)
    assert actions(planned(desired)) == {"requests": "read"}
    done = chosen(desired, "from now as null")
    assert (done.refusals, problems_of(done, "C141")) == ((), [])
    assert done.chosen_history[0].endswith("loud is NULL; the last of them expires on 2026-11-21")
