"""One value computed otherwise: another function, or its operands the other way round."""

from dataclasses import replace

from tests.planning.property import model
from tests.planning.property.edits.hand import Hand, Made
from tests.planning.property.model import Expr, Query, Select, SetOp, mapped

_OTHERWISE: dict[str, tuple[str, ...]] = {
    model.SUB: (model.ADD,),
    model.ADD: (model.SUB, model.MUL),
    "({} / 2)": ("({} / 3)",),
    "({} DIV 2)": ("({} DIV 3)", "({} * 2L)"),
    "length({})": ("length(trim({}))", "ascii({})"),
    "upper({})": ("lower({})", "{}"),
    "substring({}, 1, 2)": ("substring({}, 2, 2)", "substring({}, 1, 1)"),
    "get_json_object({}, '$.k')": ("get_json_object({}, '$.K')", "get_json_object({}, '$.n')"),
    "concat({}, {})": ("concat_ws('', {}, {})",),
    "({} || {})": ("concat_ws('', {}, {})",),
    "date_add({}, 1)": ("date_add({}, 2)", "date_sub({}, 1)"),
    "date_trunc('DAY', {})": ("date_trunc('MONTH', {})",),
    "count({})": ("count(DISTINCT {})", "count(DISTINCT length({}))"),
    model.COUNT_ALL: ("sum(2L)",),
    "sum({})": ("sum({} + 1)", "sum(DISTINCT {})"),
    "min({})": ("max({})",),
    "avg({})": ("avg({} * 2)",),
    "rank() OVER (PARTITION BY {} ORDER BY {})": (
        "dense_rank() OVER (PARTITION BY {} ORDER BY {})",
        "rank() OVER (PARTITION BY {} ORDER BY {} DESC)",
    ),
    "count(*) OVER (PARTITION BY {})": ("count({}) OVER ()",),
    "sum({}) OVER (PARTITION BY {} ORDER BY {})": (
        "sum({}) OVER (PARTITION BY {} ORDER BY {} ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)",
    ),
}


_CONCAT = ("concat({}, {})", "({} || {})")
_ORDERED = (model.SUB, *_CONCAT)  # operands that may not change places


def _unfolded(expr: Expr, query: Select) -> Expr:
    """The expression down to the tables' columns, through the subqueries that it reads."""
    stored = {source.alias: source.what for source in query.sources}

    def down(part: Expr) -> Expr:
        below = stored.get(part.source)
        if part.form or below is None or isinstance(below, str):
            return part
        return _column(below, part)

    return mapped(expr, down)


def _column(query: Query, column: Expr) -> Expr:
    """What a query's column of that name is computed from; branches of a set operation meet by position."""
    match query:
        case Select():
            return _unfolded(dict(query.items)[column.name], query)
        case SetOp():
            at = [name for name, _ in query.columns].index(column.name)
            sides = ((side, side.columns[at][0]) for side in (query.left, query.right))
            return Expr(column.type, query.op, tuple(_column(side, replace(column, name=name)) for side, name in sides))
    return column


def _flat(expr: Expr) -> list[Expr]:
    """What texts are put together of, in order: `a || (a || a)` is the same from behind."""
    return [one for part in expr.parts for one in _flat(part)] if expr.form in _CONCAT else [expr]


def _turned(expr: Expr, query: Select) -> bool:
    """Whether the operands may not change places, down to what they are computed from."""
    if expr.form not in _ORDERED:
        return False
    one, other = (_flat(_unfolded(part, query)) for part in expr.parts)
    return one + other != other + one


def _otherwise(hand: Hand, expr: Expr, query: Select) -> Expr:
    if _turned(expr, query) and hand.rng.random() < 0.5:
        return replace(expr, parts=expr.parts[::-1])
    return replace(expr, form=hand.rng.choice(_OTHERWISE[expr.form]))


def other_value(hand: Hand) -> Made:
    """One outermost item computed otherwise: another function, or its operands the other way round."""
    old = hand.maker.plain(2) if hand.rng.random() < 0.5 else hand.maker.select(2)
    if old.distinct:
        return None
    open_ = [
        i
        for i, (_, e) in enumerate(old.items)
        if e.form in _OTHERWISE and (e.aggregate or not old.group) and all(part.columns() for part in e.parts)
    ]
    if not open_:
        return None
    ordered = [i for i in open_ if old.items[i][1].form in _ORDERED]
    at = hand.rng.choice(ordered or open_)
    name, expr = old.items[at]
    other = _otherwise(hand, expr, old)
    return old, replace(old, items=(*old.items[:at], (name, other), *old.items[at + 1 :])), {"changed": {name}}
