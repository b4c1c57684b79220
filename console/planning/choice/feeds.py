"""What the live feeds of a table go on needing of their sources, when those change."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

import sqlglot
from sqlglot import exp

from console.model.live import Feed, Release
from console.model.plan import Action
from console.model.schema import types
from console.planning.desired import Desired, Wanted
from console.planning.sql.compile import Known, needs
from console.planning.sql.meaning import meaning
from console.planning.sql.relation import Relation, physical
from console.planning.sql.tree import DIALECT


class Decided(Protocol):
    """What became of a source."""

    @property
    def action(self) -> Action: ...
    @property
    def wanted(self) -> Wanted | None: ...
    @property
    def rebuilt(self) -> bool: ...


def as_live(release: Release) -> Known:
    """The tables of a release, and what their rows and values mean."""
    tables = {state.table.name: types(state.table.columns) for state in release.tables}
    relations = {s.table.name: physical(s.table.name, s.rows, s.values) for s in release.tables}
    return Known(tables, relations)


def as_wanted(desired: Desired) -> Known:
    """The same of the tables as the files want them."""
    tables = {name: types(wanted.table.columns) for name, wanted in desired.tables.items()}
    relations = {name: physical(name, wanted.rows, wanted.values) for name, wanted in desired.tables.items()}
    return Known(tables, relations)


def read_by(feed: Feed, source: str, known: Known) -> tuple[str, ...]:
    """Columns of one source that a compiled feed reads."""
    return tuple(sorted(column for table, column in needs(feed.sql, known) if table == source))


def lost(name: str, release: Release, verdicts: Mapping[str, Decided], exposed: dict[str, set[str]]) -> str | None:
    """Why the live feeds into a table cannot go on as they are, or None.

    exposed  source → columns that it must go on showing, added to: the feeds still need them
    """
    known = as_live(release)
    needed: dict[str, set[str]] = {}
    for feed in release.feeds_into(name):
        for source in (feed.source, *feed.joins):
            verdict = verdicts.get(source)
            if verdict is None:
                return f"its feed reads {source}, which is dropped"
            if verdict.action == "keep":
                continue
            state = release.table(source)
            for column in read_by(feed, source, known):
                now = verdict.wanted.values.get(column) if verdict.wanted else None
                if state is not None and now == state.values.get(column):
                    continue
                if now is not None or verdict.rebuilt:
                    return f"its feed reads {source}.{column}, which means something else now"
                needed.setdefault(source, set()).add(column)
    for source, names in needed.items():
        exposed.setdefault(source, set()).update(names)
    return None


def narrowed(wanted: Wanted, release: Release, now: Known) -> tuple[str, ...]:
    """Materializations whose rows come about as before, but for filters that are new."""
    was = as_live(release)
    old = {feed.materialization: feed for feed in release.feeds_into(wanted.table.name)}
    found = []
    for feed in wanted.feeds:
        if (before := old.get(feed.materialization)) is None:
            continue
        a, b = _rows(before, was), _rows(feed, now)
        if replace(a, filters=frozenset()).rows == replace(b, filters=frozenset()).rows and b.filters - a.filters:
            found.append(feed.materialization)
    return tuple(found)


def _rows(feed: Feed, known: Known) -> Relation:
    tree = sqlglot.parse_one(feed.sql, read=DIALECT)
    assert isinstance(tree, exp.Query)
    return meaning(tree, known.relations)
