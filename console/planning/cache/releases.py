"""Releases that are equal, or differ in names only, as cache keys and as one shared object."""

from collections.abc import Hashable
from dataclasses import dataclass, fields
from operator import attrgetter

from console.model.live import Feed, Release, TableState
from console.model.schema import Column, Table
from console.planning.cache.planner_cache import Memo, PlannerCache

_SHARED, _ONE, _UNNAMED = Memo[Release](256), Memo[Release](256), Memo[Release](256)
_CONTENT = Memo["_Contents"](256)
_column = attrgetter(*(field.name for field in fields(Column)))
_table = attrgetter(*(field.name for field in fields(Table) if field.name != "columns"))
_feed = attrgetter(*(field.name for field in fields(Feed)))
_release = attrgetter(*(field.name for field in fields(Release) if field.name not in ("tables", "feeds")))
_unnamed_fields = attrgetter(
    *(f.name for f in fields(Release) if f.name not in ("tables", "feeds", "id", "digest", "tool", "sources", "relays"))
)


@dataclass(frozen=True, slots=True, eq=False)
class _Contents:
    """Tables and feeds of equal releases, compared and hashed by identity: a key of 500 tables is hashed once."""

    key: Hashable


_CONTENTS = Memo[_Contents](256)


def release_key(release: Release, cache: PlannerCache) -> Hashable:
    """A release as a key of this cache, made of all of its fields."""
    versions = tuple((state.version.content, state.version.path) for state in release.tables)
    return _release(release), versions, _contents(release, cache)


def one_release(release: Release, cache: PlannerCache) -> Release:
    """One release for all that are equal."""
    return cache.one_of(_ONE, release, release_key(release, cache))


def _contents(release: Release, cache: PlannerCache) -> _Contents:
    """The same object for all releases with these tables and feeds, regardless of the names of the versions."""

    def made() -> _Contents:
        key = tuple(map(_state_key, release.tables)), tuple(map(_feed, release.feeds))
        return cache.one_of(_CONTENT, _Contents(key), key)

    return cache.by_identity(_CONTENTS, made, release)


def _state_key(state: TableState) -> Hashable:
    """A table of a release, without the name of its version."""
    return (
        _table(state.table), tuple(map(_column, state.table.columns)), tuple(map(_column, state.version.columns)),
        state.version.partition_by, state.version.settings, state.read, state.rows, tuple(state.values.items()), state.inexact,
        state.intake, state.older, state.carried, state.unmarked, state.newest, state.merging, state.checks, tuple(state.renamed.items()),
    )  # fmt: skip


def shared_release(release: Release, cache: PlannerCache) -> Release:
    """One release for all that differ only in their own name and those of their versions, so that results of columns,
    queries and fingerprints alone are computed once for a fleet.
    """

    def made() -> Release:
        return cache.one_of(_UNNAMED, release, (_unnamed_fields(release), _contents(release, cache)))

    return cache.by_identity(_SHARED, made, release)
