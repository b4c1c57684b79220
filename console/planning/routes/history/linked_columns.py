"""Rows of a table whose files are taken over (`history: from now`): under which names they are stored, and how they are shown.

The files keep the names and types of the live version's columns, and later rows are stored beside them:

- a column that stays what it is stays where it is stored, also under another name;
- a new one, one of another type and one with another meaning for older rows get a stored column of their own, which is NULL
  in the files taken over;
- a stored column that no column continues is NULL in later rows, so that nothing of them is shown in its place.

Where NULL could be either, a flag tells later rows from older ones: TRUE in each later row, NULL in the files taken over.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import count

import sqlglot
from sqlglot import exp

from console.model.landing import numbered_name
from console.model.schema import Column, OlderValues
from console.planning.fingerprint import DesiredTable
from console.planning.routes.change import Change
from console.planning.sql.newest import newest_of, over_merged, stored_as
from console.planning.sql.reads import Pick, compose, flag, in_later_rows, projections
from console.planning.sql.tree import DIALECT, cast, kind, name, render


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedColumns:
    """places: column → where its later rows are stored;  gone: stored columns that are NULL in later rows;  flags: TRUE there;
    read: all rows, over the view `stored`
    """

    places: Mapping[str, str]
    gone: tuple[Column, ...]
    flags: tuple[str, ...]
    read: str

    def stored(self, wanted: DesiredTable) -> DesiredTable:
        """The same table with these stored columns, and feeds that fill them."""
        if not self.gone and not self.flags and all(column == place for column, place in self.places.items()):
            return wanted
        columns = stored_columns(wanted, self.places, self.gone, self.flags)
        feeds = tuple(replace(feed, sql=self._into(feed.sql)) for feed in wanted.feeds)
        return replace(wanted, columns=columns, feeds=feeds)

    def _into(self, sql: str) -> str:
        """A feed's query with its columns under the names of `places`."""
        parts = [exp.alias_(exp.column(name(column)), name(place)) for column, place in self.places.items()]
        parts += [exp.alias_(cast(exp.null(), column.type), name(column.name)) for column in self.gone]
        parts += [exp.alias_(exp.true(), name(flag)) for flag in self.flags]
        query = sqlglot.parse_one(sql, read=DIALECT)
        assert isinstance(query, exp.Query)
        return render(exp.select(*parts).from_(query.subquery("declared")))


def stored_columns(
    wanted: DesiredTable, places: Mapping[str, str], gone: Iterable[Column], flags: Iterable[str]
) -> tuple[Column, ...]:
    """The stored columns of the new version: those of the declared ones, and those that keep the newest row of each key."""
    declared = {column.name for column in wanted.table.columns}
    own = [replace(column, name=places[column.name]) for column in wanted.table.columns]
    nullable = [replace(column, nullable=True) for column in gone]
    marks = [Column(name=flag, type="boolean") for flag in flags]
    return (*own, *nullable, *marks, *(column for column in wanted.columns if column.name not in declared))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a live column is stored.

    name    "" if it is computed from others
    beside  stored columns that supply it where that one is NULL;  flag: the one that tells whether they do
    """

    name: str = ""
    beside: frozenset[str] = frozenset()
    flag: str = ""


def linked_columns(change: Change, older: OlderValues = "") -> LinkedColumns | str:
    """The columns of a table of rows, or why its files cannot be read as they are.

    older  the operator's choice of values for new and changed columns; `carried_rows` has found it possible
    """
    table, layout = change.wanted.table, _Layout(change, older)
    if why := layout.impossible():
        return why
    newest = newest_of(table)
    read = compose(layout.extended_read(), tuple(layout.picks()), change.wanted.read)
    places, gone = layout.places, layout.gone()
    if newest is not None:
        columns = stored_columns(change.wanted, places, gone, layout.flags)
        read = over_merged(read, stored_as(newest, places, columns))
    return LinkedColumns(places=places, gone=gone, flags=layout.flags, read=read)


class _Layout:
    """The stored columns of the new version, column by column."""

    def __init__(self, change: Change, older: OlderValues) -> None:
        self._change, self._older, table = change, older, change.wanted.table
        self._added = {column.name for column in newest.added} if (newest := newest_of(table)) else set[str]()
        self._stored = {c.name: c for c in change.live.version.columns if c.name not in self._added}
        self._by_name = {pick.name: pick for pick in change.diff.picks}
        self._origins = {column.name: origin for column in table.columns if (origin := self._origin(column))}
        shown = projections(change.live.read)
        self._live = {column: _place(shown[origin.lower()]) for column, origin in self._origins.items()}
        self._staying = self._find_staying()
        declared = [column.name for column in (*table.columns, *change.live.table.columns)]
        taken = {each.lower() for each in (*self._stored, *self._added, *declared)}
        self.places = self._find_places(taken)
        self._flag = next(one for one in map(flag, count(1)) if one not in taken)
        made = list(self.picks())
        flagged = (self._flag,) if any(self._flag in pick.computed for pick in made) else ()
        self.flags = (*sorted({self._live[c].flag for c in self._staying} - {""}), *flagged)

    def impossible(self) -> str:
        """Why the files cannot be read as rows of the new version; "" if they can."""
        table = self._change.wanted.table
        if moved := [column for column in table.partition_by if self.places.get(column) != column]:
            return f"its partition column {moved[0]} is stored under another name"
        if table.time and table.time in self._origins and table.time not in self._staying:
            return f"{table.time}, by which its rows are placed in days, is stored in another type or computed at read"
        if table.is_distinct:
            other = [pick.name for pick in self.picks() if pick.name not in self._staying and not pick.of]
            what = "which equal rows among older and later ones would not hold alike"
        else:
            other = [column for column in (*table.key, *table.order_by) if column not in self._staying]
            what = "by which the newest row of a key is found"
        return f"older rows of {other[0]} are supplied at read, {what}" if other else ""

    def extended_read(self) -> str:
        """The live read, which shows each new stored column as well."""
        tree = sqlglot.parse_one(self._change.live.read, read=DIALECT)
        fresh = [*(place for column, place in self.places.items() if column not in self._staying), self._flag]
        shown = [exp.alias_(exp.column(name(each)), name(each)) for each in fresh]
        tree.set("expressions", [*tree.expressions, *shown])
        return render(tree)

    def picks(self) -> Iterable[Pick]:
        """Each column over the columns of `extended_read`."""
        for column in self._change.wanted.table.columns:
            if column.name in self._staying:
                yield Pick(name=column.name, of=self._origins[column.name])
                continue
            place, older, alike = self.places[column.name], *self._older_rows(column)
            if not older:
                yield Pick(name=column.name, of=place)
                continue
            own = render(exp.column(name(place)))
            supplied = f"coalesce({own}, {older})" if alike and place == column.name else ""
            made = supplied or f"if({render(exp.column(name(self._flag)))}, {own}, {older})"
            yield Pick(name=column.name, computed=made)

    def gone(self) -> tuple[Column, ...]:
        kept = {*self.places.values(), *self.flags}
        return tuple(column for column in self._stored.values() if column.name not in kept)

    def _origin(self, column: Column) -> str:
        """The live column whose values older rows show; "" for a new one."""
        if (pick := self._by_name.get(column.name)) is not None:
            return pick.of
        return column.name if self._change.live.table.column(column.name) else ""

    def _is_chosen(self, column: str) -> bool:
        """Whether the operator's word says what older rows show of a column: other values than the stored ones."""
        return bool(self._older) and column in self._change.diff.computed

    def _find_staying(self) -> set[str]:
        """Columns whose later rows are stored where the older ones are: none of these is supplied from what changes."""
        staying: dict[str, str] = {}
        for column in self._change.wanted.table.columns:
            at = self._live.get(column.name, _Place())
            supplied = column.name not in self._by_name and bool(at.beside)
            if at.name not in self._stored or kind(self._stored[at.name].type) != kind(column.type):
                continue
            if at.name not in staying.values() and not self._is_chosen(column.name) and not supplied:
                staying[column.name] = at.name
        while True:
            same = {place for column, place in staying.items() if column in self._by_name}
            other = {column for column in staying if not self._live[column].beside <= same}
            if not other:
                return {*staying}
            staying = {column: place for column, place in staying.items() if column not in other}

    def _find_places(self, taken: set[str]) -> dict[str, str]:
        places: dict[str, str] = {}
        hidden = {each.lower() for each in (*self._stored, *self._added)}
        for column in self._change.wanted.table.columns:
            if column.name in self._staying:
                places[column.name] = self._live[column.name].name
                continue
            free = column.name not in self._origins and column.name.lower() not in hidden
            places[column.name] = column.name if free else _free(column.name, taken)
            taken.add(places[column.name].lower())
        return places

    def _older_rows(self, column: Column) -> tuple[str, bool]:
        """An older row's value as SQL, "" for NULL; and whether it may be that of a later row as well where that one stores NULL."""
        change = self._change
        default = f"CAST({column.default} AS {column.type})" if column.default is not None else ""
        if self._is_chosen(column.name) and self._older == "null":
            return "", True
        if self._is_chosen(column.name) and self._older == "default":
            return default, False
        if (pick := self._by_name.get(column.name)) is not None and pick.literal:
            return f"CAST({pick.literal} AS {column.type})", True
        given = change.proof.given.get(column.name)
        if given is not None and (column.name not in self._origins or self._older == "computed"):
            return given, _columns(given) <= {self._origins[c].lower() for c in self._staying & self._by_name.keys()}
        if origin := self._origins.get(column.name, ""):
            was = change.live.table.column(origin)
            own = render(exp.column(name(origin)))
            same = was is not None and kind(was.type) == kind(column.type)
            return (own if same else f"CAST({own} AS {column.type})"), False
        return default, False  # `nullable: false` refuses no row of a query, so that a later row may hold NULL as well


def _place(shown: exp.Expr) -> _Place:
    whole = shown.unnest()
    if (flagged := in_later_rows(whole)) is not None:
        return _Place(flagged.name, flag=whole.this.unnest().name)
    first = whole.this.unnest() if isinstance(whole, exp.Coalesce) else whole
    if not isinstance(first, exp.Column):
        return _Place()
    return _Place(first.name, frozenset(part.name for part in shown.find_all(exp.Column)) - {first.name})


def _free(wanted: str, taken: Collection[str]) -> str:
    """The name with the first number under which nothing is stored or shown."""
    return next(one for number in count(2) if (one := numbered_name(wanted, number)).lower() not in taken)


def _columns(sql: str) -> set[str]:
    return {column.name.lower() for column in sqlglot.parse_one(sql, read=DIALECT).find_all(exp.Column)}
