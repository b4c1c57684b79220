"""Rows and values as hashes: the results of evaluating a query in `semantics`."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

SIZE = 20  # hex digits kept of every hash


def mix(*parts: object) -> str:
    """One hash of several parts, order kept."""
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).hexdigest()[:SIZE]


@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """One expression. reads: (table, column) inputs; volatile: two computations may differ;
    joined: it depends on a table other than the driving one; name: as written, "" if unknown;
    type: Spark's, for a table's declared columns, else ""; kind, parts: the operator and its operands if the value is
    determined by them, else None."""

    hash: str
    reads: frozenset[tuple[str, str]] = frozenset()
    volatile: bool = False
    joined: bool = False
    name: str = field(default="", compare=False)
    type: str = field(default="", compare=False)
    kind: str = field(default="", compare=False)
    parts: "tuple[Value, ...] | None" = field(default=None, compare=False, repr=False)

    def opaque(self, hash: str) -> "Value":
        """Another value with the same inputs and an unknown operator."""
        return replace(self, hash=hash, kind="", parts=None)

    def tagged(self, tag: str) -> "Value":
        """The same expression over another occurrence of its source."""
        return self.opaque(mix("@", tag, self.hash))


TRUE, FALSE = Value(hash=mix("boolean", True), parts=()), Value(hash=mix("boolean", False), parts=())


@dataclass(frozen=True, slots=True)
class Rest:
    """The columns of a source with unknown schema, except those in `but`."""

    hash: str
    table: str
    but: frozenset[str] = frozenset()
    joined: bool = False

    def column(self, name: str) -> Value:
        return Value(hash=mix("column", self.hash, name), reads=frozenset({(self.table, name)}), joined=self.joined)

    def tagged(self, tag: str) -> "Rest":
        return replace(self, hash=mix("@", tag, self.hash))

    def without(self, names: Iterable[str]) -> "Rest":
        return replace(self, but=self.but | frozenset(names))

    @property
    def value(self) -> Value:
        """All of them as one value."""
        reads = frozenset({(self.table, "*")})
        return Value(hash=mix("rest", self.hash, *sorted(self.but)), reads=reads, joined=self.joined)


@dataclass(frozen=True, slots=True, kw_only=True)
class Relation:
    """Rows with named values: those of the product of `parts` that pass every one of `filters`.

    parts   the factors, unordered: tables, grouped or united rows, and operations on each row (a LEFT JOIN, a
            generator) with their own conditions
    rest    sources with unknown columns, which all pass through
    bare    hashes of values are unique within this relation only: a product with another one must tag them
    unique  values of which no two rows have the same, if any are known
    doubts  reasons why the rows may differ from those described
    order   order of the rows, "" for none; only numbering and collecting functions depend on it
    predicates  filters with a known expression;  branches  the members of a UNION ALL
    earlier_arrival  arrival of the rows before they were sealed into one part: it decides the order of ties
    marks   the operations behind the rows that a feed must know of: `join`, `inner join`, `group`, `distinct`, `window`,
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
    earlier_arrival: str = ""
    predicates: "tuple[Value, ...]" = ()
    branches: "tuple[Relation, ...]" = ()

    @property
    def rows(self) -> str:
        return mix("rows", *sorted(self.parts), "where", *sorted(self.filters))

    @property
    def arrival(self) -> str:
        """Hash of the order of ties: the same rows from swapped sides arrive in another order."""
        return mix("arrival", *self.parts, self.order, self.earlier_arrival)

    def all_values(self) -> list[Value]:
        """All values, those of unknown columns last."""
        return [*self.columns.values(), *(rest.value for rest in self.rest)]

    def tagged(self, tag: str) -> "Relation":
        return replace(
            self,
            parts=tuple(mix("@", tag, part) for part in self.parts),
            columns={name: value.tagged(tag) for name, value in self.columns.items()},
            filters=frozenset(mix("@", tag, one) for one in self.filters),
            unique=None if self.unique is None else frozenset(mix("@", tag, one) for one in self.unique),
            predicates=(),
            branches=(),
            rest=tuple(rest.tagged(tag) for rest in self.rest),
            bare=False,
            order=self.order and mix("@", tag, self.order),
        )

    def distinguished(self, taken: Iterable[str]) -> tuple["Relation", tuple[str, ...]]:
        """The same relation beside other parts, with its hashes tagged where they would collide; and the tags."""
        relation, taken = self, set(taken)
        tags: tuple[str, ...] = ()
        if self.bare:
            tags = (self.parts[0],)
            relation = self.tagged(self.parts[0])
            relation = replace(relation, parts=(self.parts[0], *relation.parts[1:]))
        again, at = relation, 0
        while taken & set(again.parts):
            at += 1
            again = relation.tagged(f"again {at}")
        return again, (*tags, f"again {at}") if at else tags

    def of_another(self) -> "Relation":
        """The same relation as a source that does not drive the query."""
        columns = {name: replace(value, joined=True) for name, value in self.columns.items()}
        return replace(self, columns=columns, rest=tuple(replace(rest, joined=True) for rest in self.rest))

    def sealed(self, part: str, mark: str = "") -> "Relation":
        """The rows as one unordered part, with the same values."""
        marks = self.marks | ({mark} if mark else set())
        sealed = replace(
            self, parts=(part,), filters=frozenset(), bare=True, marks=marks, order="", earlier_arrival=self.arrival
        )
        return replace(sealed, predicates=(), branches=())

    def narrowed(self, conditions: Iterable[Value]) -> "Relation":
        """The rows that pass these as well."""
        conditions = list(conditions)
        filters = self.filters | {one.hash for one in conditions}
        return replace(
            self,
            filters=filters if FALSE.hash not in filters else frozenset({FALSE.hash}),
            predicates=(*self.predicates, *conditions),
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
    """A table as a source, with the hashes of its rows and values. types: column → Spark type, if known"""
    known = types or {}
    columns = {
        column: Value(
            hash=mix("column", table, value),
            reads=frozenset({(table, column)}),
            volatile=column in volatile,
            name=column,
            type=known.get(column, ""),
        )
        for column, value in values.items()
    }
    return Relation(
        parts=(mix("table", table, rows),), columns={column.lower(): value for column, value in columns.items()}
    )


def unknown(table: str) -> Relation:
    """A table with a known name and unknown columns."""
    return Relation(parts=(mix("table", table),), columns={}, rest=(Rest(mix("open", table), table),))


def built_of(value: Value, keys: frozenset[str]) -> bool:
    """Whether a value is computed only from these."""
    if value.hash in keys:
        return True
    return value.parts is not None and not value.volatile and all(built_of(part, keys) for part in value.parts)


def combined(label: str, parts: Iterable[Value]) -> Value:
    parts = list(parts)
    return Value(
        hash=mix(label, *(part.hash for part in parts)),
        reads=frozenset().union(*(part.reads for part in parts)),
        volatile=any(part.volatile for part in parts),
        joined=any(part.joined for part in parts),
        kind=label,
        parts=tuple(parts),
    )
