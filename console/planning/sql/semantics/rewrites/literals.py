"""Adjacent literals, whole numbers without effect, and default arguments."""

from collections.abc import Iterable

from sqlglot import exp

from console.planning.sql.relation import Value, combined
from console.planning.sql.semantics.rewrites import simpler
from console.planning.sql.semantics.rewrites.numbers import integer

_NEUTRAL: dict[type[exp.Expr], int] = {exp.Add: 0, exp.Mul: 1}


def arithmetic(kind: type[exp.Expr], left: Value, right: Value) -> Value:
    """A sum, difference or product; commuting operands are unordered."""
    if (plain := plain_sum(kind, left, right)) is not None:
        return plain
    if kind is exp.Sub:
        return combined("Sub/expression/this", [right, left])
    return combined(kind.__name__, sorted((left, right), key=lambda value: value.hash))


def joined(parts: Iterable[Value]) -> list[Value]:
    """The parts of a concatenation, with adjacent literals merged."""
    pieces: list[Value] = []
    for part in parts:
        if pieces and part.kind.startswith("text:") and pieces[-1].kind.startswith("text:"):
            pieces[-1] = simpler.text(pieces[-1].kind[5:] + part.kind[5:])
        else:
            pieces.append(part)
    return pieces


def concatenated(parts: Iterable[Value]) -> Value:
    """A concatenation; one literal if it consists of literals only."""
    pieces = joined(parts)
    return pieces[0] if pieces[0].kind.startswith("text:") and not pieces[1:] else combined("Concat", pieces)


def plain_sum(kind: type[exp.Expr], left: Value, right: Value) -> Value | None:
    """`a + 0`, `a * 1`, `0 - a` and `a - 1` of whole numbers, None for any other."""
    for of, number in ((left, simpler.number_of(right)), (right, simpler.number_of(left))):
        if of.type in ("int", "bigint") and number == _NEUTRAL.get(kind) and number is not None:
            return of
    if kind is not exp.Sub:
        return None
    if simpler.number_of(left) == 0 and right.type in ("int", "bigint"):
        return combined("Neg/this", [right])
    number = simpler.number_of(right)
    if left.type not in ("int", "bigint") or number is None:
        return None
    return (
        left if number == 0 else combined("Add", sorted((left, simpler.integer(-number)), key=lambda value: value.hash))
    )


def by_default(key: str, value: object) -> bool:
    """Default arguments of a call: `trim(BOTH FROM b)`, `round(c, 0)`."""
    return (key == "position" and value == "BOTH") or (
        key == "decimals"
        and isinstance(value, exp.Expr)
        and isinstance(value.parent, exp.Round)
        and integer(value) == 0
    )
