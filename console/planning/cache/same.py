"""Results cached for identical inputs: the regions of a fleet share one pipeline, and most of them one release."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields
from operator import attrgetter
from threading import RLock
from typing import Any, Generic, TypeVar

from console.model.live import Feed, Release, TableState
from console.model.schema import Column, Table

T = TypeVar("T")
R = TypeVar("R")
# regions of a fleet are planned in threads, and ask for the same results at the same time: one lock for all caches, since a
# result is made from others
_lock = RLock()


class IdentityCache(Generic[R]):
    """Results keyed by the identity of their inputs: hashing a pipeline of 500 tables costs more than planning half of it.

    The inputs are frozen, and referenced for as long as their result is cached, so that no identity is reused. Threads that
    ask for a result at the same time get the same object, made once.
    """

    def __init__(self, limit: int = 64) -> None:
        self._limit = limit
        self._entries: OrderedDict[tuple[int, ...], tuple[tuple[Any, ...], R]] = OrderedDict()

    def get(self, make: Callable[[], R], *inputs: object) -> R:
        key = tuple(map(id, inputs))
        if (entry := self._entries.get(key)) is not None:
            return entry[1]
        with _lock:
            if (entry := self._entries.get(key)) is None:
                entry = self._entries[key] = (inputs, make())
                while len(self._entries) > self._limit:
                    self._entries.popitem(last=False)
            return entry[1]

    def clear(self) -> None:
        with _lock:
            self._entries.clear()


class Interner(Generic[T]):
    """One object for all equal ones, so that results cached by identity serve them all.

    key  everything in which two values can differ, as plain tuples and text: compared in a tenth of the time
    """

    def __init__(self, key: Callable[[T], Hashable], limit: int = 256) -> None:
        self._key = key
        self._limit = limit
        self._entries: OrderedDict[Hashable, T] = OrderedDict()

    def get(self, value: T) -> T:
        key = self._key(value)
        with _lock:
            known = self._entries.setdefault(key, value)
            while len(self._entries) > self._limit:
                self._entries.popitem(last=False)
        return known

    def clear(self) -> None:
        with _lock:
            self._entries.clear()


_column = attrgetter(*(field.name for field in fields(Column)))
_table = attrgetter(*(field.name for field in fields(Table) if field.name != "columns"))
_feed = attrgetter(*(field.name for field in fields(Feed)))
_release = attrgetter(*(field.name for field in fields(Release) if field.name not in ("tables", "feeds")))
_unnamed_fields = attrgetter(
    *(f.name for f in fields(Release) if f.name not in ("tables", "feeds", "id", "digest", "tool", "sources"))
)


def release_key(release: Release) -> Hashable:
    """A release as a cache key, made of all of its fields."""
    states = tuple((_state_key(s), s.version.content, s.version.path) for s in release.tables)
    return _release(release), states, tuple(map(_feed, release.feeds))


def _state_key(state: TableState) -> Hashable:
    """A table of a release without the name of its version."""
    return (
        _table(state.table), tuple(map(_column, state.table.columns)), tuple(map(_column, state.version.columns)),
        state.version.partition_by, state.version.settings, state.read, state.rows, tuple(state.values.items()), state.inexact,
    )  # fmt: skip


def _unnamed_key(release: Release) -> Hashable:
    return _unnamed_fields(release), tuple(map(_state_key, release.tables)), tuple(map(_feed, release.feeds))


_unnamed: Interner[Release] = Interner(_unnamed_key)
_shared: IdentityCache[Release] = IdentityCache(256)


def shared_release(release: Release) -> Release:
    """One release for all that differ only in their own name and in those of their versions: whatever is computed from
    columns, queries and fingerprints alone is computed once for a fleet.
    """
    return _shared.get(lambda: _unnamed.get(release), release)
