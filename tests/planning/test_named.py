"""Columns that a feed or an endpoint names without using them in its result: without them the query fails."""

from dataclasses import replace

import pytest

from console.model.live import Live
from console.model.pipeline import Endpoint, Materialization, Pipeline
from console.model.schema import Column
from console.planning import PlannerCache
from console.planning.reuse.live_feeds import columns_read
from tests.planning.edits import AGENT, Change, column, of, parse, renamed, requests
from tests.planning.world import HOURLY, actions, live, pipeline, planned, release, with_sql, with_table

pytestmark = pytest.mark.slow

# queries that name `host` of requests, and give the same whatever stands in it
NAMING = {
    "a generator": "SELECT event_id FROM requests LATERAL VIEW explode(split(host, ',')) e AS part",
    "one row": "SELECT event_id FROM requests LATERAL VIEW json_tuple(host, 'a') e AS part",
    "a subquery beside": "SELECT r.event_id FROM requests r, LATERAL (SELECT upper(r.host) AS h) s",
    "an inner column": "SELECT event_id FROM (SELECT event_id, host FROM requests)",
    "an order": "SELECT event_id FROM requests ORDER BY host",
}
RENAMED = of(requests(columns=renamed("host", "origin")), parse("AS host", "AS origin"))


def with_marks(desired: Pipeline, sql: str) -> Pipeline:
    """One table more below requests, which keeps the keys alone."""
    marks = replace(
        HOURLY, name="marks", kind="append", columns=(Column(name="event_id", type="string"),), time="", partition_by=()
    )
    feed = Materialization(name="mark", into="marks", sql=sql, where="plans/web/materializations/mark.sql:4:1")
    wider = with_table(desired, marks)
    return replace(wider, materializations=(*wider.materializations, feed))


def changed(change: Change, sql: str) -> tuple[Pipeline, Live]:
    """The pipeline after a change that renames host, the query below edited alike; and the region as it was."""
    before = with_marks(pipeline(), sql)
    return with_sql(change(before), "mark", sql.replace("host", "origin")), live(before)


@pytest.mark.parametrize("how", NAMING)
def test_a_renamed_column_goes_on_being_shown_to_a_feed_that_only_names_it(how: str) -> None:
    wanted, region = changed(RENAMED, NAMING[how])
    done = planned(wanted, region)
    assert actions(done) == {"requests": "metadata"}
    state = done.release.table("requests")
    assert state is not None
    assert "`host` AS `origin`" in state.read
    assert "`host` AS `host`" in state.read


@pytest.mark.parametrize("how", NAMING)
def test_where_the_table_above_is_rebuilt_without_it_the_one_below_is_rebuilt_too(how: str) -> None:
    wanted, region = changed(of(RENAMED, AGENT), NAMING[how])
    assert actions(planned(wanted, region)) == {"requests": "replay", "requests_by_hour": "rebind", "marks": "replay"}


def test_rows_made_of_what_is_shuffled_are_not_mixed_from_two_computations() -> None:
    shuffled = column("lot", "array<int>", "shuffle(array(1, 2, 3))")
    for sql in (
        "SELECT event_id FROM requests LATERAL VIEW explode(filter(lot, (x, i) -> x > i)) e AS x",
        "SELECT r.event_id FROM requests r, LATERAL (SELECT explode(filter(r.lot, (x, i) -> x > i)) AS x) s",
    ):
        before = with_marks(shuffled(pipeline()), sql)
        assert actions(planned(AGENT(before), live(before)))["marks"] == "replay"
    beside = with_marks(shuffled(pipeline()), NAMING["a generator"])
    assert actions(planned(AGENT(beside), live(beside)))["marks"] == "rebind"


def test_a_table_fed_by_a_shuffle_of_its_own_is_known_to_be_unsteady() -> None:
    """So that what hangs below it is rebuilt with it."""
    drawn = "SELECT event_id FROM requests LATERAL VIEW explode(filter(shuffle(array(1, 2)), (x, i) -> x > i)) e AS x"
    before = with_marks(pipeline(), drawn)
    below = replace(
        HOURLY, name="below", kind="append", columns=(Column(name="event_id", type="string"),), time="", partition_by=()
    )
    feed = Materialization(name="lower", into="below", sql="SELECT event_id FROM marks")
    before = with_table(before, below)
    before = replace(before, materializations=(*before.materializations, feed))
    marks = before.table("marks")
    assert marks is not None
    wider = with_table(before, replace(marks, columns=(*marks.columns, Column(name="status", type="int"))))
    after = with_sql(wider, "mark", drawn.replace("SELECT event_id", "SELECT event_id, status"))
    assert actions(planned(after, live(before))) == {"marks": "replay", "below": "replay"}


def test_a_feed_with_a_join_reads_only_what_it_names() -> None:
    sql = "SELECT `r`.`a` AS `a`, `p`.`x` AS `x` FROM `t` AS `r` LEFT JOIN `u` AS `p` ON `p`.`k` = `r`.`b`"
    columns = {"a": "int", "b": "int", "c": "string", "d": "string"}
    assert columns_read(sql, "t", columns, ("u",), PlannerCache()) == ("a", "b")
    assert columns_read(sql, "u", {"k": "int", "x": "int", "y": "string"}, ("t",), PlannerCache()) == ("k", "x")


def test_who_owns_a_list_of_the_first_ten_is_told_when_what_orders_it_changes() -> None:
    top = Endpoint(
        name="slowest", sql="SELECT event_id FROM requests ORDER BY ms DESC LIMIT 10", owner="ops", where="e.sql:2:1"
    )
    before = replace(pipeline(), endpoints=(*pipeline().endpoints, top))
    region = live(before)
    assert release(region).endpoints
    done = planned(parse("'$.ms'", "'$.took'")(before), region)
    assert {answer.name: answer.why for answer in done.answers}["slowest"] == "requests.ms has another value"
