"""Any query to a tree, to be compared and never run: the allow-list does not apply."""

from collections.abc import Iterator
from contextlib import contextmanager

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError

from console.planning.sql.meaning import Meaning, Unclear, evaluated
from console.planning.sql.relation import Relation
from console.planning.sql.tree import DIALECT

BYTES = 1024 * 1024
_FIRST = ("SELECT", "WITH", "FROM", "(", "VALUES", "TABLE")


@contextmanager
def _understood() -> Iterator[None]:
    """raises  Unclear for whatever cannot be read, however deep"""
    try:
        yield
    except RecursionError:
        raise Unclear("it is nested too deeply") from None
    except SqlglotError as error:
        details = (getattr(error, "errors", None) or [{}])[0]
        what = (details.get("description") or str(error)).splitlines()[0].rstrip(".")
        near = f" near {details['highlight']!r}" if details.get("highlight") else ""
        place = f" at {details['line']}:{details['col']}" if details.get("line") else ""
        raise Unclear(f"it cannot be read: {what}{near}{place}") from None


def parsed(sql: str) -> exp.Expr:
    """One query.

    raises  Unclear where it is none
    """
    if len(sql.encode()) > BYTES:
        raise Unclear("it is longer than 1 MiB")
    with _understood():
        tokens = sqlglot.Dialect.get_or_raise(DIALECT).tokenize(sql)
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens.pop()
        if not tokens:
            raise Unclear("it is empty")
        if any(token.token_type == TokenType.SEMICOLON for token in tokens):
            raise Unclear("it is more than one statement")
        if tokens[0].text.upper() not in _FIRST:  # ahead of the parser, which warns about statements it does not know
            raise Unclear(f"only a SELECT can be compared, not {tokens[0].text.upper()}")
        if tokens[0].text.upper() == "TABLE":
            return exp.select("*").from_(exp.to_table(sql.strip().rstrip(";")[5:].strip(), dialect=DIALECT))
        trees = [tree for tree in sqlglot.parse(sql, read=DIALECT) if tree is not None]
    if len(trees) != 1 or not isinstance(trees[0], (exp.Query, exp.Values)):
        raise Unclear("it is no SELECT")
    return trees[0]


def understood(tree: exp.Expr, tables: dict[str, Relation]) -> Meaning:
    """raises  Unclear"""
    with _understood():
        return evaluated(tree, tables, strict=bool(tables))


def spelled(tree: exp.Expr) -> dict[str, str]:
    """The outermost names as they are written, by their lower case."""
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
    """The text without comments, case of keywords and layout."""
    with _understood():
        text: str = tree.sql(DIALECT, comments=False)
    return text
