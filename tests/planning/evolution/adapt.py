"""Collected cases as console pipelines: other engines' statements, translated to Spark.

The adaptations, and why they do not affect the point of the cases:

- `PATH`, `DOMAINWITHOUTWWW`, `ANY_VALUE` and `TRUNC(time, 'HOUR')` are other engines' functions: each becomes one
  expression of Spark, the same on both sides;
- a view that a materialization reads becomes a CTE of it; ORDER BY of a materialization is left out;
- `WITH expression AS name` is the expression; one that takes a view's first row, which no feed can know, a constant;
- an aggregate of ours is partitioned by a day among its keys: where it has none, `_day` is added on both sides;
- a landing table is managed, so that it may change; a text that may not be NULL has the default which the other engine
  gives it, another column without a constant for a default is nullable.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import sqlglot
from sqlglot import exp

from console.model.pipeline import Materialization, Pipeline
from console.model.schema import Column, Table

CASES = Path(__file__).parent / "cases"
HITS = Path(__file__).parent / "analytics_hits.sql"  # a template in its project: here without its optional filters


def load() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in sorted(CASES.glob("*.json"))}


def pipeline(side: dict[str, Any]) -> Pipeline:
    views = {t["name"]: t["sql_spark_best_effort"] or HITS.read_text() for t in side["transforms"] if not t["target"]}
    tables = {t["name"]: _table(t) for t in side["tables"]}
    feeds = []
    for node in side["transforms"]:
        if node["target"]:
            query = _query(node["sql_spark_best_effort"], views)
            target = tables.get(node["target"])
            if target is not None:
                tables[target.name], query = _by_day(target, query)
            feeds.append(
                Materialization(
                    name=node["name"], into=node["target"], sql=query.sql("spark"), where=f"{node['name']}.sql:1:1"
                )
            )
    fed = {feed.into for feed in feeds}
    kept = [table for table in tables.values() if table.kind == "landing" or table.name in fed]
    return Pipeline(name="case", tables=tuple(sorted(kept, key=lambda t: t.name)), materializations=tuple(feeds))


def _table(data: dict[str, Any]) -> Table:
    landing = data["kind"] == "landing"
    columns = tuple(_column(c, landing) for c in data["columns"])
    times = [c.name for c in columns if c.type == "timestamp"]
    ttl = re.search(r"toIntervalDay\((\d+)\)", data["engine"].get("ENGINE_TTL") or "")
    return Table(
        name=data["name"], kind="landing" if landing else "append", columns=columns, time=times[0] if times else "",
        retention_days=int(ttl[1]) if ttl else None, managed=landing, where=f"{data['name']}.yaml:1:1",
    )  # fmt: skip


def _column(data: dict[str, Any], landing: bool) -> Column:
    name, type = data["name"], data["spark_type"].lower()
    if not landing or type != "string":
        return Column(name=name, type=type)
    default = data["default"] or ("''" if not data["nullable"] else None)
    return Column(name=name, type=type, nullable=bool(data["nullable"]), default=default)


def _query(sql: str, views: dict[str, str]) -> exp.Select:
    tree = sqlglot.parse_one(sql, read="spark").transform(_in_spark)
    assert isinstance(tree, exp.Select)
    tree.set("order", None)
    tree = _without_scalars(tree)
    for name, text in views.items():
        if any(table.name == name for table in tree.find_all(exp.Table)):
            tree = tree.with_(name, as_=_query(text, {}), dialect="spark")
    return tree


def _without_scalars(tree: exp.Select) -> exp.Select:
    """`WITH expression AS name` put in the place of the name; one over a view's first row becomes a constant."""
    with_ = tree.args.get("with_")
    scalars = (
        {cte.alias: cte.this for cte in with_.expressions if not isinstance(cte.this, exp.Select)} if with_ else {}
    )
    if not scalars:
        return tree
    tree.set("with_", None)

    def put(node: exp.Expr, seen: frozenset[str]) -> exp.Expr:
        def one(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column) or part.name not in scalars or part.name in seen:
                return part
            value = scalars[part.name]
            if isinstance(value, exp.Subquery):
                return exp.Literal.string("self")
            return exp.Paren(this=put(value.copy(), seen | {part.name}))

        return node.transform(one)

    named = [exp.alias_(put(p.unalias(), frozenset()), p.alias_or_name) for p in tree.expressions]
    for part in ("where", "group"):
        if tree.args.get(part):
            tree.set(part, put(tree.args[part], frozenset()))
    tree.set("expressions", named)
    return tree


def _in_spark(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.AnyValue):
        return exp.Min(this=node.this)
    if isinstance(node, (exp.DateTrunc, exp.TimestampTrunc)) or (
        isinstance(node, exp.Anonymous) and node.name.upper() == "TRUNC"
    ):
        unit = node.args.get("unit") or node.expressions[1]
        column = node.this if isinstance(node.this, exp.Expr) else node.expressions[0]
        return sqlglot.parse_one(f"date_trunc('{unit.name}', {column.sql('spark')})", read="spark")
    if isinstance(node, exp.Anonymous) and node.name.upper() == "MULTIIF":
        *pairs, last = node.expressions
        tests = zip(pairs[::2], pairs[1::2], strict=True)
        return exp.Case(ifs=[exp.If(this=test, true=value) for test, value in tests], default=last)
    if isinstance(node, exp.Anonymous) and node.name.upper() in _OURS:
        given = node.expressions[0].sql("spark")
        return sqlglot.parse_one(_OURS[node.name.upper()].format(given), read="spark")
    return node


_OURS = {
    "PATH": "parse_url({0}, 'PATH')",
    "DOMAINWITHOUTWWW": "regexp_replace(parse_url({0}, 'HOST'), '^www[.]', '')",
    "URLHIERARCHY": "split({0}, '/')",
}


def _by_day(table: Table, query: exp.Select) -> tuple[Table, exp.Select]:
    """An aggregate gets a day among its keys, by which it is partitioned."""
    if query.args.get("group") is None:
        return table, query
    days = [column.name for column in table.columns if column.type == "date"]
    if days:
        return replace(table, kind="aggregate", partition_by=(days[0],), time=days[0]), query
    source = next(
        c for c in query.find_all(exp.Column) if c.name in ("event_ts", "timestamp", "started_at", "finished_at")
    )
    day = sqlglot.parse_one(f"to_date({source.name})", read="spark")
    query = query.select(exp.alias_(day, "_day")).group_by(day.copy())
    columns = (*table.columns, Column(name="_day", type="date"))
    return replace(table, kind="aggregate", columns=columns, partition_by=("_day",), time="_day"), query
