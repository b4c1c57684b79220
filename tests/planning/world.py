"""A small pipeline like the demo's, the region it runs in, and the edits that the tests make to it."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from console.model.live import Day, Live, Release, TableStats
from console.model.pipeline import Copy, Endpoint, Materialization, Parameter, Pipeline, Sink
from console.model.plan import NodeChange, Plan, numbered
from console.model.region import Limits, Region
from console.model.schema import Column, Table
from console.planning import PlannerCache, plan

REGION = Region(name="eu", warehouse="/warehouse", limits=Limits(rows=2000))
# one for all plans of a run, as for the regions of a fleet; `test_threads` shows that a plan is the same without it
CACHE = PlannerCache()
_pipelines: dict[str, Pipeline] = {}
_first_rollouts: dict[str, Live] = {}
DAYS = tuple(Day(f"2026-11-{day:02}", 1000, 9000) for day in range(1, 15))


def columns(**types: str) -> tuple[Column, ...]:
    return tuple(Column(name=name, type=type) for name, type in types.items())


LANDING = Table(
    name="landing",
    kind="landing",
    columns=columns(id="string", region="string", ts="timestamp", payload="string"),
    time="ts",
    managed=True,
    where="plans/web/tables/landing.yaml:1:1",
)
REQUESTS = Table(
    name="requests",
    kind="append",
    columns=columns(
        event_id="string",
        ts="timestamp",
        day="date",
        ip="string",
        status="int",
        ms="double",
        bytes="bigint",
        host="string",
    ),
    time="ts",
    partition_by=("day",),
    where="plans/web/tables/requests.yaml:1:1",
)
HOURLY = Table(
    name="requests_by_hour",
    kind="aggregate",
    columns=columns(hour="timestamp", day="date", hits="bigint", errors="bigint", p95="double", visitors="bigint"),
    time="hour",
    partition_by=("day",),
    where="plans/web/tables/requests_by_hour.yaml:1:1",
)
PARSE = """SELECT id AS event_id, ts, to_date(ts) AS day, get_json_object(payload, '$.ip') AS ip,
  CAST(get_json_object(payload, '$.status') AS INT) AS status,
  CAST(get_json_object(payload, '$.ms') AS DOUBLE) AS ms,
  CAST(get_json_object(payload, '$.bytes') AS BIGINT) AS bytes,
  region AS host
FROM landing"""
COUNT = """SELECT date_trunc('HOUR', ts) AS hour, day, count(*) AS hits, count_if(status >= 500) AS errors,
  approx_percentile(ms, 0.95) AS p95, approx_count_distinct(ip) AS visitors
FROM requests GROUP BY 1, day"""


@cache
def pipeline() -> Pipeline:
    return Pipeline(
        name="web",
        tables=(LANDING, REQUESTS, HOURLY),
        materializations=(
            Materialization(
                name="count_hours",
                into="requests_by_hour",
                sql=COUNT,
                where="plans/web/materializations/count_hours.sql:4:1",
            ),
            Materialization(name="parse", into="requests", sql=PARSE, where="plans/web/materializations/parse.sql:4:1"),
        ),
        endpoints=(
            Endpoint(
                name="top_errors",
                sql="SELECT ip, count(*) AS n FROM requests WHERE day = :day AND status >= 500 GROUP BY ip",
                parameters=(Parameter("day", "date"),),
                where="plans/web/endpoints/top_errors.sql:3:1",
            ),
        ),
        copies=(
            Copy(
                name="daily", into="daily_hits", sql="SELECT day, sum(hits) AS hits FROM requests_by_hour GROUP BY day"
            ),
        ),
        sinks=(Sink(name="export", sql="SELECT * FROM daily_hits", path="export"),),
    )


def with_table(desired: Pipeline, table: Table) -> Pipeline:
    others = [t for t in desired.tables if t.name != table.name]
    return replace(desired, tables=tuple(sorted([*others, table], key=lambda t: t.name)))


def with_sql(desired: Pipeline, name: str, sql: str) -> Pipeline:
    nodes = tuple(replace(m, sql=sql) if m.name == name else m for m in desired.materializations)
    return replace(desired, materializations=nodes)


def with_column(desired: Pipeline, name: str, type: str, expression: str) -> Pipeline:
    """One column more in `requests`, at the end."""
    table = desired.table("requests")
    parse = next(m for m in desired.materializations if m.name == "parse")
    assert table is not None
    wider = replace(table, columns=(*table.columns, Column(name=name, type=type)))
    return with_sql(with_table(desired, wider), "parse", parse.sql.replace("\nFROM", f", {expression} AS {name}\nFROM"))


def stats(name: str, path: str, stored: tuple[Column, ...], days: tuple[Day, ...] = DAYS) -> TableStats:
    rows, size = sum(day.rows for day in days), sum(day.bytes for day in days)
    return TableStats(
        name=name, path=path, version=7, rows=rows, bytes=size, files=14, columns=stored, partition_by=(), days=days
    )


def empty(*tables: TableStats) -> Live:
    """A region without a release; by default it has the landing table."""
    return Live(
        region="eu",
        pipeline="web",
        release=None,
        releases=(),
        stats=tables or (stats("landing", "landing", LANDING.columns),),
        rows_per_second=1000.0,
    )


def promoted(done: Plan, was: Live) -> Live:
    """The region after a plan was carried through: every table of the release has fourteen days."""
    release = numbered(done, len(was.releases) + 1).release
    tables = tuple(
        replace(stats(s.table.name, s.version.path, s.version.columns), partition_by=s.version.partition_by)
        for s in release.tables
    )
    return replace(was, release=release, stats=tables)


def live(desired: Pipeline | None = None) -> Live:
    """The region after a pipeline's first rollout: the same one for equal pipelines, since nearly every test begins with one."""
    wanted = one_of(desired or pipeline())
    return _first_rollouts.get(repr(wanted)) or _first_rollouts.setdefault(repr(wanted), rolled_out(wanted))


def rolled_out(desired: Pipeline) -> Live:
    start = empty()
    return promoted(plan(desired, start, REGION, "test", CACHE), start)


def one_of(desired: Pipeline) -> Pipeline:
    """One object for equal pipelines, for which the planner's results are cached."""
    return _pipelines.setdefault(repr(desired), desired)


def planned(desired: Pipeline, region: Live | None = None, history: Mapping[str, str] | None = None) -> Plan:
    return plan(one_of(desired), region or live(), REGION, "test", CACHE, history=history or {})


def actions(done: Plan) -> dict[str, str]:
    """Only what is not kept."""
    return {node.name: node.action for node in done.nodes if node.action != "keep"}


def node(done: Plan, name: str) -> NodeChange:
    return next(change for change in done.nodes if change.name == name)


def release(region: Live) -> Release:
    assert region.release is not None
    return region.release
