"""A live release's fingerprints, recomputed by the rules of this planner.

Hashes can only be compared for equality: a planner that hashes differently (a corrected rule, another sqlglot) would
see every table as changed. So if a release was hashed by other rules, its compiled queries, which it stores in full,
are hashed again, and meaning is compared with meaning.

The same is done downstream of a landing table with renamed columns, whose values are hashed by name, and for a table
that joins another one whose new content leaves its rows the same.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import sqlglot
from sqlglot import exp

from console.model.live import Feed, Release, TableState
from console.model.schema import types
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.diff import split_value
from console.planning.fingerprint import Desired, DesiredTable, adopted
from console.planning.landing.adapter import is_new_adapter
from console.planning.landing.forward_query import all_renamed
from console.planning.reuse import through_joins
from console.planning.reuse.shown import as_source
from console.planning.sql.aggregates import STORED
from console.planning.sql.relation import Relation, mix, physical
from console.planning.sql.semantics import relation_of
from console.planning.sql.tree import DIALECT

_RELEASES = Memo[Release](256)


def restated(
    release: Release, desired: Desired, rules: str, cache: PlannerCache, moved: Collection[str] = ()
) -> Release:
    """The release as this planner would have hashed it; the same object if nothing has to be rehashed.

    desired  its fingerprints are used for every query of the release with the same meaning
    rules    those that hashed `desired`; a release of 0.1.0 names none
    moved    landing tables of the release that were just renamed
    """
    renamed = all_renamed(release, {name: wanted.table for name, wanted in desired.tables.items()})
    renamed |= {name: renamed.get(name, {}) for name in moved}
    if release.rules == rules and not renamed and not through_joins.candidates(release, desired):
        return release
    return cache.by_identity(
        _RELEASES, lambda: _restated(release, desired, renamed, everything=release.rules != rules), release, desired
    )


def _alike(wanted: DesiredTable, state: TableState, feeds: Iterable[Feed]) -> bool:
    """Whether both have the same compiled queries, the same read and the same columns."""
    declared = (wanted.table.kind, types(wanted.table.columns), wanted.read)
    if declared != (state.table.kind, types(state.table.columns), state.read):
        return False
    return Counter(map(_query, wanted.feeds)) == Counter(map(_query, feeds))


def _query(feed: Feed) -> tuple[str, tuple[str, ...], str]:
    return feed.source, feed.joins, feed.sql


def _sources(feeds: Iterable[Feed]) -> frozenset[str]:
    return frozenset(name for feed in feeds for name in (feed.source, *feed.joins))


def _restated(
    release: Release, desired: Desired, renamed: Mapping[str, Mapping[str, str]], *, everything: bool
) -> Release:
    """renamed: landing table → live column → new name; everything: not only downstream of these tables"""
    made = {state.table.name: state for state in release.tables}
    same: set[str] = set()  # tables whose meaning is the wanted one, like that of all their sources
    touched: set[str] = set(made) if everything else set(renamed)
    joining = through_joins.candidates(release, desired)
    live = through_joins.of_release(release, lambda feed: _live_sources(made, _sources((feed,))))
    now = through_joins.of_desired(desired, lambda feed: _wanted_sources(desired, _sources((feed,))))
    for name, wanted in desired.tables.items():
        if (state := made.get(name)) is None:
            continue
        feeds = release.feeds_into(name)
        if touched & _sources(feeds):
            touched.add(name)
        if name not in touched or is_new_adapter(wanted, state):
            pass
        elif state.table.kind == "landing":
            made[name] = _landing(state, renamed.get(name, {}))
        elif _alike(wanted, state, feeds) and same >= _sources(feeds):
            made[name] = replace(state, rows=wanted.rows, values=wanted.values)
        elif wanted.table.kind != "landing":
            made[name] = _state(state, feeds, wanted, _live_sources(made, _sources(feeds)), desired)
        if name in joining and made[name].rows != wanted.rows:
            made[name] = through_joins.restated(made[name], wanted, live, now)
            touched.add(name)
        if (made[name].rows, made[name].values) == (wanted.rows, wanted.values):
            same.add(name)
    return replace(release, tables=tuple(made.values()))


def _landing(state: TableState, renamed: Mapping[str, str]) -> TableState:
    """A live landing table with each column hashed by its name, a renamed one by the new name."""
    columns = tuple(replace(column, name=renamed.get(column.name, column.name)) for column in state.table.columns)
    landing = adopted(replace(state.table, columns=columns))
    values = {was.name: landing.values[now.name] for was, now in zip(state.table.columns, columns, strict=True)}
    return replace(state, rows=landing.rows, values=values)


def _live_sources(made: Mapping[str, TableState], names: Collection[str]) -> dict[str, Relation]:
    """Tables of the release as sources; upstream ones have already been rehashed."""
    states = [made[name] for name in names if name in made]
    return {state.table.name: as_source(state)[1] for state in states}


def _state(
    state: TableState, feeds: Collection[Feed], wanted: DesiredTable, were: Mapping[str, Relation], desired: Desired
) -> TableState:
    was = _filled(feeds, state.read, were)
    now = _filled(wanted.feeds, wanted.read, _wanted_sources(desired, _sources(wanted.feeds)))
    values = {name: _value(name, value, was, now, wanted) for name, value in state.values.items()}
    same = was.rows == now.rows and (state.table.key, state.table.order_by) == (wanted.table.key, wanted.table.order_by)
    return replace(state, rows=wanted.rows if same else mix("was", was.rows), values=values)


def _wanted_sources(desired: Desired, names: Collection[str]) -> dict[str, Relation]:
    wanted = {name: desired.tables[name] for name in names if name in desired.tables}
    return {n: physical(n, w.rows, w.values, types=types(w.table.columns)) for n, w in wanted.items()}


def _value(name: str, stored: str, was: "_Filled", now: "_Filled", wanted: DesiredTable) -> str:
    """A live column's fingerprint: that of the wanted column with the same meaning, preferably of the same name."""
    type = split_value(stored)[1]
    own = was.values.get(name.lower())
    for other in sorted(wanted.values, key=lambda other: other != name):
        expression, wide = split_value(wanted.values[other])
        if own and (candidate := now.values.get(other.lower())) and own.same(candidate, typed=type == wide):
            return f"{expression}:{type}"
    return f"{mix('was', own.cast if own else stored)}:{type}"


@dataclass(frozen=True, slots=True)
class _Column:
    """Hashes of a compiled column: with the cast to the declared type, and without one."""

    cast: str
    bare: str

    def same(self, other: "_Column", *, typed: bool) -> bool:
        """Whether both are the same expression. If the declared types differ, so do the casts to them, one of which may
        be the operator's own; whether values survive the type change is checked elsewhere.

        typed  both have the same declared type
        """
        if typed:
            return self.cast == other.cast
        return self.cast == other.bare or self.bare == other.cast


@dataclass(frozen=True, slots=True)
class _Filled:
    """Hashes of compiled queries by this planner's rules. values: logical column in lower case → its hashes"""

    rows: str
    values: dict[str, _Column]


def _filled(feeds: Iterable[Feed], read: str, sources: Mapping[str, Relation]) -> _Filled:
    """The rows that feeds write to a table, as seen through its read."""
    trees = [_tree(feed.sql) for feed in feeds]
    rows, cast = _evaluated(trees, _tree(read), sources)
    bare = _evaluated([_without_casts(tree) for tree in trees], _without_casts(_tree(read)), sources)[1]
    return _Filled(rows, {name: _Column(hash, bare[name]) for name, hash in cast.items() if name in bare})


def _evaluated(
    trees: Iterable[exp.Query], read: exp.Query, sources: Mapping[str, Relation]
) -> tuple[str, dict[str, str]]:
    """(hash of the rows, hash of each column)"""
    each = sorted((relation_of(tree, sources) for tree in trees), key=lambda relation: relation.rows)
    filled = {
        column: mix(*(relation.columns[column].hash for relation in each))
        for column in (each[0].columns if each else ())
        if all(column in relation.columns for relation in each)
    }
    columns = relation_of(read, {STORED: physical(STORED, "", filled)}).columns
    return mix(*(relation.rows for relation in each)), {name: value.hash for name, value in columns.items()}


def _without_casts(tree: exp.Query) -> exp.Query:
    """Without the casts of its columns to the declared types."""
    bare = tree.copy()
    for part in bare.selects:
        if isinstance(part, exp.Alias) and isinstance(part.this, exp.Cast):
            part.set("this", part.this.this)
    return bare


def _tree(sql: str) -> exp.Query:
    tree = sqlglot.parse_one(sql, read=DIALECT)
    assert isinstance(tree, exp.Query)
    return tree
