"""The compiler with a memory: what a query compiles to depends on its text, the tables it reads and the engine, all in the key.

The memory is whatever mapping the caller hands in: the planner does no I/O. An entry carries the checksum of its key and
of itself, so that a damaged one is as good as none.
"""

import hashlib
from collections.abc import Mapping, MutableMapping
from typing import TypeVar

from sqlglot._version import __version__ as engine

from console.model.pipeline import Materialization, Parameter
from console.model.schema import Column, Table
from console.planning.cache.shape import pack, unpack
from console.planning.sql import compile
from console.planning.sql.compile import Compiled, FeedCode, NameScope
from console.planning.sql.tree import Text

Memory = MutableMapping[str, str]
T = TypeVar("T")
_SUM = 16  # hex digits of an entry's checksum


class Compiler:
    """Compiles as `sql.compile` does, or remembers that it did. Only what compiled without a problem is kept.

    memory  entries of earlier runs, and those of this one; None remembers nothing
    """

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory: Memory = {} if memory is None else memory
        self._held: dict[str, str] = {}

    def holds(self, table: str, columns: Mapping[str, str], *meaning: object) -> None:
        """What a table gives to those who read it: its columns' types, and its fingerprints. Before anything reads it."""
        self._held[table] = _hash(table, list(columns.items()), *meaning)

    def reads(self, text: Text) -> tuple[str, ...]:
        """Tables that a query names; () where it cannot be read."""
        key = _key("reads", text.sql)
        if (known := self._recall(key, tuple[str, ...])) is None:
            known = compile.reads(text)
            if known:
                self._keep(key, known)
        return known

    def feed(
        self, node: Materialization, table: Table, known: NameScope, variables: Mapping[str, str]
    ) -> tuple[FeedCode | None, Text]:
        text = Text(node.sql, node.where, node.name)
        key = self._about("feed", text, _declared(table), _spoken(node.sql, variables))
        code = self._recall(key, FeedCode)
        if code is None:
            code, text = compile.feed(node, table, known, variables)
            if code is not None and not text.problems:
                self._keep(key, code)
        return code, text

    def query(
        self,
        text: Text,
        known: NameScope,
        parameters: tuple[Parameter, ...] = (),
        variables: Mapping[str, str] | None = None,
    ) -> Compiled | None:
        named = [(parameter.name, parameter.type) for parameter in parameters]
        key = self._about("query", text, named, _spoken(text.sql, variables or {}))
        done = self._recall(key, Compiled)
        if done is None:
            done = compile.query(text, known, parameters, variables)
            if done is not None and not text.problems:
                self._keep(key, done)
        return done

    def _about(self, what: str, text: Text, *more: object) -> str:
        """The key of a compilation; "" where a table it reads is not known, since then it is not remembered."""
        sources = self.reads(text)
        if not sources or not all(source in self._held for source in sources):
            return ""
        return _key(what, text.node, text.sql, *more, *(self._held[source] for source in sources))

    def _recall(self, key: str, kind: type[T]) -> T | None:
        entry = self._memory.get(key) if key else None
        if not isinstance(entry, str) or entry[:_SUM] != _hash(key, entry[_SUM:])[:_SUM]:
            return None
        try:
            return unpack(kind, entry[_SUM:])
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return None

    def _keep(self, key: str, value: object) -> None:
        if key:
            text = pack(value)
            self._memory[key] = _hash(key, text)[:_SUM] + text


def rules_of(planner: str) -> str:
    """The rules by which a planner of this source hashes, with this engine; "" where the source is not told."""
    return planner and _key("rules", planner)


def _key(*parts: object) -> str:
    return _hash(engine, *parts)


def _hash(*parts: object) -> str:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode(errors="surrogatepass")).hexdigest()


def _declared(table: Table) -> str:
    """All of a table's declaration that a compilation may look at."""
    told = (table.name, table.kind, table.time, table.partition_by, table.retention_days, table.managed)
    return repr((told, [_column(column) for column in table.columns]))


def _column(column: Column) -> tuple[str, str, bool, str | None]:
    return column.name, column.type, column.nullable, column.default


def _spoken(sql: str, variables: Mapping[str, str]) -> list[tuple[str, str]]:
    """Variables that the text may name, with their values."""
    return [(name, value) for name, value in sorted(variables.items()) if name in sql]
