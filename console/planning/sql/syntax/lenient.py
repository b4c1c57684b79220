"""Parses any query, for comparison only: the query is never run, and the allow-list does not apply."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from console.planning.sql.dialect import quotes
from console.planning.sql.dialect.pipes import Pipes
from console.planning.sql.dialect.written import AsRead
from console.planning.sql.relation import Relation
from console.planning.sql.semantics import QuerySemantics, Unclear, evaluate
from console.planning.sql.tree import BROKEN, DIALECT, misfit

BYTES = 1024 * 1024
_FIRST = ("SELECT", "WITH", "FROM", "(", "VALUES", "TABLE")
# functions whose format or unit sqlglot rewrites to its own notation, so that different ones may become equal
REWRITTEN = frozenset([
    "CHARINDEX", "CONVERT_TIMEZONE", "DATE_FORMAT", "DATE_SUB", "DATE_TRUNC", "DAY", "DAYOFMONTH", "DAYOFWEEK",
    "DAYOFYEAR", "ELEMENT_AT", "FROM_UNIXTIME", "FROM_UTC_TIMESTAMP", "GET_JSON_OBJECT", "HEX", "LOCATE", "LOG",
    "LOG10", "LOG2", "LPAD", "MONTH", "REGEXP_EXTRACT", "REGEXP_EXTRACT_ALL", "RPAD", "SHIFTLEFT", "SHIFTRIGHT",
    "SLICE", "SORT_ARRAY", "STR_TO_MAP", "TO_DATE", "TO_TIMESTAMP", "TO_UTC_TIMESTAMP", "TRUNC", "TRY_ELEMENT_AT",
    "UNIX_TIMESTAMP", "TO_UNIX_TIMESTAMP", "WEEKOFYEAR", "YEAR", "ARRAY_SORT", "ARRAY_APPEND", "ARRAY_PREPEND",
    "ARRAY_INSERT", "ARRAY_REMOVE", "ARRAY_SIZE", "PERCENTILE", "UUID",
])  # fmt: skip


class _Parser(Pipes):
    FUNCTIONS: ClassVar = {name: build for name, build in Pipes.FUNCTIONS.items() if name not in REWRITTEN}
    FUNCTION_PARSERS: ClassVar = {name: read for name, read in Pipes.FUNCTION_PARSERS.items() if name not in REWRITTEN}


class AsWritten(AsRead):
    """Spark's SQL with such calls kept as written."""

    Parser = _Parser


@contextmanager
def _understood() -> Iterator[None]:
    """raises Unclear for anything that cannot be parsed, however deep"""
    try:
        yield
    except RecursionError:
        raise Unclear("it is nested too deeply") from None
    except BROKEN:
        raise Unclear("a call in it has not the arguments that its function takes") from None
    except SqlglotError as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        what = (details.get("description") or str(error)).splitlines()[0].rstrip(".")
        near = f" near {details['highlight']!r}" if details.get("highlight") else ""
        place = f" at {details['line']}:{details['col']}" if details.get("line") else ""
        raise Unclear(f"it cannot be read: {what}{near}{place}") from None


def parsed(sql: str) -> exp.Expr:
    """One query.

    raises  Unclear if it is not one
    """
    if len(sql.encode()) > BYTES:
        raise Unclear("it is longer than 1 MiB")
    sql = quotes.single(sql)
    with _understood():
        tokens = sqlglot.Dialect.get_or_raise(DIALECT).tokenize(sql)
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        if not tokens:
            raise Unclear("it is empty")
        if any(token.token_type == TokenType.SEMICOLON for token in tokens):
            raise Unclear("it is more than one statement")
        if tokens[0].text.upper() not in _FIRST:  # before the parser, which warns about unknown statements
            raise Unclear(f"only a SELECT can be compared, not {tokens[0].text.upper()}")
        if tokens[0].text.upper() == "TABLE":
            return exp.select("*").from_(exp.to_table(sql.strip().rstrip(";")[5:].strip(), dialect=DIALECT))
        try:
            trees = [tree for tree in AsWritten().parse(sql) if tree is not None]
        except BROKEN:
            call = misfit(sql)
            raise Unclear(f"{call[1] if call else 'a call'} has not the arguments that its function takes") from None
    if len(trees) != 1 or not isinstance(trees[0], (exp.Query, exp.Values)):
        raise Unclear("it is not a SELECT")
    return trees[0]


def understood(tree: exp.Expr, tables: dict[str, Relation]) -> QuerySemantics:
    """raises  Unclear"""
    with _understood():
        return evaluate(tree, tables, strict=bool(tables))


def spelled(tree: exp.Expr) -> dict[str, str]:
    """The outermost names as written, by lower case."""
    first = tree
    while isinstance(first, (exp.SetOperation, exp.Subquery)):
        first = first.this
    parts = first.expressions if isinstance(first, exp.Select) else []
    names = [
        name
        for part in parts
        for name in (*(c.name for c in part.expressions if isinstance(part, exp.Aliases)), part.alias_or_name)
    ]
    return {name.lower(): name for name in names if name}


def canonical(tree: exp.Expr) -> str:
    """The text without comments, keyword case and layout."""
    with _understood():
        text: str = tree.sql(DIALECT, comments=False)
    return text
