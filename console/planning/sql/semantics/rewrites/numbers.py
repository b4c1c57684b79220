"""Whole numbers in a query."""

from collections.abc import Callable

from sqlglot import exp

from console.planning.sql.relation import Value

INT = 1 << 31  # the first number above INT
_WHOLE = (exp.DataType.Type.INT, exp.DataType.Type.BIGINT)
_FOLDED: dict[type[exp.Expr], Callable[[int, int], int]] = {
    exp.Add: lambda a, b: a + b, exp.Sub: lambda a, b: a - b, exp.Mul: lambda a, b: a * b,
}  # fmt: skip


def ordinal(node: exp.Expr) -> int | None:
    """The column position that a literal means in GROUP BY and ORDER BY."""
    node = node.unnest()
    return int(node.this) if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit() else None


def whole(node: exp.Expr) -> exp.Expr:
    """The compared value, without a cast that only widens a literal: `1L`, `CAST('1' AS INT)`, `CAST('x' AS STRING)`."""
    inner = node.unnest()
    if isinstance(inner, exp.Cast) and inner.to.is_type(exp.DataType.Type.TEXT) and inner.this.is_string:
        literal: exp.Expr = inner.this
        return literal
    while isinstance(inner, exp.Cast) and not inner.args.get("safe") and inner.to.is_type(*_WHOLE):
        of = inner.this.unnest()
        if isinstance(of, exp.Literal) and of.is_string and of.name.isdigit():
            of = exp.Literal.number(of.name)
        if integer(of) is None and not isinstance(of, exp.Cast):
            return node
        inner = of
    return inner if integer(inner) is not None else node


def as_whole(node: exp.Expr, beside: Value) -> exp.Expr:
    """The integer in `CAST(1 AS DOUBLE)` when compared with a double: Spark compares both forms alike."""
    inner = node.unnest()
    if beside.type != "double" or not isinstance(inner, exp.Cast) or not inner.to.is_type(exp.DataType.Type.DOUBLE):
        return node
    of: exp.Expr = inner.this.unnest()
    return of if isinstance(of, exp.Literal) and integer(of) is not None else node


def integer(node: exp.Expr) -> int | None:
    """The INT that an expression of INT literals evaluates to."""
    node = node.unnest()
    number: int | None = None
    if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
        number = int(node.this)
    elif isinstance(node, exp.Neg) and (inner := integer(node.this)) is not None:
        number = -inner
    elif type(node) in _FOLDED:
        sides = integer(node.args["this"]), integer(node.args["expression"])
        if sides[0] is not None and sides[1] is not None:
            number = _FOLDED[type(node)](sides[0], sides[1])
    return number if number is not None and -INT <= number < INT else None
