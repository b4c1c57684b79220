"""Aggregates kept as partial states: one table of functions defines state types, partial query and merging read.

    operator's query   SELECT hour, count(*) AS hits, avg(ms) AS mean FROM requests GROUP BY hour
    partial (the feed) SELECT hour, count(*) AS hits, sum(ms) AS mean__sum, count(ms) AS mean__count … GROUP BY hour
    stored             hour, hits bigint, mean__sum bigint, mean__count bigint: one row per key and commit
    read               SELECT hour, sum(hits), sum(mean__sum) / sum(mean__count) FROM stored GROUP BY hour

A state is cast back to its type at every merge: a decimal sum widens each time it is summed.

source  docs/design.md, rule 13
"""

from dataclasses import dataclass

from sqlglot import exp

from console.model.live import Terms
from console.model.merging import Merging
from console.model.schema import Column, Table
from console.planning.sql.relation import mix
from console.planning.sql.semantics.functions import aggregate_calls, aggregates, is_aggregate
from console.planning.sql.states import LG_K, State, recipe, united
from console.planning.sql.syntax.argument import settled
from console.planning.sql.tree import Text, cast, name, render

STORED = "stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """An aggregate query taken apart.

    stored   keys and states, in order;  partial  the feed's query;  read  over the view `stored`
    keys     the group columns;  inexact  columns whose merged value is not reproducible bit by bit
    formats  column → hash of its states' functions and types, a part of its value fingerprint
    terms    the states that are not reproducible, and the summand of each row
    merging  the same states, united by key; None if one of them keeps any of several values
    """

    stored: tuple[Column, ...]
    partial: str
    read: str
    keys: tuple[str, ...]
    inexact: tuple[str, ...]
    formats: dict[str, str]
    terms: Terms
    merging: Merging | None


def split(query: exp.Query, table: Table, text: Text) -> Split | None:
    """Take an aggregate query apart; None if that is not possible, with the problems in `text`.

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


@dataclass(frozen=True, slots=True)
class _Part:
    """One stored state: its column, the feed's expression for it, and how states unite."""

    column: Column
    partial: exp.Expr
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    column: Column
    parts: tuple[_Part, ...]
    read: exp.Expr
    inexact: bool
    format: str

    @classmethod
    def of(cls, column: Column, part: exp.Expr, text: Text, taken: set[str]) -> "_Column | None":
        tree = exp.Alias(this=part.unalias().copy(), alias=name(column.name))
        calls = list(aggregate_calls(tree))
        parts: list[_Part] = []
        formats = []
        for at, call in enumerate(calls):
            made = recipe(call, column, text)
            if made is None:
                return None
            whole, condition = _around(call)
            merged = []
            for state in made[0]:
                suffix = "__".join(p for p in (str(at + 1) if len(calls) > 1 else "", state.suffix) if p)
                stored = f"{column.name}__{suffix}" if suffix else column.name
                if suffix and stored.lower() in taken:
                    text.report(
                        "S112", f"the name {stored} is taken: it is where a part of {column.name} is kept", part
                    )
                partial = cast(_filtered(state.partial.copy(), condition), state.type)
                parts.append(_Part(Column(name=stored, type=state.type), partial, state))
                merged.append(cast(united(state.merge, exp.column(name(stored))), state.type))
                registers = LG_K if state.merge == "hll_union_agg" else ""
                formats.append(mix(state.suffix, state.type, state.merge, registers))
            whole.replace(made[1](merged))
        loose = [c for c in tree.this.find_all(exp.Column) if c.table]
        if loose:
            text.report(
                "S112",
                f"{column.name} mixes aggregates with {loose[0].name}",
                part,
                "aggregate it, or compute it in an endpoint",
            )
        read, inexact = cast(tree.this, column.type), any(p.state.inexact for p in parts)
        return cls(column=column, parts=tuple(parts), read=read, inexact=inexact, format=mix(*formats))


def _around(call: exp.Expr) -> tuple[exp.Expr, exp.Expr | None]:
    """An aggregate call with the expression around it, and the condition of its FILTER."""
    whole, condition = call, None
    while isinstance(whole.parent, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
        whole = whole.parent
        condition = whole.expression if isinstance(whole, exp.Filter) else condition
    return whole, condition


def _filtered(partial: exp.Expr, condition: exp.Expr | None) -> exp.Expr:
    """The same over rows that pass a FILTER, which is applied to each of its aggregates."""
    if condition is None:
        return partial
    if is_aggregate(partial):
        return exp.Filter(this=partial, expression=condition.copy())
    for call in list(aggregate_calls(partial)):
        call.replace(exp.Filter(this=call.copy(), expression=condition.copy()))
    return partial


def _assemble(
    query: exp.Select, parts: list[tuple[Column, exp.Expr]], keys: list[Column], built: list[_Column]
) -> Split:
    by_name = {b.column.name: b for b in built}
    stored: list[Column] = []
    projected: list[exp.Expr] = []
    reading: list[exp.Expr] = []
    for column, part in parts:
        if aggregate := by_name.get(column.name):
            for kept in aggregate.parts:
                stored.append(kept.column)
                projected.append(exp.alias_(kept.partial, name(kept.column.name)))
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
        merging=_merging(stored, keys, [part for b in built for part in b.parts]),
    )


def _merging(stored: list[Column], keys: list[Column], parts: list[_Part]) -> Merging | None:
    """How stored rows become one per key. The value that `any_value` keeps is chance: that none was changed cannot be shown."""
    if any(part.state.merge == "any_value" for part in parts):
        return None
    by_name = {part.column.name: part for part in parts}
    kept: list[exp.Expr] = []
    for column in stored:
        value: exp.Expr = exp.column(name(column.name))
        if part := by_name.get(column.name):
            value = cast(united(part.state.merge, value), part.state.type)
        kept.append(exp.alias_(value, name(column.name)))
    query = exp.select(*kept).from_(exp.to_table(STORED)).group_by(*(exp.column(name(key.name)) for key in keys))

    def inexact(*merges: str) -> tuple[str, ...]:
        return tuple(part.column.name for part in parts if part.state.inexact and part.state.merge in merges)

    return Merging(
        sql=render(query),
        columns=tuple(column.name for column in stored),
        keys=tuple(key.name for key in keys),
        sums=inexact("sum"),
        distinct=inexact("hll_union_agg"),
        quantiles=inexact("kll_merge_agg_double"),
        moments=inexact("moments", "moments of two"),
    )


def _terms(partial: exp.Query, keys: list[Column], built: list[_Column]) -> Terms:
    """partial: the feed's query; its rows without GROUP BY are the summands"""
    names = tuple(key.name for key in keys)
    parts = [part for b in built for part in b.parts]
    sums = [(p.column.name, _added(p.partial)) for p in parts if p.column.type == "double" and p.state.merge == "sum"]
    sketches = tuple(p.column.name for p in parts if p.state.inexact and p.column.type == "binary")
    moments = tuple(p.column.name for p in parts if p.state.merge.startswith("moments"))
    rows = partial.copy()
    shown = {part.alias_or_name: part for part in rows.expressions}
    rows.set(
        "expressions", [*(shown[key] for key in names), *(exp.alias_(value, name(state)) for state, value in sums)]
    )
    rows.set("group", None)
    return Terms(
        keys=names, sums=tuple(state for state, _ in sums), sketches=sketches, moments=moments,
        sql=render(rows) if sums else "",
    )  # fmt: skip


def _added(partial: exp.Expr) -> exp.Expr:
    """The summand of one row in a sum of doubles; NULL adds nothing."""
    value, where = partial.find(exp.Sum), partial.find(exp.Filter)
    assert value is not None
    term = cast(value.this.copy(), "double")
    return exp.Case(ifs=[exp.If(this=where.expression.this.copy(), true=term)]) if where else term
