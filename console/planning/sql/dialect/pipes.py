"""Pipe syntax to nested queries: an operator after `|>` acts on the whole query before it.

source  the rule operatorPipeRightSide of Spark's SqlBaseParser.g4, and the plan that its AstBuilder makes of each operator
"""

from typing import ClassVar

from sqlglot import TokenType, exp

from console.planning.sql import allow
from console.planning.sql.dialect.operators import Operators

_ORGANIZED = ("order", "sort", "cluster", "distribute", "limit", "offset")
_ORGANIZES = (
    TokenType.ORDER_BY, TokenType.SORT_BY, TokenType.CLUSTER_BY, TokenType.DISTRIBUTE_BY, TokenType.LIMIT, TokenType.OFFSET,
)  # fmt: skip
_SELECTS = {"with_", "expressions", "hint", "distinct", "windows", "kind", "operation_modifiers", *_ORGANIZED}
_WRITTEN = "written"


class Pipes(Operators):
    """Parses `query |> operator |> …`, each operator as a SELECT over the preceding query."""

    PRIMARY_PARSERS: ClassVar = {
        **Operators.PRIMARY_PARSERS,
        TokenType.STAR: lambda self, _: self._written_star(),
    }

    def _written_star(self) -> exp.Expr | None:
        """`FROM t` alone is SELECT * with an implicit star."""
        star = self._parse_star_ops()
        if star is not None:
            star.meta[_WRITTEN] = True
        return star

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> exp.Expr | None:
        return super()._parse_select(nested, table, parse_subquery_alias, parse_set_operation, consume_pipe=False)

    def _parse_set_operations(self, this: exp.Expr | None) -> exp.Expr | None:
        this = super()._parse_set_operations(this)
        if this is None or not self._match(TokenType.PIPE_GT, advance=False):
            return this
        if isinstance(this, exp.Alias):
            self.raise_error("a subquery in front of |> has no name: write |> AS name")
        if _organized(this) and not isinstance(this, exp.Subquery):
            self.raise_error("ORDER BY and LIMIT in front of |> need parentheses, or a |> of their own")
        piped = _Piped.of(this)
        while self._match(TokenType.PIPE_GT):
            piped = self._stage(piped)
        query = super()._parse_set_operations(piped.query) or piped.query
        if query is not piped.query and self._match(TokenType.PIPE_GT, advance=False):
            return self._parse_set_operations(query)
        if self._match_set(_ORGANIZES, advance=False):
            query = self._parse_query_modifiers(_select(query) if _organized(query) else query)
        if self._match(TokenType.PIPE_GT, advance=False):
            self.raise_error("ORDER BY and LIMIT in front of |> need a |> of their own")
        return query

    def _parse_pipe_syntax_query(self, query: exp.Query) -> exp.Query | None:
        self.raise_error("|> does not stand after a whole query: put the query in parentheses")
        return query

    def _stage(self, piped: "_Piped") -> "_Piped":
        """One operator over the query before it."""
        token = self._curr.token_type
        if token == TokenType.SELECT:
            return self._piped_select(piped)
        if self._match(TokenType.ALIAS):
            return _Piped(_select(piped.query, self._name()), open=True)
        if token == TokenType.WHERE:
            return self._piped_where(piped)
        if token in _ORGANIZES:
            return self._piped_order(piped)
        if token in (TokenType.PIVOT, TokenType.UNPIVOT):
            query = piped.alone()
            query.args["from_"].this.set("pivots", self._parse_pivots())
            return _Piped(query)
        if token == TokenType.TABLE_SAMPLE:
            query = piped.alone()
            query.args["from_"].this.set("sample", self._parse_table_sample())
            return _Piped(query, _only_name(query))
        if self._match_text_seq("EXTEND"):
            return self._projected(piped, [exp.Star(), *self._piped_expressions("EXTEND")])
        if self._match_text_seq("AGGREGATE"):
            return self._piped_aggregate(piped)
        if self._match_text_seq("SET"):
            return self._piped_set(piped)
        if self._match_text_seq("DROP"):
            left_out = [exp.column(name) for name in self._parse_csv(self._name)]
            return self._projected(piped, [exp.Star(except_=left_out)])
        return self._piped_join(piped)

    def _name(self) -> exp.Identifier:
        name = self._parse_id_var()
        if not isinstance(name, exp.Identifier):
            self.raise_error("a name is missing")
            return exp.to_identifier("missing")
        return name

    def _projected(self, piped: "_Piped", expressions: list[exp.Expr]) -> "_Piped":
        query = piped.opened()
        query.set("expressions", expressions)
        return _Piped(query, _only_name(query))

    def _piped_where(self, piped: "_Piped") -> "_Piped":
        query = piped.opened()
        where, before = self._parse_where(), query.args.get("where")
        if before is not None and where is not None:
            both = exp.And(this=exp.Paren(this=before.this), expression=exp.Paren(this=where.this))
            where = exp.Where(this=both)
        query.set("where", where)
        return _Piped(query, open=True)

    def _piped_expressions(self, operator: str) -> list[exp.Expr]:
        expressions = self._parse_expressions()
        if not expressions:
            self.raise_error(f"|> {operator} needs an expression")
        self._without_aggregates(operator, expressions)
        return expressions

    def _without_aggregates(self, operator: str, expressions: list[exp.Expr]) -> None:
        if any(_aggregates(part) for part in expressions):
            self.raise_error(f"|> {operator} takes no aggregate: write |> AGGREGATE")

    def _piped_select(self, piped: "_Piped") -> "_Piped":
        clauses = self._parse_select_query(parse_set_operation=False)
        if not isinstance(clauses, exp.Select) or any(
            value for key, value in clauses.args.items() if key not in _SELECTS
        ):
            self.raise_error("|> SELECT takes expressions and WINDOW: every other clause is a |> of its own")
            return piped
        if _organized(clauses) and self._match(TokenType.PIPE_GT, advance=False):
            self.raise_error("ORDER BY and LIMIT in front of |> need a |> of their own")
        query = piped.opened()
        for key, value in clauses.args.items():
            query.set(key, value)
        return _Piped(query, _only_name(query))

    def _piped_order(self, piped: "_Piped") -> "_Piped":
        query = piped.opened()
        before = {key for key, value in query.args.items() if value}
        query = self._parse_query_modifiers(query)
        added = {key for key, value in query.args.items() if value} - before
        if len(added) != 1 and added != {"limit", "offset"}:
            self.raise_error("ORDER BY and LIMIT each need a |> of their own")
        return _Piped(query, _only_name(query))

    def _piped_aggregate(self, piped: "_Piped") -> "_Piped":
        aggregates = [] if self._match(TokenType.GROUP_BY, advance=False) else self._parse_expressions()
        keys: list[exp.Expr] = []
        grouped = self._match(TokenType.GROUP_BY)
        if grouped:
            keys = self._parse_csv(self._parse_expression)
        if not (aggregates or keys):
            self.raise_error("|> AGGREGATE needs an aggregate or GROUP BY")
        for part in aggregates:
            if not _aggregates(part):
                self.raise_error("|> AGGREGATE takes aggregates: put a column into its GROUP BY")
        for key in keys:
            of = key.unalias().unnest()
            several = isinstance(of, (exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets))
            if several or of.is_int or (isinstance(of, exp.Column) and of.sql().upper() == "ALL"):
                self.raise_error("|> AGGREGATE … GROUP BY takes expressions: name the columns")
        query = piped.opened()
        query.set("expressions", [*(key.copy() for key in keys), *aggregates])
        if grouped:
            query.set("group", exp.Group(expressions=[key.unalias() for key in keys]))
        return _Piped(query)

    def _piped_set(self, piped: "_Piped") -> "_Piped":
        """Each assignment sees those before it."""
        assigned: set[str] = set()
        while True:
            name = self._name()
            if name.name.lower() in assigned or not self._match(TokenType.EQ):
                self.raise_error("|> SET takes `column = expression`, each column once")
                return piped
            assigned.add(name.name.lower())
            value = self._parse_disjunction()
            if value is None:
                self.raise_error("|> SET takes `column = expression`")
                return piped
            self._without_aggregates("SET", [value])
            piped = self._projected(piped, [exp.Star(replace=[exp.alias_(value, name)])])
            if not self._match(TokenType.COMMA):
                return piped

    def _piped_join(self, piped: "_Piped") -> "_Piped":
        """A join, or a set operation with one query."""
        start, word = self._index, self._curr.text.upper()
        if self._match_set(self.SET_OPERATIONS, advance=False):
            united = self.parse_set_operation(_operand(piped.query))
            right = united.expression if united is not None else None
            if united is None or right is None:
                self.raise_error(f"|> {word} needs a query")
                return piped
            if _organized(right) and not isinstance(right, exp.Subquery):
                for key in _ORGANIZED:
                    if value := right.args.get(key):
                        right.set(key, None)
                        united.set(key, value)
                if self._match(TokenType.PIPE_GT, advance=False):
                    self.raise_error("ORDER BY and LIMIT in front of |> need a |> of their own")
            return _Piped(united)
        query = piped.unfiltered()
        join = self._parse_join()
        if join is None or not join.this:
            self._retreat(start)
            self.raise_error(f"|> {word} is not understood")
            return piped
        query.append("joins", join)
        return _Piped(query, open=True)


class _Piped:
    """The query parsed so far, and the part of it that the next operator sees.

    name  qualifier that its columns may still have, "" for none
    open  whether it is FROM and WHERE alone: the next operator sees the sources themselves
    """

    def __init__(self, query: exp.Query, name: str = "", open: bool = False) -> None:
        self.query, self.name, self.open = query, name, open

    @classmethod
    def of(cls, query: exp.Expr) -> "_Piped":
        if isinstance(query, exp.Select):
            return cls(query, _only_name(query), open=_only_from(query))
        return cls(query if isinstance(query, exp.Query) else _select(query))

    def opened(self) -> exp.Select:
        """A SELECT whose sources are visible to the next operator."""
        if self.open and isinstance(self.query, exp.Select):
            return self.query
        return _select(self.query, exp.to_identifier(self.name) if self.name else None)

    def unfiltered(self) -> exp.Select:
        """The same without WHERE, which acts before a join."""
        if not self.open or not self.query.args.get("where"):
            return self.opened()
        name = _only_name(self.query)
        return _select(self.query, exp.to_identifier(name) if name else None)

    def alone(self) -> exp.Select:
        """The same with everything before as one source, without clauses of its own."""
        query = self.unfiltered()
        of = query.args["from_"].this
        if _only_name(query) and not any(of.args.get(key) for key in ("pivots", "sample")):
            return query
        return query if query is not self.query and isinstance(of, exp.Subquery) else _select(query)


def _select(query: exp.Expr, alias: exp.Identifier | None = None) -> exp.Select:
    """SELECT * over a query."""
    inner = query if isinstance(query, (exp.Subquery, exp.Values)) and not query.alias else exp.Subquery(this=query)
    if alias is not None:
        inner.set("alias", exp.TableAlias(this=alias))
    return exp.Select(expressions=[exp.Star()], from_=exp.From(this=inner))


def _operand(query: exp.Query) -> exp.Query:
    """A query as the left side of a set operation."""
    plain = isinstance(query, exp.Select) and not _organized(query) and not query.args.get("with_")
    return query if plain or isinstance(query, exp.Subquery) else _select(query)


def _only_from(query: exp.Select) -> bool:
    """Whether it was written as FROM alone."""
    stars = query.expressions
    clauses = {key for key, value in query.args.items() if value} - {"expressions", "from_", "joins", "laterals"}
    return len(stars) == 1 and isinstance(stars[0], exp.Star) and not stars[0].meta.get(_WRITTEN) and not clauses


def _organized(query: exp.Expr) -> bool:
    return any(query.args.get(key) for key in _ORGANIZED)


def _aggregates(node: exp.Expr) -> bool:
    """Whether an expression aggregates the rows of its own query, and not over a window."""
    for call in node.walk(prune=lambda inner: isinstance(inner, exp.Query)):
        named = isinstance(call, exp.Anonymous) and str(call.this).lower() in allow.AGGREGATE_NAMES
        if (named or isinstance(call, exp.AggFunc)) and call.find_ancestor(exp.Window) is None:
            return True
    return False


def _only_name(query: exp.Query) -> str:
    """The name of the only source of a SELECT, "" where there are several, or none."""
    from_ = query.args.get("from_")
    if not isinstance(query, exp.Select) or from_ is None or query.args.get("joins") or query.args.get("laterals"):
        return ""
    beside = any(from_.this.args.get(key) for key in ("joins", "laterals", "pivots"))
    return "" if beside else str(from_.this.alias_or_name)
