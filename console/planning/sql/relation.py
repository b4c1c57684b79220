"""Rows and values as hashes: what `meaning` computes with."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

SIZE = 20  # hex digits kept of every hash


def mix(*parts: object) -> str:
    """One hash of several parts, order kept."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:SIZE]


@dataclass(frozen=True, slots=True)
class Value:
    """One expression. reads: (table, column) it is computed from; volatile: two computations may differ;
    joined: it depends on a table other than the driving one."""

    hash: str
    reads: frozenset[tuple[str, str]] = frozenset()
    volatile: bool = False
    joined: bool = False


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows with named values. `base` and `filters` (a set of conjuncts) together say which rows.

    marks  what a feed must know of how the rows come about: `join`, `inner join`, `group`, `distinct`, `window`,
           `limit`, `generate`, `set`
    """

    base: str
    columns: dict[str, Value]
    filters: frozenset[str] = frozenset()
    reads: frozenset[tuple[str, str]] = frozenset()
    marks: frozenset[str] = frozenset()
    volatile: bool = False

    @property
    def rows(self) -> str:
        return mix("rows", self.base, *sorted(self.filters)) if self.filters else self.base

    def sealed(self, why: str) -> "Relation":
        """No outer filter may mix with the inner ones."""
        return replace(self, base=mix(why, self.rows), filters=frozenset())


def physical(table: str, rows: str, values: Mapping[str, str], volatile: frozenset[str] = frozenset()) -> Relation:
    """A table as a source: its rows and values stand for themselves."""
    return Relation(
        mix("table", table, rows),
        {
            column.lower(): Value(mix("column", table, value), frozenset({(table, column)}), column in volatile)
            for column, value in values.items()
        },
    )


def combined(label: str, parts: Iterable[Value]) -> Value:
    parts = list(parts)
    return Value(
        mix(label, *(part.hash for part in parts)),
        frozenset().union(*(part.reads for part in parts)),
        any(part.volatile for part in parts),
        any(part.joined for part in parts),
    )


def numbered(relation: Relation, at: int) -> Relation:
    columns = {
        name: replace(value, hash=mix("@", at, value.hash), joined=value.joined or at > 0)
        for name, value in relation.columns.items()
    }
    return replace(relation, columns=columns)
