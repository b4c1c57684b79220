"""A pipeline of 500 tables, five edits of it, and regions that have it live."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from console import planning
from console.model.live import Day, Live, Release, ReleaseRow, TableStats
from console.model.pipeline import Endpoint, Materialization, Pipeline
from console.model.plan import numbered
from console.model.region import Limits, Region
from console.model.schema import Column, Table

CHAINS, BELOW = 50, 9  # a landing table and nine below it, fifty times
DAYS = 30
LANDING = (Column(name="id", type="string"), Column(name="ts", type="timestamp"), Column(name="payload", type="string"))
COLUMNS = tuple(
    Column(name=name, type=kind)
    for name, kind in (
        ("id", "string"), ("ts", "timestamp"), ("day", "date"), ("status", "int"), ("ms", "double"), ("path", "string"),
        ("agent", "string"), ("bytes", "bigint"),
    )
)  # fmt: skip
PARSE = """SELECT id, ts, to_date(ts) AS day, CAST(get_json_object(payload, '$.status') AS INT) AS status,
  CAST(get_json_object(payload, '$.ms') AS DOUBLE) AS ms, get_json_object(payload, '$.path') AS path,
  get_json_object(payload, '$.agent') AS agent, CAST(get_json_object(payload, '$.bytes') AS BIGINT) AS bytes FROM {source}"""
SHAPE = """WITH kept AS (SELECT * FROM {source} WHERE status >= {k})
SELECT id, ts, day, status, ms * {k} AS ms, lower(path) AS path, coalesce(agent, 'none') AS agent, bytes FROM kept"""


@cache
def pipeline() -> Pipeline:
    """As it is live: 50 chains, 500 tables, 450 queries, 50 endpoints."""
    tables: list[Table] = []
    queries: list[Materialization] = []
    ends: list[Endpoint] = []
    for chain in range(CHAINS):
        landing = f"landing_{chain:02}"
        tables.append(Table(name=landing, kind="landing", columns=LANDING, time="ts", managed=True))
        for k in range(BELOW):
            name, above = f"t_{chain:02}_{k}", f"t_{chain:02}_{max(0, k - 4) if k > 4 else 0}"
            tables.append(Table(name=name, kind="append", columns=COLUMNS, time="ts", partition_by=("day",)))
            sql = SHAPE.format(source=above, k=k) if k else PARSE.format(source=landing)
            queries.append(Materialization(name=f"m_{chain:02}_{k}", into=name, sql=sql))
        ends.append(Endpoint(name=f"e_{chain:02}", sql=f"SELECT path, count(*) AS n FROM t_{chain:02}_8 GROUP BY path"))
    by_name = sorted(tables, key=lambda table: table.name)
    return Pipeline(name="web", tables=tuple(by_name), materializations=tuple(queries), endpoints=tuple(ends))


@cache
def edited() -> Pipeline:
    """Five of them edited: a column more at the end of a chain, another filter, another expression, a retention, a comment."""
    live = pipeline()
    queries = {node.name: node for node in live.materializations}
    tables = {table.name: table for table in live.tables}
    wider = replace(tables["t_00_8"], columns=(*COLUMNS, Column(name="extra", type="string")))
    more = queries["m_00_8"].sql.replace("bytes FROM", "bytes, upper(path) AS extra FROM")
    queries["m_00_8"] = replace(queries["m_00_8"], sql=more)
    queries["m_01_7"] = replace(queries["m_01_7"], sql=queries["m_01_7"].sql.replace("status >= 7", "status > 7"))
    queries["m_02_8"] = replace(queries["m_02_8"], sql=queries["m_02_8"].sql.replace("lower(path)", "upper(path)"))
    tables |= {
        "t_00_8": wider,
        "t_03_8": replace(tables["t_03_8"], retention_days=90),
        "t_04_8": replace(tables["t_04_8"], description="what remains"),
    }
    by_name = tuple(tables[table.name] for table in live.tables)
    return replace(live, tables=by_name, materializations=tuple(queries.values()))


def region(number: int) -> Region:
    return Region(name=f"r{number:03}", warehouse=f"/warehouse/{number}", limits=Limits(rows=5_000_000))


MEMORY: dict[str, str] = {}  # what the pipeline as it is live compiles to, where a run has it already


@cache
def _cache() -> planning.PlannerCache:
    """Of what is live, in all states: what is measured has another."""
    return planning.PlannerCache(dict(MEMORY))


@cache
def _release(state: int) -> Release:
    """The manifest of one live state; states differ in when they were built."""
    bare = Live(
        region="x",
        pipeline="web",
        release=None,
        releases=(),
        stats=tuple(_stats(t.name, t.name, t.columns, 1) for t in pipeline().tables if t.kind == "landing"),
    )
    return numbered(planning.plan(pipeline(), bare, region(0), "bench", _cache()), state + 1).release


def _stats(name: str, path: str, columns: tuple[Column, ...], rows: int) -> TableStats:
    days = tuple(Day(f"2026-10-{day:02}", rows * 100 + day, 9000 * rows) for day in range(1, DAYS + 1))
    return TableStats(
        name=name,
        path=path,
        version=7,
        rows=sum(d.rows for d in days),
        bytes=sum(d.bytes for d in days),
        files=DAYS,
        columns=columns,
        partition_by=(),
        days=days,
    )


def drawn_region(number: int, state: int = 0) -> Live:
    """One region as its survey is decoded: objects of its own, equal to those of others, and sizes of its own."""
    shown = _release(state)
    stats = tuple(
        replace(
            _stats(s.table.name, s.version.path, s.version.columns, number + 1), partition_by=s.version.partition_by
        )
        for s in shown.tables
    )
    columns = {c: replace(c) for s in shown.tables for c in s.version.columns}
    tables = tuple(
        replace(
            s,
            table=replace(s.table, columns=tuple(map(columns.__getitem__, s.table.columns))),
            version=replace(s.version, columns=tuple(map(columns.__getitem__, s.version.columns))),
            values=dict(s.values),
        )
        for s in shown.tables
    )
    own = replace(shown, tables=tables, feeds=tuple(replace(feed) for feed in shown.feeds))
    return Live(
        region=f"r{number:03}",
        pipeline="web",
        release=own,
        releases=(ReleaseRow(id=own.id, state="live"),),
        stats=stats,
        rows_per_second=1000.0 + number,
        free_bytes=1 << 45,
    )


def regions(count: int, states: int) -> Iterator[Live]:
    return (drawn_region(number, number % states) for number in range(count))
