"""Results kept for the very same inputs: a fleet's regions share one pipeline, and most of them one release."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields
from operator import attrgetter
from typing import Any, Generic, TypeVar

from console.model.live import Feed, Release, TableState
from console.model.schema import Column, Table

T = TypeVar("T")
R = TypeVar("R")


class Once(Generic[R]):
    """Computes a function once for the same objects, told apart by identity: hashing a pipeline of 500 tables costs more
    than planning half of it. The inputs are frozen, and held as long as their result, so that no identity is reused.
    """

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._held: OrderedDict[tuple[int, ...], tuple[tuple[Any, ...], R]] = OrderedDict()

    def of(self, make: Callable[[], R], *inputs: object) -> R:
        key = tuple(map(id, inputs))
        if (held := self._held.get(key)) is None:
            held = self._held[key] = (inputs, make())
            while len(self._held) > self._most:
                self._held.popitem(last=False)
        return held[1]

    def forget(self) -> None:
        self._held.clear()


class Same(Generic[T]):
    """One object for all that are equal, so that what is kept by identity serves them all.

    key  everything in which two values can differ, as plain tuples and text: compared in a tenth of the time
    """

    def __init__(self, key: Callable[[T], Hashable], most: int = 256) -> None:
        self._key = key
        self._most = most
        self._held: OrderedDict[Hashable, T] = OrderedDict()

    def of(self, value: T) -> T:
        known = self._held.setdefault(self._key(value), value)
        while len(self._held) > self._most:
            self._held.popitem(last=False)
        return known

    def forget(self) -> None:
        self._held.clear()


_column = attrgetter(*(field.name for field in fields(Column)))
_table = attrgetter(*(field.name for field in fields(Table) if field.name != "columns"))
_feed = attrgetter(*(field.name for field in fields(Feed)))
_release = attrgetter(*(field.name for field in fields(Release) if field.name not in ("tables", "feeds")))
_likeness = attrgetter(
    *(f.name for f in fields(Release) if f.name not in ("tables", "feeds", "id", "digest", "tool", "sources"))
)


def manifest(release: Release) -> Hashable:
    """A release as a key; every field of it takes part."""
    states = tuple((_state(s), s.version.content, s.version.path) for s in release.tables)
    return _release(release), states, tuple(map(_feed, release.feeds))


def _state(state: TableState) -> Hashable:
    """A table of a release but for the name of its version."""
    return (
        _table(state.table), tuple(map(_column, state.table.columns)), tuple(map(_column, state.version.columns)),
        state.version.partition_by, state.version.settings, state.read, state.rows, tuple(state.values.items()), state.inexact,
    )  # fmt: skip


def _alike(release: Release) -> Hashable:
    return _likeness(release), tuple(map(_state, release.tables)), tuple(map(_feed, release.feeds))


_twins: Same[Release] = Same(_alike)
_twin: Once[Release] = Once(256)


def twin(release: Release) -> Release:
    """One release for all that differ in their own name and in those of their versions: whatever is computed from columns,
    queries and fingerprints alone is computed once for a fleet.
    """
    return _twin.of(lambda: _twins.of(release), release)
