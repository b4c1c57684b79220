"""Other rows: limits, samples, kinds of joins, filters, groupings, the sides of set operations."""

import re
from dataclasses import replace

from tests.planning.property import model
from tests.planning.property.edits import Hand
from tests.planning.property.hazards.pair import Pair
from tests.planning.property.model import Expr, From, Raw, Select, SetOp, lit
from tests.planning.property.render import write

ALIAS = re.compile(r"\bs\d+\b")


def set_kind(hand: Hand) -> Pair:
    one, other = hand.rng.sample(("UNION ALL", "UNION", "INTERSECT", "EXCEPT"), 2)
    old = hand.maker.union(one, 0)
    return old, replace(old, op=other)


def tail(hand: Hand) -> Pair:
    base = hand.maker.plain(1)
    one, other = hand.rng.sample(("", " LIMIT 1", " LIMIT 2", " LIMIT 2 OFFSET 1", " OFFSET 2"), 2)
    return replace(base, tail=one), replace(base, tail=other)


def sample(hand: Hand) -> Pair:
    base = hand.maker.plain(0, most=1)
    table, alias = base.sources[0].what, base.sources[0].alias
    items = ", ".join(f"{alias}.{name} AS {name}" for name, _ in base.sources[0].columns[:3])
    one, other = hand.rng.sample(("", " TABLESAMPLE (1 ROWS)", " TABLESAMPLE (2 ROWS)", " TABLESAMPLE (0 PERCENT)"), 2)
    columns = base.sources[0].columns[:3]
    return (
        Raw(f"SELECT {items} FROM {table}{one} AS {alias}", columns),
        Raw(f"SELECT {items} FROM {table}{other} AS {alias}", columns),
    )


def qualify(hand: Hand) -> Pair:
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


def join_kind(hand: Hand) -> Pair:
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


def on_or_where(hand: Hand) -> Pair:
    """A condition on the right side of a LEFT JOIN, in ON and in WHERE."""
    base = _first_alone(hand)
    one, other = base.sources
    test = Expr("boolean", model.GT, (model.col(other.alias, other.columns[1][0], "int"), lit("int", "0")))
    left = replace(other, join="LEFT JOIN")
    return (
        replace(base, sources=(one, replace(left, on=(*other.on, test)))),
        replace(base, sources=(one, left), where=(test,)),
    )


def having(hand: Hand) -> Pair:
    base = replace(hand.maker.grouped(1), having=())
    count = Expr("bigint", model.COUNT_ALL)
    tests = [(), *((Expr("boolean", model.GT, (count, lit("int", str(n)))),) for n in (1, 2))]
    one, other = hand.rng.sample(tests, 2)
    return replace(base, having=one), replace(base, having=other)


def across_window(hand: Hand) -> Pair:
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


def filter_changed(hand: Hand) -> Pair:
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


def filter_more(hand: Hand) -> Pair:
    base = hand.maker.plain(0, most=1)
    one = model.col(base.sources[0].alias, base.sources[0].columns[1][0], "int")
    test = Expr("boolean", model.GT, (one, lit("int", "1")))
    pair = [replace(base, where=()), replace(base, where=(test,))]
    hand.rng.shuffle(pair)
    return pair[0], pair[1]


def rollup(hand: Hand) -> Pair:
    base = replace(hand.maker.grouped(1), group="names", having=())
    keys = [expr for _, expr in base.items if not expr.aggregate]
    if not all(expr.columns() for expr in keys):
        return None
    text = write(replace(base, group=""), hand.style)
    message = ", ".join(
        write(Select((("x", key),), base.sources), hand.style).split(" AS x FROM ")[0][7:] for key in keys
    )
    if " AS x" in message or text.startswith("WITH"):
        return None
    ways = (f"GROUP BY {message}", f"GROUP BY ROLLUP ({message})", f"GROUP BY GROUPING SETS (({message}), ())")
    one, other = hand.rng.sample(ways[:2], 2) if hand.rng.random() < 0.7 else (ways[0], ways[2])
    return Raw(f"{text} {one}", base.columns), Raw(f"{text} {other}", base.columns)


def exists(hand: Hand) -> Pair:
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


def union_order(hand: Hand) -> Pair:
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


def except_sides(hand: Hand) -> Pair:
    while True:
        old = hand.maker.union("EXCEPT", 0)
        assert isinstance(old.left, Select)
        assert isinstance(old.right, Select)
        names = [name for name, _ in old.left.columns]
        left = replace(old.right, items=tuple((n, e) for n, (_, e) in zip(names, old.right.items, strict=True)))
        if _unnamed(left) != _unnamed(old.left):  # the same query on both sides leaves nothing, whichever way round
            return old, SetOp("EXCEPT", left, old.left)


def _unnamed(query: Select) -> str:
    """Its text, whatever its tables are called."""
    return ALIAS.sub("s", write(query))
