"""Whether changed content of a joined table changes a feed's result: the query is evaluated with that table's own query
in its place.

A dimension that loses only rows which the join condition excludes anyway does not change the feed's result.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from console.model.live import Feed, Release, TableState
from console.planning.diff import split_value
from console.planning.fingerprint import Desired, DesiredTable
from console.planning.reuse.proof import certain_type, flat_query
from console.planning.sql.compile import NameScope
from console.planning.sql.relation import Relation
from console.planning.sql.semantics import relation_of
from console.planning.sql.tree import DIALECT, kind

Sources = Callable[[Feed], Mapping[str, Relation]]  # a feed's sources, as tables


@dataclass(frozen=True, slots=True)
class Side:
    """One side of the comparison, live or wanted.

    fed      table → the feeds into it;  sources  the relations that they read
    opaque   whether a table's read shows other columns than the feeds write; asked of the few tables that are joined, since
             every read that is looked at has to be parsed
    """

    fed: Mapping[str, tuple[Feed, ...]]
    sources: Sources
    opaque: Callable[[str], bool]


def candidates(release: Release, desired: Desired) -> frozenset[str]:
    """Tables that differ from their live ones and join another."""
    return frozenset(
        name
        for name, wanted in desired.tables.items()
        if any(feed.joins for feed in wanted.feeds)
        and (state := release.table(name)) is not None
        and (state.rows, state.values) != (wanted.rows, wanted.values)
    )


def restated(state: TableState, wanted: DesiredTable, live: Side, now: Side) -> TableState:
    """The live table with the wanted fingerprints for everything that is equal; the same object if its rows differ."""
    name = state.table.name
    old, new = live.fed.get(name, ()), wanted.feeds
    if len(old) != 1 or len(new) != 1 or old[0].joins != new[0].joins or old[0].source != new[0].source:
        return state
    was, will = _opened(old[0], live), _opened(new[0], now)
    if was is None or will is None or was.rows != will.rows:
        return state
    same = {c for c, value in was.columns.items() if c in will.columns and will.columns[c].hash == value.hash}
    if state.table.kind == "aggregate" and len(same) != len(will.columns):
        return state  # its columns are computed from several states
    values = dict(state.values)
    for column, value in wanted.values.items():
        kept = state.table.kind == "aggregate" or column.lower() in same
        if kept and column in values and split_value(values[column])[1] == split_value(value)[1]:
            values[column] = value
    return replace(state, rows=wanted.rows, values=values)


def _opened(feed: Feed, side: Side) -> Relation | None:
    """A feed's result with joined tables replaced by their queries; None if one of them has no single query."""
    sources = dict(side.sources(feed))
    for name in feed.joins:
        feeds = side.fed.get(name, ())
        if not feeds:
            continue  # a landing table has no query
        if len(feeds) != 1 or side.opaque(name):
            return None
        inner = _inner(feeds[0], side.sources(feeds[0]))
        if inner.volatile or inner.doubts:
            return None
        sources[name] = inner
    return relation_of(_tree(feed.sql), sources)


def _inner(feed: Feed, sources: Mapping[str, Relation]) -> Relation:
    """A joined table's query, without casts to types that its expressions certainly have, since conditions lack these casts."""
    tables = {name: {column: value.type for column, value in of.columns.items()} for name, of in sources.items()}
    query = flat_query(feed, NameScope(tables, sources))
    if query is None:
        return relation_of(_tree(feed.sql), sources)
    tree = query.tree.copy()
    for part in tree.expressions:
        value = part.unalias()
        if isinstance(value, exp.Cast) and certain_type(value.this, query) == kind(value.to.sql(DIALECT)):
            value.replace(value.this)
    return relation_of(tree, sources)


def of_release(release: Release, sources: Sources) -> Side:
    states = {state.table.name: state for state in release.tables}
    return Side(
        {name: release.feeds_into(name) for name in states},
        sources,
        lambda name: states[name].table.kind != "append" or not _plain(states[name].read),
    )


def of_desired(desired: Desired, sources: Sources) -> Side:
    fed = {name: wanted.feeds for name, wanted in desired.tables.items()}
    return Side(fed, sources, lambda name: desired.tables[name].table.kind != "append")


def _plain(read: str) -> bool:
    """Whether a read shows stored columns unchanged."""
    tree = sqlglot.parse_one(read, read=DIALECT)
    return isinstance(tree, exp.Select) and all(
        isinstance(part.unalias(), exp.Column) and part.unalias().name == part.alias_or_name
        for part in tree.expressions
    )


def _tree(sql: str) -> exp.Query:
    tree = sqlglot.parse_one(sql, read=DIALECT)
    assert isinstance(tree, exp.Query)
    return tree
