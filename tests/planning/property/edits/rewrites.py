"""The same query written differently, by the laws of logic, arithmetic and relations."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.planning.property import model
from tests.planning.property.edits.hand import Hand, Made
from tests.planning.property.model import Expr, From, Select, SetOp, everywhere, lit, swapped

# -- the same in another hand


def _styled(**changes: Any) -> Callable[[Hand], Made]:
    def make(hand: Hand) -> Made:
        query = hand.maker.query()
        return query, query, {"style": replace(hand.style, seed=hand.rng.randrange(1 << 30), **changes)}

    return make


def _other_ctes(hand: Hand) -> Made:
    query = hand.maker.query()
    return query, query, {"style": replace(hand.style, ctes=not hand.style.ctes)}


def _unqualified(hand: Hand) -> Made:
    query = hand.maker.query()
    return query, query, {"style": replace(hand.style, qualified=not hand.style.qualified)}


# -- the same by the laws of logic and arithmetic

_SWAPS = {form: form for form in (model.ADD, model.MUL, model.EQ, model.NE, model.AND, model.OR, model.NULLSAFE)} | {
    model.LT: model.GT,
    model.GT: model.LT,
    model.LE: model.GE,
    model.GE: model.LE,
}


def _by_law(change: Callable[[Hand, Expr], Expr]) -> Callable[[Hand], Made]:
    def make(hand: Hand) -> Made:
        old = hand.maker.query()
        new = everywhere(old, lambda expr: change(hand, expr))
        return (old, new, {}) if new != old else None

    return make


def _commuted(hand: Hand, expr: Expr) -> Expr:
    if expr.form not in _SWAPS or hand.rng.random() < 0.3:
        return expr
    return replace(expr, form=_SWAPS[expr.form], parts=expr.parts[::-1])


def _between(hand: Hand, expr: Expr) -> Expr:
    if expr.form != model.BETWEEN:
        return expr
    value, low, high = expr.parts
    return _b(model.AND, _b(model.GE, value, low), _b(model.LE, value, high))


def _b(form: str, *parts: Expr) -> Expr:
    return Expr("boolean", form, parts)


_NEGATIONS = {model.EQ: model.NE, model.LT: model.GE, model.LE: model.GT, model.GT: model.LE, model.GE: model.LT}
_NEGATIONS[model.NE] = model.EQ


def _negated(hand: Hand, expr: Expr) -> Expr:
    if expr.form in _NEGATIONS and hand.rng.random() < 0.6:
        return _b(model.NOT, replace(expr, form=_NEGATIONS[expr.form]))
    if expr.form == model.NOT and expr.parts[0].form in (model.AND, model.OR):
        inner = expr.parts[0]
        return _b(model.OR if inner.form == model.AND else model.AND, *(_b(model.NOT, part) for part in inner.parts))
    return expr


def _respelled(hand: Hand, expr: Expr) -> Expr:
    match expr.form:
        case model.CASE:
            return replace(expr, form=model.IF)
        case model.IF:
            return replace(expr, form=model.CASE)
        case model.COALESCE:
            return replace(expr, form=hand.rng.choice((model.NVL, model.COALESCE)))
        case model.CAST:
            return replace(expr, form=model.CASTS)
        case model.CASTS:
            return replace(expr, form=model.CAST)
        case model.COUNT_ALL:
            return replace(expr, form=model.COUNT_ONE)
        case model.NE:
            return replace(expr, form="({} != {})")
        case model.NOT_IN:
            return _b(model.NOT, replace(expr, form=model.IN))
        case model.IN:
            return replace(expr, parts=(expr.parts[0], *expr.parts[:0:-1]))
        case "({} IS NOT NULL)":
            return _b(model.NOT, replace(expr, form="({} IS NULL)"))
    return expr


# -- the same by the laws of relations


def _conjuncts(hand: Hand) -> Made:
    old = hand.maker.query()
    select = hand.pick(old, lambda s: len(s.where) > 1)
    return (old, swapped(old, select, replace(select, where=select.where[::-1])), {}) if select else None


def _as_subquery(hand: Hand) -> Made:
    """A source's columns by way of `SELECT … FROM source`, with or without a filter moved into it."""
    old = hand.maker.query()
    select = hand.pick(old, lambda s: any(isinstance(source.what, str) for source in s.sources))
    if select is None:
        return None
    at = hand.rng.choice([i for i, source in enumerate(select.sources) if isinstance(source.what, str)])
    source = select.sources[at]
    alias = hand.maker.alias()
    items = tuple((name, model.col(alias, name, type)) for name, type in source.columns)
    moved: tuple[Expr, ...] = ()
    if at == 0 and all(other.join == "JOIN" for other in select.sources[1:]) and hand.rng.random() < 0.5:
        moved = tuple(part for part in select.where if {owner for owner, _ in part.columns()} == {source.alias})
    inside = tuple(model.mapped(part, lambda e: e if e.form else replace(e, source=alias)) for part in moved)
    inner = Select(items, (From(alias, source.what, source.columns),), inside, star=hand.rng.random() < 0.4)
    sources = (*select.sources[:at], replace(source, what=inner), *select.sources[at + 1 :])
    where = tuple(part for part in select.where if part not in moved)
    return old, swapped(old, select, replace(select, sources=sources, where=where)), {}


def _wrapped(hand: Hand) -> Made:
    old = hand.maker.query()
    alias = hand.maker.alias()
    items = tuple((name, model.col(alias, name, type)) for name, type in old.columns)
    return old, Select(items, (From(alias, old, old.columns),), star=hand.rng.random() < 0.4), {}


def _inner_joins(hand: Hand) -> Made:
    """`a JOIN b` as `b JOIN a`, `ON` as `WHERE`, USING as ON."""
    old = hand.maker.query()
    select = hand.pick(old, lambda s: len(s.sources) == 2 and s.sources[1].join == "JOIN" and not s.star)
    if select is None:
        return None
    one, other = select.sources
    if hand.rng.random() < 0.5:
        flipped = (replace(other, join="", on=()), replace(one, join="JOIN", on=other.on))
        return old, swapped(old, select, replace(select, sources=flipped)), {}
    on, rest = other.on[:1], other.on[1:]
    sources = (one, replace(other, join="INNER JOIN", on=on))
    return old, swapped(old, select, replace(select, sources=sources, where=(*rest, *select.where))), {}


def _outer_word(hand: Hand) -> Made:
    old = hand.maker.query()
    select = hand.pick(old, lambda s: any(source.join == "LEFT JOIN" for source in s.sources))
    if select is None:
        return None
    sources = tuple(replace(s, join="LEFT OUTER JOIN") if s.join == "LEFT JOIN" else s for s in select.sources)
    return old, swapped(old, select, replace(select, sources=sources)), {}


def _branches(hand: Hand) -> Made:
    old = hand.maker.union(hand.rng.choice(("UNION ALL", "UNION", "INTERSECT")))
    names = [name for name, _ in old.left.columns]
    assert isinstance(old.left, Select)
    assert isinstance(old.right, Select)
    left = replace(old.right, items=tuple((n, e) for n, (_, e) in zip(names, old.right.items, strict=True)))
    return old, SetOp(old.op, left, old.left), {}


def _grouping(hand: Hand) -> Made:
    old = hand.maker.query()
    select = hand.pick(old, lambda s: bool(s.group) and all(e.aggregate or e.columns() for _, e in s.items))
    if select is None:
        return None
    others = [way for way in ("names", "ordinals", "all") if way != select.group]
    return old, swapped(old, select, replace(select, group=hand.rng.choice(others))), {}


def _ordered(hand: Hand) -> Made:
    old = hand.maker.select(2)
    return old, replace(old, tail=" ORDER BY 1"), {}


def _always_true(hand: Hand) -> Made:
    old = hand.maker.query()
    select = hand.pick(old, lambda s: True)
    return (
        (old, swapped(old, select, replace(select, where=(*select.where, lit("boolean", "true")))), {})
        if select
        else None
    )


REWRITES: dict[str, Callable[[Hand], Made]] = {
    "layout": _styled(breaks=True, lower=True),
    "comments": _styled(comments=True),
    "alias names": _styled(prefix="other_"),
    "no AS": _styled(as_=False),
    "case and quotes of names": _styled(shout=True, quoted=True),
    "parentheses": _styled(parens=True),
    "CTE names": _styled(ctes=True, cte="stage"),
    "CTE or subquery": _other_ctes,
    "nested CTE": _styled(ctes=True, nested=True),
    "qualified names": _unqualified,
    "commuted": _by_law(_commuted),
    "BETWEEN": _by_law(_between),
    "negation": _by_law(_negated),
    "spelling": _by_law(_respelled),
    "AND order": _conjuncts,
    "through a subquery": _as_subquery,
    "wrapped": _wrapped,
    "inner joins": _inner_joins,
    "LEFT OUTER": _outer_word,
    "branches": _branches,
    "grouping": _grouping,
    "ORDER BY": _ordered,
    "WHERE true": _always_true,
}
