"""Releases that are equal, or differ in names only, as cache keys and as one shared object."""

from collections.abc import Hashable
from dataclasses import fields
from operator import attrgetter

from console.model.live import Feed, Release, TableState
from console.model.schema import Column, Table
from console.planning.cache.planner_cache import Memo, PlannerCache

_SHARED = Memo[Release](256)
_column = attrgetter(*(field.name for field in fields(Column)))
_table = attrgetter(*(field.name for field in fields(Table) if field.name != "columns"))
_feed = attrgetter(*(field.name for field in fields(Feed)))
_release = attrgetter(*(field.name for field in fields(Release) if field.name not in ("tables", "feeds")))
_unnamed_fields = attrgetter(
    *(f.name for f in fields(Release) if f.name not in ("tables", "feeds", "id", "digest", "tool", "sources", "relays"))
)


def release_key(release: Release) -> Hashable:
    """A release as a cache key, made of all of its fields."""
    states = tuple((_state_key(s), s.version.content, s.version.path) for s in release.tables)
    return _release(release), states, tuple(map(_feed, release.feeds))


def _state_key(state: TableState) -> Hashable:
    """A table of a release, without the name of its version."""
    return (
        _table(state.table), tuple(map(_column, state.table.columns)), tuple(map(_column, state.version.columns)),
        state.version.partition_by, state.version.settings, state.read, state.rows, tuple(state.values.items()), state.inexact,
        state.intake, state.older, state.carried, state.unmarked, state.newest, state.checks,
    )  # fmt: skip


def _unnamed_key(release: Release) -> Hashable:
    return _unnamed_fields(release), tuple(map(_state_key, release.tables)), tuple(map(_feed, release.feeds))


def shared_release(release: Release, cache: PlannerCache) -> Release:
    """One release for all that differ only in their own name and those of their versions, so that results of columns,
    queries and fingerprints alone are computed once for a fleet.
    """
    return cache.by_identity(_SHARED, lambda: cache.one_of(release, _unnamed_key), release)
