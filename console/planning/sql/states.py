"""Aggregate functions with partial states: the states of each, how two of them unite, and the read of the result.

States unite to the same result in any order and grouping, up to the last digits of doubles (`inexact`); NULL is
ignored. So commits, batches, and copies by coarser keys may assemble a group in any way.

source  docs/design.md, rule 13; Apache DataSketches HLL (lgK 12) and KLL (k 200) as Spark builds them; moments as in
        Chan, Golub & LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979
"""

from collections.abc import Callable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from console.model.schema import Column
from console.planning.sql.semantics import functions
from console.planning.sql.syntax.argument import INTEGERS, certain, decimal
from console.planning.sql.tree import DIALECT, Text, cast, inferred, kind, render
from console.remedy import Stays

LG_K = 12  # HLL: 2**12 registers, about 1.6 % error
_HLL_TAKES = ("string", "int", "bigint", "binary")
_ONE, _TWO = (
    "struct<n:bigint,mx:double,sx:double>",
    "struct<n:bigint,mx:double,my:double,sx:double,sy:double,sxy:double>",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One stored part of an aggregate: `partial` computes it from rows, `merge` names the operation that unites two."""

    suffix: str
    type: str
    partial: exp.Expr
    merge: str
    inexact: bool = False


def is_state_of(stored: str, column: str) -> bool:
    """Whether a stored column is a state of a declared one: `mean__sum` and `mean__2__count` of `mean`, or `hits` itself."""
    return stored == column or stored.startswith(f"{column}__")


Final = Callable[[list[exp.Expr]], exp.Expr]
Recipe = tuple[list[State], Final]


def united(merge: str, column: exp.Expr) -> exp.Expr:
    """The aggregate that unites the states in a column."""
    match merge:
        case "any_value":
            return exp.IgnoreNulls(this=exp.AnyValue(this=column))
        case "set":
            return _template("array_sort(array_distinct(flatten(collect_list(x))))", x=column)
        case "moments":
            return _template(_UNITE_ONE, x=column)
        case "moments of two":
            return _template(_UNITE_TWO, x=column)
    return exp.func(merge, column, dialect=DIALECT)


_PARTIAL_ONE = """CASE WHEN count(x) > 0 THEN
  struct(count(x) AS n, avg(x) AS mx, var_pop(x) * count(x) AS sx) END"""
_PARTIAL_TWO = """CASE WHEN count(x) > 0 THEN
  struct(count(x) AS n, avg(x) AS mx, avg(y) AS my, var_pop(x) * count(x) AS sx, var_pop(y) * count(x) AS sy,
    covar_pop(x, y) * count(x) AS sxy) END"""
_UNITE_ONE = """aggregate(collect_list(x), CAST(struct(0, 0, 0) AS STRUCT<n: BIGINT, mx: DOUBLE, sx: DOUBLE>),
  (a, b) -> CASE WHEN a.n = 0 THEN b ELSE struct(a.n + b.n AS n,
    a.mx + (b.mx - a.mx) * (b.n / (a.n + b.n)) AS mx,
    a.sx + b.sx + (b.mx - a.mx) * (b.mx - a.mx) * (a.n * (b.n / (a.n + b.n))) AS sx) END)"""
_UNITE_TWO = """aggregate(collect_list(x), CAST(struct(0, 0, 0, 0, 0, 0)
    AS STRUCT<n: BIGINT, mx: DOUBLE, my: DOUBLE, sx: DOUBLE, sy: DOUBLE, sxy: DOUBLE>),
  (a, b) -> CASE WHEN a.n = 0 THEN b ELSE struct(a.n + b.n AS n,
    a.mx + (b.mx - a.mx) * (b.n / (a.n + b.n)) AS mx, a.my + (b.my - a.my) * (b.n / (a.n + b.n)) AS my,
    a.sx + b.sx + (b.mx - a.mx) * (b.mx - a.mx) * (a.n * (b.n / (a.n + b.n))) AS sx,
    a.sy + b.sy + (b.my - a.my) * (b.my - a.my) * (a.n * (b.n / (a.n + b.n))) AS sy,
    a.sxy + b.sxy + (b.mx - a.mx) * (b.my - a.my) * (a.n * (b.n / (a.n + b.n))) AS sxy) END)"""
# reads of united moments; one value has no sample variance, and a constant has no correlation
_MOMENTS: dict[str, str] = {
    "Variance": "CASE WHEN s.n > 1 THEN s.sx / (s.n - 1) END",
    "VariancePop": "CASE WHEN s.n > 0 THEN s.sx / s.n END",
    "Stddev": "CASE WHEN s.n > 1 THEN sqrt(s.sx / (s.n - 1)) END",
    "StddevPop": "CASE WHEN s.n > 0 THEN sqrt(s.sx / s.n) END",
    "CovarSamp": "CASE WHEN s.n > 1 THEN s.sxy / (s.n - 1) END",
    "CovarPop": "CASE WHEN s.n > 0 THEN s.sxy / s.n END",
    "Corr": "CASE WHEN s.n > 1 THEN s.sxy / nullif(sqrt(s.sx) * sqrt(s.sy), 0) END",
}


def _template(sql: str, **places: exp.Expr) -> exp.Expr:
    """SQL over the names `x`, `y`, `s`, with expressions substituted for them."""

    def put(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Column):
            return node
        parts = node.parts
        if parts[0].name not in places:
            return node
        whole = places[parts[0].name].copy()
        return exp.Dot(this=whole, expression=exp.to_identifier(parts[1].name)) if len(parts) > 1 else whole

    return sqlglot.parse_one(sql, read=DIALECT).transform(put)


def _sum_type(type: str) -> str:
    if type in INTEGERS:
        return "bigint"
    if type.startswith("decimal"):
        return f"decimal(38,{decimal(type)[1]})"
    return "double"


def _first(states: list[exp.Expr]) -> exp.Expr:
    return states[0]


def _count(call: exp.Expr, type: str) -> Recipe:
    return [State(suffix="", type="bigint", partial=call, merge="sum")], _first


def _sum(call: exp.Expr, type: str) -> Recipe:
    of = _sum_type(type)
    return [State(suffix="", type=of, partial=call, merge="sum", inexact=of == "double")], _first


def _avg(call: exp.Expr, type: str) -> Recipe:
    argument = argument_of(call)
    of = "decimal(38,0)" if type == "bigint" else _sum_type(type)
    states = [
        State(suffix="sum", type=of, partial=exp.Sum(this=argument.copy()), merge="sum", inexact=of == "double"),
        State(suffix="count", type="bigint", partial=exp.Count(this=argument.copy()), merge="sum"),
    ]
    return states, lambda s: exp.Div(this=s[0], expression=exp.Nullif(this=s[1], expression=exp.Literal.number(0)))


def _extreme(call: exp.Expr, type: str) -> Recipe:
    return [State(suffix="", type=type, partial=call, merge="min" if isinstance(call, exp.Min) else "max")], _first


def _condition(call: exp.Expr, type: str) -> Recipe:
    """All are true if the least is."""
    all_of = isinstance(functions.of_conditions(call) or call, exp.LogicalAnd)
    return [State(suffix="", type="boolean", partial=call, merge="min" if all_of else "max")], _first


def _any(call: exp.Expr, type: str) -> Recipe:
    return [State(suffix="", type=type, partial=call, merge="any_value")], _first


_BITS: dict[type[exp.Expr], str] = {
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
}


def _bits(call: exp.Expr, type: str) -> Recipe:
    return [State(suffix="", type=type, partial=call, merge=_BITS[call.__class__])], _first


def _bitmap(call: exp.Expr, type: str) -> Recipe:
    return [State(suffix="", type="binary", partial=call, merge="bitmap_or_agg")], _first


def _by_order(call: exp.Expr, type: str) -> Recipe:
    """The value at the greatest order; among ties the greatest value (for `min_by`, the smallest), NULL being least."""
    least = isinstance(call, exp.ArgMin)
    pair = _template(
        "CASE WHEN y IS NOT NULL THEN struct(y AS o, x AS v) END", x=call.this, y=call.expression
    )  # rows without an order are ignored
    partial = exp.Min(this=pair) if least else exp.Max(this=pair)
    state = State(suffix="by", type=type, partial=partial, merge="min" if least else "max")
    return [state], lambda s: _template("s.v", s=s[0])


def _set(call: exp.Expr, type: str) -> Recipe:
    """A sorted set, so that equal sets are equal arrays."""
    partial = _template("array_sort(x)", x=call)
    return [State(suffix="set", type=type, partial=partial, merge="set")], _first


def _moments(call: exp.Expr, type: str) -> Recipe:
    function = functions.SYNONYMS.get(functions.called(call)) or call.__class__.__name__
    final = _MOMENTS["Stddev" if function == "StddevSamp" else function]
    x = cast(argument_of(call).copy(), "double")
    if type == _ONE:
        partial, merge = _template(_PARTIAL_ONE, x=x), "moments"
    else:
        y = cast(call.expression.copy(), "double")
        x, y = (_template("CASE WHEN y IS NOT NULL THEN x END", x=a, y=b) for a, b in ((x, y), (y, x)))
        partial, merge = _template(_PARTIAL_TWO, x=x, y=y), "moments of two"
    state = State(suffix="moments", type=type, partial=partial, merge=merge, inexact=True)
    return [state], lambda s: _template(final, s=s[0])


def _distinct(call: exp.Expr, type: str) -> Recipe:
    argument = call.this.copy() if type in _HLL_TAKES else cast(call.this.copy(), "string")
    sketch = exp.func("hll_sketch_agg", argument, exp.Literal.number(LG_K), dialect=DIALECT)
    state = State(suffix="hll", type="binary", partial=sketch, merge="hll_union_agg", inexact=True)
    return [state], lambda s: exp.func(
        "coalesce", exp.func("hll_sketch_estimate", s[0], dialect=DIALECT), exp.Literal.number(0)
    )


def _quantile(call: exp.Expr, type: str) -> Recipe:
    sketch = exp.func("kll_sketch_agg_double", cast(call.this.copy(), "double"), dialect=DIALECT)
    fraction = cast(call.args["quantile"].copy(), "double")

    def final(states: list[exp.Expr]) -> exp.Expr:
        seen = exp.func("kll_sketch_get_n_double", states[0].copy(), dialect=DIALECT)
        quantile = exp.func("kll_sketch_get_quantile_double", states[0].copy(), fraction.copy(), dialect=DIALECT)
        # an empty sketch has no quantile and raises
        return exp.Case(ifs=[exp.If(this=exp.GT(this=seen, expression=exp.Literal.number(0)), true=quantile)])

    return [State(suffix="kll", type="binary", partial=sketch, merge="kll_merge_agg_double", inexact=True)], final


def _sketch(call: exp.Expr, type: str) -> Recipe:
    """A sketch that is itself the column: endpoints read estimates, ranks and quantiles from it."""
    suffix, merge = ("hll", "hll_union_agg") if "hll" in functions.called(call) else ("kll", "kll_merge_agg_double")
    return [State(suffix=suffix, type="binary", partial=call, merge=merge, inexact=True)], _first


Make = Callable[[exp.Expr, str], Recipe]
_TABLE: dict[type[exp.Expr], Make] = {
    exp.Count: _count, exp.CountIf: _count, exp.Sum: _sum, exp.Avg: _avg, exp.Min: _extreme, exp.Max: _extreme,
    exp.ApproxDistinct: _distinct, exp.ApproxQuantile: _quantile, exp.LogicalAnd: _condition, exp.LogicalOr: _condition,
    exp.AnyValue: _any, exp.ArgMax: _by_order, exp.ArgMin: _by_order, exp.ArrayUniqueAgg: _set,
    exp.BitwiseAndAgg: _bits, exp.BitwiseOrAgg: _bits, exp.BitwiseXorAgg: _bits, exp.BitmapConstructAgg: _bitmap,
    exp.BitmapOrAgg: _bitmap, exp.Stddev: _moments, exp.StddevSamp: _moments, exp.StddevPop: _moments,
    exp.Variance: _moments, exp.VariancePop: _moments, exp.Corr: _moments, exp.CovarPop: _moments, exp.CovarSamp: _moments,
}  # fmt: skip
_NAMED: dict[str, Make] = {
    "mean": _avg, "std": _moments, "every": _condition, "some": _condition, "hll_sketch_agg": _sketch,
    "hll_union_agg": _sketch, "kll_sketch_agg_double": _sketch, "kll_merge_agg_double": _sketch,
}  # fmt: skip
_INSTEAD = {
    "first": "min_by(value, time) is the first by an order",
    "first_value": "min_by(value, time) is the first by an order",
    "last": "max_by(value, time) is the last by an order",
    "last_value": "max_by(value, time) is the last by an order",
    "median": "approx_percentile(value, 0.5) is within 1.3 % of rank",
    "percentile": "approx_percentile(value, fraction) is within 1.3 % of rank",
    "collect_list": "collect_set keeps each value once; unaggregated rows belong in a table of their own",
    "histogram_numeric": "count_if for each bucket is exact; kll_sketch_agg_double has any rank and quantile",
}


# functions that the parser names differently from Spark
_SPOKEN = {"array_agg": "collect_list", "quantile": "percentile"}


def argument_of(call: exp.Expr) -> exp.Expr:
    """The first argument of an aggregate call."""
    argument: exp.Expr = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    return argument


def recipe(call: exp.Expr, column: Column, text: Text) -> Recipe | None:
    """The states of one aggregate call and its read from them; None if it has none, with the problem in `text`."""
    make = _NAMED.get(functions.called(call)) or _TABLE.get(type(call))
    if make is None:
        name = functions.called(call) or (call.sql_name().lower() if isinstance(call, exp.Func) else call.key)
        shown = _SPOKEN.get(name, name)
        ordered = shown.startswith(("first", "last"))
        why = "has no order: which row comes first is chance" if ordered else "has no state that can be merged"
        merging = f"{_INSTEAD[shown]}; or " if shown in _INSTEAD else ""
        text.report("S112", f"{column.name}: {shown} {why}", call, Stays(instead=merging + text.as_endpoint()))
        return None
    if isinstance(call.this, exp.Distinct):
        merging = "approx_count_distinct is within 1.6 %, and a table of `kind: distinct` holds each value once; or "
        message = f"{column.name}: DISTINCT cannot be merged"
        text.report("S112", message, call, Stays(instead=merging + text.as_endpoint()))
        return None
    if call.args.get("count"):
        text.report(
            "S112", f"{column.name}: only one value beside the greatest order is kept", call, "leave the number out"
        )
        return None
    if isinstance(call, exp.ApproxQuantile) and not _is_fraction(call.args.get("quantile")):
        message = f"{column.name}: the fraction must be a number between 0 and 1"
        text.report("S112", message, call, "one column for each fraction")
        return None
    kept = _kept_type(call, column, make, text)
    return make(call.copy(), kept) if kept is not None else None


def _is_fraction(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and 0 <= float(node.this) <= 1


def _kept_type(call: exp.Expr, column: Column, make: Make, text: Text) -> str | None:
    """The type of a call's state, None if it is unknown and a value could be lost."""
    argument, declared = argument_of(call), kind(column.type)
    if make in (_moments, _condition):
        return _TWO if isinstance(call, (exp.Corr, exp.CovarPop, exp.CovarSamp)) else _ONE
    if make is _by_order:
        return _ordered_type(call, column, text)
    if make is _set:
        return _set_type(call, column, text)
    if make is _sketch:
        return _sketch_type(call, column, text)
    kept = _state_type(call, argument, declared)
    if kept is None:
        text.report(
            "S112",
            f"{column.name}: the type of {render(argument)} is not known, so parts of its sum could be cut to {column.type}",
            call,
            f"cast the argument, as in {column.name}: sum(CAST(… AS {column.type}))",
        )
    return kept


def _ordered_type(call: exp.Expr, column: Column, text: Text) -> str | None:
    order, value = certain(call.expression), certain(call.this) or kind(column.type)
    if not order or "map<" in f"{order}{value}{inferred(call.this)}":
        what = f"the type of {render(call.expression)} is not known" if not order else "a map has no order"
        text.report("S112", f"{column.name}: {what}", call, "cast the order, as in max_by(value, CAST(… AS TIMESTAMP))")
        return None
    return f"struct<o:{order},v:{value}>"


def _set_type(call: exp.Expr, column: Column, text: Text) -> str | None:
    argument, declared = argument_of(call), kind(column.type)
    known = certain(argument)
    if "map<" in f"{known or declared}{inferred(argument)}":
        text.report("S112", f"{column.name}: a map has no order", call, "collect its entries: map_entries(…)")
        return None
    if known or declared.startswith("array<"):
        return f"array<{known}>" if known else declared
    message = f"{column.name}: the type of {render(argument)} is not known"
    text.report("S112", message, call, "cast the argument, as in collect_set(CAST(… AS STRING))")
    return None


def _sketch_type(call: exp.Expr, column: Column, text: Text) -> str | None:
    known, name = certain(argument_of(call)), functions.called(call)
    takes = {"hll_sketch_agg": _HLL_TAKES, "kll_sketch_agg_double": ("double", "float")}.get(name, ("binary",))
    if known not in takes:
        message = f"{column.name}: {name} takes {', '.join(takes)}, and {render(argument_of(call))} is {known or 'of no known type'}"
        text.report("S112", message, call, f"cast the argument, as in {name}(CAST(… AS {takes[0].upper()}))")
        return None
    return "binary"


def _state_type(call: exp.Expr, argument: exp.Expr, declared: str) -> str | None:
    """The type of stored states: the argument's own, so that nothing is truncated before the last merge.

    declared  the column's, used if the argument's is not certain and nothing can be lost
    returns   None if something could
    """
    plain = isinstance(argument, (exp.Column, exp.Cast))
    known = certain(argument)
    if isinstance(call, (exp.Min, exp.Max, exp.AnyValue, *_BITS)):
        alike = known in INTEGERS and declared in INTEGERS and not plain
        return declared if alike or not known else known
    if isinstance(call, (exp.Sum, exp.Avg)) or functions.called(call) == "mean":
        if declared in ("float", "double") and not (plain and known):
            return declared  # the widest type; the last digits may differ, so the column is marked inexact
        return known or None
    return (known if plain else "") or declared  # for a sketch: another argument would make another sketch


# names for hashing calls whose states have their own order
_SETTLED: dict[type[exp.Expr], str] = {
    exp.ArgMax: "max_by_value", exp.ArgMin: "min_by_value", exp.ArrayUniqueAgg: "sorted_set",
}  # fmt: skip


def settled_ties(query: exp.Query) -> exp.Query:
    """A query for hashing only: `max_by` and the like are repeatable once they are kept as states."""
    settled = query.copy()
    for call in list(settled.find_all(*_SETTLED)):
        arguments = [call.this, *([call.expression] if call.args.get("expression") else [])]
        call.replace(exp.Anonymous(this=_SETTLED[type(call)], expressions=arguments))
    return settled
