"""A ClickHouse view made anew in its own place, with all that it was told to be."""

from collections.abc import Iterator

from console.propagation.clickhouse.quoting import literal, qualified
from console.propagation.tables import Dependent, Reader
from console.propagation.translate.operations import NEXT, StoreStatement


def exchanged(view: Dependent, select: str, *, made: bool = False) -> Iterator[StoreStatement]:
    """A materialized view with another query in a view's place. made: it stands beside it already"""
    name, beside = qualified(view.name), qualified(view.name + NEXT)
    if not made:
        told = _told(view)
        sql = f"CREATE MATERIALIZED VIEW {beside} TO {qualified(view.target)}{told} AS {select}"
        yield StoreStatement(sql, f"the new query beside the old one, into {view.target} as before")
    yield StoreStatement(f"EXCHANGE TABLES {name} AND {beside}", "the two change names at one instant")
    yield StoreStatement(f"DROP VIEW IF EXISTS {beside}", f"the former query of {view.name} goes")


def retyped(reader: Reader) -> StoreStatement:
    """A plain view with the same query, whose columns take the types that the query has now."""
    sql = f"CREATE OR REPLACE VIEW {qualified(reader.name)}{_told(reader)} AS {reader.select}"
    return StoreStatement(sql, "the same query; its columns take the types that it has now")


def _told(view: Dependent | Reader) -> str:
    comment = f"COMMENT {literal(view.comment)}" if view.comment else ""
    return "".join(f" {part}" for part in (view.head, comment) if part)
