"""Another projection over the same rows: columns added, removed, renamed and put in another order."""

from collections.abc import Callable
from dataclasses import replace

from tests.planning.property import model
from tests.planning.property.build import TYPES
from tests.planning.property.edits.hand import Hand, Made
from tests.planning.property.model import Expr, Select, SetOp, swapped


def _added(hand: Hand) -> Made:
    old = hand.maker.plain(2) if hand.rng.random() < 0.6 else hand.maker.grouped(2)
    name = hand.maker.name()
    more = (name, hand.maker.aggregate(old.sources) if old.group else _one_value(hand, old))
    if old.group == "ordinals":
        return old, replace(old, items=(*old.items, more)), {"added": {name}}
    at = hand.rng.randrange(len(old.items) + 1)
    return old, replace(old, items=(*old.items[:at], more, *old.items[at:])), {"added": {name}}


def _one_value(hand: Hand, select: Select) -> Expr:
    if hand.rng.random() < 0.1:
        return Expr("string", "json_tuple({}, 'k')", (hand.maker.doc(select.sources),))
    return hand.maker.expr(select.sources, hand.rng.choice(TYPES))


def _added_below(hand: Hand) -> Made:
    """A column more in a subquery that nobody reads, or that only a new outer column reads."""
    old = hand.maker.query()
    select = hand.pick(old, lambda s: s is not old and s.plain() and not isinstance(old, SetOp))
    if select is None or not isinstance(old, Select):
        return None
    name = hand.maker.name()
    wider = replace(select, items=(*select.items, (name, hand.maker.expr(select.sources, "int"))))
    new = swapped(old, select, wider)
    assert isinstance(new, Select)
    holder = next((s for s in new.sources if s.what is wider), None)
    if holder is None or not old.plain() or hand.rng.random() < 0.3:
        return old, new, {}
    outer = hand.maker.name()
    return old, replace(new, items=(*new.items, (outer, model.col(holder.alias, name, "int")))), {"added": {outer}}


def _added_to_union(hand: Hand) -> Made:
    old = hand.maker.union("UNION ALL")
    name, type = hand.maker.name(), hand.rng.choice(TYPES)
    assert isinstance(old.left, Select)
    assert isinstance(old.right, Select)
    left, right = (
        replace(side, items=(*side.items, (name, hand.maker.expr(side.sources, type))))
        for side in (old.left, old.right)
    )
    return old, SetOp(old.op, left, right), {"added": {name}}


def _removed(hand: Hand) -> Made:
    old = hand.maker.plain(2)
    if len(old.items) < 2:
        return None
    gone = hand.rng.choice(old.items)
    return old, replace(old, items=tuple(item for item in old.items if item is not gone)), {"removed": {gone[0]}}


def _renamed(hand: Hand) -> Made:
    old = hand.maker.plain(2) if hand.rng.random() < 0.7 else hand.maker.grouped(2)
    at = hand.rng.randrange(len(old.items))
    name = old.items[at][0]
    values = [expr for _, expr in old.items]
    if values.count(values[at]) > 1:
        return None
    items = tuple((f"{n}_new" if i == at else n, e) for i, (n, e) in enumerate(old.items))
    return old, replace(old, items=items), {"renamed": {name: f"{name}_new"}}


def _shuffled(hand: Hand) -> Made:
    old = hand.maker.select(2)
    items = list(old.items)
    hand.rng.shuffle(items)
    if tuple(items) == old.items:
        return None
    return old, replace(old, items=tuple(items)), {}


PROJECTIONS: dict[str, Callable[[Hand], Made]] = {
    "column added": _added,
    "column added below": _added_below,
    "column added to a union": _added_to_union,
    "column removed": _removed,
    "column renamed": _renamed,
    "column order": _shuffled,
}
