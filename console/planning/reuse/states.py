"""An aggregate that keeps some of its states: these are copied, and only the others are computed from its source.

Both halves are written to the same new version, each with NULL for the states of the other; the merge at read ignores
NULL, so the two rows of a key become one. Both end at the same landing position, like the halves of a hybrid.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from console.model.live import Feed, Live, TableState
from console.model.schema import Column, types
from console.planning.cache.planner_cache import PlannerCache
from console.planning.diff import Diff
from console.planning.estimate import share
from console.planning.fingerprint import DesiredTable
from console.planning.reuse.live_feeds import columns_read
from console.planning.sql.tree import DIALECT, cast, kind, name, render


@dataclass(frozen=True, slots=True)
class Parts:
    """copied: SQL over the live version's stored rows; replayed: materialization → its query for the other states."""

    columns: tuple[str, ...]
    copied: str
    replayed: tuple[tuple[str, str], ...]

    def query(self, feed: Feed) -> str:
        return dict(self.replayed)[feed.materialization]


def parts(wanted: DesiredTable, live: TableState, feeds: Iterable[Feed], diff: Diff) -> Parts | None:
    """The split of a table into kept and computed states; None if it keeps none, or keeps them by other keys.

    feeds   of the live table: each wanted feed needs a counterpart there, whose position ends its half
    """
    if {wanted.table.kind, live.table.kind} != {"aggregate"} or not diff.rows or not diff.layout:
        return None
    if _feed_keys(wanted.feeds) != _feed_keys(feeds):
        return None
    if wanted.table.time != live.table.time or wanted.table.time not in ("", *wanted.keys):
        return None  # stored rows could not be sliced by it
    kept = kept_states(wanted, live, {new for new, old in diff.pairs.items() if new == old} | _reread(diff))
    if not kept >= {key.lower() for key in wanted.keys} or len(kept) == len(wanted.keys):
        return None
    keys = {key.lower() for key in wanted.keys}
    replayed = tuple((feed.materialization, _without(feed.sql, kept - keys, wanted.columns)) for feed in wanted.feeds)
    shown = tuple(column.name for column in wanted.table.columns if column.name in diff.computed)
    return Parts(shown, select_states(wanted.table.name, wanted.columns, {column: column for column in kept}), replayed)


def select_states(table: str, columns: Iterable[Column], places: Mapping[str, str]) -> str:
    """Stored columns over a view with the table's name; NULL for those that are not kept.

    places  column in lower case → the live version's
    """
    chosen = exp.select(*(_state(column, places) for column in columns))
    return render(chosen.from_(exp.Table(this=name(table))))


def saves(
    apart: Parts, wanted: DesiredTable, region: Live, sources: Mapping[str, DesiredTable], cache: PlannerCache
) -> bool:
    """Whether copying the kept states and computing the others reads fewer bytes than computing all of them."""

    def read(feed: Feed, sql: str) -> float:
        columns = sources[feed.source].table.columns
        needed = columns_read(sql, feed.source, types(columns), feed.joins, cache)
        return _bytes(region, feed.source) * share(needed, columns)

    whole = sum(read(feed, feed.sql) for feed in wanted.feeds)
    return _bytes(region, wanted.table.name) + sum(read(feed, apart.query(feed)) for feed in wanted.feeds) < whole


def _bytes(region: Live, table: str) -> int:
    stats = region.table(table)
    return stats.bytes if stats else 0


def kept_states(wanted: DesiredTable, live: TableState, columns: Collection[str]) -> frozenset[str]:
    """Stored columns, in lower case, whose meaning in the live version is the wanted one, under the same names.

    columns  those of the table with unchanged values
    """
    return frozenset(state_places(wanted, live, {column: column for column in columns}, renamed=False))


def state_places(
    wanted: DesiredTable, live: TableState, origins: Mapping[str, str], *, renamed: bool = True
) -> dict[str, str]:
    """Wanted stored column, in lower case → the live version's that has its meaning.

    Name and type are not enough: where a column was renamed at read, its states are stored under another column's name.
    So both releases must read the column in the same way from stored ones of the same types.

    origins  column → the live one with the same values;  renamed: whether stored names may differ
    """
    live_types = {state.name.lower(): kind(state.type) for state in live.version.columns}
    stored = {state.name.lower(): kind(state.type) for state in wanted.columns}
    wanted_reads, live_reads = _reads(wanted.read), _reads(live.read)
    places: dict[str, str] = {}
    for column, origin in origins.items():
        reading, live_reading = wanted_reads[column.lower()], live_reads.get(origin.lower())
        if live_reading is None:
            continue
        if not renamed:
            named = {part.name: part.name for part in reading.find_all(exp.Column)}
        else:
            mine, theirs = ([part.name for part in each.find_all(exp.Column)] for each in (reading, live_reading))
            if len(mine) != len(theirs):
                continue
            named = dict(zip(mine, theirs, strict=True))
            reading = _under(reading, named)
        alike = all(stored[state.lower()] == live_types.get(place.lower()) for state, place in named.items())
        if reading == live_reading and alike:
            places |= {state.lower(): place for state, place in named.items()}
    return places


def _under(reading: exp.Expr, named: Mapping[str, str]) -> exp.Expr:
    """The same expression over columns of other names."""
    renamed = reading.copy()
    for part in renamed.find_all(exp.Column):
        part.set("this", name(named[part.name]))
    return renamed


def _reads(read: str) -> dict[str, exp.Expr]:
    """Column → its expression over the stored ones, without the cast to its declared type."""
    readings = {}
    for part in sqlglot.parse_one(read, read=DIALECT).expressions:
        reading = part.unalias()
        readings[part.alias_or_name.lower()] = reading.this if isinstance(reading, exp.Cast) else reading
    return readings


def _feed_keys(feeds: Iterable[Feed]) -> frozenset[tuple[str, str]]:
    return frozenset((feed.materialization, feed.source) for feed in feeds)


def _reread(diff: Diff) -> set[str]:
    return {pick.name for pick in diff.picks if pick.fresh}


def _state(column: Column, places: Mapping[str, str]) -> exp.Expr:
    place = places.get(column.name.lower())
    value = exp.column(name(place)) if place is not None else cast(exp.null(), column.type)
    return exp.alias_(value, name(column.name))


def _without(sql: str, kept: Collection[str], columns: Iterable[Column]) -> str:
    """A feed's query with NULL for the states that are copied; their arguments are not read then."""
    tree = sqlglot.parse_one(sql, read=DIALECT)
    kinds: Mapping[str, str] = {column.name.lower(): column.type for column in columns}
    projected = [
        exp.alias_(cast(exp.null(), kinds[part.alias_or_name.lower()]), name(part.alias_or_name))
        if part.alias_or_name.lower() in kept
        else part
        for part in tree.expressions
    ]
    tree.set("expressions", projected)
    return render(tree)
