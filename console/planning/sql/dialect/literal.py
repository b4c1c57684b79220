"""Values from the pipeline's files as literals of a query."""

import json
import re
from contextlib import suppress

from sqlglot import exp

_NUMBER = re.compile(r"-?\d+(\.\d+)?")


def literal(value: str) -> exp.Expr:
    """A variable's value as a SQL literal: a number, true, false or null as such, all else as a string.

    value  as written; in double quotes, as in JSON, it is always a string
    """
    if len(value) > 1 and value[0] == value[-1] == '"':
        with suppress(ValueError):
            return exp.Literal.string(json.loads(value))
    if _NUMBER.fullmatch(value):
        number = exp.Literal.number(value.lstrip("-"))
        return exp.Neg(this=number) if value.startswith("-") else number
    match value.lower():
        case "true" | "false":
            return exp.Boolean(this=value.lower() == "true")
        case "null":
            return exp.Null()
    return exp.Literal.string(value)
