"""Compiled queries of earlier runs, each under a key of all its inputs.

The entries are a mapping that the caller passes in: the planner does no I/O. An entry carries a checksum of its key and of
itself, so that a damaged one is ignored.
"""

import hashlib
from typing import TypeVar

from sqlglot._version import __version__ as engine

from console.planning.cache.planner_cache import Memory
from console.planning.cache.shape import pack, unpack

T = TypeVar("T")
_DIGITS = 16  # hex digits of an entry's checksum


class QueryMemory:
    """Entries of earlier runs, extended by this one.

    entries  None starts with none
    """

    def __init__(self, entries: Memory | None = None) -> None:
        self._entries: Memory = {} if entries is None else entries

    def load(self, key: str, kind: type[T]) -> T | None:
        """The value of this class under a key; None if there is none or it is damaged."""
        entry = self._entries.get(key) if key else None
        if not isinstance(entry, str) or entry[:_DIGITS] != _hash(key, entry[_DIGITS:])[:_DIGITS]:
            return None
        try:
            return unpack(kind, entry[_DIGITS:])
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return None

    def store(self, key: str, value: object) -> None:
        """Store a value that was compiled without problems; a value without a key is not stored."""
        if key:
            text = pack(value)
            self._entries[key] = _hash(key, text)[:_DIGITS] + text


def key_of(*parts: object) -> str:
    """A key of these inputs and of the engine that compiles."""
    return _hash(engine, *parts)


def rules_of(planner: str) -> str:
    """Identifies the hashing rules of a planner with this source and engine; "" if the source is unknown."""
    return planner and key_of("rules", planner)


def _hash(*parts: object) -> str:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode(errors="surrogatepass")).hexdigest()
