"""Repartitioning of a managed landing table: a new version with the same stored columns that an in-place change would have."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from console.model.live import Relay, TableState, TableStats
from console.model.schema import Column, Table
from console.planning.landing.forward_query import renamed
from console.planning.landing.storage import Storage
from console.planning.sql.tree import cast, name, render

_UNFIT = ("decimal", "double", "float", "binary")  # spelled differently by deltalake, which writes these tables


@dataclass(frozen=True, slots=True)
class Relaid:
    """A wanted change of a landing table's partitioning. why: the reason why it is not possible, "" if it is"""

    partition_by: tuple[str, ...]  # stored columns
    why: str = ""


def relaid(table: Table, live: TableState, stats: TableStats | None) -> Relaid | None:
    """None where the partitioning does not change, or only the table's producers may change it."""
    if not table.managed or stats is None or table.partition_by == live.table.partition_by:
        return None
    was = {new: old for old, new in renamed(table, live).items()}
    places = [live.stored_in(was.get(column, column)) for column in table.partition_by]
    stored = tuple(place[0] for place in places)
    if stored == stats.partition_by:
        return None
    return Relaid(stored, _why_not(table, live, was, places))


def _why_not(table: Table, live: TableState, was: Mapping[str, str], places: Sequence[Sequence[str]]) -> str:
    """was: new name → live column;  places: stored columns of each wanted partition column"""
    if not live.table.managed:
        return "its producers still write it: promote `managed: true` first"
    if table.was and live.table.was:
        return f"it gets the name {table.name} in the same plan: promote that first"
    if new := [column for column in table.partition_by if live.table.column(was.get(column, column)) is None]:
        return f"no row has {', '.join(new)} yet: promote the new column first"
    divided = [column for column, parts in zip(table.partition_by, places, strict=True) if len(parts) > 1]
    if divided:
        return f"values of {', '.join(divided)} are in several stored columns"
    if unfit := [c for c in table.columns if c.name in table.partition_by and c.type.startswith(_UNFIT)]:
        return f"{unfit[0].name} is a {unfit[0].type}: ingested values would be stored under other names"
    return ""


def stored_columns(stats: TableStats, storage: Storage) -> tuple[Column, ...]:
    """The stored columns of the new version: those of the live one, and the ones added to both."""
    return (*stats.columns, *storage.added)


def copied(table: str, stats: TableStats, storage: Storage) -> str:
    """The query that fills the new version: the live version's stored rows, unchanged."""
    own = [exp.column(name(column.name)) for column in stats.columns]
    added = [exp.alias_(cast(exp.Null(), column.type), name(column.name)) for column in storage.added]
    return render(exp.select(*own, *added).from_(exp.Table(this=name(table))))


def relay(table: str, live: TableState, columns: tuple[Column, ...]) -> Relay:
    """The relay for rows that arrive later: stored rows, unchanged, in both directions."""
    same = render(exp.select(*(exp.column(name(c.name)) for c in columns)).from_(exp.Table(this=name(table))))
    return Relay(table=table, older=live.version.path, forward=same, backward=same, columns=columns)
