"""Edits that look harmless and are not: each makes a query whose old rows, or old values, differ on some data.

source  issue 4, and what Spark SQL lets a projection decide: DISTINCT, set operations, GROUP BY ALL and ordinals, NATURAL
        and USING, PIVOT, generators, LIMIT, QUALIFY, TABLESAMPLE
"""

import random
from collections.abc import Callable
from dataclasses import replace

from tests.planning.property import model
from tests.planning.property.build import World
from tests.planning.property.edits import Edit, Hand
from tests.planning.property.hazards import columns, rows
from tests.planning.property.hazards.pair import Pair
from tests.planning.property.model import Expr, From, Query, Raw, Select
from tests.planning.property.render import write

HAZARDS: dict[str, Callable[[Hand], Pair]] = {
    "DISTINCT and a column": columns.distinct,
    "DISTINCT * and a column": columns.distinct_star,
    "set operation and a column": columns.set_more,
    "set operation": rows.set_kind,
    "GROUP BY and a column": columns.group_more,
    "aggregate beside constants": columns.collapsed,
    "ORDER BY 1 LIMIT": columns.ordinal_limit,
    "NATURAL JOIN": columns.natural,
    "USING": columns.using,
    "PIVOT": columns.pivot,
    "generator": columns.generator,
    "LATERAL VIEW": columns.lateral,
    "LIMIT": rows.tail,
    "TABLESAMPLE": rows.sample,
    "QUALIFY": rows.qualify,
    "kind of join": rows.join_kind,
    "ON or WHERE": rows.on_or_where,
    "HAVING": rows.having,
    "across a window": rows.across_window,
    "filter": rows.filter_changed,
    "filter more": rows.filter_more,
    "ROLLUP": rows.rollup,
    "EXISTS": rows.exists,
    "union's order": rows.union_order,
    "sides of EXCEPT": rows.except_sides,
}
_VALUES_ONLY = ("union's order", "across a window")


def hazard(rng: random.Random, world: World) -> Edit:
    kind = rng.choice(list(HAZARDS))
    while True:
        hand = Hand(rng, world)
        pair = HAZARDS[kind](hand)
        if pair is None:
            continue
        old, new = pair
        names = tuple(name for name, _ in old.columns)
        other_rows = kind not in _VALUES_ONLY
        if rng.random() < 0.35 and not any(isinstance(q, Raw) for q in pair):
            old, new, other_rows = _buried(hand, old, new, other_rows)
            names = tuple(name for name, _ in old.columns)
        style = replace(hand.style, breaks=rng.random() < 0.2, seed=rng.randrange(1 << 30))
        if rng.random() < 0.2:
            style = replace(style, ctes=not style.ctes)
        texts = write(old, hand.style), write(new, style)
        return Edit(kind, "hazard", world, *texts, rows=other_rows, columns=names)


def _buried(hand: Hand, old: Query, new: Query, rows: bool) -> tuple[Query, Query, bool]:
    """The hazard inside a subquery of which only the old columns, or the number of rows, are read."""
    alias = hand.maker.alias()
    count = hand.rng.random() < 0.3 and rows
    names = [(name, type) for name, type in old.columns if "." not in name]

    def outer(of: Query) -> Select:
        source = (From(alias, of, of.columns),)
        if count:
            return Select((("n", Expr("bigint", model.COUNT_ALL)),), source)
        return Select(tuple((name, model.col(alias, name, type)) for name, type in names), source)

    return outer(old), outer(new), rows and not count
