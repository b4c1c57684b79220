"""Rows and values as hashes: what `meaning` computes with."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

SIZE = 20  # hex digits kept of every hash


def mix(*parts: object) -> str:
    """One hash of several parts, order kept."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:SIZE]


@dataclass(frozen=True, slots=True)
class Value:
    """One expression. reads: (table, column) it is computed from; volatile: two computations may differ;
    joined: it depends on a table other than the driving one; name: as it is written, "" where that is not known;
    type: Spark's, of what a table declares, "" of all else; kind, parts: the operator and its operands where it is nothing
    but those, else None."""

    hash: str
    reads: frozenset[tuple[str, str]] = frozenset()
    volatile: bool = False
    joined: bool = False
    name: str = field(default="", compare=False)
    type: str = field(default="", compare=False)
    kind: str = field(default="", compare=False)
    parts: "tuple[Value, ...] | None" = field(default=None, compare=False, repr=False)

    def opaque(self, hash: str) -> "Value":
        """Another value that reads the same, of which no operator is known."""
        return replace(self, hash=hash, kind="", parts=None)

    def tagged(self, tag: str) -> "Value":
        """The same expression over another occurrence of its source."""
        return self.opaque(mix("@", tag, self.hash))


TRUE, FALSE = Value(mix("boolean", True), parts=()), Value(mix("boolean", False), parts=())


@dataclass(frozen=True, slots=True)
class Rest:
    """The columns of a source whose schema is not known, but for those in `but`."""

    hash: str
    table: str
    but: frozenset[str] = frozenset()
    joined: bool = False

    def column(self, name: str) -> Value:
        return Value(mix("column", self.hash, name), frozenset({(self.table, name)}), joined=self.joined)

    def tagged(self, tag: str) -> "Rest":
        return replace(self, hash=mix("@", tag, self.hash))

    def without(self, names: Iterable[str]) -> "Rest":
        return replace(self, but=self.but | frozenset(names))

    @property
    def value(self) -> Value:
        """All of them at once."""
        reads = frozenset({(self.table, "*")})
        return Value(mix("rest", self.hash, *sorted(self.but)), reads, joined=self.joined)


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows with named values: those of the product of `parts` that pass every one of `filters`.

    parts   what is multiplied, in no order: tables, grouped or united rows, and what is applied to each row (a LEFT
            JOIN, a generator), which carries its own condition
    rest    sources whose columns are not known and all pass through
    bare    values are told apart within this relation only: they need a tag beside another one
    unique  values of which no two rows have the same, if any are known
    doubts  why more rows may come about than is known
    order   in which the rows come, "" where in none: it matters to what counts or collects them, and to nothing else
    asked   of the filters those of which it is known what they ask;  branches  what a UNION ALL is made of
    came    how they came about before they were made one part, where that tells in which order ties come
    marks   what a feed must know of how the rows come about: `join`, `inner join`, `group`, `distinct`, `window`,
            `limit`, `generate`, `set`
    """

    parts: tuple[str, ...]
    columns: dict[str, Value]
    filters: frozenset[str] = frozenset()
    reads: frozenset[tuple[str, str]] = frozenset()
    marks: frozenset[str] = frozenset()
    volatile: bool = False
    rest: tuple[Rest, ...] = ()
    bare: bool = False
    unique: frozenset[str] | None = None
    doubts: frozenset[str] = frozenset()
    order: str = ""
    came: str = ""
    asked: "tuple[Value, ...]" = ()
    branches: "tuple[Relation, ...]" = ()

    @property
    def rows(self) -> str:
        return mix("rows", *sorted(self.parts), "where", *sorted(self.filters))

    @property
    def arrival(self) -> str:
        """What the order of rows depends on that nothing else puts in order: the same rows from sides swapped come otherwise."""
        return mix("arrival", *self.parts, self.order, self.came)

    def every(self) -> list[Value]:
        """All its values, those of unknown columns last."""
        return [*self.columns.values(), *(rest.value for rest in self.rest)]

    def tagged(self, tag: str) -> "Relation":
        return replace(
            self,
            parts=tuple(mix("@", tag, part) for part in self.parts),
            columns={name: value.tagged(tag) for name, value in self.columns.items()},
            filters=frozenset(mix("@", tag, one) for one in self.filters),
            unique=None if self.unique is None else frozenset(mix("@", tag, one) for one in self.unique),
            asked=(),
            branches=(),
            rest=tuple(rest.tagged(tag) for rest in self.rest),
            bare=False,
            order=self.order and mix("@", tag, self.order),
        )

    def apart(self, taken: Iterable[str]) -> tuple["Relation", tuple[str, ...]]:
        """The same beside other parts: its values told from theirs, and the tags by which that was done."""
        found, taken = self, set(taken)
        tags: tuple[str, ...] = ()
        if self.bare:
            tags = (self.parts[0],)
            found = self.tagged(self.parts[0])
            found = replace(found, parts=(self.parts[0], *found.parts[1:]))
        again, at = found, 0
        while taken & set(again.parts):
            at += 1
            again = found.tagged(f"again {at}")
        return again, (*tags, f"again {at}") if at else tags

    def of_another(self) -> "Relation":
        """The same as a source that does not drive the query."""
        columns = {name: replace(value, joined=True) for name, value in self.columns.items()}
        return replace(self, columns=columns, rest=tuple(replace(rest, joined=True) for rest in self.rest))

    def sealed(self, part: str, mark: str = "") -> "Relation":
        """Rows of which only `part` tells which they are, in no order; the values stay what they are in each of them."""
        marks = self.marks | ({mark} if mark else set())
        sealed = replace(self, parts=(part,), filters=frozenset(), bare=True, marks=marks, order="", came=self.arrival)
        return replace(sealed, asked=(), branches=())

    def narrowed(self, conditions: Iterable[Value]) -> "Relation":
        """The rows that pass these as well."""
        conditions = list(conditions)
        filters = self.filters | {one.hash for one in conditions}
        return replace(
            self,
            filters=filters if FALSE.hash not in filters else frozenset({FALSE.hash}),
            asked=(*self.asked, *conditions),
            branches=(),
            reads=self.reads.union(*(one.reads for one in conditions)),
            volatile=self.volatile or any(one.volatile for one in conditions),
            marks=self.marks | ({"inner join"} if any(one.joined for one in conditions) else set()),
        )


def physical(
    table: str,
    rows: str,
    values: Mapping[str, str],
    volatile: frozenset[str] = frozenset(),
    types: Mapping[str, str] | None = None,
) -> Relation:
    """A table as a source: its rows and values stand for themselves. types: column → Spark's, where it is known"""
    known = types or {}
    columns = {
        column: Value(
            mix("column", table, value),
            frozenset({(table, column)}),
            column in volatile,
            name=column,
            type=known.get(column, ""),
        )
        for column, value in values.items()
    }
    return Relation((mix("table", table, rows),), {column.lower(): value for column, value in columns.items()})


def unknown(table: str) -> Relation:
    """A table of which only the name is known."""
    return Relation((mix("table", table),), {}, rest=(Rest(mix("open", table), table),))


def built_of(value: Value, keys: frozenset[str]) -> bool:
    """Whether a value is computed from these alone."""
    if value.hash in keys:
        return True
    return value.parts is not None and not value.volatile and all(built_of(part, keys) for part in value.parts)


def combined(label: str, parts: Iterable[Value]) -> Value:
    parts = list(parts)
    return Value(
        mix(label, *(part.hash for part in parts)),
        frozenset().union(*(part.reads for part in parts)),
        any(part.volatile for part in parts),
        any(part.joined for part in parts),
        kind=label,
        parts=tuple(parts),
    )
