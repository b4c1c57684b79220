"""Edits with an unknown effect: one part anywhere in a query is changed, and rows alone are the judge."""

import random
from collections.abc import Callable
from dataclasses import replace

from tests.planning.property import model
from tests.planning.property.build import World
from tests.planning.property.edits import Edit, Hand
from tests.planning.property.model import Expr, From, Query, Select, SetOp, lit, mapped, swapped
from tests.planning.property.render import write

_COMPARED = (model.EQ, model.NE, model.LT, model.LE, model.GT, model.GE, model.NULLSAFE)


def _somewhere(hand: Hand, select: Select, change: Callable[[Expr], Expr | None]) -> Select | None:
    """One expression of a SELECT changed where `change` gives another."""
    places = [expr for whole in select.exprs() for expr in whole.walk() if change(expr) is not None]
    if not places:
        return None
    chosen = hand.rng.choice(places)
    done = False

    def once(expr: Expr) -> Expr:
        nonlocal done
        if done or expr != chosen:
            return expr
        done = hand.rng.random() < 0.8  # sometimes at every place where it stands
        return change(expr) or expr

    return replace(
        select,
        items=tuple((name, mapped(expr, once)) for name, expr in select.items),
        sources=tuple(replace(s, on=tuple(mapped(part, once) for part in s.on)) for s in select.sources),
        where=tuple(mapped(part, once) for part in select.where),
    )


def _column(hand: Hand, select: Select) -> Select | None:
    def other(expr: Expr) -> Expr | None:
        results = [
            model.col(s.alias, name, type)
            for s in select.sources
            for name, type in s.columns
            if not expr.form and type == expr.type and (s.alias, name) != (expr.source, expr.name)
        ]
        return hand.rng.choice(results) if results else None

    return _somewhere(hand, select, other)


def _other_side(hand: Hand, select: Select) -> Select | None:
    """The same column of the other source: what a self-join is mistaken in."""

    def other(expr: Expr) -> Expr | None:
        values = [s.alias for s in select.sources if (expr.name, expr.type) in s.columns and s.alias != expr.source]
        return replace(expr, source=hand.rng.choice(values)) if values and not expr.form else None

    return _somewhere(hand, select, other)


def _form(hand: Hand, select: Select) -> Select | None:
    def other(expr: Expr) -> Expr | None:
        if expr.form in _COMPARED:
            return replace(expr, form=hand.rng.choice([form for form in _COMPARED if form != expr.form]))
        if expr.form in (model.AND, model.OR):
            return replace(expr, form=model.OR if expr.form == model.AND else model.AND)
        if expr.form in (model.SUB, model.COALESCE) or expr.form.startswith("concat("):
            return replace(expr, parts=expr.parts[::-1])
        return None

    return _somewhere(hand, select, other)


def _literal(hand: Hand, select: Select) -> Select | None:
    return _somewhere(
        hand,
        select,
        lambda expr: hand.maker.literal(expr.type) if expr.form and not expr.parts and "(" not in expr.form else None,
    )


def _fewer(hand: Hand, select: Select) -> Select | None:
    if not select.where:
        return None
    at = hand.rng.randrange(len(select.where))
    return replace(select, where=select.where[:at] + select.where[at + 1 :])


def _join(hand: Hand, select: Select) -> Select | None:
    if len(select.sources) < 2:
        return None
    at = hand.rng.randrange(1, len(select.sources))
    here = select.sources[at]
    way = hand.rng.choice(("kind", "where", "on"))
    if way == "kind":
        kinds = [kind for kind in ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN") if kind != here.join]
        changed, where = replace(here, join=hand.rng.choice(kinds)), select.where
    elif way == "where":
        changed, where = replace(here, on=here.on[:1]), (*select.where, *here.on[1:])
    else:
        seen = {s.alias for s in select.sources[: at + 1]}
        moved = [part for part in select.where if {source for source, _ in part.columns()} <= seen]
        changed = replace(here, on=(*here.on, *moved))
        where = tuple(part for part in select.where if part not in moved)
    return replace(select, sources=(*select.sources[:at], changed, *select.sources[at + 1 :]), where=where)


def _sources(hand: Hand, select: Select) -> Select | None:
    """The first two sources change places, whatever joins them."""
    if len(select.sources) < 2 or len(select.sources) > 2:
        return None
    one, other = select.sources
    return replace(select, sources=(replace(other, join="", on=()), replace(one, join=other.join, on=other.on)))


def _down(hand: Hand, select: Select) -> Select | None:
    """A filter moved into the subquery it reads, rightly or not."""
    stored = {s.alias: s for s in select.sources if isinstance(s.what, Select) and not s.what.having}
    for part in select.where:
        owners = {source for source, _ in part.columns()}
        holder = stored.get(next(iter(owners), "")) if len(owners) == 1 else None
        if holder is None or not isinstance(holder.what, Select):
            continue
        inside = dict(holder.what.items)
        if any(inside[name].aggregate or inside[name].windowed for _, name in part.columns()):
            continue  # no filter can say it

        def moved(expr: Expr, inside: dict[str, Expr] = inside) -> Expr:
            return expr if expr.form else inside[expr.name]

        inner = replace(holder.what, where=(*holder.what.where, mapped(part, moved)))
        sources = tuple(replace(s, what=inner) if s is holder else s for s in select.sources)
        return replace(select, sources=sources, where=tuple(p for p in select.where if p is not part))
    return None


def _constant_below(hand: Hand, select: Select) -> Select | None:
    """A constant that an outer join may turn to NULL, taken from the joined side or written in place."""
    if len(select.sources) < 2 or select.group or select.distinct:
        return None
    at = hand.rng.randrange(1, len(select.sources))
    here = select.sources[at]
    alias, name = hand.maker.alias(), hand.maker.name()
    items = (*((n, model.col(alias, n, t)) for n, t in here.columns), (name, lit("int", "1")))
    inner = Select(items, (From(alias, here.what, here.columns),))
    wider = replace(here, what=inner, columns=inner.columns)
    value = hand.rng.choice((model.col(here.alias, name, "int"), lit("int", "1")))
    first = (select.items[0][0], value)
    return replace(
        select, items=(first, *select.items[1:]), sources=(*select.sources[:at], wider, *select.sources[at + 1 :])
    )


def _toggled(hand: Hand, select: Select) -> Select | None:
    return None if select.group else replace(select, distinct=not select.distinct)


_WAYS = {
    "column": _column,
    "other side": _other_side,
    "form": _form,
    "literal": _literal,
    "filter dropped": _fewer,
    "join": _join,
    "sources": _sources,
    "filter down": _down,
    "constant below": _constant_below,
    "distinct": _toggled,
}


def mutation(rng: random.Random, world: World) -> Edit:
    kind = rng.choice(list(_WAYS))
    while True:
        hand = Hand(rng, world)
        old: Query = (
            hand.maker.select(2) if rng.random() < 0.8 else hand.maker.union(rng.choice(("UNION ALL", "UNION")))
        )
        select = hand.pick(old, lambda s: not s.star)
        other = _WAYS[kind](hand, select) if select else None
        if select is None or other is None or other == select:
            continue
        new = swapped(old, select, other)
        if isinstance(old, SetOp) and [t for _, t in new.columns] != [t for _, t in old.columns]:
            continue
        columns = tuple(name for name, _ in old.columns)
        return Edit(kind, "mutation", world, write(old, hand.style), write(new, hand.style), columns=columns)
