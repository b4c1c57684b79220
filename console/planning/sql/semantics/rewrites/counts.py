"""Aggregates over some of the rows: FILTER, CASE and `count_if` in one form, and `bool_or` as a maximum."""

from sqlglot import exp

from console.planning.sql.relation import FALSE, Value, combined
from console.planning.sql.semantics import functions
from console.planning.sql.semantics.evaluator import Evaluator
from console.planning.sql.semantics.rewrites import simpler
from console.planning.sql.semantics.rewrites.numbers import integer
from console.planning.sql.semantics.rewrites.predicates import searched

# aggregates of one argument, whose NULLs they ignore
_PASS_OVER_NULLS = (
    exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Count, exp.Stddev, exp.StddevPop, exp.StddevSamp, exp.Variance, exp.VariancePop,
    exp.LogicalOr, exp.LogicalAnd,
)  # fmt: skip
_NEVER: dict[type[exp.Expr], int] = {
    exp.GT: 0,
    exp.GTE: 1,
    exp.NEQ: 0,
}  # comparisons of a count that require at least one
_NONE: dict[type[exp.Expr], int] = {exp.EQ: 0, exp.LT: 1, exp.LTE: 0}
_TURNED: dict[type[exp.Expr], type[exp.Expr]] = {exp.GT: exp.LT, exp.LT: exp.GT, exp.GTE: exp.LTE, exp.LTE: exp.GTE}


def aggregate(call: exp.Expr, values: Evaluator) -> Value | None:
    """The normal form of an aggregate with another spelling, before its rows are hashed in; None for any other."""
    if isinstance(call, exp.CountIf):
        return counted([call.this], values)
    if isinstance(call, exp.Count) and isinstance(inner := call.this, exp.Expr) and not call.expressions:
        if (conditions := _one_or_none(inner.unnest())) is not None:
            return counted(conditions, values)
        if isinstance(inner.unnest(), (exp.Case, exp.If)) and (split := _only_branch(inner.unnest())) is not None:
            return counted([split[0], exp.Not(this=exp.Is(this=split[1].copy(), expression=exp.Null()))], values)
    if isinstance(call, exp.Sum) and values.nonempty and not functions.over_window(call):
        conditions = _ones(call.this.unnest(), zero=True)
        return counted(conditions, values) if conditions is not None else None
    if isinstance(call, (exp.LogicalOr, exp.Max)) and values.truths.is_condition(call.this):
        return combined("Max", [values.value(call.this)])
    return None


def counted(conditions: list[exp.Expr], values: Evaluator) -> Value:
    """The count of rows that pass all of these."""
    parts = [values.truths.of(one, filters=True) for one in conditions]
    asked = simpler.one(exp.And, simpler.merged(exp.And, parts, filters=True))
    inner = asked.parts[0] if asked.kind == "Not" and asked.parts else asked
    if inner is not asked and inner.kind == "IsNull" and inner.parts:
        return combined("Count", [inner.parts[0]])
    return combined("Count/if", [asked])


def filtered(node: exp.Filter) -> exp.Expr | None:
    """The same aggregate with a CASE in place of its FILTER; None if it does not ignore NULLs."""
    call, where = node.this, node.expression
    condition = where.this if isinstance(where, exp.Where) else where
    rewritten: exp.Expr | None = None
    if isinstance(call, exp.Count) and isinstance(call.this, (exp.Star, exp.Literal)) and not call.expressions:
        rewritten = exp.CountIf(this=condition.copy())
    elif isinstance(call, exp.CountIf):
        rewritten = exp.CountIf(
            this=exp.And(this=exp.Paren(this=condition.copy()), expression=exp.Paren(this=call.this.copy()))
        )
    elif isinstance(call, _PASS_OVER_NULLS) and not call.expressions and isinstance(call.this, exp.Expr):
        rewritten = call.copy()
        of = rewritten.this
        several = isinstance(of, exp.Distinct) and len(of.expressions) != 1
        if several or (isinstance(of, exp.Distinct) and of.args.get("on")):
            return None
        argument = of.expressions[0] if isinstance(of, exp.Distinct) else of
        argument.replace(exp.Case(ifs=[exp.If(this=condition.copy(), true=argument.copy())]))
    if rewritten is not None:
        rewritten.parent, rewritten.arg_key = node.parent, node.arg_key
    return rewritten


def asks_for_one(node: exp.Expr, values: Evaluator) -> tuple[exp.Expr, bool] | None:
    """(the condition, whether no row may pass) of `count_if(p) > 0` and the like; None for any other comparison."""
    for call, number, kind in (
        (node.this, node.args.get("expression"), type(node)),
        (node.args.get("expression"), node.this, _TURNED.get(type(node), type(node))),
    ):
        if not isinstance(call, exp.Expr) or not isinstance(number, exp.Expr) or (value := integer(number)) is None:
            continue
        if (countable := _asked(call.unnest(), values)) is None:
            continue
        condition, most = countable
        if most and kind is exp.EQ and value == 1:
            return condition, False
        if _NEVER.get(kind) == value:
            return condition, False
        if _NONE.get(kind) == value:
            return condition, True
    return None


def _asked(call: exp.Expr, values: Evaluator) -> tuple[exp.Expr, bool] | None:
    """(the condition, whether the result is at most 1) of a call that counts, or is the maximum of 1 and 0."""
    if isinstance(call, exp.Filter):
        call = filtered(call) or call
    if functions.over_window(call):
        return None
    if isinstance(call, exp.CountIf):
        return call.this, False
    if isinstance(call, exp.Coalesce) and len(call.expressions) == 1 and integer(call.expressions[0]) == 0:
        inner = call.this.unnest()
        conditions = _ones(inner.this.unnest(), zero=False) if isinstance(inner, (exp.Sum, exp.Max)) else None
        return (conditions[0], isinstance(inner, exp.Max)) if conditions is not None and len(conditions) == 1 else None
    if isinstance(call, exp.Count) and isinstance(call.this, exp.Expr) and not call.expressions:
        conditions = _one_or_none(call.this.unnest())
        return (conditions[0], False) if conditions is not None and len(conditions) == 1 else None
    if isinstance(call, (exp.Sum, exp.Max)) and values.nonempty:
        conditions = _ones(call.this.unnest(), zero=True)
        return (conditions[0], isinstance(call, exp.Max)) if conditions is not None else None
    return None


def of_zero(node: exp.Coalesce, values: Evaluator) -> Value | None:
    """`coalesce(sum(CASE WHEN p THEN 1 ELSE 0 END), 0)` is a count, also without rows."""
    inner = node.this.unnest()
    if len(node.expressions) != 1 or integer(node.expressions[0]) != 0 or not isinstance(inner, exp.Sum):
        return None
    if functions.over_window(inner) or (conditions := _ones(inner.this.unnest(), zero=False)) is None:
        return None
    return values.grouped(counted(conditions, values))


def some(condition: exp.Expr, values: Evaluator) -> Value:
    """Whether any row passes; false without rows."""
    values.inside += 1
    maximum = combined("Max", [values.truths.of(condition, filters=True)])
    values.inside -= 1
    return combined("Coalesce", [values.grouped(maximum), FALSE])


def _only_branch(node: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """(condition, value) of a CASE with one branch, else NULL."""
    ifs = searched(node)
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    if len(ifs) != 1:
        return None
    if default is not None and not isinstance(default.unnest(), exp.Null):
        return None
    return ifs[0].this, ifs[0].args["true"].unnest()


def _one_or_none(node: exp.Expr) -> list[exp.Expr] | None:
    """The condition of a CASE whose result is a literal or NULL."""
    if not isinstance(node, (exp.Case, exp.If)) or (split := _only_branch(node)) is None:
        return None
    return [split[0]] if isinstance(split[1], (exp.Literal, exp.Boolean)) else None


def _ones(node: exp.Expr, zero: bool) -> list[exp.Expr] | None:
    """The condition of a CASE that is 1, else 0. zero: else NULL is not accepted"""
    if not isinstance(node, (exp.Case, exp.If)):
        return None
    ifs = searched(node)
    default = node.args.get("false" if isinstance(node, exp.If) else "default")
    if len(ifs) != 1 or integer(ifs[0].args["true"]) != 1:
        return None
    if default is None or isinstance(default.unnest(), exp.Null):
        return None if zero else [ifs[0].this]
    return [ifs[0].this] if integer(default) == 0 else None
