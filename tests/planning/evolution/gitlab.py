"""GitLab's CI chains as a console pipeline, read from its own statements.

A column that its root table computes while rows are inserted (`MATERIALIZED`) is a column of a table fed from a landing
table of the plain ones. A five-minute bucket is told by the minute, a quantile's default is the median.
"""

import re
from pathlib import Path

from console.model.pipeline import Materialization, Pipeline
from console.model.schema import Column, Table

SQL = Path(__file__).parent / "gitlab.sql"
ROOTS = ("ci_finished_builds", "ci_finished_pipelines")
_TYPES = {
    "String": "string",
    "Bool": "boolean",
    "Date32": "date",
    "UInt8": "smallint",
    "UInt64": "bigint",
    "Int64": "bigint",
}


def text() -> str:
    return SQL.read_text()


def pipeline(sql: str) -> Pipeline:
    tables: list[Table] = []
    feeds: list[Materialization] = []
    for root in ROOTS:
        made = _root(sql, root)
        tables += made[0]
        feeds.append(made[1])
    for target, query in re.findall(r"CREATE MATERIALIZED VIEW \S+ TO (\w+)\s+AS (.*?);", sql, re.S):
        if not any(f"FROM {root}" in query for root in ROOTS):
            continue
        named = dict(_columns(sql, target))
        bucket = next(name for name in named if name.endswith("_bucket"))
        columns = (*(Column(name=name, type=type) for name, type in named.items()), Column(name="_day", type="date"))
        tables.append(
            Table(
                name=target,
                kind="aggregate",
                columns=columns,
                time=bucket,
                partition_by=("_day",),
                where=f"{target}.yaml:1:1",
            )
        )
        feeds.append(
            Materialization(name=f"{target}_mv", into=target, sql=_query(query, bucket), where=f"{target}.sql:1:1")
        )
    return Pipeline(name="ci", tables=tuple(sorted(tables, key=lambda t: t.name)), materializations=tuple(feeds))


def _body(sql: str, table: str) -> str:
    match = re.search(rf"CREATE TABLE {table}\n\((.*?)\n\)\nENGINE", sql, re.S)
    assert match is not None
    return match[1]


def _columns(sql: str, table: str) -> list[tuple[str, str]]:
    return [(name, _type(rest)) for name, rest in re.findall(r"`(\w+)` (.*?)(?:,\n|$)", _body(sql, table))]


def _type(written: str) -> str:
    if written.startswith(("AggregateFunction(count", "SimpleAggregateFunction(sum")):
        return "bigint"
    if written.startswith("AggregateFunction(quantile"):
        return "double"
    if written.startswith("DateTime64"):
        return "timestamp"
    plain = re.sub(r"LowCardinality\((\w+)\)", r"\1", written).split(" ")[0]
    return _TYPES[plain]


def _root(sql: str, root: str) -> tuple[tuple[Table, Table], Materialization]:
    computed = dict(re.findall(r"`(\w+)` \w+ MATERIALIZED (.*?)(?:,\n|$)", _body(sql, root)))
    columns = tuple(Column(name=name, type=type) for name, type in _columns(sql, root))
    plain = tuple(column for column in columns if column.name not in computed)
    landing = Table(
        name=f"{root}_in", kind="landing", columns=plain, time="finished_at", managed=True, where=f"{root}_in.yaml:1:1"
    )
    table = Table(
        name=root, kind="append", columns=columns, time="finished_at", where=f"{root}.yaml:1:1", backfill="read"
    )
    named = [f"{_spark(computed[c.name])} AS {c.name}" if c.name in computed else c.name for c in columns]
    return (landing, table), Materialization(
        name=root, into=root, sql=f"SELECT {', '.join(named)} FROM {landing.name}", where=f"{root}.sql:1:1"
    )


def _query(query: str, bucket: str) -> str:
    start, rest = query.split("\nFROM", 1)
    source = re.search(r"toStartOfInterval\((\w+)", query)
    assert source is not None
    day = f"to_date({source[1]})"
    return _spark(f"{start},\n {day} AS _day\nFROM{rest}, {day}")


def _spark(written: str) -> str:
    for old, new in (
        (r"countState\(\*?\)", "count(*)"),
        (r"sumSimpleState\((\w+)\)", r"sum(\1)"),
        (r"quantileState\((\w+)\)", r"approx_percentile(\1, 0.5)"),
        (r"toStartOfInterval\((\w+), (?:toIntervalMinute\(5\)|INTERVAL 5 minute)\)", r"date_trunc('MINUTE', \1)"),
        (r"toStartOfInterval\((\w+), (?:toIntervalHour\(1\)|INTERVAL 1 hour)\)", r"date_trunc('HOUR', \1)"),
        (r"toStartOfInterval\((\w+), (?:toIntervalDay\(1\)|INTERVAL 1 day)\)", r"date_trunc('DAY', \1)"),
        (r"toStartOfMonth\((\w+)\)", r"to_date(date_trunc('MONTH', \1))"),
        (r"age\('ms', (\w+), (\w+)\)", r"(unix_millis(\2) - unix_millis(\1))"),
        (r"\((\w+) > 0\)", r"(\1 IS NOT NULL)"),
        (r"(\w+) > 0 AND", r"\1 IS NOT NULL AND"),
    ):
        written = re.sub(old, new, written)
    return written
