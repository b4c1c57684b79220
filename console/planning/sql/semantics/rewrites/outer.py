"""Outer joins whose additional rows are filtered out again: they are inner joins."""

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from console.planning.sql.relation import Relation
from console.planning.sql.semantics import functions

# NULL if any operand is
_STRICT = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot,
    exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.DPipe, exp.Concat, exp.Lower, exp.Upper, exp.Length, exp.Abs, exp.Trim,
    exp.Like, exp.ILike, exp.RegexpLike, exp.Cast, exp.Paren,
)  # fmt: skip
_COMPARES = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Like, exp.ILike, exp.RegexpLike)
Names = frozenset[str]


def strengthened(
    joins: Sequence[exp.Expr], where: exp.Expr | None, views: Mapping[str, Relation]
) -> list[exp.Expr] | None:
    """The joins with LEFT, RIGHT and FULL reduced as far as conditions allow; None if nothing changes."""
    result = list(joins)
    rights = [join.this.alias_or_name.lower() if isinstance(join.this, exp.Expr) else "" for join in joins]
    first = frozenset(views) - frozenset(rights)
    changed = False
    while True:
        sides = [(join.args.get("side") or "").upper() for join in result]
        for at, join in enumerate(result):
            asked = [where] if where is not None else []
            later = range(at + 1, len(result))
            asked += [
                on for i in later if not sides[i] and _plain(result[i]) and (on := result[i].args.get("on")) is not None
            ]
            lost = frozenset().union(*(_rejects(one, False, views) for one in asked)) if asked else frozenset()
            left = first | frozenset(rights[:at])
            # a later RIGHT or FULL join adds rows with NULLs that are not this join's
            if any(sides[i] in ("RIGHT", "FULL") for i in later) or not _plain(join):
                continue
            if (side := _taken_down(sides[at], bool(lost & left), rights[at] in lost)) != sides[at]:
                result[at] = join.copy()
                result[at].set("side", side or None)
                changed = True
                break
        else:
            return result if changed else None


def _plain(join: exp.Expr) -> bool:
    kind = str(join.args.get("kind") or "").upper()
    return kind in ("", "INNER", "OUTER") and not join.args.get("using") and not join.args.get("method")


def _taken_down(side: str, left: bool, right: bool) -> str:
    """The join side if rows without a left, or without a right partner, are filtered out."""
    match side, left, right:
        case "LEFT", _, True:
            return ""
        case "RIGHT", True, _:
            return ""
        case "FULL", True, True:
            return ""
        case "FULL", True, False:
            return "LEFT"
        case "FULL", False, True:
            return "RIGHT"
    return side


def _rejects(node: exp.Expr, negated: bool, views: Mapping[str, Relation]) -> Names:
    """Sources whose row cannot be all NULL if a condition is true, or if it is false."""
    node = node.unnest()
    match node:
        case exp.Not():
            return _rejects(node.this, not negated, views)
        case exp.And() | exp.Or():
            sides = [_rejects(part, negated, views) for part in (node.this, node.expression)]
            return sides[0] | sides[1] if isinstance(node, exp.And) != negated else sides[0] & sides[1]
        case exp.Is() if isinstance(node.expression, exp.Null):
            return _strict(node.this, views) if negated else frozenset()
        case exp.Is() if isinstance(node.expression, exp.Boolean):
            return frozenset() if negated else _strict(node.this, views)
        case exp.In() if not node.args.get("query") or not negated:
            return _strict(node.this, views)
        case exp.Between():
            return _strict(node.this, views)
        case exp.Column():
            return _strict(node, views)
        case exp.Anonymous() if functions.is_null_test(node):
            tests = negated != (functions.called(node) == "isnotnull")
            return _strict(node.expressions[0], views) if tests else frozenset()
    if isinstance(node, _COMPARES) and not isinstance(node.expression, (exp.Any, exp.All)):
        return _strict(node, views)
    return frozenset()


def _strict(node: exp.Expr, views: Mapping[str, Relation]) -> Names:
    """Sources whose row an expression needs: it is NULL without one."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        return frozenset(_owner(node, views))
    if type(node) not in _STRICT:  # concat_ws, which ignores NULLs, is a kind of concat to sqlglot
        return frozenset()
    parts = [part for part in node.iter_expressions() if not isinstance(part, exp.DataType)]
    return frozenset().union(*(_strict(part, views) for part in parts))


def _owner(column: exp.Column, views: Mapping[str, Relation]) -> Iterable[str]:
    if column.args.get("db"):
        return ()
    if column.table:
        alias = column.table.lower()
        return (alias,) if alias in views else ()
    holders = [alias for alias, view in views.items() if column.name.lower() in view.columns]
    return holders if len(holders) == 1 and not any(view.rest for view in views.values()) else ()
