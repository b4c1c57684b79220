"""Random statements of the rarer clauses: USING and NATURAL, sets of groups, FILTER, QUALIFY, generators, ties, subqueries,
outputs that take a column's name."""

from random import Random
from typing import Protocol

_SIDES = ("", "left ", "right ", "full ", "inner ")
_SETS = (
    "rollup (k, a)", "cube (k, a)", "grouping sets ((k, a), (k), ())", "grouping sets (a, k)", "k, rollup (a)", "k, a with rollup",
    "k, grouping sets ((a), ())", "cube (a, k)", "k, a", "k, a with cube",
)  # fmt: skip
_TOTAL = "id, c, a, k, b, flag"


class Drawn(Protocol):
    by: Random

    def chance(self, share: float) -> bool: ...
    def number(self, depth: int, names: tuple[str, ...]) -> str: ...
    def condition(self, depth: int, names: tuple[str, ...]) -> str: ...
    def items(self, names: tuple[str, ...], least: int = 1) -> list[tuple[str, str]]: ...
    def order(self, outputs: list[str], names: tuple[str, ...]) -> str: ...


def shaped(draw: Drawn) -> str:
    """One statement."""
    forms = (_using, _sets, _filtered, _qualified, _exploded, _tied, _asked, _named, _piped, _chained)
    return draw.by.choice(forms)(draw)


def _where(draw: Drawn, names: tuple[str, ...]) -> str:
    return f" where {draw.condition(1, names)}" if draw.chance(0.4) else ""


def _shown(draw: Drawn, names: tuple[str, ...], rest: str) -> str:
    """SELECT of such names over what follows, in an order or in none."""
    items = draw.items(names)
    tail = ""
    if draw.chance(0.4):
        tail = " " + draw.order([name for _, name in items], names)
        tail += f" limit {draw.by.randint(1, 4)}" if draw.chance(0.6) else ""
    return f"select {', '.join(f'{of} as {name}' for of, name in items)} {rest}{_where(draw, names)}{tail}"


def _using(draw: Drawn) -> str:
    side = draw.by.choice(_SIDES)
    how, names = draw.by.choice([
        (f"{side}join u using (a)", ("a", "id", "v")), (f"{side}join u using (a, k)", ("a", "k", "id", "v")),
        (f"natural {side}join u", ("a", "k", "id", "v")), ("left semi join u using (a)", ("a", "k", "id")),
        ("left anti join u using (k)", ("a", "k", "id")), (f"{side}join u using (k)", ("k", "t.a", "u.a", "v")),
    ])  # fmt: skip
    if draw.chance(0.3):
        return f"select * from t {how}{_where(draw, names)}"
    return _shown(draw, names, f"from t {how}")


def _sets(draw: Drawn) -> str:
    call = draw.by.choice(["count(*)", "sum(id)", "max(a)", "count(a)", "grouping(k)", "count(distinct id)"])
    having = draw.by.choice(
        ["", "", " having count(*) > 1", " having k is not null", " having max(id) > 3", " having a > 1"]
    )
    tail = draw.by.choice(["", "", " order by 1, 2, 3", " order by n, 1, 2 limit 3", " order by all limit 4"])
    first, second = draw.by.sample(["k", "a"], 2)
    names = draw.by.choice([(first, second), ("x", "y"), (second, first)])
    shown = f"{first} as {names[0]}, {second} as {names[1]}"
    return f"select {shown}, {call} as n from t{_where(draw, ('a', 'k', 'id'))} group by {draw.by.choice(_SETS)}{having}{tail}"


def _filtered(draw: Drawn) -> str:
    names = ("a", "k", "id")
    calls = []
    for name in ("x", "y"):
        of = draw.by.choice(
            ["count(*)", "sum(a)", "max(id)", "count(distinct a)", "min(k)", "count_if(flag)", "bool_or(flag)"]
        )
        calls.append(f"{of} filter (where {draw.condition(1, names)}) as {name}")
    having = f" having count(*) filter (where {draw.condition(0, names)}) > 0" if draw.chance(0.3) else ""
    return f"select k, {', '.join(calls)} from t{_where(draw, names)} group by k{having}"


def _qualified(draw: Drawn) -> str:
    items = [(of, name) for of, name in draw.items(("a", "k", "id")) if name != "n"]
    call = draw.by.choice(
        [
            f"row_number() over (partition by k order by {_TOTAL})",
            "count(*) over (partition by k)",
            "rank() over (order by k)",
        ]
    )
    asked = draw.by.choice(
        [f"{call} = 1", f"{call} > 1", f"n <= 2 and {call} > 0", f"{call} = 1 and {items[0][1]} > 1"]
    )
    more = f", {call} as n" if "n <=" in asked or draw.chance(0.2) else ""
    return f"select {', '.join(f'{of} as {name}' for of, name in items)}{more} from t{_where(draw, ('a', 'k', 'id'))} qualify {asked}"


def _exploded(draw: Drawn) -> str:
    outer, name = draw.by.choice(["", "outer "]), draw.by.choice(["x", "y", "a"])
    given = (
        f"lateral view {outer}posexplode(arr) z as p, {name}"
        if draw.chance(0.3)
        else f"lateral view {outer}explode(arr) z as {name}"
    )
    if draw.chance(0.2):
        return f"select id, explode(arr) as {name} from e{_where(draw, ('a', 'id'))}"
    if draw.chance(0.2):
        given += " lateral view explode(array(id, 2)) zz as w"
    return _shown(draw, ("id", f"z.{name}", "e.a"), f"from e {given}")


def _tied(draw: Drawn) -> str:
    """Calls that give all rows of a tie the same."""
    call = draw.by.choice(
        [
            "rank()",
            "dense_rank()",
            "count(*)",
            "sum(a)",
            "max(a)",
            "cume_dist()",
            "min(id)",
            "percent_rank()",
            "count(a) filter (where id > 2)",
        ]
    )
    frame = (
        " range between 1 preceding and current row"
        if draw.chance(0.3) and "rank" not in call and "cume" not in call
        else ""
    )
    part = f"partition by {draw.by.choice(['a', 'flag', 'k % 2'])} " if draw.chance(0.5) else ""
    over = f"over ({part}order by {draw.by.choice(['k', 'k desc', 'a nulls last', 'a'])}{frame})"
    name = draw.by.choice(["n", "a", "k"])
    by = draw.by.choice([f" order by {name}, 1", "", f" order by {name} desc, 1 limit 3", " order by 2, 1"])
    return f"select id, {call} {over} as {name} from t{_where(draw, ('a', 'k', 'id'))}{by}"


def _asked(draw: Drawn) -> str:
    inner = draw.condition(1, ("u.a", "u.k", "v"))
    beside = draw.by.choice(["u.a = t.a", "u.k <=> t.k", "v > t.id", "true"])
    message = draw.by.choice([
        f"a in (select v from u where {inner})", f"exists (select 1 from u where {beside} and {inner})",
        f"not exists (select 1 from u where {beside} and {inner})", "a not in (select k from u where k is not null)",
        f"a = (select max(u.a) from u where {inner})", f"(a, k) in (select u.a, u.k from u where {inner})",
    ])  # fmt: skip
    if draw.chance(0.3):
        return f"select id, (select count(*) from u where u.a = t.a and {inner}) as n from t"
    return f"select id, a from t where {message} and {draw.condition(0, ('a', 'id'))}"


def _named(draw: Drawn) -> str:
    """Outputs and queries that take a name which something else has."""
    first, second = draw.by.sample(["a", "k", "id", "x"], 2)
    one, other = draw.by.choice(["-a", "a + k", "k", "id"]), draw.by.choice(["k + 1", "id", "-id", "a"])
    by = draw.by.choice(
        [first, second, f"- {first}", f"t.{first}" if first != "x" else "x", f"{first} + {second}", "2", "all"]
    )
    rest = "" if by == "all" else ", 1, 2"
    return draw.by.choice([
        f"select {one} as {first}, {other} as {second} from t order by {by}{rest} limit 4",
        f"select {one} as {first}, {first} + 1 as {second} from t",
        f"with u as (select {one} as {first}, {other} as {second} from t) select * from u where {first} > 1",
        f"with c({first}, {second}) as (select a, k from t) select {second}, {first} from c order by {first}, {second} limit 3",
        f"select {first}, {second} from (select {one} as {first}, {other} as {second} from t) as t where t.{first} > 0",
        f"select {one} as {first}, count(*) as {second} from t group by {one} having {first} > 0 or {second} > 1",
        f"select {one} as {first}, sum({other}) as {second} from t group by {first if first != 'x' else one} order by {second}, {first} limit 3",
        f"select {one} as {first} from t union all select {other} from t order by {first} limit 5",
        f"select distinct {one} as {first}, {other} as {second} from t order by {first} desc, {second} limit 4",
    ])  # fmt: skip


def _piped(draw: Drawn) -> str:
    side = draw.by.choice(["", "left ", "full "])
    asked = draw.condition(1, ("a", "id"))
    return draw.by.choice([
        f"from t |> {side}join u using (a) |> where {asked} |> select a, id, v",
        f"from e |> lateral view explode(arr) z as x |> where x > 1 or {asked} |> aggregate count(*) as n, sum(x) as s group by id",
        f"from t |> select a, id |> union all (select v, k from u) |> where {asked} |> order by a, id |> limit 5",
        "from t |> extend a + 1 as x, id & 3 as y |> set x = x + y, y = x |> drop a |> where x > 1 |> select x, y",
        f"from t |> order by {_TOTAL} |> limit 4 offset 1 |> where {asked} |> aggregate count(*) as n, max(a) as m",
        f"from t |> where {asked} |> as q |> join (select a, v from u) as j on q.a = j.a |> select q.id, j.v, q.a",
        f"from t |> extend row_number() over (order by {_TOTAL}) as n |> where n < 5 and {asked} |> select id, n",
        "from t |> aggregate count(*) as n, max(a) as a group by k |> where a > 1 |> order by n, k |> limit 2",
        f"from t |> select a as id, id as a |> where {asked} |> extend a + id as k |> select k, a",
        f"from t |> natural join u |> where {asked} |> select distinct a, v",
        f"select a, id from t |> where {asked} |> set a = a * 2 |> order by a desc, id |> limit 3",
        "from t |> select a |> except (select k from u) |> intersect (select a from t) |> order by a",
        f"from t |> where {asked} |> select a, id, sum(id) over w as s window w as (partition by k order by a)",
    ])  # fmt: skip


def _chained(draw: Drawn) -> str:
    """Joins and set operations in parentheses of their own."""
    on, other = (
        draw.by.choice(["t.a = u.a", "t.k = u.k", "t.id = u.v"]),
        draw.by.choice(["z.k = u.a", "z.a <=> u.v", "z.a = t.a"]),
    )
    one, two = draw.by.choice(["", "left ", "full "]), draw.by.choice(["", "left ", "right "])
    parts = [f"select {draw.by.choice(['a', 'k'])} from {draw.by.choice(['t', 'u'])}" for _ in range(3)]
    how = [draw.by.choice(["union", "union all", "except", "intersect", "minus", "except all"]) for _ in range(2)]
    return draw.by.choice([
        f"select t.id, u.v, z.w from t {one}join u on {on} {two}join u as z on {other}",
        f"select t.id, u.v, z.w from t {one}join (u {two}join u as z on z.k = u.a) on {on}",
        f"({parts[0]} {how[0]} {parts[1]}) {how[1]} {parts[2]}",
        f"{parts[0]} {how[0]} ({parts[1]} {how[1]} {parts[2]})",
        f"select count(*) as n from ({parts[0]} {how[0]} {parts[1]} {how[1]} {parts[2]})",
        f"(select a, id from t order by {_TOTAL} limit 3) union all (select a, v from u order by a, v, k limit 2)",
    ])  # fmt: skip
