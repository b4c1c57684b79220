"""Real commits of other people's pipelines, planned by us: never less than what changes values, and no table more.

What the collector expects (`migrate`) follows rules that move everything below a changed file. DIFFERENCES lists where
we move less, or refuse, and why; where nothing is listed we do the same. A landing table changes without a row being moved.

source  tinybirdco/web-analytics-starter-kit, tinybirdco/log-analytics-starter-kit, tinybirdco/tinynest and
        gitlabhq/gitlabhq, all MIT; see evolution/NOTICE
"""

from dataclasses import replace
from typing import Any

import pytest

from console.errors import Problems
from console.model.live import Live
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.planning import check, plan
from console.remedy import SetKey
from tests.planning.evolution import adapt, gitlab
from tests.planning.world import REGION, actions, promoted, stats

pytestmark = pytest.mark.slow

CASES = adapt.load()
MOVES = ("forward", "replay", "hybrid")

ADDED = "columns are added and hidden by the release: rows that are there read NULL or the default"
RELAXED = "NULL is allowed by the release, and was stored so all along"
MONTHS = "no table of ours lies by an expression or in an order: days are told by its time column's statistics"
ADDITIVE = "no value of it depends on what changed above it"
# case → table (or `*` for all landing tables) → why we do not move what they migrate
DIFFERENCES: dict[str, dict[str, str]] = {
    "la01_landing_additive_column": {
        "logs": ADDED, "calls_by_ip_per_minute": ADDITIVE, "errors_per_function_per_hour": ADDITIVE,
        "log_level_counts_per_hour": ADDITIVE, "per_function_calls_per_hour": ADDITIVE,
    },
    "tn01_json_to_string": {"*": "both types are text to Spark; defaults are given by who writes the table"},
    "tn02_partition_and_sorting_key": {"*": MONTHS},
    "tn03_widen_and_nullable": {"*": RELAXED},
    "tn04_schema_unification": {"*": ADDED},
    "wa01_landing_string_to_nullable": {
        "analytics_events": RELAXED, "analytics_pages_mv": ADDITIVE, "analytics_sessions_mv": ADDITIVE,
        "analytics_sources_mv": ADDITIVE,
    },
    "wa02_one_mv_filter_through_shared_pipe": {"analytics_pages_mv": ADDITIVE, "analytics_sessions_mv": ADDITIVE},
    "wa03_everything_changes": {"analytics_events": ADDED},
}  # fmt: skip
# case → the code by which we refuse what they carry out
REFUSED = {"la02_landing_rename": ("C102", "the new name holds no row: dropping the old one would lose its history")}
WAS = {"la02_landing_rename": {"logs": "function_logs"}}  # the operator's word by which it is carried instead
BROKEN = {"la02_landing_rename": ("FROM logs", "FROM function_logs")}  # before the commit its queries name no table


def region(before: Pipeline) -> Live:
    """A region in which the pipeline as it was is live, with fourteen days in every table."""
    landing = tuple(stats(t.name, t.name, t.columns) for t in before.tables if t.kind == "landing")
    start = Live(region="eu", pipeline=before.name, release=None, releases=(), stats=landing, rows_per_second=1000.0)
    return promoted(plan(before, start, REGION, "test"), start)


def sides(name: str) -> tuple[Pipeline, Pipeline]:
    case = CASES[name]
    before = adapt.pipeline(case["before"])
    if name in BROKEN:
        old, new = BROKEN[name]
        assert any(p.code == "S107" for p in check(before))
        mended = tuple(replace(m, sql=m.sql.replace(old, new)) for m in before.materializations)
        before = replace(before, materializations=mended)
    return before, adapt.pipeline(case["after"])


PLANNED = [name for name in CASES if not CASES[name]["expected"]["must_fail_validation"]]


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    results = {}
    for name in PLANNED:
        before, after = sides(name)
        results[name] = plan(after, region(before), REGION, "test")
    return results


def moved(done: Plan) -> set[str]:
    return {name for name, action in actions(done).items() if action in MOVES}


@pytest.mark.parametrize("name", PLANNED)
def test_we_move_what_they_migrate_but_for_what_is_listed(name: str, plans: dict[str, Plan]) -> None:
    expected, done = CASES[name]["expected"], plans[name]
    listed = DIFFERENCES.get(name, {})
    spared = {table for table in expected["migrate"] if table in listed or ("*" in listed and _landing(name, table))}
    assert moved(done) == set(expected["migrate"]) - spared
    assert set(listed) - {"*"} <= set(expected["migrate"])
    assert moved(done) & set(expected["keep"]) == set()


@pytest.mark.parametrize("name", WAS)
def test_by_the_operators_word_a_renamed_landing_table_is_carried_and_nothing_moves(name: str) -> None:
    before, after = sides(name)
    first = {problem.remedies[0] for problem in plan(after, region(before), REGION, "test").refusals}
    assert first == {
        SetKey(node=now, key="was", value=was, effect=f"if {now} is {was} under another name")
        for now, was in WAS[name].items()
    }
    tables = tuple(replace(table, was=WAS[name].get(table.name, "")) for table in after.tables)
    done = plan(replace(after, tables=tables), region(before), REGION, "test")
    assert (done.refusals, actions(done)) == ((), dict.fromkeys(WAS[name], "metadata"))


@pytest.mark.parametrize("name", PLANNED)
def test_a_landing_table_that_changes_is_carried_by_its_release(name: str, plans: dict[str, Plan]) -> None:
    before, after = ({t.name: t.columns for t in side.tables if t.kind == "landing"} for side in sides(name))
    changed = {table for table in before.keys() & after.keys() if before[table] != after[table]}
    assert {node.action for node in plans[name].nodes if node.name in changed} <= {"metadata"}


def _landing(name: str, table: str) -> bool:
    return any(t["name"] == table and t["kind"] == "landing" for t in CASES[name]["after"]["tables"])


@pytest.mark.parametrize("name", PLANNED)
def test_what_they_create_and_drop_we_create_and_drop(name: str, plans: dict[str, Plan]) -> None:
    result, expected = actions(plans[name]), CASES[name]["expected"]
    assert {table for table, action in result.items() if action == "create"} == set(expected["create"])
    assert {table for table, action in result.items() if action == "drop"} == set(expected["drop"])


@pytest.mark.parametrize("name", [n for n in PLANNED if CASES[n]["expected"]["minimal_with_additive_skip"]])
def test_nothing_less_moves_than_what_changes_values(name: str, plans: dict[str, Plan]) -> None:
    least = {t for t in CASES[name]["expected"]["minimal_with_additive_skip"] if not _landing(name, t)}
    assert moved(plans[name]) == least


@pytest.mark.parametrize("name", [n for n in CASES if CASES[n]["expected"]["must_fail_validation"]])
def test_what_must_fail_fails(name: str) -> None:
    def both() -> None:
        before, after = sides(name)
        plan(after, region(before), REGION, "test")

    with pytest.raises(Problems) as caught:
        both()
    text = " ".join(str(problem) for problem in caught.value.problems)
    for item in CASES[name]["expected"]["must_fail_validation"]:
        assert item.rpartition(": ")[2] in text


@pytest.mark.parametrize("name", PLANNED)
def test_only_a_loss_is_refused(name: str, plans: dict[str, Plan]) -> None:
    codes = {problem.code for problem in plans[name].refusals}
    assert codes == ({REFUSED[name][0]} if name in REFUSED else set())


def test_a_source_that_kept_less_than_its_table_is_reported() -> None:
    """As in their list of warnings, though the change itself ends the short retention."""
    before, after = sides("wa03_everything_changes")
    messages = {p.node for p in plan(after, region(before), REGION, "test").problems if p.code == "C101"}
    assert messages >= {"analytics_pages_mv", "analytics_sessions_mv", "analytics_sources_mv"}


CI = gitlab.text()


def ci(old: str, new: str) -> dict[str, str]:
    assert old in CI
    before = gitlab.pipeline(CI)
    done = plan(gitlab.pipeline(CI.replace(old, new)), region(before), REGION, "test")
    assert done.refusals == ()
    return actions(done)


def case(name: str) -> dict[str, Any]:
    import json

    cases: list[dict[str, Any]] = json.loads((gitlab.SQL.parent / "gitlab.json").read_text())["cases"]
    return next(c for c in cases if c["id"].startswith(name))


def test_a_key_more_in_an_aggregate_replays_it_alone() -> None:
    with_key = "runner_id,\n    countState() AS count_builds,\n    sumSimpleState(duration) AS total_duration,\n    project_id\n"
    keyless = CI.replace(with_key, with_key.replace(",\n    project_id", ""))
    keyless = keyless.replace(
        "runner_type,\n    project_id,\n    status,\n    runner_id;", "runner_type,\n    status,\n    runner_id;"
    )
    keyless = keyless.replace(
        "`total_duration` SimpleAggregateFunction(sum, Int64),\n    `project_id` UInt64 DEFAULT 0",
        "`total_duration` SimpleAggregateFunction(sum, Int64)",
    )
    done = plan(gitlab.pipeline(CI), region(gitlab.pipeline(keyless)), REGION, "test")
    assert moved(done) == set(case("gl01")["expected"]["migrate"])
    assert actions(done) == {"ci_used_minutes_by_runner_daily": "replay"}


def test_only_the_order_of_columns_moves_nothing() -> None:
    query = "runner_id,\n    countState() AS count_builds,\n    sumSimpleState(duration) AS total_duration,\n    project_id\n"
    other = "project_id,\n    runner_id,\n    countState() AS count_builds,\n    sumSimpleState(duration) AS total_duration\n"
    assert ci(query, other) == {}
    assert case("gl02")["expected"]["migrate"] == []


def test_an_aggregate_more_replays_its_table_alone() -> None:
    hourly = CI.index("CREATE MATERIALIZED VIEW ci_finished_pipelines_hourly_mv")
    table = CI.index("CREATE TABLE ci_finished_pipelines_hourly")
    state, query = (
        "    `duration_quantile` AggregateFunction(quantile, UInt64),\n",
        ",\n    quantileState(duration) AS duration_quantile",
    )
    before = CI[:table] + CI[table:hourly].replace(state, "", 1) + CI[hourly:].replace(query, "", 1)
    done = plan(gitlab.pipeline(CI), region(gitlab.pipeline(before)), REGION, "test")
    assert actions(done) == dict.fromkeys(case("gl03")["expected"]["migrate"], "replay")


def test_a_column_that_nothing_reads_leaves_its_root_by_metadata() -> None:
    assert ci("    `root_namespace_id` UInt64 DEFAULT 0,\n", "") == {
        "ci_finished_builds": "metadata", "ci_finished_builds_in": "metadata",
    }  # fmt: skip


def test_another_meaning_of_a_computed_column_moves_what_adds_it_up_and_no_percentile() -> None:
    expected = case("gl05")["expected"]
    result = ci("age('ms', started_at, finished_at), 0)", "age('ms', started_at, finished_at), 1)")
    assert result.pop("ci_finished_builds") == "read"
    assert set(result) == {column.partition(".")[0] for column in expected["downstream_columns"]}
    assert set(result.values()) == {"replay"}
