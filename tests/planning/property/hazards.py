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
from tests.planning.property.model import Expr, From, Query, Raw, Select, SetOp, lit
from tests.planning.property.render import write

Pair = tuple[Query, Query] | None


def _wider(hand: Hand, select: Select) -> Select | None:
    """The SELECT with a column more that nothing in it determines, in front or behind."""
    free = hand.unused(select)
    if free is None:
        return None
    item = (hand.maker.name(), free)
    return replace(select, items=(item, *select.items) if hand.rng.random() < 0.3 else (*select.items, item))


def _distinct(hand: Hand) -> Pair:
    old = replace(hand.maker.plain(1), distinct=True)
    new = _wider(hand, old)
    return (old, new) if new else None


def _distinct_star(hand: Hand) -> Pair:
    """`SELECT DISTINCT *` over a subquery that gets the column."""
    inner = hand.maker.plain(1)
    wide = _wider(hand, inner)
    if wide is None:
        return None
    alias = hand.maker.alias()

    def outer(of: Select) -> Select:
        items = tuple((name, model.col(alias, name, type)) for name, type in of.columns)
        return Select(items, (From(alias, of, of.columns),), distinct=True, star=True)

    return outer(inner), outer(wide)


def _set_more(hand: Hand) -> Pair:
    op = hand.rng.choice(("UNION", "UNION DISTINCT", "INTERSECT", "EXCEPT", "MINUS", "INTERSECT ALL", "EXCEPT ALL"))
    old = hand.maker.union(op, 0)
    assert isinstance(old.left, Select)
    assert isinstance(old.right, Select)
    left, free = replace(old.left, where=()), hand.unused(old.left)
    if free is None:
        return None
    if op.startswith("UNION"):
        other = hand.unused(old.right)
        more = other if other is not None and other.type == free.type else lit(free.type, f"CAST(NULL AS {free.type})")
        right = old.right
    else:  # both sides the same rows, so that a column that they do not share decides
        right = replace(left, items=tuple((hand.maker.name(), expr) for _, expr in left.items))
        more = lit(free.type, f"CAST(NULL AS {free.type})")
    name = hand.maker.name()
    wide = [replace(side, items=(*side.items, (name, expr))) for side, expr in ((left, free), (right, more))]
    return SetOp(op, left, right), SetOp(op, wide[0], wide[1])


def _set_kind(hand: Hand) -> Pair:
    one, other = hand.rng.sample(("UNION ALL", "UNION", "INTERSECT", "EXCEPT"), 2)
    old = hand.maker.union(one, 0)
    return old, replace(old, op=other)


def _group_more(hand: Hand) -> Pair:
    old = replace(hand.maker.grouped(1), group=hand.rng.choice(("all", "all", "ordinals", "names")), having=())
    if not any(expr.form in (model.COUNT_ALL,) for _, expr in old.items):
        old = replace(old, items=(*old.items, (hand.maker.name(), Expr("bigint", model.COUNT_ALL))))
    if not all(expr.columns() for _, expr in old.items if not expr.aggregate):
        return None
    free = hand.unused(old)
    return (old, replace(old, items=(*old.items, (hand.maker.name(), free)))) if free else None


def _collapsed(hand: Hand) -> Pair:
    """An aggregate beside constants: many rows become one."""
    base = hand.maker.plain(0, most=1)
    old = replace(base, items=((hand.maker.name(), lit("int", "1")),), where=())
    return old, replace(old, items=(*old.items, (hand.maker.name(), hand.maker.aggregate(old.sources))))


def _ordinal_limit(hand: Hand) -> Pair:
    """ORDER BY 1 means another column once one stands in front."""
    base = replace(hand.maker.plain(1), tail=" ORDER BY 1 LIMIT 2")
    free = hand.unused(base)
    if free is None or not base.items[0][1].columns():
        return None
    return base, replace(base, items=((hand.maker.name(), free), *base.items))


def _pair_of_tables(hand: Hand) -> tuple[Select, From]:
    maker = hand.maker
    table = hand.rng.choice(list(hand.world.tables))
    other = hand.rng.choice(list(hand.world.tables))
    columns = tuple(hand.world.tables[table].items())
    source, alias = From(maker.alias(), table, columns), maker.alias()
    left = Select((("k", model.col(source.alias, "k", "int")), (maker.name(), maker.expr((source,), "int"))), (source,))
    return left, From(alias, other, tuple(hand.world.tables[other].items()))


def _natural(hand: Hand) -> Pair:
    """A column that both sides have by name becomes part of the join."""
    left, right = _pair_of_tables(hand)
    name, type = hand.rng.choice([(n, t) for n, t in right.columns if n != "k" and not t.startswith("array")])
    value = hand.maker.expr(left.sources, type, 1)
    join = hand.rng.choice(("NATURAL JOIN", "NATURAL LEFT JOIN"))

    def outer(of: Select) -> Select:
        first = From("s90", of, of.columns)
        items = ((left.items[1][0], model.col("s90", left.items[1][0], "int")),)
        return Select(items, (first, replace(right, join=join)))

    return outer(left), outer(replace(left, items=(*left.items, (name, value))))


def _using(hand: Hand) -> Pair:
    left, right = _pair_of_tables(hand)
    name, type = hand.rng.choice([(n, t) for n, t in right.columns if n != "k" and not t.startswith("array")])
    wide = replace(left, items=(*left.items, (name, hand.maker.expr(left.sources, type, 1))))
    items = ((left.items[1][0], model.col("s90", left.items[1][0], "int")),)
    first = From("s90", wide, wide.columns)
    old = Select(items, (first, replace(right, join="JOIN", using=("k",))))
    return old, replace(old, sources=(first, replace(right, join="JOIN", using=("k", name))))


def _pivot(hand: Hand) -> Pair:
    """PIVOT groups by every column it does not use."""
    table = hand.rng.choice(list(hand.world.tables))
    letter = table[0]
    more = hand.rng.choice([n for n, t in hand.world.tables[table].items() if n[-1].isdigit()])

    def text(extra: str) -> Raw:
        inner = f"SELECT k, {letter}_s AS label, {letter}_n AS amount{extra} FROM {table}"
        said = f"SELECT * FROM ({inner}) PIVOT (sum(amount) FOR label IN ('a' AS a, 'b' AS b))"
        columns = (("k", "int"), *(((more, hand.world.tables[table][more]),) if extra else ()))
        return Raw(said, (*columns, ("a", "bigint"), ("b", "bigint")))

    return text(""), text(f", {more}")


def _generator(hand: Hand) -> Pair:
    old = hand.maker.plain(1)
    found = [(s.alias, n) for s in old.sources for n, t in s.columns if t == "array<int>"]
    if not found:
        return None
    list_ = model.col(*hand.rng.choice(found), "array<int>")
    number = hand.maker.expr(old.sources, "int", 1)
    made = hand.rng.choice(
        (
            Expr("int", "explode({})", (list_,)),
            Expr("int", "explode_outer({})", (list_,)),
            Expr("int", "stack(2, {}, 1)", (number,)),
            Expr("int", "inline(array(struct({}), struct(2)))", (number,)),
            Expr("int", "explode(array({}, 1))", (number,)),
            Expr("int", "somebody_elses({})", (number,)),  # nobody knows how many rows it makes
        )
    )
    return old, replace(old, items=(*old.items, (hand.maker.name(), made)))


def _lateral(hand: Hand) -> Pair:
    old = hand.maker.plain(0, most=1)
    source = old.sources[0]
    name = next(n for n, t in source.columns if t == "array<int>")
    view = f"LATERAL VIEW explode({hand.style.prefix}{source.alias[1:]}.{name}) gen AS one"
    outer = view.replace("VIEW", "VIEW OUTER")
    old = replace(old, where=())
    if hand.rng.random() < 0.5:
        return old, replace(old, lateral=hand.rng.choice((view, outer)))
    return replace(old, lateral=view), replace(old, lateral=outer)


def _tail(hand: Hand) -> Pair:
    base = hand.maker.plain(1)
    one, other = hand.rng.sample(("", " LIMIT 1", " LIMIT 2", " LIMIT 2 OFFSET 1", " OFFSET 2"), 2)
    return replace(base, tail=one), replace(base, tail=other)


def _sample(hand: Hand) -> Pair:
    base = hand.maker.plain(0, most=1)
    table, alias = base.sources[0].what, base.sources[0].alias
    items = ", ".join(f"{alias}.{name} AS {name}" for name, _ in base.sources[0].columns[:3])
    one, other = hand.rng.sample(("", " TABLESAMPLE (1 ROWS)", " TABLESAMPLE (2 ROWS)", " TABLESAMPLE (0 PERCENT)"), 2)
    columns = base.sources[0].columns[:3]
    return (
        Raw(f"SELECT {items} FROM {table}{one} AS {alias}", columns),
        Raw(f"SELECT {items} FROM {table}{other} AS {alias}", columns),
    )


def _qualify(hand: Hand) -> Pair:
    old = replace(hand.maker.plain(0, most=1), where=())
    by = hand.maker.column(old.sources, "string") or hand.maker.literal("string")
    order = hand.maker.column(old.sources, "int") or hand.maker.literal("int")
    window = "rank() OVER (PARTITION BY {} ORDER BY {})"
    tests = [
        Expr("boolean", model.EQ, (Expr("int", window, (by, order)), lit("int", "1"))),
        Expr("boolean", model.GT, (Expr("int", window, (by, order)), lit("int", "1"))),
        None,
    ]
    one, other = hand.rng.sample(tests, 2)
    return replace(old, qualify=one), replace(old, qualify=other)


def _join_kind(hand: Hand) -> Pair:
    old = hand.maker.query()
    select = hand.pick(old, lambda s: len(s.sources) == 2)
    if not isinstance(old, Select) or select is not old or old.distinct:
        return None
    join = old.sources[1].join
    kinds = {
        "JOIN": ("LEFT JOIN", "LEFT SEMI JOIN", "FULL JOIN"),
        "LEFT JOIN": ("JOIN", "RIGHT JOIN", "LEFT ANTI JOIN"),
    }
    kind = hand.rng.choice(kinds[join])
    if "SEMI" in kind or "ANTI" in kind:
        base = _first_alone(hand)
        return base, replace(base, sources=(base.sources[0], replace(base.sources[1], join=kind)))
    base = _first_alone(hand)
    base = replace(base, sources=(base.sources[0], replace(base.sources[1], join=join)))
    return base, replace(base, sources=(base.sources[0], replace(base.sources[1], join=kind)))


def _first_alone(hand: Hand) -> Select:
    """Two tables joined by their key, where only the first one's columns are read."""
    one, other = hand.maker.source(0), hand.maker.source(0)
    on = (Expr("boolean", model.EQ, (model.col(one.alias, "k", "int"), model.col(other.alias, "k", "int"))),)
    return Select(tuple(hand.maker.items((one,), 2)), (one, replace(other, join="JOIN", on=on)))


def _on_or_where(hand: Hand) -> Pair:
    """A condition on the right side of a LEFT JOIN, in ON and in WHERE."""
    base = _first_alone(hand)
    one, other = base.sources
    test = Expr("boolean", model.GT, (model.col(other.alias, other.columns[1][0], "int"), lit("int", "0")))
    left = replace(other, join="LEFT JOIN")
    return (
        replace(base, sources=(one, replace(left, on=(*other.on, test)))),
        replace(base, sources=(one, left), where=(test,)),
    )


def _having(hand: Hand) -> Pair:
    base = replace(hand.maker.grouped(1), having=())
    count = Expr("bigint", model.COUNT_ALL)
    tests = [(), *((Expr("boolean", model.GT, (count, lit("int", str(n)))),) for n in (1, 2))]
    one, other = hand.rng.sample(tests, 2)
    return replace(base, having=one), replace(base, having=other)


def _across_window(hand: Hand) -> Pair:
    """A filter moved below the window that it used to follow: the window sees fewer rows."""
    base = hand.maker.plain(0, most=1)
    source = base.sources[0]
    number = model.col(source.alias, source.columns[1][0], "int")
    key = model.col(source.alias, "k", "int")
    name = hand.maker.name()
    kept = hand.maker.name()
    items = ((kept, key), (name, Expr("bigint", "count({}) OVER ()", (number,))))
    alias = hand.maker.alias()
    outer = tuple((n, model.col(alias, n, e.type)) for n, e in items)

    def test(at: str, column: str) -> Expr:
        return Expr("boolean", model.GT, (model.col(at, column, "int"), lit("int", "1")))

    old = Select(items, (source,))
    new = Select(items, (source,), (test(source.alias, "k"),))
    holder = From(alias, old, old.columns)
    return Select(outer, (holder,), (test(alias, kept),)), Select(outer, (replace(holder, what=new),))


_NUDGES = {
    model.GT: (model.GE, model.LT),
    model.GE: (model.GT,),
    model.LT: (model.LE, model.NE),
    model.LE: (model.LT, model.EQ),
    model.EQ: (model.NE, model.NULLSAFE, model.LE),
    model.NE: (model.EQ,),
    model.NULLSAFE: (model.EQ,),
    model.AND: (model.OR,),
    model.OR: (model.AND,),
    model.IN: (model.NOT_IN,),
    model.NOT_IN: (model.IN,),
    "({} IS NULL)": ("({} IS NOT NULL)",),
    "({} IS NOT NULL)": ("({} IS NULL)",),
    "({} LIKE 'a%')": ("({} ILIKE 'a%')", "({} LIKE 'a')"),
    "({} ILIKE 'a%')": ("({} LIKE 'a%')",),
}


def _filter(hand: Hand) -> Pair:
    """One comparison of the outermost WHERE changed by a little; its sides are columns, so that it can matter."""
    base = hand.maker.plain(0, most=1)
    columns = [model.col(base.sources[0].alias, n, t) for n, t in base.sources[0].columns]
    one = hand.rng.choice([c for c in columns if c.type in ("int", "string", "double", "date")])
    value = {"int": "1", "string": "'a'", "double": "0.5D", "date": "DATE '2024-02-29'"}[one.type]
    if one.type == "string" and hand.rng.random() < 0.4:
        test = Expr("boolean", hand.rng.choice(("({} LIKE 'a%')", "({} ILIKE 'a%')")), (one,))
    elif hand.rng.random() < 0.2:
        test = Expr("boolean", hand.rng.choice(("({} IS NULL)", "({} IS NOT NULL)")), (one,))
    elif one.type == "int" and hand.rng.random() < 0.3:
        test = Expr("boolean", hand.rng.choice((model.IN, model.NOT_IN)), (one, lit("int", "1"), lit("int", "2")))
    else:
        comparisons = [f for f in _NUDGES if f.count("{}") == 2 and f not in (model.AND, model.OR)]
        test = Expr("boolean", hand.rng.choice(comparisons), (one, lit(one.type, value)))
    forms = _NUDGES[test.form]
    if test.form in (model.EQ, model.NULLSAFE) and test.parts[1].form:
        forms = tuple(f for f in forms if f not in (model.NULLSAFE, model.EQ))  # equal inside a WHERE: NULL and false
    form = hand.rng.choice(forms or (model.GT,))
    return replace(base, where=(test,)), replace(base, where=(replace(test, form=form),))


def _filter_more(hand: Hand) -> Pair:
    base = hand.maker.plain(0, most=1)
    one = model.col(base.sources[0].alias, base.sources[0].columns[1][0], "int")
    test = Expr("boolean", model.GT, (one, lit("int", "1")))
    pair = [replace(base, where=()), replace(base, where=(test,))]
    hand.rng.shuffle(pair)
    return pair[0], pair[1]


def _rollup(hand: Hand) -> Pair:
    base = replace(hand.maker.grouped(1), group="names", having=())
    keys = [expr for _, expr in base.items if not expr.aggregate]
    if not all(expr.columns() for expr in keys):
        return None
    text = write(replace(base, group=""), hand.style)
    said = ", ".join(write(Select((("x", key),), base.sources), hand.style).split(" AS x FROM ")[0][7:] for key in keys)
    if " AS x" in said or text.startswith("WITH"):
        return None
    ways = (f"GROUP BY {said}", f"GROUP BY ROLLUP ({said})", f"GROUP BY GROUPING SETS (({said}), ())")
    one, other = hand.rng.sample(ways[:2], 2) if hand.rng.random() < 0.7 else (ways[0], ways[2])
    return Raw(f"{text} {one}", base.columns), Raw(f"{text} {other}", base.columns)


def _exists(hand: Hand) -> Pair:
    base = hand.maker.plain(0, most=1)
    alias = base.sources[0].alias
    table = hand.rng.choice(list(hand.world.tables))
    letter = table[0]
    inner = f"SELECT 1 FROM {table} AS s80 WHERE s80.k = {alias}.k"
    ways = (
        f"EXISTS ({inner})",
        f"NOT EXISTS ({inner})",
        f"EXISTS ({inner} AND s80.{letter}_n > 1)",
        f"{alias}.k IN (SELECT s80.k FROM {table} AS s80 WHERE s80.{letter}_n > 0)",
        f"{alias}.k NOT IN (SELECT s80.k FROM {table} AS s80)",
    )
    one, other = (replace(base, where=(lit("boolean", way),)) for way in hand.rng.sample(ways, 2))
    hand.style = replace(hand.style, prefix="s")
    return one, other


def _union_order(hand: Hand) -> Pair:
    """Columns of a union's second branch change places: their types agree, their meanings do not."""
    old = hand.maker.union("UNION ALL", 0)
    assert isinstance(old.left, Select)
    assert isinstance(old.right, Select)
    source = old.right.sources[0]
    ints = [model.col(source.alias, n, "int") for n, t in source.columns if t == "int"]
    one, other = ints[0], ints[1]
    left = replace(
        old.left, items=tuple((hand.maker.name(), hand.maker.expr(old.left.sources, "int")) for _ in range(2))
    )
    right = replace(old.right, items=((hand.maker.name(), one), (hand.maker.name(), other)), where=())
    return SetOp("UNION ALL", left, right), SetOp("UNION ALL", left, replace(right, items=right.items[::-1]))


def _except_sides(hand: Hand) -> Pair:
    old = hand.maker.union("EXCEPT", 0)
    assert isinstance(old.left, Select)
    assert isinstance(old.right, Select)
    names = [name for name, _ in old.left.columns]
    left = replace(old.right, items=tuple((n, e) for n, (_, e) in zip(names, old.right.items, strict=True)))
    return old, SetOp("EXCEPT", left, old.left)


HAZARDS: dict[str, Callable[[Hand], Pair]] = {
    "DISTINCT and a column": _distinct,
    "DISTINCT * and a column": _distinct_star,
    "set operation and a column": _set_more,
    "set operation": _set_kind,
    "GROUP BY and a column": _group_more,
    "aggregate beside constants": _collapsed,
    "ORDER BY 1 LIMIT": _ordinal_limit,
    "NATURAL JOIN": _natural,
    "USING": _using,
    "PIVOT": _pivot,
    "generator": _generator,
    "LATERAL VIEW": _lateral,
    "LIMIT": _tail,
    "TABLESAMPLE": _sample,
    "QUALIFY": _qualify,
    "kind of join": _join_kind,
    "ON or WHERE": _on_or_where,
    "HAVING": _having,
    "across a window": _across_window,
    "filter": _filter,
    "filter more": _filter_more,
    "ROLLUP": _rollup,
    "EXISTS": _exists,
    "union's order": _union_order,
    "sides of EXCEPT": _except_sides,
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
        columns = tuple(name for name, _ in old.columns)
        rows = kind not in _VALUES_ONLY
        if rng.random() < 0.35 and not any(isinstance(q, Raw) for q in pair):
            old, new, rows = _buried(hand, old, new, rows)
            columns = tuple(name for name, _ in old.columns)
        style = replace(hand.style, breaks=rng.random() < 0.2, seed=rng.randrange(1 << 30))
        if rng.random() < 0.2:
            style = replace(style, ctes=not style.ctes)
        texts = write(old, hand.style), write(new, style)
        return Edit(kind, "hazard", world, *texts, rows=rows, columns=columns)


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
