"""A ClickHouse view recreated in its place, with its DEFINER, SQL SECURITY and comment."""

from collections.abc import Iterator

from console.propagation.clickhouse.quoting import literal, qualified
from console.propagation.tables import Dependent, Reader
from console.propagation.translate.operations import NEXT, StoreStatement


def exchanged(view: Dependent, select: str, *, made: bool = False) -> Iterator[StoreStatement]:
    """A materialized view replaced by one with another query. made: the new view exists beside the old one already"""
    name, beside = qualified(view.name), qualified(view.name + NEXT)
    if not made:
        options = _options(view)
        sql = f"CREATE MATERIALIZED VIEW {beside} TO {qualified(view.target)}{options} AS {select}"
        yield StoreStatement(sql, f"the new query beside the old one, still into {view.target}")
    yield StoreStatement(f"EXCHANGE TABLES {name} AND {beside}", "the two views swap names atomically")
    yield StoreStatement(f"DROP VIEW IF EXISTS {beside}", f"drops the former query of {view.name}")


def retyped(reader: Reader) -> StoreStatement:
    """A plain view with the same query, whose columns take the query's new types."""
    sql = f"CREATE OR REPLACE VIEW {qualified(reader.name)}{_options(reader)} AS {reader.select}"
    return StoreStatement(sql, "the same query; its columns take its new types")


def _options(view: Dependent | Reader) -> str:
    comment = f"COMMENT {literal(view.comment)}" if view.comment else ""
    return "".join(f" {part}" for part in (view.head, comment) if part)
