"""One value computed otherwise: another function, or its operands the other way round."""

from dataclasses import replace

from tests.planning.property import model
from tests.planning.property.edits.hand import Hand, Made
from tests.planning.property.model import Expr

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


_ORDERED = (model.SUB, "concat({}, {})", "({} || {})")  # operands that may not change places


def _otherwise(hand: Hand, expr: Expr) -> Expr:
    if expr.form in _ORDERED and expr.parts[0] != expr.parts[1] and hand.rng.random() < 0.5:
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
    other = _otherwise(hand, expr)
    return old, replace(old, items=(*old.items[:at], (name, other), *old.items[at + 1 :])), {"changed": {name}}
