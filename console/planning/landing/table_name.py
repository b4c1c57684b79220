"""A renamed landing table: the region as if its live release already used the new name."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import sqlglot
from sqlglot import exp

from console.model.live import Feed, Live, Release, TableState
from console.model.schema import Table
from console.planning.fingerprint import adopted
from console.planning.sql.tree import DIALECT, name, render


def new_names(tables: Iterable[Table], live: Live) -> dict[str, str]:
    """Live landing table → its new name.

    A table is renamed if its file names the old table (`was`), no file declares that one any more, and the new name is free.
    """
    release, wanted = live.release, {table.name: table for table in tables}
    if release is None:
        return {}
    pairs = {
        table.was: table.name
        for table in wanted.values()
        if table.was
        and table.was not in wanted
        and release.table(table.name) is None
        and live.table(table.name) is None
    }
    return {was: now for was, now in pairs.items() if (state := release.table(was)) and state.table.kind == "landing"}


def called(live: Live, names: Mapping[str, str]) -> Live:
    """The region with these tables under their new names; `Table.was` keeps the old ones."""
    if not names or live.release is None:
        return live
    stats = tuple(replace(each, name=names.get(each.name, each.name)) for each in live.stats)
    return replace(live, release=_release(live.release, names), stats=stats)


def _release(release: Release, names: Mapping[str, str]) -> Release:
    return replace(
        release,
        tables=tuple(_state(state, names) for state in release.tables),
        feeds=tuple(with_source(feed, names) for feed in release.feeds),
        endpoints=tuple(replace(node, sql=over_new_names(node.sql, names)) for node in release.endpoints),
        copies=tuple(replace(node, sql=over_new_names(node.sql, names)) for node in release.copies),
        sinks=tuple(replace(node, sql=over_new_names(node.sql, names)) for node in release.sinks),
    )


def _state(state: TableState, names: Mapping[str, str]) -> TableState:
    if (now := names.get(state.table.name)) is None:
        return state
    table = replace(state.table, name=now, was=state.table.name)
    landing = adopted(table)
    return replace(state, table=table, rows=landing.rows, values=landing.values)


def with_source(feed: Feed, names: Mapping[str, str]) -> Feed:
    """A feed over the same tables under new names."""
    if not {feed.source, *feed.joins} & names.keys():
        return feed
    joins = tuple(names.get(table, table) for table in feed.joins)
    terms = (
        replace(feed.terms, sql=over_new_names(feed.terms.sql, names)) if feed.terms and feed.terms.sql else feed.terms
    )
    source = names.get(feed.source, feed.source)
    return replace(feed, source=source, joins=joins, sql=over_new_names(feed.sql, names), terms=terms)


def over_new_names(sql: str, names: Mapping[str, str]) -> str:
    """The same query over the new names, aliased to the old ones so that qualified columns still resolve."""
    tree = sqlglot.parse_one(sql, read=DIALECT)
    renamed = [table for table in tree.find_all(exp.Table) if not table.db and table.name in names]
    for table in renamed:
        if not table.alias:
            table.set("alias", exp.TableAlias(this=name(table.name)))
        table.set("this", name(names[table.name]))
    return render(tree) if renamed else sql
