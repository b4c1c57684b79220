"""An adapter in front of a foreign landing table: it is filled, and no row below it moves."""

from dataclasses import replace

import pytest

from console.errors import Problems
from console.model.live import Live
from console.model.pipeline import Endpoint, Materialization, Pipeline
from console.model.plan import Plan
from console.model.schema import Column, Table
from console.planning.landing.adapter_sql import reading_through, reads
from tests.planning.world import LANDING, PARSE, actions, live, node, pipeline, planned, promoted, with_sql, with_table

FOREIGN = replace(LANDING, managed=False)
EVENTS = Table(
    name="events", kind="append", columns=LANDING.columns, time="ts", where="plans/web/tables/events.yaml:1:1", source="landing",
)  # fmt: skip
RAW = Endpoint(name="raw", sql="SELECT id FROM landing", where="plans/web/endpoints/raw.sql:1:1")


def foreign() -> Pipeline:
    base = with_table(pipeline(), FOREIGN)
    return replace(base, endpoints=(RAW, *base.endpoints))


def adapted(
    adapter: Table = EVENTS,
    select: str = "id, region, ts, payload",
    parse: str = PARSE,
    source: str = "events AS landing",
) -> Pipeline:
    """The pipeline with an adapter, and what read the landing table reading it."""
    after = with_table(foreign(), adapter)
    feed = Materialization(name="events", into="events", sql=f"SELECT {select} FROM landing", where=adapter.where)
    nodes = tuple(sorted((*after.materializations, feed), key=lambda one: one.name))
    raw = replace(RAW, sql=RAW.sql.replace("landing", source))
    after = replace(after, materializations=nodes, endpoints=(raw, *after.endpoints[1:]))
    return with_sql(after, "parse", parse.replace("FROM landing", f"FROM {source}"))


def moved(done: Plan) -> dict[str, int]:
    return {change.name: change.price.written for change in done.nodes if change.price.written}


@pytest.mark.slow
@pytest.mark.parametrize("source", ["events AS landing", "events"])
def test_it_enters_a_live_pipeline_with_0_bytes_below_it(source: str) -> None:
    region = live(foreign())
    done = planned(adapted(source=source), region)
    assert done.refusals == ()
    assert actions(done)["events"] == "create"
    assert actions(done)["requests"] == "rebind"
    assert "requests_by_hour" not in actions(done)
    assert set(moved(done)) == {"events"}
    assert node(done, "events").why == "new: an adapter in front of landing, whose rows are copied into it"
    assert node(done, "requests").why.startswith(
        "events is put in front of landing, and the columns that requests reads of it are unchanged"
    )
    (feed,) = (feed for feed in done.release.feeds if feed.target == "requests")
    assert (feed.source, feed.moved) == ("events", True)
    assert done.rollback is not None
    assert done.rollback.lossless
    assert actions(planned(adapted(source=source), promoted(done, region))) == {}


def test_readers_that_go_over_to_it_are_not_announced_as_changed() -> None:
    assert planned(adapted(), live(foreign())).answers == ()


def behind() -> Live:
    region = live(foreign())
    return promoted(planned(adapted(), region), region)


@pytest.mark.slow
def test_from_then_on_it_changes_like_any_table_of_ours() -> None:
    columns = tuple(replace(c, name="zone") if c.name == "region" else c for c in LANDING.columns)
    renamed = adapted(
        replace(EVENTS, columns=columns),
        "id, region AS zone, ts, payload",
        PARSE.replace("region AS host", "zone AS host"),
    )
    assert actions(planned(renamed, behind())) == {"events": "metadata"}
    laid = planned(adapted(replace(EVENTS, partition_by=("region",))), behind())
    assert (actions(laid)["events"], actions(laid)["requests"], laid.refusals) == ("forward", "rebind", ())


@pytest.mark.slow
def test_a_column_that_it_computes_otherwise_is_computed_again_below() -> None:
    done = planned(adapted(select="id, upper(region) AS region, ts, payload"), live(foreign()))
    assert actions(done)["requests"] in ("replay", "forward", "hybrid")
    assert "region" in node(done, "requests").why or "host" in node(done, "requests").why


@pytest.mark.slow
def test_one_that_makes_several_rows_of_one_is_no_stand_in() -> None:
    columns = (*LANDING.columns, Column(name="part", type="string"))
    done = planned(
        adapted(replace(EVENTS, columns=columns), "id, region, ts, payload, explode(split(payload, ',')) AS part"),
        live(foreign()),
    )
    assert actions(done)["requests"] == "replay"


@pytest.mark.parametrize(
    ("sql", "changed"),
    [
        ("SELECT id FROM landing", "SELECT id FROM events AS landing"),
        ("SELECT l.id FROM `landing` l -- landing", "SELECT l.id FROM events l -- landing"),
        ("SELECT id FROM (SELECT id FROM landing) UNION ALL SELECT id FROM landing AS b",
         "SELECT id FROM (SELECT id FROM events AS landing) UNION ALL SELECT id FROM events AS b"),
        ("SELECT r.id FROM requests r JOIN landing USING (id)", None),
        ("WITH landing AS (SELECT 1 AS id) SELECT id FROM landing", None),
        ("SELECT id FROM requests", None),
        ("SELECT FROM WHERE", None),
    ],
)  # fmt: skip
def test_the_text_of_a_query_reads_the_adapter_and_is_otherwise_as_written(sql: str, changed: str | None) -> None:
    assert reading_through(sql, "landing", "events") == changed


def test_a_query_that_is_left_alone_is_told_from_one_that_reads_something_else() -> None:
    assert reads("SELECT r.id FROM requests r JOIN landing USING (id)", "landing")
    assert not reads("SELECT landing FROM requests", "landing")
    assert not reads("SELECT FROM WHERE", "landing")


MESSAGES = {
    "partitioned": (replace(FOREIGN, partition_by=("region",)), "is not partitioned in eu"),
    "clustered": (replace(FOREIGN, cluster_by=("region",)), "is declared as clustered by region, and is not clustered in eu"),
    "never NULL": (
        replace(FOREIGN, columns=tuple(replace(c, nullable=c.name != "id") for c in LANDING.columns)),
        "is declared without NULL in id, which may be NULL in eu",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MESSAGES)
def test_a_declared_property_that_a_table_of_others_does_not_have_is_reported(name: str) -> None:
    declared, says = MESSAGES[name]
    for region in (live(foreign()), live(with_table(pipeline(), declared))):
        (messages,) = (
            problem for problem in planned(with_table(foreign(), declared), region).problems if problem.code == "C131"
        )
        assert (messages.severity, says in messages.message) == ("warn", True), messages.message
        assert "console adapt landing --as landing_adapter" in messages.hint


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (replace(FOREIGN, forward_query="* EXCEPT (region), region AS zone"), "C130"),
        (
            replace(
                FOREIGN, columns=tuple(replace(c, type="bigint") if c.name == "id" else c for c in LANDING.columns)
            ),
            "C112",
        ),
    ],
)
def test_what_a_table_of_others_cannot_do_is_refused_with_the_adapter_that_can(change: Table, code: str) -> None:
    try:
        problems = planned(with_table(foreign(), change), live(foreign())).refusals
    except Problems as refused:
        problems = refused.problems
    (problem,) = (problem for problem in problems if problem.code == code)
    assert "console adapt landing --as landing_adapter" in problem.hint


def test_the_clustering_of_a_managed_landing_table_moves_no_row() -> None:
    managed = replace(LANDING, cluster_by=("region",))
    done = planned(with_table(pipeline(), managed))
    assert (actions(done), done.refusals) == ({"landing": "metadata"}, ())
    assert "clustering of new rows" in node(done, "landing").why
    assert [problem for problem in done.problems if problem.code == "C131"] == []
    assert planned(with_table(pipeline(), managed), promoted(done, live())).steps == ()
