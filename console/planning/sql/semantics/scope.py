"""Names to values: the names visible in a SELECT, from its sources, its own aliases and the queries around it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from console.planning.sql.relation import Relation, Rest, Value, combined, mix
from console.planning.sql.tree import DIALECT

_STEPS = 2_000  # limit of aliases replaced by their expressions
NAMELESS = "\x1f"  # prefix of the generated name of an unnamed source


class Unclear(Exception):
    """A query that is not understood; the text is the reason."""


@dataclass(slots=True, kw_only=True)
class Evaluation:
    """State of the evaluation of one statement.

    tables   known tables by lower-case name
    strict   an unknown table is an error
    query    evaluates a query seen from a scope
    numbers  calls with another result each time, numbered in order
    lenient  for lineage: an unknown name affects its own column only, and count(*) reads the counted tables
    notes    clauses as (name, hash), to find the reason why two queries differ
    ties     (operation on rows in an order that may have ties, the order of those ties)
    named    (table, column) named anywhere, also if the result does not depend on them
    """

    tables: dict[str, Relation]
    strict: bool
    query: "Callable[[exp.Expr, Scope], Relation]"
    lenient: bool = False
    numbers: dict[int, tuple[int, exp.Expr]] = field(default_factory=dict)
    steps: int = 0
    notes: list[tuple[str, str]] = field(default_factory=list)
    ties: set[tuple[str, str]] = field(default_factory=set)
    named: set[tuple[str, str]] = field(default_factory=set)

    def step(self) -> None:
        """raises Unclear for a query that expands without end, as aliases of aliases may"""
        self.steps += 1
        if self.steps > _STEPS:
            raise Unclear("it unfolds into too large a query")

    def number(self, node: exp.Expr) -> int:
        # the entry holds a reference to the node, so that its id is not reused
        return self.numbers.setdefault(id(node), (len(self.numbers), node))[0]


@dataclass(slots=True, kw_only=True)
class Scope:
    """The names visible in one SELECT.

    sources  alias → relation;  merged  columns of USING, which represent both sides;  hidden  (alias, column) they replace
    """

    run: Evaluation
    ctes: dict[str, Relation]
    outer: "Scope | None" = None
    sources: dict[str, Relation] = field(default_factory=dict)
    merged: dict[str, Value] = field(default_factory=dict)
    hidden: set[tuple[str, str]] = field(default_factory=set)

    def beside(self) -> "Scope":
        """The scope of a query in this FROM: it has the same outer names."""
        return Scope(run=self.run, ctes=dict(self.ctes), outer=self.outer)

    def within(self) -> "Scope":
        """The scope of a query in an expression: it may refer to this one's columns."""
        return Scope(run=self.run, ctes=dict(self.ctes), outer=self)

    def plain(self, name: str) -> Value | None:
        """An unqualified column of this SELECT's own sources.

        raises  Unclear if two of them have it
        """
        if name in self.merged:
            return self.merged[name]
        explicit = [source.columns[name] for source in self.sources.values() if name in source.columns]
        if len({value.hash for value in explicit}) > 1:
            raise Unclear(f"{name} is ambiguous: {' and '.join(self._holders(name))} have it")
        if explicit:
            return explicit[0]
        open_ = [rest for source in self.sources.values() for rest in source.rest if name not in rest.but]
        if len(open_) == 1:
            return open_[0].column(name)
        if open_:
            parts = [rest.column(name) for rest in sorted(open_, key=lambda rest: rest.hash)]
            joined = combined("unresolved", parts)
            return Value(hash=joined.hash, reads=frozenset({("", name)}), joined=True)
        return None

    def has(self, name: str) -> bool:
        """Whether one of this SELECT's own sources certainly has a column."""
        return name in self.merged or any(name in source.columns for source in self.sources.values())

    def may_have(self, name: str) -> bool:
        """Whether a source with unknown columns may have it; for lineage, none does."""
        rests = (rest for source in self.sources.values() for rest in source.rest)
        return not self.run.lenient and not self.has(name) and any(name not in rest.but for rest in rests)

    def _holders(self, name: str) -> Iterable[str]:
        return (
            "a subquery" if alias.startswith(NAMELESS) else alias
            for alias, source in self.sources.items()
            if name in source.columns
        )

    def named(self, name: str) -> Value:
        """An unqualified column, resolved from the innermost scope outwards.

        raises  Unclear if no source has it
        """
        scope, depth = self, 0
        while (column := scope.plain(name)) is None and scope.outer is not None:
            scope, depth = scope.outer, depth + 1
        if column is None and not scope.sources and not self.run.strict:
            column = Value(hash=mix("free", name), reads=frozenset({("", name)}))
        if column is not None:
            return _from_outside(column, depth)
        return self._missing(name, self._here())

    def _missing(self, name: str, where: str) -> Value:
        if self.run.lenient:
            return Value(hash=mix("missing", name))
        raise Unclear(f"there is no column {name}{where}")

    def _here(self) -> str:
        names = [alias for alias in self.sources if alias and not alias.startswith(NAMELESS)]
        return f" in {' or '.join(names)}" if names else ""

    def of(self, alias: str, name: str) -> Value | None:
        """A column of one source; None if no source has that name."""
        scope: Scope | None = self
        depth = 0
        while scope is not None:
            if (source := scope.sources.get(alias)) is not None:
                column = _column(source, name)
                return _from_outside(column, depth) if column is not None else self._missing(name, f" in {alias}")
            scope, depth = scope.outer, depth + 1
        return None

    def label(self, part: exp.Expr) -> str:
        """The name of a projection's column, lower case: its alias; a column's own, also if cast; else its text,
        without the names of sources. As Spark's analyzer names them; for lineage, the text.
        """
        if part.alias_or_name and not isinstance(part, (exp.Literal, exp.Func)):
            return str(part.alias_or_name).lower()
        if self.run.lenient:
            return str(part.sql(DIALECT, comments=False)).lower()
        if isinstance(part, exp.Cast) and self._own(of := part.this.unnest()):
            return str(of.name).lower()
        if isinstance(part, exp.Count) and isinstance(part.this, exp.Star):
            return "count(1)"
        text = part.copy()
        for column in text.find_all(exp.Column):
            if self._own(column):
                column.set("table", None)
        return str(text.sql(DIALECT, comments=False)).lower()

    def _own(self, node: exp.Expr) -> bool:
        """Whether it is a column of a source, not a field of one."""
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            return False
        return not node.table or (not node.args.get("db") and node.table.lower() in self.sources)

    def star(
        self, alias: str = "", but: frozenset[tuple[str, str]] = frozenset()
    ) -> tuple[list[tuple[str, Value]], list[Rest]]:
        """The expansion of `*` or `alias.*`: known columns in order, and sources with unknown ones.

        but  (source, column) that EXCEPT excludes by a qualified name
        """
        if alias and alias not in self.sources and self.run.lenient:
            alias = next((one for one, candidate in self.sources.items() if alias in _tables(candidate)), alias)
        if alias and alias not in self.sources:
            raise Unclear(f"{alias}.* is a star over something that is not a table here")
        names = [(name, value) for name, value in self.merged.items()] if not alias else []
        rests: list[Rest] = []
        for one in [alias] if alias else self.sources:
            source = self.sources[one]
            known = ((name, value) for name, value in source.columns.items())
            names += [(n, v) for n, v in known if (alias or (one, n) not in self.hidden) and (one, n) not in but]
            hidden = {name for at, name in (but if alias else but | self.hidden) if at == one}
            rests += [rest.without(hidden) for rest in source.rest]
        return names, rests


def _from_outside(value: Value, depth: int) -> Value:
    """A value of an enclosing query, tagged to differ from the query's own."""
    return value.tagged(f"outer {depth}") if depth else value


def _column(source: Relation, name: str) -> Value | None:
    if name in source.columns:
        return source.columns[name]
    rests = [rest for rest in source.rest if name not in rest.but]
    if len(rests) == 1:
        return rests[0].column(name)
    if rests:
        return combined("unresolved", [rest.column(name) for rest in sorted(rests, key=lambda rest: rest.hash)])
    return None


def _tables(source: Relation) -> set[str]:
    return {table for value in source.all_values() for table, _ in value.reads if table}


def counted(scope: Scope) -> frozenset[tuple[str, str]]:
    """The inputs of count(*) for lineage: the tables whose rows it counts."""
    if not scope.run.lenient:
        return frozenset()
    return frozenset((table, "*") for source in scope.sources.values() for table in _tables(source))
