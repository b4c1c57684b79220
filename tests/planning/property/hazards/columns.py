"""An added column, where rows depend on the projection."""

from dataclasses import replace

from tests.planning.property import model
from tests.planning.property.edits import Hand
from tests.planning.property.hazards.pair import Pair
from tests.planning.property.model import Expr, From, Raw, Select, SetOp, lit


def _wider(hand: Hand, select: Select) -> Select | None:
    """The SELECT with a column more that nothing in it determines, in front or behind."""
    free = hand.unused(select)
    if free is None:
        return None
    item = (hand.maker.name(), free)
    return replace(select, items=(item, *select.items) if hand.rng.random() < 0.3 else (*select.items, item))


def distinct(hand: Hand) -> Pair:
    old = replace(hand.maker.plain(1), distinct=True)
    new = _wider(hand, old)
    return (old, new) if new else None


def distinct_star(hand: Hand) -> Pair:
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


def set_more(hand: Hand) -> Pair:
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


def group_more(hand: Hand) -> Pair:
    old = replace(hand.maker.grouped(1), group=hand.rng.choice(("all", "all", "ordinals", "names")), having=())
    if not any(expr.form in (model.COUNT_ALL,) for _, expr in old.items):
        old = replace(old, items=(*old.items, (hand.maker.name(), Expr("bigint", model.COUNT_ALL))))
    if not all(expr.columns() for _, expr in old.items if not expr.aggregate):
        return None
    free = hand.unused(old)
    return (old, replace(old, items=(*old.items, (hand.maker.name(), free)))) if free else None


def collapsed(hand: Hand) -> Pair:
    """An aggregate beside constants: many rows become one."""
    base = hand.maker.plain(0, most=1)
    old = replace(base, items=((hand.maker.name(), lit("int", "1")),), where=())
    return old, replace(old, items=(*old.items, (hand.maker.name(), hand.maker.aggregate(old.sources))))


def ordinal_limit(hand: Hand) -> Pair:
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


def natural(hand: Hand) -> Pair:
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


def using(hand: Hand) -> Pair:
    left, right = _pair_of_tables(hand)
    name, type = hand.rng.choice([(n, t) for n, t in right.columns if n != "k" and not t.startswith("array")])
    wide = replace(left, items=(*left.items, (name, hand.maker.expr(left.sources, type, 1))))
    items = ((left.items[1][0], model.col("s90", left.items[1][0], "int")),)
    first = From("s90", wide, wide.columns)
    old = Select(items, (first, replace(right, join="JOIN", using=("k",))))
    return old, replace(old, sources=(first, replace(right, join="JOIN", using=("k", name))))


def pivot(hand: Hand) -> Pair:
    """PIVOT groups by every column it does not use."""
    table = hand.rng.choice(list(hand.world.tables))
    letter = table[0]
    more = hand.rng.choice([n for n, t in hand.world.tables[table].items() if n[-1].isdigit()])

    def text(extra: str) -> Raw:
        inner = f"SELECT k, {letter}_s AS label, {letter}_n AS amount{extra} FROM {table}"
        message = f"SELECT * FROM ({inner}) PIVOT (sum(amount) FOR label IN ('a' AS a, 'b' AS b))"
        columns = (("k", "int"), *(((more, hand.world.tables[table][more]),) if extra else ()))
        return Raw(message, (*columns, ("a", "bigint"), ("b", "bigint")))

    return text(""), text(f", {more}")


def generator(hand: Hand) -> Pair:
    old = hand.maker.plain(1)
    results = [(s.alias, n) for s in old.sources for n, t in s.columns if t == "array<int>"]
    if not results:
        return None
    list_ = model.col(*hand.rng.choice(results), "array<int>")
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


def lateral(hand: Hand) -> Pair:
    old = hand.maker.plain(0, most=1)
    source = old.sources[0]
    name = next(n for n, t in source.columns if t == "array<int>")
    view = f"LATERAL VIEW explode({hand.style.prefix}{source.alias[1:]}.{name}) gen AS one"
    outer = view.replace("VIEW", "VIEW OUTER")
    old = replace(old, where=())
    if hand.rng.random() < 0.5:
        return old, replace(old, lateral=hand.rng.choice((view, outer)))
    return replace(old, lateral=view), replace(old, lateral=outer)
