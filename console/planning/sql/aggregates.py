"""Aggregates kept as partial states: one table of functions gives state types, partial query and merging read.

    operator's query   SELECT hour, count(*) AS hits, avg(ms) AS mean FROM requests GROUP BY hour
    partial (the feed) SELECT hour, count(*) AS hits, sum(ms) AS mean__sum, count(ms) AS mean__count … GROUP BY hour
    stored             hour, hits bigint, mean__sum bigint, mean__count bigint: one row a key and commit
    read               SELECT hour, sum(hits), sum(mean__sum) / sum(mean__count) FROM stored GROUP BY hour

A state is cast back to its type at every merge: a decimal sum widens each time it is summed.

source  docs/design.md, rule 13; Apache DataSketches HLL (lgK 12) and KLL (k 200) as Spark builds them
"""

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from console.model.live import Terms
from console.model.schema import Column, Table
from console.planning.sql.relation import mix
from console.planning.sql.semantics import aggregates
from console.planning.sql.syntax.argument import INTEGERS, certain, decimal, settled
from console.planning.sql.tree import DIALECT, Text, cast, kind, name, render

STORED = "stored"
LG_K = 12  # HLL: 2**12 registers, about 1.6 % error
_HLL_TAKES = ("int", "bigint", "string", "binary")


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """One stored part of an aggregate: `partial` computes it from rows, `merge` is the function that unites two."""

    suffix: str
    type: str
    partial: exp.Expr
    merge: str
    inexact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """An aggregate query taken apart.

    stored   keys and states, in order;  partial  the feed's query;  read  over the view `stored`
    keys     the group columns;  inexact  columns whose merged value is not reproducible bit by bit
    formats  column → hash of its states' functions and types, a part of its value fingerprint
    terms    the states that are not reproducible, and what a row adds to them
    """

    stored: tuple[Column, ...]
    partial: str
    read: str
    keys: tuple[str, ...]
    inexact: tuple[str, ...]
    formats: dict[str, str]
    terms: Terms


Final = Callable[[list[exp.Expr]], exp.Expr]
Recipe = tuple[list[State], Final]


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
    argument = call.this if isinstance(call, exp.Avg) else call.expressions[0]
    of = "decimal(38,0)" if type == "bigint" else _sum_type(type)
    states = [
        State(suffix="sum", type=of, partial=exp.Sum(this=argument.copy()), merge="sum", inexact=of == "double"),
        State(suffix="count", type="bigint", partial=exp.Count(this=argument.copy()), merge="sum"),
    ]
    return states, lambda s: exp.Div(this=s[0], expression=exp.Nullif(this=s[1], expression=exp.Literal.number(0)))


def _extreme(call: exp.Expr, type: str) -> Recipe:
    return [State(suffix="", type=type, partial=call, merge="min" if isinstance(call, exp.Min) else "max")], _first


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


_TABLE: dict[type[exp.Expr], Callable[[exp.Expr, str], Recipe]] = {
    exp.Count: _count,
    exp.CountIf: _count,
    exp.Sum: _sum,
    exp.Avg: _avg,
    exp.Min: _extreme,
    exp.Max: _extreme,
    exp.ApproxDistinct: _distinct,
    exp.ApproxQuantile: _quantile,
}
_KNOWN = "count, count_if, sum, avg, min, max, approx_count_distinct, approx_percentile"


def split(query: exp.Query, table: Table, text: Text) -> Split | None:
    """Take an aggregate query apart; None where it cannot be, and the problems are in `text`.

    query  qualified, with types inferred; its output names are those of `table`
    """
    if not isinstance(query, exp.Select) or (group := query.args.get("group")) is None:
        text.report("S112", f"{table.name} is an aggregate: its query must be one SELECT … GROUP BY", query)
        return None
    query = settled(query)
    group = query.args["group"]
    before = len(text.problems)
    for clause in ("having", "distinct", "limit", "offset", "order", "qualify"):
        if query.args.get(clause):
            text.report(
                "S112",
                f"{clause.upper()} has no place in an aggregate that is merged at read",
                query,
                "filter in the endpoint",
            )
    if any(value for key, value in group.args.items() if key not in ("expressions", "all")):
        text.report("S112", "GROUPING SETS, ROLLUP and CUBE cannot be merged", group, "use one table for each grouping")
    projections = {part.alias_or_name.lower(): part for part in query.expressions}
    parts = [(column, projections[column.name.lower()]) for column in table.columns]
    keys = [column for column, part in parts if not aggregates(part)]
    _check_keys(query, group, parts, text)
    built = [_Column.of(column, part, text, _names(table)) for column, part in parts if aggregates(part)]
    if len(text.problems) > before:
        return None
    return _assemble(query, parts, keys, [b for b in built if b is not None])


def _names(table: Table) -> set[str]:
    return {column.name.lower() for column in table.columns}


def _check_keys(query: exp.Select, group: exp.Expr, parts: list[tuple[Column, exp.Expr]], text: Text) -> None:
    if group.args.get("all"):
        return
    grouped = {render(key.unnest()) for key in group.expressions}
    shown = {render(part.unalias().unnest()) for _, part in parts if not aggregates(part)}
    for key in group.expressions:
        if render(key.unnest()) not in shown:
            text.report(
                "S112",
                f"GROUP BY {render(key)} is not among the columns: states are merged by the keys they carry",
                key,
            )
    for column, part in parts:
        if not aggregates(part) and render(part.unalias().unnest()) not in grouped:
            text.report("S112", f"{column.name} is neither a key nor an aggregate", part, "put it into GROUP BY")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    column: Column
    states: tuple[tuple[Column, exp.Expr], ...]
    read: exp.Expr
    inexact: bool
    format: str

    @classmethod
    def of(cls, column: Column, part: exp.Expr, text: Text, taken: set[str]) -> "_Column | None":
        tree = exp.Alias(this=part.unalias().copy(), alias=name(column.name))
        calls = [c for c in tree.walk() if isinstance(c, exp.AggFunc) or _is_mean(c)]
        states: list[tuple[Column, exp.Expr]] = []
        inexact, formats = False, []
        for at, call in enumerate(calls):
            recipe = _recipe(call, column, text)
            if recipe is None:
                return None
            filtered = call.parent if isinstance(call.parent, exp.Filter) else None
            merged = []
            for state in recipe[0]:
                suffix = "__".join(p for p in (str(at + 1) if len(calls) > 1 else "", state.suffix) if p)
                stored = f"{column.name}__{suffix}" if suffix else column.name
                if suffix and stored.lower() in taken:
                    text.report(
                        "S112", f"the name {stored} is taken: it is where a part of {column.name} is kept", part
                    )
                partial = state.partial.copy()
                if filtered is not None:
                    partial = exp.Filter(this=partial, expression=filtered.expression.copy())
                states.append((Column(name=stored, type=state.type), cast(partial, state.type)))
                merged.append(cast(exp.func(state.merge, exp.column(name(stored)), dialect=DIALECT), state.type))
                inexact |= state.inexact
                formats.append(
                    mix(state.suffix, state.type, state.merge, LG_K if state.merge == "hll_union_agg" else "")
                )
            (filtered or call).replace(recipe[1](merged))
        loose = [c for c in tree.this.find_all(exp.Column) if c.table]
        if loose:
            text.report(
                "S112",
                f"{column.name} mixes aggregates with {loose[0].name}",
                part,
                "aggregate it, or compute it in an endpoint",
            )
        read = cast(tree.this, column.type)
        return cls(column=column, states=tuple(states), read=read, inexact=inexact, format=mix(*formats))


def _is_mean(call: exp.Expr) -> bool:
    return isinstance(call, exp.Anonymous) and str(call.this).lower() == "mean"


def _recipe(call: exp.Expr, column: Column, text: Text) -> Recipe | None:
    make = _avg if _is_mean(call) else _TABLE.get(type(call))
    if make is None:
        text.report(
            "S112",
            f"{column.name}: {type(call).__name__} has no state that can be merged",
            call,
            f"use one of {_KNOWN}",
        )
        return None
    if isinstance(call.this, exp.Distinct):
        text.report(
            "S112", f"{column.name}: DISTINCT cannot be merged", call, "use approx_count_distinct, or one row per key"
        )
        return None
    if isinstance(call, exp.ApproxQuantile):
        fraction = call.args.get("quantile")
        if not (isinstance(fraction, exp.Literal) and not fraction.is_string and 0 <= float(fraction.this) <= 1):
            text.report(
                "S112",
                f"{column.name}: the fraction must be a number between 0 and 1",
                call,
                "one column for each fraction",
            )
            return None
    argument = call.expressions[0] if _is_mean(call) else call.this
    kept = _state_type(call, argument, kind(column.type))
    if kept is None:
        text.report(
            "S112",
            f"{column.name}: the type of {render(argument)} is not known, so parts of its sum could be cut to {column.type}",
            call,
            f"cast the argument, as in {column.name}: sum(CAST(… AS {column.type}))",
        )
        return None
    return make(call.copy(), kept)


def _state_type(call: exp.Expr, argument: exp.Expr, declared: str) -> str | None:
    """The type in which parts are kept: the argument's own, so that nothing is cut before the last merge.

    declared  the column's, which stands where the argument's is not certain and it can lose nothing
    returns   None where it could
    """
    plain = isinstance(argument, (exp.Column, exp.Cast))
    known = certain(argument)
    if isinstance(call, (exp.Min, exp.Max)):
        alike = known in INTEGERS and declared in INTEGERS and not plain
        return declared if alike or not known else known
    if isinstance(call, (exp.Sum, exp.Avg)) or _is_mean(call):
        if declared in ("float", "double") and not (plain and known):
            return declared  # as wide as can be: the last digits may differ, which is said of the column
        return known or None
    return (known if plain else "") or declared  # of a sketch: another argument would be another sketch


def _assemble(
    query: exp.Select, parts: list[tuple[Column, exp.Expr]], keys: list[Column], built: list[_Column]
) -> Split:
    by_name = {b.column.name: b for b in built}
    stored: list[Column] = []
    projected: list[exp.Expr] = []
    reading: list[exp.Expr] = []
    for column, part in parts:
        if aggregate := by_name.get(column.name):
            for state, partial in aggregate.states:
                stored.append(state)
                projected.append(exp.alias_(partial, name(state.name)))
            reading.append(exp.alias_(aggregate.read, name(column.name)))
        else:
            stored.append(column)
            projected.append(exp.alias_(cast(part.unalias().copy(), column.type), name(column.name)))
            reading.append(exp.alias_(exp.column(name(column.name)), name(column.name)))
    partial_query = query.copy()
    partial_query.set("expressions", projected)
    if query.args["group"].args.get("all"):
        grouped = [part.unalias().copy() for _, part in parts if not aggregates(part)]
        partial_query.set("group", exp.Group(expressions=grouped))
    read = exp.select(*reading).from_(exp.to_table(STORED)).group_by(*(exp.column(name(key.name)) for key in keys))
    return Split(
        stored=tuple(stored),
        partial=render(partial_query),
        read=render(read),
        keys=tuple(key.name for key in keys),
        inexact=tuple(b.column.name for b in built if b.inexact),
        formats={b.column.name: b.format for b in built},
        terms=_terms(partial_query, keys, built),
    )


def _terms(partial: exp.Query, keys: list[Column], built: list[_Column]) -> Terms:
    """partial: the feed's query; its rows without GROUP BY are the summands"""
    names = tuple(key.name for key in keys)
    states = [state for b in built for state in b.states]
    sums = [(state.name, _added(part)) for state, part in states if state.type == "double" and part.find(exp.Sum)]
    sketches = [state.name for state, part in states if state.type == "binary" and not part.find(exp.Min, exp.Max)]
    rows = partial.copy()
    shown = {part.alias_or_name: part for part in rows.expressions}
    rows.set(
        "expressions", [*(shown[key] for key in names), *(exp.alias_(value, name(state)) for state, value in sums)]
    )
    rows.set("group", None)
    return Terms(
        keys=names, sums=tuple(state for state, _ in sums), sketches=tuple(sketches), sql=render(rows) if sums else ""
    )


def _added(partial: exp.Expr) -> exp.Expr:
    """The summand of one row in a sum of doubles; NULL adds nothing."""
    value, where = partial.find(exp.Sum), partial.find(exp.Filter)
    assert value is not None
    term = cast(value.this.copy(), "double")
    return exp.Case(ifs=[exp.If(this=where.expression.this.copy(), true=term)]) if where else term
