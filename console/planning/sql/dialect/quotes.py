"""Doubled quotes in string literals: one quote to Spark 4, the end of one literal and the start of another to sqlglot."""

from itertools import pairwise

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError


def single(sql: str) -> str:
    """The same query with `'O''Brien'` written as `'O\\'Brien'`: of the same length, so that positions do not change.

    source  Spark's `legacy.consecutiveStringLiterals.enabled`, off since 4.0; texts with a space between are still joined
    """
    if "''" not in sql and '""' not in sql:
        return sql
    try:
        tokens = Spark().tokenize(sql)
    except SqlglotError:
        return sql  # the parser will report the error
    letters = list(sql)
    for one, other in pairwise(tokens):
        both = one.token_type == other.token_type == TokenType.STRING
        if both and one.end + 1 == other.start and sql[one.end] == sql[other.start]:
            letters[one.end] = "\\"
    return "".join(letters)
