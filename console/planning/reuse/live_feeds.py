"""Whether a table's live feeds can continue when their sources change, and the source columns that they still need."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import sqlglot
from sqlglot import exp

from console.model.live import Feed, Release
from console.model.schema import types
from console.planning.cache.planner_cache import Memo, PlannerCache
from console.planning.diff import split_value
from console.planning.fingerprint import Desired, DesiredTable
from console.planning.reuse.columns_read import columns_of_query
from console.planning.reuse.shown import as_source, shown_values
from console.planning.sql.compile import NameScope
from console.planning.sql.convert import kept
from console.planning.sql.relation import Relation, physical, unknown
from console.planning.sql.semantics import relation_of
from console.planning.sql.tree import DIALECT

_NARROWED = Memo[tuple[str, ...]]()


class SourceVerdict(Protocol):
    """The part of a source's verdict that its readers depend on."""

    @property
    def changes(self) -> bool: ...
    @property
    def wanted(self) -> DesiredTable | None: ...
    @property
    def rebuilt(self) -> bool: ...
    @property
    def shows_older(self) -> bool: ...


def as_live(release: Release, names: Collection[str]) -> NameScope:
    """Tables of a release, with the meaning of their rows and values."""
    sources = {state.table.name: as_source(state) for state in release.tables if state.table.name in names}
    return NameScope(
        {name: columns for name, (columns, _) in sources.items()},
        {name: relation for name, (_, relation) in sources.items()},
    )


def as_wanted(desired: Desired, names: Collection[str]) -> NameScope:
    """The same for the tables as declared in the files."""
    wanted = {name: desired.tables[name] for name in names if name in desired.tables}
    tables = {name: types(one.table.columns) for name, one in wanted.items()}
    return NameScope(tables, {name: physical(name, w.rows, w.values, types=tables[name]) for name, w in wanted.items()})


def as_wanted_but_wider(
    desired: Desired, release: Release, names: Collection[str]
) -> tuple[NameScope, frozenset[tuple[str, str]]]:
    """The tables as wanted, except that columns which only get a wider type keep their live meaning; and these columns."""
    scope = as_wanted(desired, names)
    widened: set[tuple[str, str]] = set()
    relations = dict(scope.relations)
    for name in scope.relations:
        wanted, live = desired.tables[name], release.table(name)
        if live is None:
            continue
        values = dict(wanted.values)
        for column, now in wanted.values.items():
            (expression, type), (was, of) = split_value(now), split_value(live.values.get(column, ":"))
            if expression == was and kept(of, type) == "wider":
                values[column] = live.values[column]
                widened.add((name, column))
        relations[name] = physical(name, wanted.rows, values, types=scope.tables[name])
    return NameScope(scope.tables, relations), frozenset(widened)


def of(feeds: Iterable[Feed]) -> frozenset[str]:
    """The tables that feeds read."""
    return frozenset(name for feed in feeds for name in (feed.source, *feed.joins))


def columns_read(
    sql: str, table: str, columns: Mapping[str, str], others: Collection[str], cache: PlannerCache
) -> tuple[str, ...]:
    """Columns of one table that a compiled query reads, in the table's order. others: further tables that it reads"""
    relations = {name: unknown(name) for name in others} | {table: physical(table, "", columns)}
    of_query = columns_of_query(sql, NameScope({table: columns}, relations), cache)
    read = {column for source, column in of_query if source == table}
    return tuple(column for column in columns if column in read)


def read_by(feed: Feed, source: str, known: NameScope, cache: PlannerCache) -> tuple[str, ...]:
    """Columns of one source that a compiled feed reads."""
    return tuple(sorted(column for table, column in columns_of_query(feed.sql, known, cache) if table == source))


@dataclass(frozen=True, slots=True)
class Continuation:
    """Whether the live feeds into a table continue unchanged.

    broken  why they cannot, "" if they can
    needs   source → columns that it must still show although they are no longer declared
    """

    broken: str = ""
    needs: Mapping[str, frozenset[str]] = field(default_factory=dict)


def continuation(
    name: str, release: Release, verdicts: Mapping[str, SourceVerdict], cache: PlannerCache
) -> Continuation:
    """Whether the live feeds into a table can continue over their changed sources."""
    needs: dict[str, set[str]] = {}
    for feed in release.feeds_into(name):
        for source in (feed.source, *feed.joins):
            verdict = verdicts.get(source)
            if verdict is None:
                return Continuation(f"its feed reads {source}, which is dropped")
            if not verdict.changes:
                continue
            state = release.table(source)
            before = shown_values(state) if state else {}
            for column in read_by(feed, source, as_live(release, of((feed,))), cache):
                now = verdict.wanted.values.get(column) if verdict.wanted else None
                if now is not None and now == before.get(column):
                    continue
                if now is not None or not verdict.shows_older:
                    return Continuation(f"its feed reads {source}.{column}, which means something else now")
                needs.setdefault(source, set()).add(column)
    return Continuation(needs={source: frozenset(columns) for source, columns in needs.items()})


def unrepeatable(name: str, release: Release, verdicts: Mapping[str, SourceVerdict], cache: PlannerCache) -> bool:
    """Whether the live feeds into a table read volatile columns or rows of a rebuilt source.

    A new random sample or timestamp has the same fingerprint and other values: a table with older rows from one
    computation and newer rows from another would agree with neither.
    """
    for feed in release.feeds_into(name):
        if (verdict := verdicts.get(feed.source)) is None or not verdict.rebuilt or verdict.wanted is None:
            continue
        volatile = verdict.wanted.volatile
        rows = bool(volatile) and volatile >= verdict.wanted.values.keys()
        if rows or volatile & set(read_by(feed, feed.source, as_live(release, of((feed,))), cache)):
            return True
    return False


def narrowed(wanted: DesiredTable, release: Release, now: NameScope, cache: PlannerCache) -> tuple[str, ...]:
    """Materializations with the same rows as before, except for new filters."""
    return cache.by_identity(_NARROWED, lambda: _newly_filtered(wanted, release, now), wanted, release)


def _newly_filtered(wanted: DesiredTable, release: Release, now: NameScope) -> tuple[str, ...]:
    live_feeds = {feed.materialization: feed for feed in release.feeds_into(wanted.table.name)}
    live_scope = as_live(release, of(live_feeds.values()))
    names = []
    for feed in wanted.feeds:
        if (live_feed := live_feeds.get(feed.materialization)) is None:
            continue
        old_rows, new_rows = _rows(live_feed, live_scope), _rows(feed, now)
        if (
            replace(old_rows, filters=frozenset()).rows == replace(new_rows, filters=frozenset()).rows
            and new_rows.filters - old_rows.filters
        ):
            names.append(feed.materialization)
    return tuple(names)


def _rows(feed: Feed, known: NameScope) -> Relation:
    tree = sqlglot.parse_one(feed.sql, read=DIALECT)
    assert isinstance(tree, exp.Query)
    return relation_of(tree, known.relations)
