"""The compiler with a cache: a compiled query depends on its text, the tables it reads and the engine, all in the key.

The cache is a mapping that the caller passes in: the planner does no I/O. An entry carries a checksum of its key and of
itself, so that a damaged one is ignored.
"""

import hashlib
from collections.abc import Mapping
from typing import TypeVar

from sqlglot._version import __version__ as engine

from console.model.pipeline import Materialization, Parameter
from console.model.schema import Column, Table
from console.planning.cache.planner_cache import Memory
from console.planning.cache.shape import pack, unpack
from console.planning.sql import compile
from console.planning.sql.compile import Compiled, FeedCode, NameScope
from console.planning.sql.tree import Text

T = TypeVar("T")
_DIGITS = 16  # hex digits of an entry's checksum


class Compiler:
    """Compiles as `sql.compile` does, or returns the cached result. Only queries without a problem are cached.

    memory  entries of earlier runs, extended by this one; None starts with an empty cache
    """

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory: Memory = {} if memory is None else memory
        self._tables: dict[str, str] = {}

    def register(self, table: str, columns: Mapping[str, str], *fingerprints: object) -> None:
        """Record column types and fingerprints of a table; to be called before a query over it is compiled."""
        self._tables[table] = _hash(table, list(columns.items()), *fingerprints)

    def reads(self, text: Text) -> tuple[str, ...]:
        """Tables that a query names; () where it cannot be read."""
        key = _key("reads", text.sql)
        if (tables := self._load(key, tuple[str, ...])) is None:
            tables = compile.reads(text)
            if tables:
                self._store(key, tables)
        return tables

    def feed(
        self, node: Materialization, table: Table, known: NameScope, variables: Mapping[str, str]
    ) -> tuple[FeedCode | None, Text]:
        text = Text(sql=node.sql, where=node.where, node=node.name)
        key = self._cache_key("feed", text, _declared(table), _variables_in(node.sql, variables))
        code = self._load(key, FeedCode)
        if code is None:
            code, text = compile.feed(node, table, known, variables)
            if code is not None and not text.problems:
                self._store(key, code)
        return code, text

    def query(
        self,
        text: Text,
        known: NameScope,
        parameters: tuple[Parameter, ...] = (),
        variables: Mapping[str, str] | None = None,
    ) -> Compiled | None:
        named = [(parameter.name, parameter.type) for parameter in parameters]
        key = self._cache_key("query", text, named, _variables_in(text.sql, variables or {}))
        compiled = self._load(key, Compiled)
        if compiled is None:
            compiled = compile.query(text, known, parameters, variables)
            if compiled is not None and not text.problems:
                self._store(key, compiled)
        return compiled

    def _cache_key(self, operation: str, text: Text, *inputs: object) -> str:
        """The key of a compilation; "" where a table that it reads was not registered: the result is not cached then."""
        sources = self.reads(text)
        if not sources or not all(source in self._tables for source in sources):
            return ""
        return _key(operation, text.node, text.sql, *inputs, *(self._tables[source] for source in sources))

    def _load(self, key: str, kind: type[T]) -> T | None:
        entry = self._memory.get(key) if key else None
        if not isinstance(entry, str) or entry[:_DIGITS] != _hash(key, entry[_DIGITS:])[:_DIGITS]:
            return None
        try:
            return unpack(kind, entry[_DIGITS:])
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return None

    def _store(self, key: str, value: object) -> None:
        if key:
            text = pack(value)
            self._memory[key] = _hash(key, text)[:_DIGITS] + text


def rules_of(planner: str) -> str:
    """Identifies the rules by which a planner of this source hashes, with this engine; "" where the source is unknown."""
    return planner and _key("rules", planner)


def _key(*parts: object) -> str:
    return _hash(engine, *parts)


def _hash(*parts: object) -> str:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode(errors="surrogatepass")).hexdigest()


def _declared(table: Table) -> str:
    """The part of a table's declaration that a compilation depends on."""
    declaration = (table.name, table.kind, table.time, table.partition_by, table.retention_days, table.managed)
    return repr((declaration, [_column(column) for column in table.columns]))


def _column(column: Column) -> tuple[str, str, bool, str | None]:
    return column.name, column.type, column.nullable, column.default


def _variables_in(sql: str, variables: Mapping[str, str]) -> list[tuple[str, str]]:
    """Variables that the text may use, with their values."""
    return [(name, value) for name, value in sorted(variables.items()) if name in sql]
