"""A new adapter in front of a live landing table: the region as if its tables had read the adapter all along.

Their feeds are then kept, and move to the adapter's log at promotion, at the same landing position (`rebind`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

import sqlglot
from sqlglot import exp

from console.model.live import Feed, Release, TableState
from console.model.pipeline import Copy, Endpoint, Sink
from console.planning.fingerprint import Desired, DesiredTable, adopted
from console.planning.landing.table_name import over_new_names, with_source
from console.planning.sql.semantics.functions import generates
from console.planning.sql.tree import DIALECT, kind


class _Named(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def sql(self) -> str: ...


End = TypeVar("End", Endpoint, Copy, Sink)


def is_new_adapter(wanted: DesiredTable, live: TableState) -> bool:
    """Whether its live state is only the stand-in that `behind_adapters` adds."""
    return bool(wanted.table.source) and live.table.kind == "landing"


def behind_adapters(release: Release, desired: Desired) -> Release:
    """The release as if feeds, endpoints, copies and sinks that will read a new adapter read it already.

    The source stands in for the adapter: a column that the adapter passes on unchanged has the same value in both.
    """
    for name, wanted in desired.tables.items():
        live = release.table(wanted.table.source) if wanted.table.source else None
        if live is None or live.table.kind != "landing" or release.table(name) is not None or not _row_by_row(wanted):
            continue
        release = replace(
            release,
            tables=(*release.tables, _standing_in(wanted, live)),
            feeds=tuple(_moved(feed, wanted, desired) for feed in release.feeds),
            endpoints=_ends(release.endpoints, wanted, desired.endpoints),
            copies=_ends(release.copies, wanted, desired.copies),
            sinks=_ends(release.sinks, wanted, desired.sinks),
        )
    return release


def _row_by_row(wanted: DesiredTable) -> bool:
    return not any(generates(part) for feed in wanted.feeds for part in _list(feed))


def _list(feed: Feed) -> list[exp.Expr]:
    tree = sqlglot.parse_one(feed.sql, read=DIALECT)
    return tree.selects if isinstance(tree, exp.Query) else []


def _standing_in(wanted: DesiredTable, live: TableState) -> TableState:
    landing = replace(live.table, name=wanted.table.name)
    values = {**adopted(landing).values, **{name: wanted.values[name] for name in _passed_on(wanted, live)}}
    return replace(live, table=landing, rows=wanted.rows, values=values)


def _passed_on(wanted: DesiredTable, live: TableState) -> Iterator[str]:
    """Columns that an adapter passes on with the same name and type."""
    for part in (part for feed in wanted.feeds for part in _list(feed)):
        was, now = live.table.column(part.alias_or_name), wanted.table.column(part.alias_or_name)
        value = part.unalias()
        if (
            was
            and now
            and isinstance(value, exp.Column)
            and value.name == was.name
            and kind(was.type) == kind(now.type)
        ):
            yield was.name


def _moved(feed: Feed, adapter: DesiredTable, desired: Desired) -> Feed:
    """A live feed of the adapter's source, moved to the adapter if the wanted feed reads the adapter."""
    source, name = adapter.table.source, adapter.table.name
    target = desired.tables.get(feed.target)
    now = next((one for one in target.feeds if one.materialization == feed.materialization), None) if target else None
    if now is None or feed.source != source or now.source != name or source in (*feed.joins, *now.joins):
        return feed
    return with_source(feed, {source: name})


def _ends(live: Iterable[End], adapter: DesiredTable, wanted: Iterable[_Named]) -> tuple[End, ...]:
    source, name = adapter.table.source, adapter.table.name
    now: Mapping[str, str] = {node.name: node.sql for node in wanted}
    return tuple(
        replace(node, sql=moved) if (moved := over_new_names(node.sql, {source: name})) == now.get(node.name) else node
        for node in live
    )
