"""One edit for every route and every rule of the planner: the live pipeline, the wanted one, and the state of the region."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from console.model.live import Day, Live, TableStats
from console.model.pipeline import Materialization, Pipeline
from console.model.schema import Column, Table
from tests.planning.world import (
    COUNT,
    DAYS,
    HOURLY,
    LANDING,
    PARSE,
    REQUESTS,
    live,
    pipeline,
    stats,
    with_column,
    with_sql,
    with_table,
)

Change = Callable[[Pipeline], Pipeline]
UA = "get_json_object(payload, '$.user_agent')"
BYTES = "CAST(get_json_object(payload, '$.bytes') AS BIGINT)"
MS = "CAST(get_json_object(payload, '$.ms') AS DOUBLE)"


@dataclass(frozen=True)
class Edit:
    """wanted and before change the plain pipeline; region changes what the survey says; allowed is accepted by name."""

    wanted: Change
    before: Change = field(default=lambda desired: desired)
    region: Callable[[Live], Live] = field(default=lambda survey: survey)
    allowed: tuple[str, ...] = ()

    def survey(self) -> Live:
        return self.region(live(self.before(pipeline())))

    def pipeline(self) -> Pipeline:
        return self.wanted(self.before(pipeline()))


def _zoned() -> tuple[Column, ...]:
    return tuple(replace(column, name="zone") if column.name == "region" else column for column in LANDING.columns)


def requests(**changes: Any) -> Change:
    def change(desired: Pipeline) -> Pipeline:
        table = desired.table("requests")
        assert table is not None
        return with_table(desired, replace(table, **changes))

    return change


def landing(**changes: Any) -> Change:
    return lambda desired: with_table(desired, replace(LANDING, **changes))


def column(name: str, type: str, expression: str) -> Change:
    return lambda desired: with_column(desired, name, type, expression)


def parse(old: str, new: str) -> Change:
    """Replace a part of the query that feeds requests."""

    def change(desired: Pipeline) -> Pipeline:
        sql = next(m.sql for m in desired.materializations if m.name == "parse")
        assert old in sql
        return with_sql(desired, "parse", sql.replace(old, new))

    return change


def where(condition: str) -> Change:
    return lambda desired: with_sql(desired, "parse", f"{PARSE} WHERE {condition}")


def count(old: str, new: str) -> Change:
    return lambda desired: with_sql(desired, "count_hours", COUNT.replace(old, new))


def last_as(column: Column) -> Change:
    """The last column of requests, declared in another way."""

    def change(desired: Pipeline) -> Pipeline:
        table = desired.table("requests")
        assert table is not None
        return with_table(desired, replace(table, columns=(*table.columns[:-1], column)))

    return change


def of(*changes: Change) -> Change:
    def change(desired: Pipeline) -> Pipeline:
        for one in changes:
            desired = one(desired)
        return desired

    return change


def typed(name: str, type: str, columns: tuple[Column, ...] = REQUESTS.columns) -> tuple[Column, ...]:
    return tuple(replace(c, type=type) if c.name == name else c for c in columns)


def without(*names: str) -> tuple[Column, ...]:
    return tuple(column for column in REQUESTS.columns if column.name not in names)


def renamed(old: str, new: str) -> tuple[Column, ...]:
    return tuple(replace(column, name=new) if column.name == old else column for column in REQUESTS.columns)


def landing_since(day: int, days: tuple[Day, ...] = DAYS) -> Callable[[Live], Live]:
    """Landing holds nothing before this day of the month."""
    short = tuple(with_stats for with_stats in days if with_stats.day >= f"2026-11-{day:02}")
    return lambda survey: with_stats(survey, stats("landing", "landing", LANDING.columns, short))


def with_stats(survey: Live, one: TableStats) -> Live:
    tables = tuple(one if s.name == one.name else s for s in survey.stats)
    return replace(survey, stats=tables)


def second_feed(desired: Pipeline) -> Pipeline:
    more = Materialization(
        name="parse_b",
        into="requests",
        sql=f"{PARSE} WHERE region = 'b'",
        where="plans/web/materializations/parse_b.sql:4:1",
    )
    return replace(desired, materializations=(*desired.materializations, more))


def joined(desired: Pipeline) -> Pipeline:
    """A second chain below requests that looks a rate up in another landing table."""
    rates = replace(
        LANDING,
        name="rates",
        columns=(Column(name="host", type="string"), Column(name="rate", type="double")),
        time="",
        where="plans/web/tables/rates.yaml:1:1",
    )
    priced = replace(
        REQUESTS,
        name="priced",
        columns=(*REQUESTS.columns[:3], Column(name="rate", type="double")),
        where="plans/web/tables/priced.yaml:1:1",
    )
    sql = "SELECT r.event_id, r.ts, r.day, p.rate FROM requests r LEFT JOIN rates p ON p.host = r.host"
    feed = Materialization(name="price", into="priced", sql=sql, where="plans/web/materializations/price.sql:4:1")
    wider = with_table(with_table(desired, rates), priced)
    return replace(wider, materializations=(*wider.materializations, feed))


def priced_by_address(desired: Pipeline) -> Pipeline:
    """A column more in what is looked up."""
    table = desired.table("priced")
    assert table is not None
    sql = next(m.sql for m in desired.materializations if m.name == "price").replace("p.rate", "p.rate, r.ip")
    return with_sql(
        with_table(desired, replace(table, columns=(*table.columns, Column(name="ip", type="string")))), "price", sql
    )


def other_chain(desired: Pipeline) -> Pipeline:
    """A chain that shares nothing with the first."""
    clicks = replace(LANDING, name="clicks", where="plans/web/tables/clicks.yaml:1:1")
    target = Table(
        name="clicked",
        kind="append",
        columns=(Column(name="id", type="string"), Column(name="ts", type="timestamp")),
        time="ts",
        where="plans/web/tables/clicked.yaml:1:1",
    )
    feed = Materialization(
        name="click", into="clicked", sql="SELECT id, ts FROM clicks", where="plans/web/materializations/click.sql:4:1"
    )
    wider = with_table(with_table(desired, clicks), target)
    return replace(wider, materializations=(*wider.materializations, feed))


def smaller(desired: Pipeline) -> Pipeline:
    tables = tuple(t for t in desired.tables if t.name != "requests_by_hour")
    feeds = tuple(m for m in desired.materializations if m.into != "requests_by_hour")
    return replace(desired, tables=tables, materializations=feeds, copies=(), sinks=())


STAMPED = of(column("seen", "timestamp", "current_timestamp()"))
AGENT = of(column("user_agent", "string", UA), column("family", "string", f"split({UA}, '/')[0]"))
KB = column("kb", "bigint", f"{BYTES} div 1024")

EDITS: dict[str, Edit] = {
    # routes
    "keep": Edit(lambda desired: desired),
    "replay_new_columns": Edit(AGENT),
    "replay_only_below": Edit(count(">= 500", ">= 400")),
    "replay_from_a_new_log": Edit(of(AGENT, count(">= 500", ">= 400"))),
    "rebind": Edit(AGENT),
    "rebind_and_metadata": Edit(
        of(AGENT, lambda p: with_table(p, replace(HOURLY, description="Hours, as the reports need them")))
    ),
    "forward_given": Edit(of(AGENT, requests(forward_query="*, '' AS user_agent, '' AS family"))),
    "forward_proven": Edit(KB),
    "forward_layout": Edit(requests(partition_by=("day", "host"))),
    "forward_states": Edit(lambda p: with_table(p, replace(HOURLY, partition_by=("day", "hour")))),
    "read_allowed": Edit(KB, before=requests(backfill="read")),
    "read_expires_soon": Edit(KB, before=requests(retention_days=7, read_time_days=14)),
    "hybrid": Edit(
        of(
            column("ua", "string", UA),
            last_as(Column(name="ua", type="string", default="'unknown'")),
        ),
        region=landing_since(10),
    ),
    "drop_a_table": Edit(smaller),
    "several_feeds": Edit(
        lambda p: with_sql(AGENT(p), "parse_b", AGENT(p).materializations[1].sql + " WHERE region = 'b'"),
        before=second_feed,
    ),
    "isolated_chains": Edit(AGENT, before=other_chain),
    # metadata
    "metadata_renamed": Edit(of(requests(columns=renamed("host", "origin")), parse("AS host", "AS origin"))),
    "metadata_dropped": Edit(of(requests(columns=without("host")), parse(",\n  region AS host", ""))),
    "metadata_constant": Edit(column("schema", "int", "2")),
    "metadata_wider": Edit(requests(columns=typed("status", "bigint"))),
    "metadata_nullable": Edit(
        requests(columns=REQUESTS.columns),
        before=requests(columns=tuple(replace(c, nullable=c.name != "ip") for c in REQUESTS.columns)),
    ),
    "metadata_retention": Edit(requests(retention_days=5)),
    "metadata_endpoint": Edit(
        lambda p: replace(p, endpoints=tuple(replace(e, sql=e.sql.replace("500", "400")) for e in p.endpoints))
    ),
    "landing_column_added": Edit(landing(columns=(*LANDING.columns, Column(name="ext_id", type="string")))),
    "landing_column_dropped": Edit(
        landing(), before=landing(columns=(*LANDING.columns, Column(name="ext_id", type="string")))
    ),
    # rules
    "landing_column_renamed": Edit(
        of(
            landing(columns=_zoned(), forward_query="* EXCEPT (region), region AS zone"),
            parse("region AS host", "zone AS host"),
        )
    ),
    "landing_column_widened": Edit(
        landing(columns=(*LANDING.columns, Column(name="n", type="bigint"))),
        before=landing(columns=(*LANDING.columns, Column(name="n", type="int"))),
    ),
    "C130_landing_computed": Edit(landing(forward_query="* EXCEPT (payload), upper(payload) AS payload")),
    "C131_landing_partitioned": Edit(
        landing(columns=(*LANDING.columns, Column(name="day", type="date")), partition_by=("day",))
    ),
    "C132_landing_without_null": Edit(
        landing(columns=tuple(replace(c, nullable=c.name != "id") for c in LANDING.columns))
    ),
    "C101_days_are_gone": Edit(AGENT, region=landing_since(10)),
    "C101_accepted": Edit(AGENT, region=landing_since(10), allowed=("C101:requests",)),
    "C101_shorter_retention": Edit(of(AGENT, landing(retention_days=5))),
    "C118_carried": Edit(of(AGENT, requests(history="carry")), region=landing_since(10)),
    "C118_since": Edit(of(AGENT, requests(history="since 2026-11-08"))),
    "C118_from_now": Edit(of(AGENT, requests(history="from now"))),
    "C140_since_too_early": Edit(of(AGENT, requests(history="since 2026-11-08")), region=landing_since(10)),
    "C141_without_effect": Edit(requests(owner="web", history="carry")),
    "C102_nothing_is_stored": Edit(of(AGENT, landing(retention_days=0))),
    "C102_nothing_is_left": Edit(of(AGENT, landing(retention_days=0)), region=landing_since(31)),
    "C103_narrows": Edit(of(requests(columns=typed("ms", "float")), parse(MS, MS.replace("DOUBLE", "FLOAT")))),
    "C103_accepted": Edit(
        of(requests(columns=typed("ms", "float")), parse(MS, MS.replace("DOUBLE", "FLOAT"))), allowed=("C103:requests",)
    ),
    "C103_may_not_convert": Edit(of(requests(columns=typed("ms", "date")), parse(MS, MS.replace("DOUBLE", "DATE")))),
    "C104_still_read": Edit(of(requests(columns=without("ip")), parse(" get_json_object(payload, '$.ip') AS ip,", ""))),
    "C105_other_partitions": Edit(parse("to_date(ts) AS day", "date_add(to_date(ts), 1) AS day")),
    "C106_does_not_match": Edit(of(AGENT, requests(forward_query="*, '' AS user_agent"))),
    "C107_has_a_from": Edit(of(AGENT, requests(forward_query="*, '' AS user_agent, '' AS family FROM requests"))),
    "C108_on_an_unchanged_table": Edit(requests(forward_query="*, 1 AS x")),
    "C109_left_over": Edit(requests(owner="web"), before=requests(forward_query="*")),
    "C109_stale": Edit(parse("'$.ip'", "'$.addr'"), before=requests(forward_query="*")),
    "C110_no_landing_table": Edit(
        landing(managed=False), region=lambda survey: replace(survey, stats=survey.stats[1:])
    ),
    "C111_lacks_a_column": Edit(
        landing(managed=False, columns=(*LANDING.columns, Column(name="ext_id", type="string")))
    ),
    "C112_another_type": Edit(landing(columns=typed("payload", "binary", LANDING.columns))),
    "C113_through_a_join": Edit(priced_by_address, before=joined),
    "C114_by_the_clock": Edit(column("ua", "string", UA), before=STAMPED),
    "C115_published_numbers": Edit(count("0.95", "0.99")),
    "C116_rewritten_without": Edit(
        of(
            AGENT,
            requests(columns=without("host")),
            lambda p: AGENT(requests(columns=without("host"))(pipeline())),
            parse(",\n  region AS host", ""),
        )
    ),
    "C117_files_span_days": Edit(AGENT, region=landing_since(1, tuple(replace(day, exact=False) for day in DAYS))),
    "C119_stopped_by_a_filter": Edit(where("ts >= '2026-11-08'")),
    "C119_filtered_by_the_clock": Edit(where("ts >= current_date() - INTERVAL 3 DAYS")),
    "C120_no_room": Edit(AGENT, region=lambda survey: replace(survey, free_bytes=1000)),
    "C121_a_filter_more": Edit(where("region = 'eu'")),
    "C122_protocol": Edit(landing(columns=(*LANDING.columns, Column(name="at", type="timestamp_ntz")))),
    "C122_accepted": Edit(
        landing(columns=(*LANDING.columns, Column(name="at", type="timestamp_ntz"))), allowed=("C122:*",)
    ),
}
