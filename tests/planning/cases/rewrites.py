"""Pairs of queries over the tables of `tests/planning/oracle/draw.py`: rewrites that change nothing, and near misses that
look like them and give other rows on its data. `tests/planning/oracle` asks Spark about every one.
"""

from tests.planning.oracle.draw import TABLES

Pair = tuple[str, str]
_P, _Q = ("a > 1", "k = 2", "a is null", "flag", "b = '2'", "a + k > 2", "a in (1, 2)"), ("k > 1", "id > 3", "not flag")


def _where(one: str, other: str) -> Pair:
    return f"select id from t where {one}", f"select id from t where {other}"


def _by(one: str, other: str) -> Pair:
    return f"select k, {one} as n from t group by k", f"select k, {other} as n from t group by k"


def _all(one: str, other: str) -> Pair:
    return f"select {one} as n from t", f"select {other} as n from t"


def _counts() -> list[Pair]:
    results = []
    for p in _P:
        results += [
            _by(f"count_if({p})", f"count(*) filter (where {p})"),
            _by(f"count_if({p})", f"sum(case when {p} then 1 else 0 end)"),
            _by(f"count(case when {p} then 1 end)", f"sum(if({p}, 1, 0))"),
            _all(f"count_if({p})", f"coalesce(sum(if({p}, 1, 0)), 0)"),
            _all(f"count(if({p}, 'x', null))", f"count(*) filter (where {p})"),
            _by(f"sum(case when {p} then id end)", f"sum(id) filter (where {p})"),
            _all(f"max(if({p}, id, null))", f"max(id) filter (where {p})"),
            _by(f"count(id) filter (where {p})", f"count(case when {p} then id end)"),
            _all(f"count(distinct k) filter (where {p})", f"count(distinct case when {p} then k end)"),
            _by(f"bool_or({p})", f"max({p})"),
            _by(f"every({p})", f"min({p})"),
            _all(f"bool_and({p})", f"not bool_or(not ({p}))"),
            _by(f"max(case when {p} then 1 else 0 end) = 1", f"count_if({p}) > 0"),
            _all(f"coalesce(bool_or({p}), false)", f"count_if({p}) >= 1"),
            (
                "select k from t group by k having " + f"bool_or({p})",
                f"select k from t group by k having count_if({p}) <> 0",
            ),
        ]
    return results


def _conditions() -> list[Pair]:
    results = []
    for p in _P[:6]:
        results += [_where(f"({p}) = true", p), _where(f"({p}) is true", p), _where(f"coalesce({p}, false)", p)]
        results += [
            _where(f"if({p}, true, false)", p),
            _where(f"({p}) <=> true", p),
            _where(f"({p}) <> true", f"not ({p})"),
        ]
        results += [
            _all(f"case when {p} then true else false end", f"coalesce({p}, false)"),
            _all(f"({p}) is not false", f"coalesce({p}, true)"),
        ]
        for q in _Q[:2]:
            results += [
                _where(f"({p}) and (({p}) or ({q}))", p), _where(f"({p}) or (({p}) and ({q}))", p),
                _where(f"case when {p} then {q} else false end", f"({p}) and ({q})"),
                _where(f"(({p}) and ({q})) or (({p}) and id = 2)", f"({p}) and (({q}) or id = 2)"),
                _where(f"(({p}) or ({q})) and (({p}) or id = 2)", f"({p}) or (({q}) and id = 2)"),
                _where(f"not (({p}) and ({q}))", f"not ({p}) or not ({q})"),
            ]  # fmt: skip
    return results


_RANGES: list[Pair] = [
    _where("a > 1 and a is not null", "a > 1"),
    ("select id from (select * from t where a is not null) where a > 1", "select id from t where a > 1"),
    _where("a + k > 1 and a is not null and k is not null", "a + k > 1"),
    _where("b like '1%' and b is not null", "b like '1%'"),
    _where("a <> 1 and a is not null", "a <> 1"),
    _where("a = k and a is not null and k is not null", "a = k"),
    _where("a > 1 and a > 2", "a > 2"),
    _where("a > 1 or a > 2", "a > 1"),
    _where("a < 3 and a <= 3", "a < 3"),
    _where("a > 1", "a >= 2"),
    _where("a < 3", "a <= 2"),
    _where("not (a < 2)", "a > 1"),
    _where("a between 1 and 5 and a >= 1", "a between 1 and 5"),
    _where("a between 3 and 3", "a = 3"),
    _where("a >= 2 and a <= 2", "a = 2"),
    _where("a = 3 and a > 1", "a = 3"),
    _where("a in (1, 2, 3) and a > 1", "a in (2, 3)"),
    _where("a in (1, 2) and a in (2, 3)", "a = 2"),
    _where("a in (1, 2, 3) and a <> 2", "a in (1, 3)"),
    _where("a > 2 and a <> 1", "a > 2"),
    _where("a > 2 or a = 3", "a > 2"),
    _where("a > 3 and a < 2", "false"),
    _where("a = 1 and a = 2", "false"),
    _where("a is null and a > 1", "false"),
    ("select id from (select * from t where a > 1) where a > 2", "select id from t where a > 2"),
    ("select cast(a as int) as a from t", "select a from t"),
    _where("cast(a as int) > 1", "a > 1"),
    _where("a > cast('1' as int)", "a > 1"),
    _where("a > cast(1 as int)", "a > 1"),
    _where("a > 1L", "a > 1"),
    _where("a in (cast(1 as bigint), 2)", "a in (1, 2)"),
    _where("b = cast('2' as string)", "b = '2'"),
    ("select cast(cast(a as bigint) as bigint) as a from t", "select cast(a as bigint) as a from t"),
    ("select bigint(a) as a from t", "select cast(a as bigint) as a from t"),
    ("select cast(flag as boolean) as f from t", "select flag as f from t"),
    ("select cast('7' as int) as x, id from t", "select 7 as x, id from t"),
]
_GROUPS: list[Pair] = [
    (
        "select k, n from (select k, count(*) as n from t group by k) where k > 1",
        "select k, count(*) as n from t where k > 1 group by k",
    ),
    ("select k, count(*) as n from t group by k having k > 1", "select k, count(*) as n from t where k > 1 group by k"),
    (
        "select k, sum(a) as n from t group by k having k = 1 and sum(a) > 1",
        "select k, sum(a) as n from t where k = 1 group by k having sum(a) > 1",
    ),
    ("select * from (select distinct k, a from t) where k > 1", "select distinct k, a from t where k > 1"),
    ("select k, a from (select distinct k, a from t) where k + a > 1", "select distinct k, a from t where k + a > 1"),
    (
        "select k, a, n from (select k, a, count(*) as n from t where id > 1 group by k, a) where k > 1 and n > 1",
        "select k, a, count(*) as n from t where k > 1 and id > 1 group by k, a having count(*) > 1",
    ),
    (
        "select x, n from (select k + 1 as x, count(*) as n from t group by k + 1) where x > 1",
        "select k + 1 as x, count(*) as n from t where k + 1 > 1 group by k + 1",
    ),
    (
        "select k, max(a) as m from t group by k having k is not null",
        "select k, max(a) as m from t where k is not null group by k",
    ),
    (
        "select a from (select a from t union all select v from u) where a > 1",
        "select a from t where a > 1 union all select v from u where v > 1",
    ),
    (
        "with c as (select a, k from t union all select a, v from u) select a, k from c where k > 1",
        "select a, k from t where k > 1 union all select a, v from u where v > 1",
    ),
    (
        "select a + 1 as x from (select a from t union all select v from u)",
        "select a + 1 as x from t union all select v + 1 from u",
    ),
    (
        "select a + k as x from (select a, k from t union all select a, k from u) where a > k",
        "select a + k as x from t where a > k union all select a + k from u where a > k",
    ),
    (
        "select x from (select a as x from t union all select a from u union all select v from u) where x is null",
        "select a as x from t where a is null union all select a from u where a is null union all select v from u where v is null",
    ),
]
_ON = "on t.a = u.a"
_JOINS: list[Pair] = [
    (f"select t.id from t left join u {_ON} where u.v > 1", f"select t.id from t join u {_ON} where u.v > 1"),
    (
        f"select t.id from t left join u {_ON} where u.v = 7 or u.v = 10",
        f"select t.id from t join u {_ON} where u.v in (7, 10)",
    ),
    (f"select t.id, u.v from t left join u {_ON} where u.a is not null", f"select t.id, u.v from t join u {_ON}"),
    (f"select t.id from t left join u {_ON} where not u.v = 7", f"select t.id from t join u {_ON} where u.v <> 7"),
    (
        f"select t.id from t left join u {_ON} where u.v between 1 and 9",
        f"select t.id from t join u {_ON} where u.v between 1 and 9",
    ),
    (
        f"select t.id from t left join u {_ON} where u.v + t.id > 3",
        f"select t.id from t join u {_ON} where u.v + t.id > 3",
    ),
    (f"select t.id from t left join u {_ON} where w like '1%'", f"select t.id from t join u {_ON} where w like '1%'"),
    (
        f"select t.id from t left join u {_ON} where u.k = t.k and t.id > 1",
        f"select t.id from t join u {_ON} where u.k = t.k and t.id > 1",
    ),
    (f"select t.id from t right join u {_ON} where t.k = 1", f"select t.id from t join u {_ON} where t.k = 1"),
    (f"select t.id from t full join u {_ON} where t.k = 1", f"select t.id from t left join u {_ON} where t.k = 1"),
    (
        f"select t.id, v from t full join u {_ON} where u.v = 7",
        f"select t.id, v from t right join u {_ON} where u.v = 7",
    ),
    (
        f"select t.id from t full join u {_ON} where t.k = 1 and u.v > 1",
        f"select t.id from t join u {_ON} where t.k = 1 and u.v > 1",
    ),
    (
        f"select t.id from t left join u {_ON} join u as z on z.k = u.k",
        f"select t.id from t join u {_ON} join u as z on z.k = u.k",
    ),
    ("select t.id from t left join (select k, count(*) as n from u group by k) q on t.k = q.k", "select t.id from t"),
    ("select t.id from t left join (select distinct k from u) q on t.k = q.k", "select t.id from t"),
    (
        "select t.id from t left join (select k, a, max(v) as m from u group by k, a) q on t.k = q.k and t.a = q.a",
        "select t.id from t",
    ),
    ("select t.id from t left join (select max(v) as m from u) q on true", "select t.id from t"),
    ("select t.id from t left join (select k, max(v) as m from u group by k) q on q.k = 1", "select t.id from t"),
]
_OTHERS: list[Pair] = [
    ("select a from t order by a, id, k limit 2 + 3", "select a from t order by a, id, k limit 5"),
    ("select a, id from t order by 2, 1 limit 10 - 7", "select a, id from t order by id, a limit 3"),
    ("select rank() over (order by id) as n, lag(a) over (order by id) as x from t", "select rank() over (order by id) as n, lag(a, 1) over (order by id) as x from t"),
    ("select lead(a) over (order by id) as x from t", "select lead(a, 1, null) over (order by id) as x from t"),
    ("from t |> where a > 1 |> where k > 1 |> select id", "select id from t where k > 1 and a > 1"),
    ("from t |> aggregate count_if(a > 1) as n group by k", "select k, count(case when a > 1 then 1 end) as n from t group by k"),
    ("from t |> extend a + 1 as x |> where x > 2 |> select x", "select a + 1 as x from t where a + 1 > 2"),
    ("select a | 4 & 2 as x from t", "select a | (4 & 2) as x from t"),
]  # fmt: skip
HARMLESS = [*_counts(), *_conditions(), *_RANGES, *_GROUPS, *_JOINS, *_OTHERS]


def _miscounts() -> list[Pair]:
    results = []
    for p in ("a > 1", "id > 3"):
        results += [
            _by(f"count_if({p})", f"sum(case when {p} then 1 end)"), _by(f"count_if({p})", f"count({p})"),
            _by(f"count_if({p})", f"count(case when {p} then 1 else 0 end)"), _by(f"count_if({p})", f"count_if(not ({p}))"),
            _by(f"count(*) filter (where {p})", f"count(flag) filter (where {p})"),
            _by(f"sum(id) filter (where {p})", f"sum(case when {p} then id else 0 end)"),
            _by(f"bool_or({p})", f"bool_and({p})"),
            _by(f"count_if({p}) > 0", f"count_if({p}) > 1"), _by(f"count(distinct id) filter (where {p})", "count(distinct id)"),
            _by(f"max(case when {p} then 1 else 0 end) = 1", f"min(case when {p} then 1 else 0 end) = 1"),
        ]  # fmt: skip
    return results


def _misread() -> list[Pair]:
    results = []
    for p in ("a > 1", "flag", "a + k > 2", "k <> 1"):
        results += [
            _where(f"({p}) is not false", p), _where(f"not coalesce({p}, false)", f"not ({p})"), _where(f"coalesce({p}, true)", p),
            _where(f"({p}) is not true", f"not ({p})"), _all(f"({p}) = true", f"({p}) is true"), _all(f"coalesce({p}, false)", f"({p})"),
            _where(f"({p}) is false", f"({p}) is not true"), _all(f"if({p}, true, false)", f"({p})"), _where(f"not ({p})", f"({p}) <=> false or ({p}) is null"),
            _where("(id > 3 and a = 2) or (id > 3 and not a = 2)", "id > 3"),
            _where(f"({p}) or not ({p})", "true"), _where(f"({p}) and (({p}) or id > 3)", "id > 3"), _where(f"({p}) or (({p}) and id > 3)", "id > 3"),
            _where(f"(({p}) or id > 3) and k = 1", f"({p}) or (id > 3 and k = 1)"), _all("(k <> 1) and a is not null", "(k <> 1) and true"),
            _where(f"case when {p} then id > 3 else true end", f"({p}) and id > 3"), _where(f"case when {p} then id > 3 end", "id > 3"),
        ]  # fmt: skip
    return results


_OUT_OF_RANGE: list[Pair] = [
    _where("a > 1", "a >= 1"), _where("c > 0", "c >= 1"), _where("c > 0.4", "c >= 1"), _where("a > 1 or a > 2", "a > 2"), _where("a > 1 and a > 2", "a > 1"),
    _where("a > 1 or a < 3", "true"), _where("a > 1 or a is not null", "a > 1"), _where("a is not null or k > 1", "k > 1"), _where("a is not null and k > 1", "k > 1"),
    _where("coalesce(a, 5) > 1 and a is not null", "coalesce(a, 5) > 1"), _where("(a > 1 or k > 1) and a is not null", "a > 1 or k > 1"),
    _where("a is distinct from 1 and a is not null", "a is distinct from 1"), _where("a in (1, 2) or a in (2, 3)", "a = 2"), _where("a in (1, 2, 3) and a > 1", "a in (1, 2, 3)"),
    _where("a not in (1, 2) and a not in (2, 3)", "a not in (2)"), _where("a <> 1 or a <> 2", "true"), _where("a = 1 and k = 1", "a = 1 or k = 1"),
    _where("a between 1 and 3", "a > 1 and a < 3"), _where("a not between 1 and 3", "a < 1"), ("select cast(a as string) as a from t", "select a from t"),
    ("select cast(c as int) as c from t where c < 3", "select c from t where c < 3"), _where("cast(c as int) > 0 and c < 9", "c > 0 and c < 9"),
    _where("b > '2'", "b > 2"), _where("b = '10'", "b = '1'"), ("select cast(7 as string) as x from t", "select 7 as x from t"),
    ("select a % 2 as x from t", "select a & 2 as x from t"), ("select a | 4 & 2 as x from t", "select (a | 4) & 2 as x from t"),
    ("select a ^ k | 1 as x from t", "select a ^ (k | 1) as x from t"), ("select a << 1 + k as x from t", "select (a << 1) + k as x from t"),
    ("select flag <> (a > 1) < (k > 1) as x from t", "select flag <> ((a > 1) < (k > 1)) as x from t"), ("select - a & 3 as x from t", "select - (a & 3) as x from t"),
    ("select -a as id from t order by id limit 2", "select -a as id from t order by t.id limit 2"), ("select - id as id from t order by id limit 2", "select -id as id from t order by -id limit 2"),
    ("select k, -sum(a) as a from t group by k having a > -3", "select k, -sum(a) as a from t group by k having sum(a) > -3"),
    ("from t |> select distinct k", "from t |> select k"), ("from t |> order by id |> limit 5 |> where a > 2", "from t |> where a > 2 |> order by id |> limit 5"),
    ("from t |> set a = a + 1, k = a |> select k", "from t |> set k = a, a = a + 1 |> select k"), ("from t |> extend a + 1 as x |> drop a", "from t |> drop k |> extend a + 1 as x |> drop a"),
    ("from t |> aggregate count(*) as n group by k", "from t |> aggregate count(a) as n group by k"), ("from t |> select a |> union all (select a from u)", "from t |> select a |> union (select a from u)"),
    ("select a from t union select a from u intersect select k from u", "(select a from t union select a from u) intersect select k from u"),
    ("select a from t except select a from u union all select k from u", "select a from t except (select a from u union all select k from u)"),
    ("select a from t order by a, id limit 5", "select a from t order by a, id limit 5 + 1"), ("select a from t order by id limit 3", "select a from t order by id limit 3 offset 1"),
    ("select id, lag(a) over (order by id, a) as x from t", "select id, lag(a, 2) over (order by id, a) as x from t"), ("select id, lag(a) over (order by id) as x from t", "select id, lag(a, 1, 0) over (order by id) as x from t"),
    ("select id, lead(a) over (order by id) as x from t", "select id, lag(a) over (order by id) as x from t"),
]  # fmt: skip
_MISGROUPED: list[Pair] = [
    ("select k, n from (select k, count(*) as n from t group by k) where n > 1", "select k, count(*) as n from t where a > 1 group by k"),
    ("select k, count(*) as n from t group by k having max(a) > 2", "select k, count(*) as n from t where a > 2 group by k"),
    ("select count(*) as n from t having count(*) > 100", "select count(*) as n from t where id > 100"),
    ("select count(*) as n from (select * from t where k > 9)", "select n from (select count(*) as n from t) where 1 > 9"),
    ("select k, count(*) as n from t where a > 1 group by k", "select k, count(*) as n from t group by k"),
    ("select k, count(*) as n from t group by rollup (k) having k > 1", "select k, count(*) as n from t where k > 1 group by rollup (k)"),
    ("select k, count(*) as n from t group by cube (k) having k is not null", "select k, count(*) as n from t where k is not null group by cube (k)"),
    ("select distinct k from (select k, a from t) where a > 1", "select distinct k from t"),
    ("select k from (select k, row_number() over (order by id, a) as n from t) where n > 2 and k > 1", "select k from (select k, row_number() over (order by id, a) as n from t where k > 1) where n > 2"),
    ("select k from (select k, count(*) over () as n from t) where n > 5 and k > 1", "select k from (select k, count(*) over () as n from t where k > 1) where n > 5"),
    ("select a from (select a from t union all select v from u) where a > 1", "select a from t where a > 1 union all select v from u"),
    ("select a from (select a from t union all select v from u) where a > 1", "select a from t where a > 1 union all select v from u where a > 1"),
    ("select a from (select a, k from t union all select v, a from u) where k > 1", "select a from t where k > 1 union all select v from u where k > 1"),
    ("select a + 1 as x from (select a from t union select v from u)", "select a + 1 as x from t union all select v + 1 from u"),
    ("select a from (select a from t except select a from u) where a > 1", "select a from t where a > 1"),
    ("select x from (select a as x from t where k > 1 group by a) where x > 1", "select a as x from t where a > 1 group by a"),
]  # fmt: skip
_MISJOINED: list[Pair] = [
    (f"select t.id from t left join u {_ON} where {one}", f"select t.id from t join u {_ON} where {one}")
    for one in (
        "u.v is null", "u.v > 1 or t.id > 1", "coalesce(u.v, 5) > 1", "not (u.v > 1 and t.id > 1)", "u.v <=> null", "t.id > 1", "u.v is distinct from 7",
        "not exists (select 1 from u as z where z.v = u.v)", "(u.v > 1) is not true", "u.v not in (select v from u where v > 99)", "if(u.v > 1, true, true)",
        "nvl(u.w, 'x') = 'x'", "u.v > 1 or u.v is null", "case when u.v > 1 then true else true end",
    )
] + [
    (f"select t.id from t left join u {_ON} and u.v > 1", f"select t.id from t left join u {_ON} where u.v > 1"),
    (f"select t.id from t left join u {_ON} and t.k = 1", f"select t.id from t join u {_ON} and t.k = 1"),
    (f"select t.id, v from t full join u {_ON} where u.v = 7", f"select t.id, v from t left join u {_ON} where u.v = 7"),
    (f"select t.id, v from t full join u {_ON} where t.k = 3", f"select t.id, v from t right join u {_ON} where t.k = 3"),
    (f"select t.id, u.v from t full join u {_ON} where t.k = 1 or u.v = 7", f"select t.id, u.v from t join u {_ON} where t.k = 1 or u.v = 7"),
    (f"select t.id from t left join u {_ON} right join u as z on z.k = u.k", f"select t.id from t join u {_ON} right join u as z on z.k = u.k where t.id > 1"),
    (f"select z.v from t left join u {_ON} full join u as z on z.k <=> u.v where z.v > 1", f"select z.v from t join u {_ON} full join u as z on z.k <=> u.v where z.v > 1"),
    (f"select t.id from t left join u {_ON} left join u as z on z.k = u.k", f"select t.id from t join u {_ON} left join u as z on z.k = u.k"),
    ("select t.id from t left join (select k, a, count(*) as n from u group by k, a) q on t.k = q.k", "select t.id from t"),
    ("select t.id from t left join (select distinct k, a from u) q on t.k = q.k", "select t.id from t"),
    ("select t.id from t left join (select k from u) q on t.k = q.k", "select t.id from t"),
    ("select t.id from t left join (select w, count(*) as n from (values ('1'), ('01')) as x(w) group by w) q on t.k = q.w", "select t.id from t"),
    ("select t.id from t left join (select k, count(*) as n from u group by k) q on t.k > q.k", "select t.id from t"),
    ("select t.id from t left join (select k, count(*) as n from u group by k) q on t.k = q.n", "select t.id from t"),
    ("select t.id from t left join (select k, count(*) as n from u group by k) q on q.n = 2", "select t.id from t"),
    ("select t.id from t join (select k, count(*) as n from u group by k) q on t.k = q.k", "select t.id from t"),
    ("select t.id from t left join (select k, count(*) as n from u group by rollup (k)) q on t.k <=> q.k", "select t.id from t"),
    ("select t.id from t left join (select k, max(v) as m from u group by k) q on t.k = q.k or t.a = q.m", "select t.id from t"),
    ("select t.id, q.n from t left join (select k, count(*) as n from u group by k) q on t.k = q.k", "select t.id, q.n from t left join (select k, count(*) as n from u group by k) q on t.a = q.k"),
    ("select t.id from t left join (select k from u group by k union all select 1) q on t.k = q.k", "select t.id from t"),
    ("select t.id from t full join (select distinct k from u) q on t.k = q.k", "select t.id from t"),
]  # fmt: skip
NEAR_MISSES = [
    pair for pair in (*_miscounts(), *_misread(), *_OUT_OF_RANGE, *_MISGROUPED, *_MISJOINED) if "--" not in pair[1]
]
__all__ = ["HARMLESS", "NEAR_MISSES", "TABLES"]
