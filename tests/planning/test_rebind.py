"""A table that does not change below one that does: it stays where it is, and is fed from the new version."""

from dataclasses import replace

import pytest

from console.model.live import Feed, Live
from console.model.pipeline import Materialization, Pipeline
from console.model.plan import Price
from console.model.schema import Column
from console.model.step import CatchUp, CreateTable
from tests.planning.edits import AGENT, UA, column, of, parse, renamed, requests, second_feed, typed
from tests.planning.world import (
    COUNT,
    HOURLY,
    REQUESTS,
    actions,
    live,
    node,
    pipeline,
    planned,
    promoted,
    release,
    with_sql,
    with_table,
)


def fed(region: Live, table: str) -> Feed:
    return release(region).feeds_into(table)[0]


def test_it_moves_nothing_and_its_feed_reads_the_same_from_the_new_version() -> None:
    was = live()
    done = planned(AGENT(pipeline()), was)
    assert actions(done) == {"requests": "replay", "requests_by_hour": "rebind"}
    assert node(done, "requests_by_hour").price == Price()
    now, before = done.release.table("requests_by_hour"), release(was).table("requests_by_hour")
    assert now is not None
    assert before is not None
    assert (now.version, now.read) == (before.version, before.read)
    assert done.release.feeds_into("requests_by_hour") == (replace(fed(was, "requests_by_hour"), moved=True),)
    assert not any(feed.moved for feed in done.release.feeds_into("requests"))
    touched = {step.table for step in done.steps if isinstance(step, CreateTable)}
    assert (touched, {step.target for step in done.steps if isinstance(step, CatchUp)}) == ({"requests"}, {"requests"})


@pytest.mark.slow
def test_once_moved_it_stays_moved_and_moves_again_with_the_next_rebuild() -> None:
    start = live()
    region = promoted(planned(AGENT(pipeline()), start), start)
    settled = planned(AGENT(pipeline()), region)
    assert (actions(settled), settled.release.feeds_into("requests_by_hour")[0].moved) == ({}, True)
    again = planned(of(AGENT, column("path", "string", "get_json_object(payload, '$.path')"))(pipeline()), region)
    assert actions(again) == {"requests": "replay", "requests_by_hour": "rebind"}
    rebuilt = planned(with_sql(AGENT(pipeline()), "count_hours", COUNT.replace(">= 500", ">= 400")), region)
    assert not rebuilt.release.feeds_into("requests_by_hour")[0].moved


def test_what_hangs_below_it_is_not_touched_at_all() -> None:
    bad = replace(
        HOURLY, name="bad", kind="append", columns=(Column(name="ip", type="string"),), time="", partition_by=()
    )
    worse = replace(bad, name="worse")
    feeds = (
        Materialization(name="count_bad", into="bad", sql="SELECT ip FROM requests WHERE status >= 500"),
        Materialization(name="count_worse", into="worse", sql="SELECT ip FROM bad WHERE ip LIKE '10.%'"),
    )
    desired = with_table(with_table(pipeline(), bad), worse)
    desired = replace(desired, materializations=(*desired.materializations, *feeds))
    done = planned(AGENT(desired), live(desired))
    assert actions(done) == {"requests": "replay", "requests_by_hour": "rebind", "bad": "rebind"}
    assert not done.release.feeds_into("worse")[0].moved


@pytest.mark.slow
def test_of_several_feeds_only_those_below_a_rebuilt_table_move() -> None:
    desired = second_feed(pipeline())
    both = replace(REQUESTS, name="both", columns=(Column(name="ip", type="string"),), time="", partition_by=())
    feeds = (
        Materialization(name="direct", into="both", sql="SELECT get_json_object(payload, '$.ip') AS ip FROM landing"),
        Materialization(name="through", into="both", sql="SELECT ip FROM requests"),
    )
    desired = replace(with_table(desired, both), materializations=(*desired.materializations, *feeds))
    wanted = with_sql(AGENT(desired), "parse_b", AGENT(desired).materializations[1].sql + " WHERE region = 'b'")
    done = planned(wanted, live(desired))
    assert actions(done) == {"requests": "replay", "requests_by_hour": "rebind", "both": "rebind"}
    assert {f.materialization: f.moved for f in done.release.feeds_into("both")} == {"direct": False, "through": True}


# what the aggregate below reads of requests is no longer what it was, or cannot be told to be
READS_OTHERWISE = {
    "another value": of(AGENT, parse("'$.ip'", "'$.addr'")),
    "other rows": of(AGENT, lambda p: with_sql(p, "parse", f"{p.materializations[1].sql} WHERE region = 'eu'")),
    "another type": of(requests(columns=typed("status", "string")), parse("AS INT", "AS STRING"), AGENT),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", READS_OTHERWISE)
def test_what_reads_something_else_now_is_rebuilt(name: str) -> None:
    desired = READS_OTHERWISE[name](pipeline())
    assert actions(planned(desired))["requests_by_hour"] == "replay"


@pytest.mark.slow
def test_a_column_that_only_got_another_name_in_a_rebuilt_table_is_not_found_by_the_old_feed() -> None:
    change = of(requests(columns=renamed("ip", "address")), parse("AS ip", "AS address"), column("agent", "string", UA))
    desired = with_sql(change(pipeline()), "count_hours", COUNT.replace("(ip)", "(address)"))
    ends = tuple(replace(e, sql=e.sql.replace("ip", "address")) for e in desired.endpoints)
    assert actions(planned(replace(desired, endpoints=ends)))["requests_by_hour"] == "replay"


def stamped(desired: Pipeline) -> Pipeline:
    return column("seen", "timestamp", "current_timestamp()")(desired)


@pytest.mark.slow
def test_what_the_clock_stamped_is_not_mixed_from_two_computations() -> None:
    reading = with_sql(
        stamped(pipeline()), "count_hours", COUNT.replace("date_trunc('HOUR', ts)", "date_trunc('HOUR', seen)")
    )
    assert actions(planned(AGENT(reading), live(reading)))["requests_by_hour"] == "replay"
    beside = stamped(pipeline())
    assert actions(planned(AGENT(beside), live(beside)))["requests_by_hour"] == "rebind"


@pytest.mark.slow
def test_rows_drawn_by_chance_are_not_mixed_from_two_draws() -> None:
    """Nor where a feed reads no column of them and only counts on their number."""

    def sampled(desired: Pipeline) -> Pipeline:
        return with_sql(desired, "parse", f"{desired.materializations[1].sql} WHERE rand() < 0.5")

    mark = replace(
        HOURLY, name="mark", kind="append", columns=(Column(name="of", type="string"),), time="", partition_by=()
    )
    feed = Materialization(name="marked", into="mark", sql="SELECT 'request' AS of FROM requests")
    before = with_table(pipeline(), mark)
    before = replace(before, materializations=(*before.materializations, feed))
    done = planned(sampled(AGENT(before)), live(sampled(before)))
    assert actions(done) == {"requests": "replay", "requests_by_hour": "replay", "mark": "replay"}
    assert actions(planned(AGENT(before), live(before)))["mark"] == "rebind"


def test_its_own_settings_change_with_it_and_move_nothing() -> None:
    done = planned(with_table(AGENT(pipeline()), replace(HOURLY, description="Hours")))
    why = node(done, "requests_by_hour").why
    assert actions(done)["requests_by_hour"] == "rebind"
    assert "at the same landing position" in why
    assert why.endswith("description: no row moves")


def test_days_that_the_source_lost_are_no_loss_to_it() -> None:
    was = live()
    short = tuple(replace(s, days=s.days[9:], rows=5000) if s.name == "landing" else s for s in was.stats)
    refused = planned(AGENT(pipeline()), replace(was, stats=short)).refusals
    assert [(p.code, p.node) for p in refused] == [("C101", "requests")]
