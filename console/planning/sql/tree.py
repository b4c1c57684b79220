"""Conversion of text to a checked tree (parse, allow-list, variables), and of a tree back to text.

Positions in messages are those of the operator's file. Unquoted and quoted names are compared without case, as Spark
compares them.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import traverse_scope

from console.errors import Problem
from console.model.receipt import LEDGER, LEDGER_VIEW
from console.planning.sql import allow
from console.planning.sql.dialect import quotes
from console.planning.sql.dialect.literal import literal
from console.planning.sql.dialect.written import AsRead
from console.remedy import Edit, Remedy

DIALECT = AsRead
Tables = Mapping[str, Mapping[str, str]]  # table → column → Spark type, as declared
_FIRST = {"SELECT", "WITH", "FROM", "("}
_EDITS = {  # the generic remedy
    "S101": "split the query",
    "S102": "correct the query at this place",
    "S104": "write one SELECT",
    "S105": "docs/codes.md lists the allowed SQL",
    "S106": "somebody has changed the region's files: find out who before reading on",
    "S107": "name a table of the pipeline",
    "S108": "name a column that is declared",
    "S109": "write `table.column`",
    "S110": "give each declared column once, by its name",
    "S111": "declare it under `parameters:` or `variables:`",
    "S112": "compute it in an endpoint",
    "S113": "compute it in an endpoint",
}
BROKEN = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)  # sqlglot's, for odd arguments of a call


@dataclass(frozen=True, slots=True)
class UnknownColumn:
    """A column that a query reads and none of these tables declares, in lower case; column: "" for an unknown table."""

    column: str
    tables: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Text:
    """One query as written, and its problems.

    where  `file:line:column` of its first line, or ""
    node   its logical name
    own    whether it may read the region's own `_console` tables
    unknown  problems with a column that no table declares
    """

    sql: str
    where: str = ""
    node: str = ""
    problems: list[Problem] = field(default_factory=list)
    own: bool = False
    unknown: dict[Problem, UnknownColumn] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sql = quotes.single(self.sql)

    def report(self, code: str, message: str, at: exp.Expr | None = None, fix: str | Remedy = "") -> None:
        """Add a problem at a node of the query, or at its beginning. fix: a remedy, or the edit of the query in words"""
        offset = start(at) if at is not None else None
        self.report_query(code, message, offset, fix)

    def as_endpoint(self) -> str:
        """The alternative for a query that no feed can follow, in words."""
        return f"endpoints/{self.node or 'NAME'}.sql: the same query as an endpoint computes it over whole tables"

    def report_query(self, code: str, message: str, offset: int | None = None, fix: str | Remedy = "") -> None:
        place = self._place(offset)
        if not self.where and place:
            message = f"{message} (at {place})"
        words = fix or _EDITS.get(code, "")
        remedy = Edit(node=self.node, how=words) if isinstance(words, str) else words
        remedies = (remedy,) if words else ()
        self.problems.append(
            Problem(code=code, message=message, where=self._file(offset), node=self.node, remedies=remedies)
        )

    def _place(self, offset: int | None) -> str:
        if offset is None:
            return ""
        line, column = _line_column(self.sql, offset)
        return f"{line}:{column}"

    def _file(self, offset: int | None) -> str:
        parts = self.where.rsplit(":", 2)
        if len(parts) < 3 or not (parts[1].isdigit() and parts[2].isdigit()):
            return self.where
        line, column = _line_column(self.sql, offset or 0)
        first = int(parts[1])
        return f"{parts[0]}:{first + line - 1}:{column + (int(parts[2]) - 1 if line == 1 else 0)}"


def start(node: exp.Expr) -> int | None:
    """The position of a node in its text, by its leftmost name or literal."""
    return min((part.meta["start"] for part in node.walk() if "start" in part.meta), default=None)


def _line_column(sql: str, offset: int) -> tuple[int, int]:
    before = sql[:offset]
    return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1


def parse(text: Text) -> exp.Query | None:
    """One SELECT with only allowed nodes; else None, with the problems in `text`."""
    try:
        return _parse(text)
    except RecursionError:
        text.report_query("S101", "the query is nested too deeply", fix=f"at most {allow.DEPTH} levels")
    except BROKEN as error:
        if (refused := misfit(text.sql)) is None:
            text.report_query("S102", f"the query of {text.node or 'this call'} cannot be read: {error}")
        else:
            text.report_query("S102", f"{refused[1]} is not understood: the function takes other arguments", refused[0])
    except SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        first = details[0]
        line, column = first.get("line"), first.get("col")
        offset = None
        if line and column:
            lines = text.sql.split("\n")
            offset = sum(len(row) + 1 for row in lines[: line - 1]) + max(column - len(first.get("highlight") or ""), 0)
        what = (first.get("description") or str(error)).splitlines()[0].rstrip(".")
        near = f" near {first['highlight']!r}" if first.get("highlight") else ""
        text.report_query("S102", f"the query of {text.node or 'this call'} cannot be read: {what}{near}", offset)
    return None


def misfit(sql: str) -> tuple[int, str] | None:
    """The innermost call that makes sqlglot fail for lack of an expected argument: its position and text."""
    tokens = sqlglot.Dialect.get_or_raise(DIALECT).tokenize(sql)
    for at in range(len(tokens) - 2, -1, -1):
        depth = 0
        for token in tokens[at + 1 :]:
            depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
            if depth <= 0:
                break
        call = sql[tokens[at].start : token.end + 1]
        if tokens[at + 1].token_type != TokenType.L_PAREN or depth:
            continue
        try:
            sqlglot.parse_one(f"SELECT {call}", read=DIALECT)
        except BROKEN:
            return tokens[at].start, call
        except SqlglotError:
            continue
    return None


def called_in(sql: str) -> frozenset[str]:
    """Names that stand before a parenthesis in a compiled query, in lower case: the functions that it calls, among other words."""
    tokens = sqlglot.Dialect.get_or_raise(DIALECT).tokenize(sql)
    return frozenset(token.text.lower() for token, after in pairwise(tokens) if after.token_type == TokenType.L_PAREN)


def _parse(text: Text) -> exp.Query | None:
    if len(text.sql.encode()) > allow.BYTES:
        text.report_query("S101", "the query is longer than 64 KiB", fix="split it into several materializations")
        return None
    # before the parser, which needs some twenty frames per level
    if (deep := _deepest(text.sql)) is not None:
        text.report_query("S101", "the query is nested too deeply", deep, fix=f"at most {allow.DEPTH} levels")
        return None
    tokens = sqlglot.Dialect.get_or_raise(DIALECT).tokenize(text.sql)
    if not tokens:
        text.report_query("S102", f"the query of {text.node or 'this call'} is empty")
        return None
    if tokens[0].text.upper() not in _FIRST:
        text.report_query("S104", f"only SELECT is allowed, not {tokens[0].text.upper()}", tokens[0].start)
        return None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    # before the parser, which logs statements that it does not know
    if second := next((token for token in tokens if token.token_type == TokenType.SEMICOLON), None):
        text.report_query("S103", "more than one statement", second.start, fix="one query a file, without `;`")
        return None
    tree = next((query for query in sqlglot.parse(text.sql, read=DIALECT) if query is not None), None)
    while isinstance(tree, exp.Subquery) and not tree.alias:
        tree = tree.this
    if not isinstance(tree, (exp.Select, exp.SetOperation)):
        text.report_query("S104", f"only SELECT is allowed, not {type(tree).__name__.upper()}", tokens[0].start)
        return None
    if allow.depth(tree) > allow.DEPTH:
        text.report("S101", "the query is nested too deeply", tree, fix=f"at most {allow.DEPTH} levels")
        return None
    for table in tree.find_all(exp.Table) if text.own else ():
        _own(table)
    refused = list(allow.refusals(tree))
    for node, what, why in refused:
        message = f"{what} is not allowed{f': {why}' if why else ''}"
        text.report("S105", message, node, fix="docs/codes.md lists the allowed SQL")
    return None if refused else tree


def _own(table: exp.Table) -> None:
    """Rename the region's own tables to their views: `_console.ops` is `_console_ops`, since a view's name has no dot."""
    if table.name.lower() in LEDGER and table.db.lower() == LEDGER_VIEW[:-1] and not table.catalog:
        if not table.alias:
            table.set("alias", exp.TableAlias(this=name(table.name)))
        table.set("this", name(LEDGER_VIEW + table.name.lower()))
        table.set("db", None)


def _deepest(sql: str) -> int | None:
    depth = 0
    for offset, char in enumerate(sql):
        if char in "([":
            depth += 1
            if depth > allow.DEPTH:
                return offset
        elif char in ")]":
            depth = max(depth - 1, 0)
    return None


def substitute(tree: exp.Query, text: Text, variables: Mapping[str, str], parameters: Iterable[str]) -> set[str]:
    """Substitute variables by literals, leave declared parameters. Returns the parameters that occur."""
    declared, used = set(parameters), set()
    for place in list(tree.find_all(exp.Placeholder)):
        name = place.name
        if name in declared:
            used.add(name)
        elif name in variables:
            place.replace(literal(variables[name]))
        else:
            match = re.search(rf":{re.escape(name)}\b", text.sql)  # a placeholder carries no position
            near = nearest(name, {*declared, *variables})
            text.report_query("S111", f":{name} is neither a parameter nor a variable", match and match.start(), near)
    return used


def nearest(name: str, known: Iterable[str]) -> str:
    """A hint with the closest name, ignoring case, "" if none is close."""
    spelled = {one.lower(): one for one in sorted(known)}
    near = difflib.get_close_matches(name.lower(), list(spelled), 1, 0.6)
    return f"did you mean {spelled[near[0]]}?" if near else ""


@lru_cache(maxsize=4096)
def kind(name: str) -> str:
    """A Spark type in one canonical spelling: `decimal(10, 2)` and `DECIMAL(10,2)` are `decimal(10,2)`.

    raises  ValueError if it is not a type
    """
    try:
        spelled: str = exp.DataType.build(name, dialect=DIALECT).sql(DIALECT).lower().replace(" ", "")
    except SqlglotError:
        raise ValueError(f"{name} is not a Spark type") from None
    return {"decimal": "decimal(10,0)"}.get(spelled, spelled)


def inferred(node: exp.Expr) -> str:
    """The type that sqlglot infers for an expression, "" if unknown."""
    if node.type is None or node.type.is_type(exp.DataType.Type.UNKNOWN):
        return ""
    return kind(node.type.sql(DIALECT))


def cast(node: exp.Expr, type: str) -> exp.Expr:
    return exp.Cast(this=node, to=exp.DataType.build(type, dialect=DIALECT))


def name(text: str) -> exp.Identifier:
    """A column's or table's name, quoted for Spark."""
    return exp.to_identifier(text, quoted=True)


def render(tree: exp.Expr) -> str:
    """Plain Spark SQL without comments; raises if sqlglot cannot write a node for Spark."""
    with strict():
        text: str = tree.sql(DIALECT, comments=False, unsupported_level=sqlglot.ErrorLevel.RAISE)
    return text


@contextmanager
def strict() -> Iterator[None]:
    """Converts errors inside sqlglot to its own error class.

    raises  SqlglotError
    """
    try:
        yield
    except BROKEN as error:
        raise SqlglotError(f"a call has not the arguments that its function takes ({error!r})") from error


def sources(tree: exp.Query) -> Iterator[tuple[str, exp.Table]]:
    """Physical tables that the tree reads, with the node of each use; CTE names are not tables."""
    seen: set[int] = set()
    for scope in traverse_scope(tree):
        for source in scope.sources.values():
            if isinstance(source, exp.Table) and id(source) not in seen:
                seen.add(id(source))
                yield source.name.lower(), source
