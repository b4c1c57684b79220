"""Queries as small values, so that the effect of an edit is known before any parser sees it.

An `Expr` is a form with holes (`({} + {})`) or a column; a `Select` has items, sources and conjuncts. Nothing here knows
sqlglot or the planner: what is judged takes no part in making the question.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

ADD, SUB, MUL = "({} + {})", "({} - {})", "({} * {})"
EQ, NE, LT, LE, GT, GE, NULLSAFE = (f"({{}} {op} {{}})" for op in ("=", "<>", "<", "<=", ">", ">=", "<=>"))
AND, OR, NOT = "({} AND {})", "({} OR {})", "(NOT {})"
BETWEEN, IN, NOT_IN = "({} BETWEEN {} AND {})", "({} IN ({}, {}))", "({} NOT IN ({}, {}))"
CASE, IF = "CASE WHEN {} THEN {} ELSE {} END", "if({}, {}, {})"
COALESCE, NVL = "coalesce({}, {})", "nvl({}, {})"
CAST, CASTS = "CAST({} AS TYPE)", "{} :: TYPE"  # TYPE stands for the expression's own
COUNT_ALL, COUNT_ONE = "count(*)", "count(1)"
AGGREGATES = ("count(", "sum(", "min(", "max(", "avg(")


@dataclass(frozen=True, slots=True)
class Expr:
    """A column of `source`, or a form and what fills its holes."""

    type: str
    form: str = ""
    parts: tuple["Expr", ...] = ()
    source: str = ""
    name: str = ""

    def walk(self) -> Iterator["Expr"]:
        yield self
        for part in self.parts:
            yield from part.walk()

    @property
    def windowed(self) -> bool:
        return any(" OVER (" in part.form for part in self.walk())

    @property
    def aggregate(self) -> bool:
        return not self.windowed and any(part.form.startswith(AGGREGATES) for part in self.walk())

    def columns(self) -> set[tuple[str, str]]:
        return {(part.source, part.name) for part in self.walk() if not part.form}


def col(source: str, name: str, type: str) -> Expr:
    return Expr(type, "", (), source, name)


def lit(type: str, text: str) -> Expr:
    return Expr(type, text.replace("{", "{{").replace("}", "}}"))


def mapped(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """The expression with every node changed, from the leaves up."""
    return change(replace(expr, parts=tuple(mapped(part, change) for part in expr.parts)) if expr.parts else expr)


@dataclass(frozen=True, slots=True)
class From:
    """One source. join  "" for the first one, else `JOIN`, `LEFT JOIN` …; using  columns of USING instead of `on`."""

    alias: str
    what: "str | Query"
    columns: tuple[tuple[str, str], ...]
    join: str = ""
    on: tuple[Expr, ...] = ()
    using: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Select:
    """group  "", `names`, `ordinals`, `all`: how the items that do not aggregate are grouped;  tail  ORDER BY, LIMIT …

    star   `*` is written instead of the items, which say what it means
    """

    items: tuple[tuple[str, Expr], ...]
    sources: tuple[From, ...]
    where: tuple[Expr, ...] = ()
    group: str = ""
    having: tuple[Expr, ...] = ()
    distinct: bool = False
    qualify: Expr | None = None
    lateral: str = ""
    tail: str = ""
    star: bool = False

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return tuple((name, expr.type) for name, expr in self.items)

    def exprs(self) -> Iterator[Expr]:
        yield from (expr for _, expr in self.items)
        yield from self.where
        yield from self.having
        for source in self.sources:
            yield from source.on
        if self.qualify:
            yield self.qualify

    def plain(self) -> bool:
        """Whether a projection more leaves the rows alone, by the shape of this SELECT itself."""
        return not (self.distinct or self.group or self.lateral or self.tail or self.star) and not any(
            expr.aggregate for _, expr in self.items
        )


@dataclass(frozen=True, slots=True)
class SetOp:
    op: str
    left: "Query"
    right: "Query"
    tail: str = ""

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        return self.left.columns


@dataclass(frozen=True, slots=True)
class Raw:
    """A query written out, for constructs that only hazards need."""

    text: str
    columns: tuple[tuple[str, str], ...]


Query = Select | SetOp | Raw


def everywhere(query: Query, change: Callable[[Expr], Expr]) -> Query:
    """The query with every expression changed, those of its subqueries too."""
    match query:
        case Raw():
            return query
        case SetOp():
            return replace(query, left=everywhere(query.left, change), right=everywhere(query.right, change))
    return replace(
        query,
        items=tuple((name, mapped(expr, change)) for name, expr in query.items),
        sources=tuple(
            replace(
                source,
                what=source.what if isinstance(source.what, str) else everywhere(source.what, change),
                on=tuple(mapped(expr, change) for expr in source.on),
            )
            for source in query.sources
        ),
        where=tuple(mapped(expr, change) for expr in query.where),
        having=tuple(mapped(expr, change) for expr in query.having),
        qualify=mapped(query.qualify, change) if query.qualify else None,
    )


def selects(query: Query) -> Iterator[Select]:
    """Every SELECT of a query, the outermost first."""
    match query:
        case SetOp():
            yield from selects(query.left)
            yield from selects(query.right)
        case Select():
            yield query
            for source in query.sources:
                if not isinstance(source.what, str):
                    yield from selects(source.what)


def swapped(query: Query, old: Select, new: Select) -> Query:
    """The query with one of its SELECTs (by identity) replaced."""
    if query is old:
        return new
    match query:
        case SetOp():
            return replace(query, left=swapped(query.left, old, new), right=swapped(query.right, old, new))
        case Select():
            sources = tuple(
                source if isinstance(source.what, str) else _resourced(source, swapped(source.what, old, new))
                for source in query.sources
            )
            return replace(query, sources=sources)
    return query


def _resourced(source: From, what: Query) -> From:
    return replace(source, what=what, columns=what.columns)
