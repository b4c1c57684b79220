"""Pairs written from the issue's words alone, before the rules were looked at, over the tables of `oracle/draw.py`: what
share of them is recognised says what the rules do for queries that nobody tuned them for. Spark is asked about every one.
"""

Pair = tuple[str, str]
_TOTAL = "order by id, a, k, b, c, flag"


def _within(template: str, *pairs: Pair) -> list[Pair]:
    return [(template.format(one), template.format(other)) for one, other in pairs]


HARMLESS: dict[str, list[Pair]] = {
    "counts and aggregates of some rows": [
        *_within(
            "select k, {} as n from t group by k",
            ("count_if(a > 2 and id is not null)", "sum(case when a > 2 and id is not null then 1 else 0 end)"),
            ("count(*) filter (where flag)", "count(case when flag then 0 end)"),
            ("sum(case when flag then a else null end)", "sum(a) filter (where flag)"),
            ("avg(if(flag, a, null))", "avg(a) filter (where flag)"),
            ("count(case flag when true then 1 end)", "count_if(flag)"),
            ("max(case when flag then 1 else 0 end) = 1", "coalesce(bool_or(flag), false)"),
            ("some(flag)", "bool_or(flag)"),
            ("not bool_and(not flag)", "bool_or(flag)"),
            ("count_if(not flag)", "count(*) filter (where flag = false)"),
            ("min(b) filter (where a in (1, 2))", "min(case when a = 1 or a = 2 then b end)"),
            ("count(distinct if(flag, a, null))", "count(distinct a) filter (where flag is true)"),
        ),
        (
            "select k from t group by k having count_if(flag) > 0",
            "select k from t group by k having bool_or(flag)",
        ),
    ],
    "booleans": _within(
        "select id from t where {}",
        ("(a > 1) = true and flag is true", "a > 1 and flag"),
        ("flag = false or a > 1", "not flag or a > 1"),
        ("a > 1 and (a > 1 or flag)", "a > 1"),
        ("(flag and a > 1) or flag", "flag"),
        ("flag is not null and flag", "flag"),
        ("a = 3 and a is not null", "a = 3"),
        ("b in ('1', '2') and b is not null", "b in ('2', '1')"),
        ("a is not null and k is not null and a < k", "a < k"),
        ("not (a > 1 or k > 1)", "a <= 1 and k <= 1"),
        ("if(flag, a > 1, false)", "flag and a > 1"),
        ("not nvl(flag, true)", "not flag"),
        ("(a > 1 or false) and true", "a > 1"),
    ),
    "ranges": _within(
        "select id from t where {}",
        ("a >= 1 and a > 0", "a >= 1"),
        ("a > 0 and a <= 3 and a < 10", "a between 1 and 3"),
        ("a between 1 and 5 and a between 3 and 9", "a between 3 and 5"),
        ("a in (1, 2, 5) and a >= 2", "a in (2, 5)"),
        ("a = 2 or a = 5 or a in (2, 3)", "a in (2, 3, 5)"),
        ("not a between 1 and 3", "a < 1 or a > 3"),
        ("a > 2 or a > 1 or a > 5", "a > 1"),
        ("a not in (1) and a <> 2", "a not in (1, 2)"),
        ("2 <= a and 4 >= a", "a between 2 and 4"),
        ("c > 1 and c > 0.5", "c > 1"),
    ),
    "casts": [
        *_within(
            "select id, {} as x from t",
            ("cast(b as string)", "b"),
            ("cast(id as int) + 1", "id + 1"),
            ("string(a)", "cast(a as string)"),
            ("cast(cast(a as int) as bigint)", "a::bigint"),
        ),
        *_within(
            "select id from t where {}",
            ("a = cast('3' as int)", "a = 3"),
            ("c > cast(1 as double)", "c > 1"),
            ("a > int('1')", "a > 1"),
        ),
    ],
    "filters through groups and unions": [
        (
            "select * from (select k, a, sum(id) as s from t group by k, a) where a = 2 and k = 1",
            "select k, a, sum(id) as s from t where a = 2 and k = 1 group by k, a",
        ),
        (
            "select k, count(*) as n from t group by k having k in (1, 2) and count(*) > 1",
            "select k, count(*) as n from t where k in (1, 2) group by k having count(*) > 1",
        ),
        (
            "with g as (select k, max(a) as m from t group by k) select m from g where k > 1",
            "select max(a) as m from t where k > 1 group by k",
        ),
        (
            "select x from (select a as x, 't' as src from t union all select v, 'u' from u) where x > 2",
            "select a as x from t where a > 2 union all select v from u where v > 2",
        ),
        (
            "from t |> aggregate sum(a) as s group by k |> where k > 1",
            "from t |> where k > 1 |> aggregate sum(a) as s group by k",
        ),
        (
            "select k, count(*) as n from (select k from t union all select k from u) group by k having k = 1",
            "select k, count(*) as n from (select k from t where k = 1 union all select k from u where k = 1) group by k",
        ),
        (
            "select src, x from (select 't' as src, a as x from t union all select 'u', v from u) where src = 't'",
            "select 't' as src, a as x from t",
        ),
    ],
    "a left join whose missing rows are filtered away": [
        *_within(
            "select t.id, u.w from t {}",
            ("left join u on t.k = u.k where u.w = '1'", "join u on t.k = u.k where u.w = '1'"),
            ("left join u on t.k = u.k where u.v in (7, 10)", "join u on t.k = u.k and u.v in (7, 10)"),
            ("left join u on t.k = u.k where u.v = t.a", "join u on t.k = u.k and u.v = t.a"),
            (
                "left join u on t.a = u.a where u.k > 1 and t.flag",
                "join u on t.a = u.a and u.k > 1 where t.flag",
            ),
            ("left join u on t.a = u.a where not (u.v <= 1)", "join u on t.a = u.a where u.v > 1"),
            ("left join u on t.a = u.a where length(u.w) = 1", "join u on t.a = u.a where length(u.w) = 1"),
            ("left join u on t.a = u.a where (u.v = 7) is true", "join u on t.a = u.a where u.v = 7"),
        ),
    ],
    "a left join that meets one row at most": [
        (
            "select t.a from t left join (select a, sum(v) as s from u group by a) as g on g.a = t.a",
            "select a from t",
        ),
        (
            "select t.a from t left join (select distinct a, k from u) as g on g.k = t.k and g.a = t.id",
            "select a from t",
        ),
        (
            "select count(*) as n from t left join (select k, min(v) as m from u group by k) as q on q.k = t.k",
            "select count(*) as n from t",
        ),
        (
            "select t.k, sum(t.a) as s from t left join (select max(v) as m from u) as q on true group by t.k",
            "select k, sum(a) as s from t group by k",
        ),
        (
            "with g as (select k, count(*) as n from u where v > 1 group by k) select t.id from t left join g on g.k = t.k and g.n > 1",
            "select id from t",
        ),
        (
            "select t.id from t left join (select k from u group by k having count(*) > 1) as g on t.k = g.k",
            "select id from t",
        ),
        (
            "select t.id from t left join (select k, v from (select k, v, row_number() over (partition by k order by v) as r "
            "from u) where r = 1) as q on q.k = t.k",
            "select id from t",
        ),
    ],
    "literals": [
        (f"select id from t {_TOTAL} limit 5 + 5", f"select id from t {_TOTAL} limit 10"),
        (f"select id from t {_TOTAL} limit 2 * 3", f"select id from t {_TOTAL} limit 6"),
        (f"select id from t {_TOTAL} limit 4 offset 1 + 1", f"select id from t {_TOTAL} limit 4 offset 2"),
        (f"from t |> {_TOTAL} |> limit 4 - 1 |> select id", f"from t |> {_TOTAL} |> limit 3 |> select id"),
        *_within(
            f"select id, {{}} over ({_TOTAL}) as x from t",
            ("lag(a, 1)", "lag(a)"),
            ("lag(a, 1, null)", "lag(a)"),
            ("lead(b)", "lead(b, 1)"),
        ),
        (
            f"select id, lag(a) over w as x from t window w as ({_TOTAL})",
            f"select id, lag(a, 1) over ({_TOTAL}) as x from t",
        ),
    ],
}

NEAR: dict[str, list[Pair]] = {
    "counts and aggregates of some rows": [
        *_within(
            "select k, {} as n from t group by k",
            ("count_if(a > 1)", "sum(case when a > 1 then 1 end)"),
            ("count(*) filter (where flag)", "count(flag)"),
            ("sum(case when flag then a else 0 end)", "sum(a) filter (where flag)"),
            ("avg(if(flag, a, 0))", "avg(a) filter (where flag)"),
            ("count(case flag when false then 1 end)", "count_if(flag)"),
            ("max(case when flag then 1 else 0 end) = 1", "bool_and(flag)"),
            ("some(flag)", "coalesce(bool_or(flag), false)"),
            ("bool_and(not flag)", "bool_or(flag)"),
            ("count_if(not flag)", "count(*) filter (where flag is not true)"),
            ("min(b) filter (where a in (1, 2))", "min(case when a = 1 or a = 2 then b else '' end)"),
            ("count(distinct if(flag, a, null))", "count(a) filter (where flag)"),
            ("count_if(flag is null)", "count_if(flag)"),
        ),
        ("select k from t group by k having count_if(flag) > 0", "select k from t group by k having bool_and(flag)"),
        ("select k from t group by k having count_if(flag) >= 0", "select k from t group by k having bool_or(flag)"),
    ],
    "booleans": _within(
        "select id from t where {}",
        ("(a > 1) = true or flag is true", "a > 1 and flag"),
        ("flag is not true or a > 5", "not flag or a > 5"),
        ("a > 1 and (k > 1 or flag)", "a > 1"),
        ("(flag and a > 1) or not flag", "flag"),
        ("flag is not null", "flag"),
        ("a <=> null", "a = null"),
        ("b not in ('1', '2') or b is null", "b not in ('2', '1')"),
        ("a is not null and a <=> k", "a <=> k or a is null"),
        ("not (a > 1 or k > 1)", "a <= 1 or k <= 1"),
        ("if(flag, a > 1, true)", "flag and a > 1"),
        ("not nvl(flag, false)", "not flag"),
        ("(a > 1 or true) and true", "a > 1"),
    ),
    "ranges": _within(
        "select id from t where {}",
        ("a >= 1 and a > 0", "a > 1"),
        ("c > 0 and c <= 3", "c between 1 and 3"),
        ("a between 1 and 5 and a between 3 and 9", "a between 1 and 9"),
        ("a in (1, 2, 5) or a >= 2", "a in (2, 5)"),
        ("a = 2 or a = 5 and a in (2, 3)", "a in (2, 3, 5)"),
        ("not a between 1 and 3", "a <= 1 or a >= 3"),
        ("a > 2 and a > 1", "a > 1"),
        ("a not in (1) or a <> 2", "a not in (1, 2)"),
        ("2 <= a or 4 >= a", "a between 2 and 4"),
        ("b > '3'", "b > 3"),
    ),
    "casts": [
        *_within(
            "select id, {} as x from t",
            ("cast(b as int)", "b"),
            ("cast(c + 0.1 as float)", "c + 0.1"),
            ("cast(a as string)", "a"),
            ("cast(cast(a as string) as string)", "cast(cast(a as double) as string)"),
        ),
        *_within(
            "select id from t where {}",
            ("c = cast('0.5' as double)", "c = cast('0.5' as decimal(1, 0))"),
            ("c > cast(0.5 as int)", "c > 0.5"),
        ),
    ],
    "filters through groups and unions": [
        (
            "select * from (select k, a, sum(id) as s from t group by k, a) where s = 2",
            "select k, a, sum(id) as s from t where id = 2 group by k, a",
        ),
        (
            "select k, count(*) as n from t group by k having k in (1, 2) or count(*) > 1",
            "select k, count(*) as n from t where k in (1, 2) group by k having count(*) > 1",
        ),
        (
            "with g as (select k, max(a) as m from t group by k) select m from g where m > 2",
            "select max(a) as m from t where a > 0 group by k having count(*) > 1",
        ),
        (
            "select x from (select a as x, k as y from t union all select k, v from u) where y > 1",
            "select a as x from t where k > 1 union all select k from u where k > 1",
        ),
        (
            "from t |> aggregate sum(a) as a group by k |> where a > 2",
            "from t |> where a > 2 |> aggregate sum(a) as a group by k",
        ),
        (
            "select k, count(*) as n from (select k from t union select k from u) group by k having k = 1",
            "select k, count(*) as n from (select k from t where k = 1 union all select k from u where k = 1) group by k",
        ),
        (
            "select src, x from (select 't' as src, a as x from t union all select 'u', v from u) where src = 'u'",
            "select 'u' as src, a as x from t",
        ),
        (
            "select x, n from (select k as x, count(*) as n from t group by k with rollup) where x is null",
            "select k as x, count(*) as n from t where k is null group by k",
        ),
    ],
    "a left join whose missing rows stay": _within(
        "select t.id, u.w from t {}",
        ("left join u on t.k = u.k where u.w is null", "join u on t.k = u.k where u.w is null"),
        ("left join u on t.k = u.k and u.v in (7, 10)", "join u on t.k = u.k and u.v in (7, 10)"),
        ("left join u on t.a = u.a where u.v <=> t.k", "join u on t.a = u.a where u.v <=> t.k"),
        ("left join u on t.a = u.a where u.k > 1 or t.flag", "join u on t.a = u.a where u.k > 1 or t.flag"),
        ("left join u on t.a = u.a where (u.v <= 1) is not true", "join u on t.a = u.a where (u.v <= 1) is not true"),
        (
            "left join u on t.a = u.a where coalesce(length(u.w), 1) = 1",
            "join u on t.a = u.a where coalesce(length(u.w), 1) = 1",
        ),
        (
            "left join u on t.a = u.a where concat_ws('-', u.w, 'x') <> ''",
            "join u on t.a = u.a where concat_ws('-', u.w, 'x') <> ''",
        ),
    ),
    "a left join that meets several rows": [
        (
            "select t.a from t left join (select a, k, sum(v) as s from u group by a, k) as g on g.k = t.k",
            "select a from t",
        ),
        ("select t.a from t left join (select distinct a, k from u) as g on g.k = t.k", "select a from t"),
        (
            "select count(*) as n from t left join (select k, v from u) as q on q.k = t.k",
            "select count(*) as n from t",
        ),
        (
            "select t.k, sum(t.a) as s from t left join (select v as m from u) as q on true group by t.k",
            "select k, sum(a) as s from t group by k",
        ),
        (
            "select t.id from t join (select k from u group by k) as g on t.k = g.k",
            "select id from t",
        ),
        (
            "select t.id from t left join (select k, v from (select k, v, rank() over (partition by k order by 1) as r "
            "from u) where r = 1) as q on q.k = t.k",
            "select id from t",
        ),
        (
            "select t.id from t left join (select k, v from (select k, v, row_number() over (partition by k order by v) as r "
            "from u) where r <= 2) as q on q.k = t.k",
            "select id from t",
        ),
    ],
    "literals": [
        (f"select id from t {_TOTAL} limit 2 + 2", f"select id from t {_TOTAL} limit 2"),
        (f"select id from t {_TOTAL} limit 4 offset 1 + 1", f"select id from t {_TOTAL} limit 4 offset 1"),
        *_within(
            f"select id, {{}} over ({_TOTAL}) as x from t",
            ("lag(a, 1)", "lag(a, 2)"),
            ("lag(a, 1, 0)", "lag(a)"),
            ("lead(b)", "lag(b)"),
            ("lag(a, 0)", "lag(a)"),
        ),
        (
            f"select id, lag(a) over w as x from t window w as ({_TOTAL})",
            f"select id, lag(a) over (partition by k {_TOTAL}) as x from t",
        ),
    ],
}
