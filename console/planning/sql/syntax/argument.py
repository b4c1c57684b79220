"""Certain Spark types of expressions, decimals with precision and scale, which sqlglot's own inference omits.

source  Spark's DecimalPrecision: the type of a decimal sum, product and quotient, and of a decimal literal
"""

import re
from collections.abc import Callable, Sequence
from functools import reduce

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from console.planning.sql.tree import DIALECT, inferred

INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DIGITS = dict(zip(INTEGERS, (3, 5, 10, 20), strict=True))  # as Spark counts them in an operation with a decimal
_FLOATS = ("float", "double")
_MOST, _LEAST_SCALE = 38, 6
_DECIMAL = re.compile(r"(\d*)\.(\d*)")
_Digits = tuple[int, int]

_PLAIN = (*INTEGERS, *_FLOATS, "string", "binary", "boolean", "date", "timestamp")  # sqlglot infers these as Spark does
_SECONDS = ("SECOND", "SECONDS", "S", "SEC", "SECS")
# functions that sqlglot does not know
_GIVES = {
    "bigint": "bigint", "cardinality": "int", "crc32": "bigint", "expm1": "double", "find_in_set": "int", "hash": "int",
    "hypot": "double", "int": "int", "json_array_length": "int", "log1p": "double", "make_date": "date", "mask": "string",
    "octet_length": "int", "smallint": "smallint", "timestamp_micros": "timestamp", "timestamp_millis": "timestamp",
    "timestamp_seconds": "timestamp", "tinyint": "tinyint", "try_to_date": "date", "try_to_timestamp": "timestamp",
    "url_decode": "string", "url_encode": "string", "weekday": "int", "xxhash64": "bigint",
}  # fmt: skip


def decimal(type: str) -> _Digits:
    """Precision and scale of a decimal type."""
    precision, _, scale = type[len("decimal(") : -1].partition(",")
    return int(precision), int(scale or 0)


def settled(query: exp.Select) -> exp.Select:
    """A copy in which columns of subqueries have the decimal types that Spark computes for them."""
    done = query.copy()
    for scope in traverse_scope(done):  # the innermost first
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if not isinstance(source, Scope):
                continue
            known, sure = inferred(column), _output(source.expression, column.name)
            if known != sure and "decimal" in (known[:7], sure[:7]):
                column.type = exp.DataType.build(sure or "unknown", dialect=DIALECT)
    return done


def _output(query: exp.Expr, column: str) -> str:
    """The type of a query's output, by its name; branches of a UNION match by position."""
    names = [name.lower() for name in query.named_selects] if isinstance(query, exp.Query) else []
    if column.lower() not in names:
        return ""
    branches = [query]
    while any(isinstance(branch, exp.SetOperation) for branch in branches):
        branches = [b for a in branches for b in ((a.this, a.expression) if isinstance(a, exp.SetOperation) else (a,))]
    at = names.index(column.lower())
    return _widest([branch.selects[at].unalias() for branch in branches if isinstance(branch, exp.Query)])


def certain(node: exp.Expr) -> str:
    """The Spark type of an expression, "" if that is not certain.

    node  of a query with its types inferred
    """
    node = node.unnest()
    match node:
        case exp.Column() | exp.Cast() | exp.Bracket() | exp.Dot():
            return inferred(node)
        case exp.Literal():
            return "string" if node.is_string else _number(node.name)
        case exp.Anonymous():
            name = str(node.this).lower()
            return _arithmetic(_modulo, node.expressions) if name == "pmod" else _GIVES.get(name, "")
        case exp.Neg() | exp.Negative() | exp.Abs() | exp.Round() | exp.Nullif():
            return certain(node.this)
        case exp.Extract():
            return "decimal(8,6)" if node.name.upper() in _SECONDS else "int"
        case exp.Floor() | exp.Ceil():
            return "" if node.args.get("decimals") else "bigint"
        case exp.TimestampTrunc():
            return "timestamp"
        case exp.Case():
            branches = [*(branch.args["true"] for branch in node.args["ifs"]), node.args.get("default")]
            return _widest(branches)
        case exp.If():
            return _widest([node.args["true"], node.args.get("false")])
        case exp.Coalesce() | exp.Greatest() | exp.Least():
            return _widest([node.this, *node.expressions])
    if (rule := _RULES.get(type(node))) is not None:
        return _arithmetic(rule, [node.this, node.expression])
    known = inferred(node)
    return known if known in _PLAIN else ""


def _number(text: str) -> str:
    if text.isdigit():
        value = int(text)
        return "int" if value < 1 << 31 else "bigint" if value < 1 << 63 else f"decimal({len(text)},0)"
    if digits := _DECIMAL.fullmatch(text):
        whole, places = digits[1].lstrip("0"), digits[2]
        return f"decimal({max(len(whole) + len(places), 1)},{len(places)})"
    return "double"


def _added(a: _Digits, b: _Digits) -> _Digits:
    scale = max(a[1], b[1])
    return max(a[0] - a[1], b[0] - b[1]) + scale + 1, scale


def _multiplied(a: _Digits, b: _Digits) -> _Digits:
    return a[0] + b[0] + 1, a[1] + b[1]


def _divided(a: _Digits, b: _Digits) -> _Digits:
    scale = max(_LEAST_SCALE, a[1] + b[0] + 1)
    return a[0] - a[1] + b[1] + scale, scale


def _modulo(a: _Digits, b: _Digits) -> _Digits:
    scale = max(a[1], b[1])
    return min(a[0] - a[1], b[0] - b[1]) + scale, scale


Rule = Callable[[_Digits, _Digits], _Digits]
_RULES: dict[type[exp.Expr], Rule] = {
    exp.Add: _added, exp.Sub: _added, exp.Mul: _multiplied, exp.Div: _divided, exp.Mod: _modulo,
    exp.SafeAdd: _added, exp.SafeSubtract: _added, exp.SafeMultiply: _multiplied, exp.SafeDivide: _divided,
}  # fmt: skip


def _arithmetic(rule: Rule, operands: Sequence[exp.Expr]) -> str:
    types = [certain(operand) for operand in operands]
    if not all(type in _DIGITS or type in _FLOATS or type.startswith("decimal") for type in types):
        return ""
    if any(type in _FLOATS for type in types):
        return "double"
    if all(type in _DIGITS for type in types):
        return "double" if rule is _divided else max(types, key=INTEGERS.index)
    return _fitting(*rule(*(_digits(type, node) for type, node in zip(types, operands, strict=True))))


def _digits(type: str, node: exp.Expr) -> _Digits:
    node = node.unnest()
    if isinstance(node, exp.Literal) and type in _DIGITS:
        return len(node.name), 0  # Spark takes as many digits as are written
    return (_DIGITS[type], 0) if type in _DIGITS else decimal(type)


def _fitting(digits: int, places: int) -> str:
    """If there are too many digits, the scale is reduced to no less than six."""
    if digits > _MOST:
        places = max(_MOST - (digits - places), min(places, _LEAST_SCALE))
        digits = _MOST
    return f"decimal({digits},{places})"


def _widest(branches: Sequence[exp.Expr | None]) -> str:
    """The common type of all branches; a NULL has none of its own."""
    types = [certain(branch) for branch in branches if branch is not None and not isinstance(branch.unnest(), exp.Null)]
    return reduce(_either, types) if types and all(types) else ""


def _either(one: str, other: str) -> str:
    if one == other:
        return one
    numbers = [type for type in (one, other) if type in _DIGITS or type in _FLOATS or type.startswith("decimal")]
    if len(numbers) < 2:
        return ""
    if any(type in _FLOATS for type in numbers):
        return "double"
    if all(type in _DIGITS for type in numbers):
        return max(numbers, key=INTEGERS.index)
    (p, s), (q, t) = ((_DIGITS[type], 0) if type in _DIGITS else decimal(type) for type in numbers)
    return f"decimal({min(_MOST, max(p - s, q - t) + max(s, t))},{max(s, t)})"
