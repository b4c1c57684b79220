"""Doubled quotes in texts, which Spark 4 reads as one quote and sqlglot as the end of one text and the start of another."""

from itertools import pairwise

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError


def single(sql: str) -> str:
    """The same query with `'O''Brien'` written as `'O\\'Brien'`: as long as it was, so that places in it stay.

    source  Spark's `legacy.consecutiveStringLiterals.enabled`, off since 4.0; texts with a space between are still joined
    """
    if "''" not in sql and '""' not in sql:
        return sql
    try:
        tokens = Spark().tokenize(sql)
    except SqlglotError:
        return sql  # whoever parses it says what is wrong
    letters = list(sql)
    for one, other in pairwise(tokens):
        both = one.token_type == other.token_type == TokenType.STRING
        if both and one.end + 1 == other.start and sql[one.end] == sql[other.start]:
            letters[one.end] = "\\"
    return "".join(letters)
