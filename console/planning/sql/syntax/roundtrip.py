"""Refuses calls that sqlglot writes back as a different call, since Spark would run that one."""

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser

from console.planning.sql import allow
from console.planning.sql.syntax.lenient import REWRITTEN, AsWritten
from console.planning.sql.tree import DIALECT, Text, render

_ANY_CASE = ("DATE_TRUNC", "TRUNC")  # functions whose unit means the same in capitals
_FIRST_GROUP = ("number", "1")
_SECONDS = ("text", "yyyy-MM-dd HH:mm:ss")
_DEFAULT = {  # arguments that may be lost, since they are Spark's defaults
    "REGEXP_EXTRACT": _FIRST_GROUP, "REGEXP_EXTRACT_ALL": _FIRST_GROUP,
    "FROM_UNIXTIME": _SECONDS, "UNIX_TIMESTAMP": _SECONDS, "TO_UNIX_TIMESTAMP": _SECONDS,
}  # fmt: skip


_KNOWN = {*SparkParser.FUNCTIONS, *SparkParser.FUNCTION_PARSERS, *(name.upper() for name in allow.NAMES)}
# other names of the same function, as Spark documents them, or of the same operator
_SYNONYMS = frozenset([
    "AND", "APPROX_PERCENTILE", "ARRAY_AGG", "ARRAY_SIZE", "BOOLEAN", "CEILING", "CHAR", "CHARACTER_LENGTH", "CHARINDEX",
    "CHAR_LENGTH", "COLLATE", "CURDATE", "CURRENT_DATE", "DATE", "DATEADD", "DATE_DIFF", "DATE_SUB", "DIV", "DOUBLE", "FLOAT",
    "IFNULL", "ILIKE", "INSTR", "INT", "LCASE", "LEN", "LIKE", "LOCALTIMESTAMP", "LOG", "LTRIM", "MOD", "NAMED_STRUCT", "NVL",
    "OR", "POSITION", "POW", "RANDOM", "REDUCE", "REGEXP_LIKE", "RLIKE", "RTRIM", "SHA1", "SIGNUM", "STRING", "SUBSTR",
    "TIMESTAMP", "TIMESTAMPADD", "TO_TIMESTAMP", "TO_UNIX_TIMESTAMP", "UCASE", "UNIX_DATE", "VAR_SAMP", "XOR",
])  # fmt: skip


def check(text: Text) -> None:
    """Report every call that would not reach Spark as written.

    sqlglot turns a few functions' arguments into its own notation and back: the frequency of `percentile` is dropped,
    a column as the unit of `date_trunc` becomes a unit of that name, the pattern letters `YYYY` and `y` become `yyyy`.
    Losses are detected by the arguments alone: each must occur in the text that would be sent.
    """
    for node in _calls(text.sql):
        written = node.sql(DIALECT, comments=False)
        if sent := _otherwise(written, str(node.this).upper()):
            text.report(
                "S105",
                f"{written} is not allowed: it would be sent to Spark as {sent}",
                node,
                fix="write it so that both say the same, or compute it another way",
            )
    if text.problems:
        return
    for called, offset in _renamed(text.sql):
        text.report_query(
            "S105",
            f"{called.lower()} is not allowed as it is written here: it would be sent to Spark as another function",
            offset,
            fix="call it as Spark's own documentation does",
        )


def _renamed(sql: str) -> list[tuple[str, int]]:
    """Functions, with the nodes of their calls, for which neither their name nor a synonym is in the text that would be sent."""
    try:
        sent = render(sqlglot.parse_one(sql, read=DIALECT))
        missing = Counter(name for name, _ in _called(sql)) - Counter(name for name, _ in _called(sent))
        return [(name, at) for name, at in _called(sql) if name in missing and name not in _SYNONYMS]
    except (SqlglotError, RecursionError):
        return []  # the compiler reports the error


def _called(sql: str) -> Iterator[tuple[str, int]]:
    tokens = sqlglot.tokenize(sql, read=DIALECT)
    for token, after in pairwise(tokens):
        if after.token_type == TokenType.L_PAREN and token.text.upper() in _KNOWN:
            yield token.text.upper(), token.start


def _calls(sql: str) -> Iterator[exp.Anonymous]:
    if not any(name in sql.upper() for name in REWRITTEN):
        return
    try:
        trees = AsWritten().parse(sql)
    except (SqlglotError, RecursionError):
        return  # the compiler parses it separately, and reports its errors
    for tree in trees:
        for node in tree.find_all(exp.Anonymous) if tree is not None else ():
            if str(node.this).upper() in REWRITTEN:
                yield node


@lru_cache(maxsize=8192)
def _otherwise(written: str, function: str) -> str:
    """The text that would be sent instead of a call, "" if it is equivalent."""
    try:
        sent = render(sqlglot.parse_one(f"SELECT {written}", read=DIALECT)).removeprefix("SELECT ")
        again = AsWritten().parse(f"SELECT {sent}")[0]
        before = AsWritten().parse(f"SELECT {written}")[0]
    except SqlglotError:
        return ""
    if before is None or again is None:
        return ""
    lost = _parts(before, function) - _parts(again, function)
    if function in _DEFAULT:
        lost -= Counter([_DEFAULT[function]])
    return sent if lost else ""


def _parts(tree: exp.Expr, function: str) -> Counter[tuple[str, str]]:
    """Names and literals, as a multiset: texts unchanged, names and numbers without case."""
    counts: Counter[tuple[str, str]] = Counter()
    for node in tree.walk():
        if isinstance(node, exp.Literal):
            loose = not node.is_string or function in _ANY_CASE
            kind = "text" if node.is_string else "number"
            counts[kind, str(node.this).lower() if loose else str(node.this)] += 1
        elif isinstance(node, exp.Identifier):
            counts["name", node.name.lower()] += 1
    return counts
