"""Rows of a table whose files are taken over (`history: from now`): under which names they are stored, and how they are shown.

The files keep the names and types of the live version's columns. So a column that was renamed, now or by an earlier release, is
stored under its first name, and one that is no longer declared stays in the files; the feeds write it as NULL.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from console.model.schema import Column
from console.planning.fingerprint import DesiredTable
from console.planning.routes.change import Change
from console.planning.sql.reads import projections
from console.planning.sql.tree import DIALECT, cast, kind, name, render


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedColumns:
    """origins: column → the live one whose values its older rows hold; places: column → where these are stored;
    gone: stored columns that nothing shows"""

    origins: Mapping[str, str]
    places: Mapping[str, str]
    gone: tuple[Column, ...]

    def stored(self, wanted: DesiredTable) -> DesiredTable:
        """The same table with these stored columns, and feeds that fill them."""
        own = {column.name: self.places.get(column.name, column.name) for column in wanted.table.columns}
        if not self.gone and all(column == place for column, place in own.items()):
            return wanted
        columns = tuple(replace(column, name=own[column.name]) for column in wanted.table.columns)
        feeds = tuple(replace(feed, sql=self._into(feed.sql, own)) for feed in wanted.feeds)
        gone = tuple(replace(column, nullable=True) for column in self.gone)
        return replace(wanted, columns=(*columns, *gone), feeds=feeds)

    def _into(self, sql: str, own: Mapping[str, str]) -> str:
        """A feed's query with its columns under the names of `own`, and NULL for those that are gone."""
        parts = [exp.alias_(exp.column(name(column)), name(place)) for column, place in own.items()]
        parts += [exp.alias_(cast(exp.null(), column.type), name(column.name)) for column in self.gone]
        query = sqlglot.parse_one(sql, read=DIALECT)
        assert isinstance(query, exp.Query)
        return render(exp.select(*parts).from_(query.subquery("declared")))

    def read(self, change: Change) -> str:
        """The read of the live version with the new columns added to it, as they are stored."""
        tree = sqlglot.parse_one(change.live.read, read=DIALECT)
        fresh = [column.name for column in change.wanted.table.columns if column.name not in self.places]
        tree.set(
            "expressions", [*tree.expressions, *(exp.alias_(exp.column(name(each)), name(each)) for each in fresh)]
        )
        return render(tree)


def linked_columns(change: Change) -> LinkedColumns | str:
    """The columns of a table of rows, or why its files cannot be read as they are."""
    shown, stored = projections(change.live.read), {column.name: column for column in change.live.version.columns}
    picks = {pick.name: pick for pick in change.diff.picks}
    origins: dict[str, str] = {}
    places: dict[str, str] = {}
    beside: set[str] = set()  # stored columns from which another one is supplied where it is NULL
    for column in change.wanted.table.columns:
        pick = picks.get(column.name)
        origin = pick.of if pick is not None else column.name if change.live.table.column(column.name) else ""
        if not origin:
            continue
        place, others = _place(shown[origin.lower()])
        if pick is None and others:
            return f"older rows of {column.name} are supplied at read, and later rows must not be"
        if place not in stored or kind(stored[place].type) != kind(column.type):
            return f"{column.name} is stored in another type, or will be read differently"
        if place in places.values():
            return f"{column.name} and another column share a stored column"
        origins[column.name], places[column.name] = origin, place
        beside |= others
    if beside - {place for column, place in places.items() if column in picks}:
        return f"older rows are supplied at read from {', '.join(sorted(beside))}, which changes"
    taken = {column.lower() for column in stored}
    for column in change.wanted.table.columns:
        if column.name not in places and column.name.lower() in taken:
            return f"another column is stored as {column.name} in its files"
    if moved := [column for column in change.wanted.table.partition_by if places.get(column) != column]:
        return f"its partition column {moved[0]} is stored under another name"
    gone = tuple(column for column in stored.values() if column.name not in places.values())
    return LinkedColumns(origins=origins, places=places, gone=gone)


def _place(shown: exp.Expr) -> tuple[str, set[str]]:
    """The stored column that holds a column's values, and those that supply it where that one is NULL; "" if it is computed."""
    whole = shown.unnest()
    first = whole.this.unnest() if isinstance(whole, exp.Coalesce) else whole
    if not isinstance(first, exp.Column):
        return "", set()
    return first.name, {part.name for part in shown.find_all(exp.Column)} - {first.name}
