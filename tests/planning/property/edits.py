"""Edits that do no harm, and edits of one value: what each does to rows and columns is known from how it was made."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.planning.property import model
from tests.planning.property.build import TYPES, Maker, World
from tests.planning.property.model import Expr, From, Query, Select, SetOp, everywhere, lit, selects, swapped
from tests.planning.property.render import Style, write


@dataclass(frozen=True)
class Edit:
    """One pair of queries and the truth about it.

    group   `harmless`: the old columns keep rows and values, so that only `added`, `removed` and `renamed` may differ;
            `value`: the rows stay and exactly `changed` get other values;
            `hazard`: rows differ, or `changed` values do: the answer must not be "nothing old has changed"
    """

    kind: str
    group: str
    world: World
    old: str
    new: str
    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()
    renamed: tuple[tuple[str, str], ...] = ()
    changed: frozenset[str] = frozenset()
    rows: bool = False  # a hazard in which the rows themselves differ
    columns: tuple[str, ...] = ()  # of the old query


@dataclass
class Hand:
    """What a writer of edits has at hand: dice, a maker of expressions, and the style both texts begin with."""

    rng: random.Random
    world: World
    maker: Maker = field(init=False)
    style: Style = field(init=False)

    def __post_init__(self) -> None:
        self.maker = Maker(self.rng, self.world)
        self.style = Style(ctes=self.rng.random() < 0.3, qualified=self.rng.random() < 0.6)

    def pick(self, query: Query, wanted: Callable[[Select], bool]) -> Select | None:
        found = [select for select in selects(query) if wanted(select)]
        return self.rng.choice(found) if found else None

    def unused(self, select: Select) -> Expr | None:
        """A column of a plain table that nothing in this SELECT reads, so that nothing here determines it."""
        used = {column for expr in select.exprs() for column in expr.columns()}
        used |= {(s.alias, name) for s in select.sources for name in s.using}
        free = [
            model.col(s.alias, name, type)
            for s in select.sources
            for name, type in s.columns
            if isinstance(s.what, str) and (s.alias, name) not in used and not type.startswith("array")
        ]
        return self.rng.choice(free) if free else None


Made = tuple[Query, Query, dict[str, object]] | None


# -- the same in another hand


def _styled(**changes: object) -> Callable[[Hand], Made]:
    def make(hand: Hand) -> Made:
        query = hand.maker.query()
        return query, query, {"style": replace(hand.style, seed=hand.rng.randrange(1 << 30), **changes)}  # type: ignore[arg-type]

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


# -- another projection over the same rows


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


HARMLESS: dict[str, Callable[[Hand], Made]] = {
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
    "column added": _added,
    "column added below": _added_below,
    "column added to a union": _added_to_union,
    "column removed": _removed,
    "column renamed": _renamed,
    "column order": _shuffled,
}

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


def _value(hand: Hand) -> Made:
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


def harmless(rng: random.Random, world: World) -> Edit:
    return _edit(rng, world, "harmless", HARMLESS)


def value(rng: random.Random, world: World) -> Edit:
    return _edit(rng, world, "value", {"value": _value})


def _edit(rng: random.Random, world: World, group: str, makers: dict[str, Callable[[Hand], Made]]) -> Edit:
    kind = rng.choice(list(makers))
    while True:
        hand = Hand(rng, world)
        if made := makers[kind](hand):
            old, new, truth = made
            style = truth.pop("style", hand.style)
            assert isinstance(style, Style)
            columns = tuple(name for name, _ in old.columns)
            renamed = tuple(truth.pop("renamed", {}).items())  # type: ignore[attr-defined]
            sets = {name: frozenset(names) for name, names in truth.items()}  # type: ignore[call-overload]
            texts = write(old, hand.style), write(new, style)
            return Edit(kind, group, world, *texts, renamed=renamed, columns=columns, **sets)
