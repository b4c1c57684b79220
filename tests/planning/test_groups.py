"""Changed aggregates computed from stored states: reread, regrouped, completed; and the cases where that is impossible.

The judge of values is DuckDB over the rows themselves.
"""

import random
from dataclasses import replace

import duckdb
import pytest
import sqlglot

from console.model.live import Live, TableState
from console.model.pipeline import Pipeline
from console.model.plan import Plan
from console.model.schema import Column
from console.model.step import Backfill, Validate
from tests.planning.world import (
    DAYS,
    HOURLY,
    REQUESTS,
    actions,
    columns,
    live,
    node,
    pipeline,
    planned,
    promoted,
    stats,
    with_sql,
    with_table,
)

pytestmark = pytest.mark.slow  # plans by the dozen

SQL = """SELECT date_trunc('HOUR', ts) AS hour, day, host, count(*) AS hits, max(status) AS worst, avg(ms) AS mean,
  approx_percentile(ms, 0.5) AS p50, sum(bytes) AS bytes FROM requests WHERE ip IS NOT NULL GROUP BY ALL"""
TYPES = {
    "hour": "timestamp", "day": "date", "host": "string", "hits": "bigint", "worst": "int", "mean": "double",
    "p50": "double", "bytes": "bigint",
}  # fmt: skip
NAME = "requests_by_hour"


def aggregate(sql: str = SQL, time: str = "hour", defaults: dict[str, str] | None = None, **types: str) -> Pipeline:
    shown = tuple(replace(c, default=(defaults or {}).get(c.name)) for c in columns(**{**TYPES, **types}) if c.type)
    table = replace(HOURLY, columns=shown, time=time)
    return with_sql(with_table(replace(pipeline(), copies=(), sinks=(), endpoints=()), table), "count_hours", sql)


def edited(old: str, new: str, time: str = "hour", defaults: dict[str, str] | None = None, **types: str) -> Pipeline:
    assert old in SQL
    return aggregate(SQL.replace(old, new), time, defaults, **types)


def forgetful(was: Live, days: int = 7) -> Live:
    """The same region where the source has lost its first days."""
    tables = (
        stats(s.name, s.path, s.columns, DAYS[days:]) if s.name == "requests" else s
        for s in was.stats
    )  # fmt: skip
    return replace(was, stats=tuple(tables))


def backfills(done: Plan) -> list[Backfill]:
    return [step for step in done.steps if isinstance(step, Backfill)]


def state(done: Plan) -> TableState:
    table = done.release.table(NAME)
    assert table is not None
    return table


# -- nothing moves


FINAL = {
    "another fraction of the same sketch": edited("0.5", "0.9"),
    "the mean as what it is made of": edited("avg(ms)", "sum(ms) / nullif(count(ms), 0)"),
    "a cast of the result": edited("count(*)", "CAST(count(*) AS INT)", hits="int"),
    "arithmetic over a state": edited("sum(bytes)", "coalesce(sum(bytes), 0) / 1024", bytes="double"),
    "a wider declared type": aggregate(worst="bigint"),
    "a column of states that are there": edited("sum(bytes) AS bytes", "sum(bytes) AS bytes, sum(bytes) / count(*) AS each", each="double"),
    "two columns exchanged": edited("count(*) AS hits, max(status) AS worst", "max(status) AS hits, count(*) AS worst", hits="int", worst="bigint"),
}  # fmt: skip


@pytest.mark.parametrize("case", FINAL)
def test_where_only_what_is_read_of_the_states_changes_no_byte_moves(case: str) -> None:
    was = live(aggregate())
    done = planned(FINAL[case], forgetful(was))
    assert actions(done) == {NAME: "metadata"}
    assert (done.refusals, done.price.bytes, backfills(done)) == ((), 0, [])
    again = planned(FINAL[case], promoted(done, was))
    assert actions(again) == {}


def test_hits_of_int_become_bigint_although_a_forward_query_stands_there() -> None:
    """C101 asked for a forward query, C107 for its removal: the states are bigint in both versions."""
    was = forgetful(live(edited("count(*)", "CAST(count(*) AS INT)", hits="int")))
    wanted = aggregate()
    for query in ("", "*, CAST(hits AS BIGINT) AS hits"):
        table = wanted.table(NAME)
        assert table is not None
        done = planned(with_table(wanted, replace(table, forward_query=query)), was)
        assert (actions(done), done.price.bytes, done.refusals) == ({NAME: "metadata"}, 0, ())
        assert [p.code for p in done.problems] == (["C107"] if query else [])


def test_a_state_is_taken_by_what_it_means_and_not_by_its_name() -> None:
    """`hits` counts errors under the name `errors`: cast, it must not be read from the stored `hits`, which counts all rows."""
    first = SQL.replace("max(status) AS worst", "count_if(status > 499) AS errors")
    types = {**{k: v for k, v in TYPES.items() if k != "worst"}, "errors": "bigint"}

    def called(total: str, errors: str, kind: str = "bigint") -> Pipeline:
        sql = first.replace("AS hits", f"AS {total}").replace("AS errors", f"AS {errors}")
        named = {{"hits": total, "errors": errors}.get(k, k): v for k, v in types.items()}
        table = replace(HOURLY, columns=columns(**{**named, errors: kind}))
        return with_sql(with_table(replace(pipeline(), copies=(), sinks=(), endpoints=()), table), "count_hours", sql)

    was = live(called("hits", "errors"))
    for names in (("total", "errors"), ("total", "hits")):
        was = promoted(planned(called(*names), was), was)
    done = planned(called("total", "hits", "int"), was)
    assert actions(done) == {NAME: "metadata"}
    assert "CAST(CAST(SUM(`errors`) AS BIGINT) AS INT) AS `hits`" in state(done).read


# -- states move, rows do not

REGROUPED = {
    "a key goes": edited("host, count", "count", host=""),
    "hours become days": edited("'HOUR'", "'DAY'"),
    "hours go": edited("date_trunc('HOUR', ts) AS hour, ", "", time="day", hour=""),
    "hours become months": edited("'HOUR'", "'MONTH'"),
    "hours become weeks": edited("'HOUR'", "'WEEK'"),
    "a function of a key": edited("host, count", "upper(substr(host, 1, 1)) AS host, count"),
    "groups are left out": edited("IS NOT NULL", "IS NOT NULL AND host <> 'x'"),
    "groups of short names": edited("IS NOT NULL", "IS NOT NULL AND length(host) < 9"),
    "all of it": edited("host, count", "count", host="", worst="bigint"),
}  # fmt: skip


@pytest.mark.parametrize("case", REGROUPED)
def test_other_groups_are_put_together_from_the_stored_ones(case: str) -> None:
    done = planned(REGROUPED[case], forgetful(live(aggregate())))
    assert (actions(done), done.refusals) == ({NAME: "forward"}, ())
    (step,) = backfills(done)
    assert (step.source, step.stored, step.materialization) == (NAME, True, "")
    compared = next(step for step in done.steps if isinstance(step, Validate)).comparisons
    assert [one.other_rows for one in compared] == [True]


def widened(argument: str, kind: str) -> str:
    return SQL.replace("max(status)", f"max(CAST({argument} AS {kind}))")


def test_a_state_over_a_wider_type_is_the_stored_one_cast() -> None:
    was = forgetful(live(aggregate(widened("bytes", "INT"))))
    done = planned(aggregate(widened("bytes", "BIGINT"), worst="bigint"), was)
    (step,) = backfills(done)
    assert (actions(done), done.refusals, step.stored) == ({NAME: "forward"}, (), True)
    assert "CAST(MAX(CAST(`worst` AS BIGINT)) AS BIGINT) AS `worst`" in step.sql
    assert "CAST(`requests`.`bytes` AS BIGINT)" in done.release.feeds_into(NAME)[0].sql


def test_a_sum_over_a_wider_type_keeps_its_states_and_changes_its_feed() -> None:
    """The feed would go on failing where a value does not fit: the states are the same, and it is not."""
    before, after = (SQL.replace("sum(bytes)", f"sum(CAST(ip AS {kind}))") for kind in ("INT", "BIGINT"))
    done = planned(aggregate(after), forgetful(live(aggregate(before))))
    assert (actions(done), done.refusals) == ({NAME: "forward"}, ())
    assert "AS BIGINT)) AS BIGINT) AS `bytes`" in done.release.feeds_into(NAME)[0].sql


def test_a_source_column_that_widens_in_place_is_summed_and_compared_on() -> None:
    wide = replace(
        REQUESTS, columns=tuple(replace(c, type="bigint") if c.name == "status" else c for c in REQUESTS.columns)
    )
    was = live(aggregate())
    done = planned(with_table(aggregate(worst="bigint"), wide), forgetful(was))
    assert (actions(done), done.refusals) == ({"requests": "metadata", NAME: "forward"}, ())
    assert "CAST(MAX(CAST(`worst` AS BIGINT)) AS BIGINT) AS `worst`" in backfills(done)[0].sql
    summed = SQL.replace("max(status)", "sum(status)")
    same = planned(
        with_table(aggregate(summed, worst="bigint"), wide), forgetful(live(aggregate(summed, worst="bigint")))
    )
    assert (actions(same), same.refusals) == ({"requests": "metadata", NAME: "forward"}, ())
    of_hash = SQL.replace("max(status)", "max(hash(status))")
    lost = planned(with_table(aggregate(of_hash), wide), forgetful(live(aggregate(of_hash))))
    assert actions(lost)[NAME] != "forward", "a function of a wider value may be another one"


KEPT_ROWS = {
    "a finer time": edited("'HOUR'", "'MINUTE'"),
    "each row twice": edited("FROM requests", "FROM requests LATERAL VIEW explode(array(1, 2)) AS twice"),
    "a condition on rows": edited("IS NOT NULL", "IS NOT NULL AND status > 3"),
    "one condition less": edited("WHERE ip IS NOT NULL ", ""),
    "a function of what is no key": edited("host, count", "concat(host, ip) AS host, count"),
    "a key of the clock": edited("host, count", "CAST(now() AS STRING) AS host, count"),
    "a condition of the clock": edited("IS NOT NULL", "IS NOT NULL AND hour(ts) < hour(now())"),
    "rounded before it is summed": edited("sum(bytes)", "sum(CAST(ms AS BIGINT))"),
    "another cast that may give NULL": aggregate(widened("ip", "BIGINT").replace("CAST(ip", "TRY_CAST(ip")),
}  # fmt: skip


@pytest.mark.parametrize("case", KEPT_ROWS)
def test_what_the_states_do_not_tell_is_computed_from_the_rows(case: str) -> None:
    was = live(aggregate(widened("ip", "INT").replace("CAST(ip", "TRY_CAST(ip")) if "NULL" in case else aggregate())
    assert actions(planned(KEPT_ROWS[case], was))[NAME] == "replay"


def test_a_filter_over_keys_that_leaves_days_out_is_a_loss_that_has_a_name() -> None:
    done = planned(edited("IS NOT NULL", "IS NOT NULL AND day >= DATE '2026-11-08'"), live(aggregate()))
    assert actions(done) == {NAME: "forward"}
    assert [p.code for p in done.refusals] == ["C119"]


# -- what the source has lost


def test_a_new_state_begins_with_the_first_whole_day_and_the_plan_says_which() -> None:
    wanted = edited("sum(bytes) AS bytes", "sum(bytes) AS bytes, min(ms) AS low, sum(status) AS codes", low="double", codes="bigint", defaults={"codes": "7"})  # fmt: skip
    done = planned(wanted, forgetful(live(aggregate())))
    assert (actions(done), done.refusals) == ({NAME: "hybrid"}, ())
    assert "low and codes are counted from 2026-11-09 on" in node(done, NAME).why
    copied, replayed = backfills(done)
    assert (copied.stored, copied.until, replayed.since, replayed.states) == (True, "2026-11-09", "2026-11-09", False)
    assert "CAST(NULL AS DOUBLE) AS `low`" in copied.sql
    assert "CAST(7 AS BIGINT) AS `codes`" in copied.sql
    assert [p.code for p in done.problems] == ["C118"]
    assert "low is NULL, codes is 7" in done.problems[0].message


def test_a_new_key_needs_a_default_and_the_hint_leads_to_a_plan() -> None:
    old, new = "host, count", "host, status, count"
    was = forgetful(live(aggregate()))
    (refused,) = planned(edited(old, new, status="int"), was).refusals
    assert refused.code == "C101"
    assert refused.hint.startswith("`default: …` for status which older days then show; or --allow-destructive")
    done = planned(edited(old, new, status="int", defaults={"status": "0"}), was)
    assert (actions(done), done.refusals) == ({NAME: "hybrid"}, ())
    assert "CAST(0 AS INT) AS `status`" in backfills(done)[0].sql


def test_a_column_that_is_computed_otherwise_gives_up_no_older_value_unasked() -> None:
    old, new = "sum(bytes)", "sum(bytes + 1)"
    was = forgetful(live(aggregate()))
    (refused,) = planned(edited(old, new), was).refusals
    assert (refused.code, "`default: …` for bytes" in refused.hint) == ("C101", True)
    done = planned(edited(old, new, defaults={"bytes": "0"}), was)
    assert (actions(done), done.refusals) == ({NAME: "hybrid"}, ())


@pytest.mark.parametrize(
    ("old", "new"), [("'HOUR'", "'WEEK'"), ("date_trunc('HOUR', ts)", "ts + INTERVAL 1 DAY"), ("'HOUR'", "'MONTH'")]
)
def test_a_time_that_is_of_another_day_than_its_source_cannot_be_cut_in_two(old: str, new: str) -> None:
    """A week that began before the boundary would be copied whole and counted again from the boundary on."""
    sql = SQL.replace(old, new)
    wanted = aggregate(sql.replace("sum(bytes) AS bytes", "sum(bytes) AS bytes, min(ms) AS low"), low="double")
    for before in (SQL, sql):
        (refused,) = planned(wanted, forgetful(live(aggregate(before)))).refusals
        loses = "--allow-destructive C101:requests_by_hour lets them go; the previous release keeps them until cleanup"
        carries = "`history: carry` copies the existing rows"
        assert (refused.code, refused.hint) == ("C101", f"{carries}; or {loses}" if before == sql else loses)
    carried = planned(wanted, forgetful(live(aggregate(sql))), {NAME: "carry"})
    assert (actions(carried), carried.refusals) == ({NAME: "forward"}, ())


def test_a_late_row_of_a_lost_day_does_not_hide_the_others() -> None:
    was = live(aggregate())
    late = stats("requests", "requests", REQUESTS.columns, (DAYS[0], *DAYS[7:]))
    region = replace(was, stats=tuple(replace(late, path=s.path) if s.name == "requests" else s for s in was.stats))
    wanted = edited("sum(bytes) AS bytes", "sum(bytes) AS bytes, min(ms) AS low", low="double")
    copied, replayed = backfills(planned(wanted, region))
    assert (copied.until, replayed.since) == ("2026-11-09", "2026-11-09")


# -- the values

BEFORE = """SELECT date_trunc('HOUR', ts) AS hour, to_date(ts) AS day, host, status, count(*) AS hits, max(ms) AS most,
  sum(bytes) AS bytes, avg(bytes) AS mean, bool_and(ms > 2) AS slow, max_by(ip, ms) AS last FROM requests GROUP BY ALL"""
SHOWN = {
    "hour": "timestamp", "day": "date", "host": "string", "status": "int", "hits": "bigint", "most": "double",
    "bytes": "bigint", "mean": "double", "slow": "boolean", "last": "string",
}  # fmt: skip
EDITS = {
    "host": [("host, status", "status"), ("host, status", "upper(host) AS host, status")],
    "hour": [("'HOUR'", "'DAY'"), ("'HOUR'", "'MONTH'"), ("'HOUR'", "'YEAR'")],
    "where": [(" FROM requests", " FROM requests WHERE host = 'a' OR status IS NULL"), (" FROM requests", " FROM requests WHERE NOT host <=> 'b'")],
    "status": [("host, status", "host, status % 2 AS status"), ("host, status", "host, coalesce(status, 0) AS status")],
}  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_regrouped_states_show_what_the_rows_give(seed: int) -> None:
    rng = random.Random(seed)
    sql, types = BEFORE, dict(SHOWN)
    for place in rng.sample(sorted(EDITS), rng.choice([1, 2, 3])):
        old, new = rng.choice(EDITS[place])
        sql = sql.replace(old, new) if old in sql else sql
        if new == "status":
            types.pop("host")
    before, after = (_as(BEFORE, SHOWN), _as(sql, types))
    was = live(before)
    done = planned(after, was)
    (step,) = backfills(done)
    assert step.stored
    with duckdb.connect(config={"threads": 1}) as base:
        base.execute("SET TimeZone = 'UTC'")
        base.execute(
            "CREATE TABLE given (n INT, ts TIMESTAMPTZ, host VARCHAR, status INT, ms DOUBLE, bytes BIGINT, ip VARCHAR)"
        )
        base.executemany("INSERT INTO given VALUES (?, ?, ?, ?, ?, ?, ?)", [_row(rng) for _ in range(120)])
        feed = was.release.feeds_into(NAME)[0].sql if was.release else ""
        base.execute(
            f"CREATE TABLE requests AS SELECT * EXCLUDE (n) FROM given; CREATE TABLE {NAME} AS {_duck(feed)} LIMIT 0"
        )
        for commit in range(4):
            base.execute(
                f"DELETE FROM requests; INSERT INTO requests SELECT * EXCLUDE (n) FROM given WHERE n = {commit}"
            )
            base.execute(f"INSERT INTO {NAME} {_duck(feed)}")
        base.execute(f"CREATE TABLE stored AS {_duck(step.sql)}")
        base.execute("DELETE FROM requests; INSERT INTO requests SELECT * EXCLUDE (n) FROM given")
        shown = base.execute(f"SELECT * FROM ({_duck(state(done).read)}) ORDER BY ALL").fetchall()
        wanted = base.execute(f"SELECT * FROM ({_plain(sql)}) ORDER BY ALL").fetchall()
    assert len(shown) > 2
    assert shown == wanted


def _row(rng: random.Random) -> tuple[object, ...]:
    at = (
        None
        if rng.random() < 0.1
        else f"2026-{rng.choice(['01', '02'])}-{rng.choice(['01', '09'])} {rng.randrange(24):02}:{rng.choice(['05', '50'])}:00Z"
    )
    ms = rng.choice([None, 1.0, 2.5, -0.0, 9.0])
    return (
        rng.randrange(4),
        at,
        rng.choice(["a", "A", "b", None]),
        rng.choice([1, 2, 3, None]),
        ms,
        rng.choice([None, 1, 2**40]),
        rng.choice(["x", "y", None]),
    )


def _as(sql: str, types: dict[str, str]) -> Pipeline:
    shown: tuple[Column, ...] = columns(**types)
    table = replace(HOURLY, columns=shown)
    return with_sql(with_table(replace(pipeline(), copies=(), sinks=(), endpoints=()), table), "count_hours", sql)


def _duck(sql: str) -> str:
    return sqlglot.transpile(sql, "spark", "duckdb")[0]


def _plain(sql: str) -> str:
    """The operator's query for DuckDB, with a total order where Spark's is left to chance."""
    ordered = "max({'o': ms, 'v': ip}) FILTER (WHERE ms IS NOT NULL)"
    return f"SELECT * REPLACE (struct_extract(last, 'v') AS last) FROM ({_duck(sql.replace('max_by(ip, ms)', 'max(ip)')).replace('MAX(ip)', ordered)})"


def test_groups_without_a_state_are_those_of_their_rows() -> None:
    def of(sql: str, **types: str) -> Pipeline:
        table = replace(HOURLY, columns=columns(**types), time="")
        return with_sql(with_table(aggregate(), table), "count_hours", sql)

    was = live(of("SELECT day, host FROM requests GROUP BY ALL", day="date", host="string"))
    for rows, action in (("requests", "forward"), ("requests LATERAL VIEW explode(array(host)) AS one", "replay")):
        assert actions(planned(of(f"SELECT day FROM {rows} GROUP BY ALL", day="date"), was))[NAME] == action
