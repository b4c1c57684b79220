"""The facts of a plan about its region: baseline, drift, affected readers, costs."""

from dataclasses import replace
from typing import Any

import pytest

from console.model.created import table_settings
from console.model.live import Day, Live, TableStats
from console.model.pipeline import Endpoint, Pipeline
from console.model.plan import Price
from console.model.region import Limits, Prices, Region, Spark
from console.model.schema import Column
from console.planning import plan
from console.planning.review.baseline import baseline, baseline_changes
from console.planning.review.keys import parsed_keys, readers
from tests.planning.world import REGION, live, node, pipeline, planned, with_column, with_sql, with_table

pytestmark = pytest.mark.slow

WIDER = with_column(pipeline(), "agent", "string", "get_json_object(payload, '$.agent')")


def altered(name: str, **changes: Any) -> Live:
    """The region after somebody changed what one of its tables is, and not its release."""
    region = live()
    stats = tuple(replace(s, **changes) if s.name == name else s for s in region.stats)
    return replace(region, stats=stats)


def stats_of(name: str) -> TableStats:
    stats = live().table(name)
    assert stats is not None
    return stats


def grown(region: Live, commits: int) -> Live:
    """The same region after live commits."""
    more = tuple(
        replace(s, version=s.version + commits, rows=s.rows + commits, bytes=s.bytes + 90, files=s.files + commits,
                days=(*s.days, Day("2026-11-15", commits, 90)))
        for s in region.stats
    )  # fmt: skip
    return replace(region, stats=more, rows_per_second=region.rows_per_second + 7, free_bytes=region.free_bytes)


def test_rows_move_nothing_that_a_plan_rests_on() -> None:
    before, after = live(), grown(live(), 500)
    assert baseline(WIDER, before) == baseline(WIDER, after)
    assert planned(WIDER, before).content == planned(WIDER, after).content
    assert baseline(WIDER, before).digest == planned(WIDER, before).content


COLUMNS = stats_of("requests").columns
MOVES: dict[str, Live] = {
    "table requests: column extra nothing → string": altered(
        "requests", columns=(*COLUMNS, Column(name="extra", type="string"))
    ),
    "table requests: column event_id string → nothing": altered("requests", columns=COLUMNS[1:]),
    "table requests: column event_id string → int": altered(
        "requests", columns=(Column(name="event_id", type="int"), *COLUMNS[1:])
    ),
    "table requests: column event_id string → string not null": altered(
        "requests", columns=(Column(name="event_id", type="string", nullable=False), *COLUMNS[1:])
    ),
    "table requests: partitioning day → host": altered("requests", partition_by=("host",)),
    "table requests: feature deletionVectors nothing → on": altered("requests", features=("deletionVectors",)),
    "table landing: property delta.appendOnly nothing → true": altered(
        "landing", properties=(("delta.appendOnly", "true"),)
    ),
}


@pytest.mark.parametrize("what", MOVES)
def test_every_other_move_is_one_and_is_reported(what: str) -> None:
    assert baseline_changes(baseline(WIDER, live()), baseline(WIDER, MOVES[what])) == (what,)
    assert planned(WIDER, live()).content != planned(WIDER, MOVES[what]).content


def test_another_release_moves_it_and_names_the_versions() -> None:
    after = live()
    assert after.release is not None
    other = replace(
        after.release,
        id="r9",
        tables=tuple(
            replace(s, version=replace(s.version, path="requests/x-9")) if s.table.name == "requests" else s
            for s in after.release.tables
        ),
    )
    changes = baseline_changes(baseline(WIDER, after), baseline(WIDER, replace(after, release=other)))
    assert [line.split(" ")[0] for line in changes] == ["release", "table"]
    assert changes[1].endswith("→ requests/x-9")


# -- drift


def test_a_region_as_its_release_says_has_not_drifted() -> None:
    assert planned(pipeline()).drift == ()
    assert planned(WIDER, grown(live(), 3)).drift == ()


@pytest.mark.parametrize(
    ("region", "what", "name", "message", "result"),
    [
        (altered("requests", columns=(*COLUMNS, Column(name="extra", type="string"))), "column", "extra", "", "string"),
        (altered("requests", columns=COLUMNS[1:]), "column", "event_id", "string", ""),
        (altered("requests", columns=(Column(name="event_id", type="int"), *COLUMNS[1:])), "type", "event_id", "string", "int"),
        (altered("requests", partition_by=("host",)), "partitioning", "", "by day", "by host"),
        (
            altered("requests", properties=(("delta.enableDeletionVectors", "true"),)),
            "property", "delta.enableDeletionVectors", "", "true",
        ),
        (altered("requests", features=("columnMapping",)), "feature", "columnMapping", "", "on"),
        (replace(live(), stats=tuple(s for s in live().stats if s.name != "requests")), "missing", "", "requests/", ""),
        (altered("landing", columns=(*stats_of("landing").columns, Column(name="user_agent", type="string"))), "column", "user_agent", "", "string"),
    ],
)  # fmt: skip
def test_what_was_altered_by_hand_is_reported_with_both_ways_out(
    region: Live, what: str, name: str, message: str, result: str
) -> None:
    (drift,) = planned(pipeline(), region).drift
    assert (drift.what, drift.name, drift.found) == (what, name, result)
    assert drift.said.startswith(message)
    assert drift.adopt
    assert drift.repair


WEEKS = table_settings(24 * 21)


def recorded(*properties: tuple[str, str]) -> Live:
    """The region whose release keeps what `requests` was created with, and what it has now."""
    region = altered("requests", properties=properties)
    assert region.release
    tables = tuple(
        replace(s, version=replace(s.version, settings=WEEKS)) if s.table.name == "requests" else s
        for s in region.release.tables
    )
    return replace(region, release=replace(region.release, tables=tables))


def test_a_setting_that_the_table_was_not_created_with_has_drifted_whatever_it_is() -> None:
    assert planned(pipeline(), altered("requests", properties=WEEKS)).drift == ()  # of 0.1.0: its release keeps nothing
    assert planned(pipeline(), recorded(*WEEKS, ("delta.appendOnly", "false"))).drift == ()
    short = ("delta.deletedFileRetentionDuration", "interval 1 hours")
    result = planned(pipeline(), recorded(WEEKS[0], short, WEEKS[2], ("delta.dataSkippingNumIndexedCols", "3"))).drift
    assert [(d.what, d.name, d.said, d.found) for d in result] == [
        ("property", "delta.dataSkippingNumIndexedCols", "", "3"),
        ("property", "delta.deletedFileRetentionDuration", "interval 504 hours", "interval 1 hours"),
    ]
    assert "UNSET TBLPROPERTIES ('delta.dataSkippingNumIndexedCols')" in result[0].repair
    assert "SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 504 hours')" in result[1].repair
    (gone,) = planned(pipeline(), recorded(*WEEKS[1:])).drift
    assert (gone.name, gone.said, gone.found) == ("delta.checkpointInterval", "50", "")


def test_settings_of_a_landing_table_are_its_owners() -> None:
    assert planned(pipeline(), altered("landing", properties=(("delta.enableDeletionVectors", "true"),))).drift == ()


# -- who will notice

OWNED = replace(
    pipeline(),
    endpoints=(
        *(replace(e, owner="web-team") for e in pipeline().endpoints),
        Endpoint(name="by_host", sql="SELECT host, count(*) AS n FROM requests GROUP BY host", owner="infra"),
        Endpoint(name="hours", sql="SELECT hour, hits FROM requests_by_hour", owner="bi"),
        Endpoint(name="copied", sql="SELECT day, hits FROM daily_hits", owner="finance"),
    ),
)


def owners(desired: Pipeline) -> dict[str, str]:
    return {a.name: a.owner for a in planned(desired, live(OWNED)).answers}


def test_nobody_is_told_of_what_changes_no_answer() -> None:
    assert owners(OWNED) == {}
    assert owners(with_column(OWNED, "agent", "string", "get_json_object(payload, '$.agent')")) == {}


def test_a_changed_value_is_told_to_the_owners_of_those_who_read_it_and_of_copies_of_it() -> None:
    parse = OWNED.materializations[1].sql
    assert owners(with_sql(OWNED, "parse", parse.replace("region AS host", "upper(region) AS host"))) == {
        "by_host": "infra"
    }
    errors = with_sql(OWNED, "parse", parse.replace("'$.status'", "'$.code'"))
    assert owners(errors) == {"top_errors": "web-team"}


def test_other_rows_are_told_to_every_reader_of_the_table_and_below() -> None:
    fewer = with_sql(OWNED, "parse", OWNED.materializations[1].sql + " WHERE region <> 'test'")
    assert owners(fewer) == {
        "top_errors": "web-team", "by_host": "infra", "hours": "bi", "copied": "finance", "daily": "", "export": "",
    }  # fmt: skip


def test_a_changed_new_or_dropped_endpoint_is_told_to_its_owner() -> None:
    first, *rest = OWNED.endpoints
    assert owners(replace(OWNED, endpoints=tuple(rest))) == {"top_errors": "web-team"}
    assert owners(replace(OWNED, endpoints=(replace(first, sql=first.sql + " HAVING n > 1"), *rest))) == {
        "top_errors": "web-team"
    }
    fresh = Endpoint(name="fresh", sql="SELECT hour FROM requests_by_hour", owner="new-team")
    assert owners(replace(OWNED, endpoints=(*OWNED.endpoints, fresh))) == {"fresh": "new-team"}


# -- prices

PRICED = Region(
    name="eu",
    warehouse="/warehouse",
    spark=Spark("local[4]"),
    limits=Limits(rows=2000),
    prices=Prices(core_hour=3.6, tb_read=5, tb_month=23),
)


def test_each_table_and_the_whole_have_their_price_in_the_regions_money() -> None:
    done = plan(WIDER, live(), PRICED, "test")
    requests = node(done, "requests").price
    landing, own = stats_of("landing"), stats_of("requests")
    assert (requests.rows, requests.bytes, requests.written) == (landing.rows, landing.bytes, own.bytes)
    assert requests.seconds == landing.rows / 1000
    assert requests.money == pytest.approx(landing.bytes / 1e12 * 5 + landing.rows / 1000 * 4 * 0.001)
    assert requests.monthly == pytest.approx(own.bytes / 1e12 * 23)
    parts = [n.price for n in done.nodes]
    assert done.price.money == pytest.approx(sum(p.money for p in parts))
    assert done.price.written == sum(p.written for p in parts)
    assert done.everything.money > done.price.money
    assert plan(WIDER, live(), REGION, "test").price.money == 0


def test_a_kept_table_costs_nothing() -> None:
    assert {n.price for n in plan(pipeline(), live(), PRICED, "test").nodes} == {Price()}


def test_a_plan_that_writes_more_than_there_is_room_is_refused_with_both_figures() -> None:
    need = planned(WIDER).price.written
    tight = planned(WIDER, replace(live(), free_bytes=need - 1))
    (refused,) = [p for p in tight.refusals if p.code == "C120"]
    assert f"{need - 1:,}" in refused.message
    assert f"{need:,}" in refused.message
    assert tight.free_bytes == need - 1
    assert not planned(WIDER, replace(live(), free_bytes=need)).refusals
    retained = replace(pipeline().tables[1], description="said otherwise")
    assert not planned(with_table(pipeline(), retained), replace(live(), free_bytes=1)).refusals


# -- keys

JSON_QUERIES = {
    "SELECT get_json_object(payload, '$.ip') AS x FROM landing": {"ip"},
    "SELECT get_json_object(payload, \"$['user agent'].os[0].name\") AS x FROM landing": {"user agent.os.name"},
    "SELECT q.a FROM landing LATERAL VIEW json_tuple(payload, 'a', 'b') q AS a, b": {"a", "b"},
    "SELECT from_json(payload, 'a STRING, b STRUCT<c: INT>') AS p FROM landing": {"a", "b.c"},
    "SELECT from_json(payload, 'struct<a:string,b:array<struct<c:int>>>').a FROM landing": {"a", "b.c"},
    "WITH raw AS (SELECT payload AS p FROM landing) SELECT get_json_object(p, '$.deep') AS d FROM raw": {"deep"},
    "SELECT ip FROM requests WHERE get_json_object(ip, '$.below') = 'x'": {"below"},
    "SELECT payload FROM landing": set(),
}


@pytest.mark.parametrize("sql", JSON_QUERIES)
def test_every_way_to_take_a_key_out_of_json_is_seen(sql: str) -> None:
    bare = replace(
        with_sql(pipeline(), "parse", "SELECT 1 AS x FROM landing"), endpoints=(Endpoint(name="e", sql=sql),)
    )
    assert parsed_keys(bare, "landing") == {key: ("e",) for key in sorted(JSON_QUERIES[sql])}


def test_a_key_is_read_by_who_takes_it_its_whole_or_a_part_of_it() -> None:
    parsed = {"a.b": ("one",), "c": ("two",)}
    assert [readers(key, parsed) for key in ("a", "a.b", "a.b.c", "ab", "c.d", "d")] == [
        ("one",), ("one",), ("one",), (), ("two",), (),
    ]  # fmt: skip
