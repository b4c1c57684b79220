"""Filters that stop history: the effect of each kind of condition on the source's time on the days of the live table."""

from dataclasses import replace

import pytest

from tests.planning.world import COUNT, DAYS, HOURLY, PARSE, live, pipeline, planned, with_column, with_sql, with_table

pytestmark = pytest.mark.slow

CLOCK, UNKNOWN, NOTHING = "filters by the clock", "cannot be determined", ""
LAST = len(DAYS)  # 2026-11-01 … 2026-11-14


def lost(days: int) -> str:
    return f"{days} days of requests"


CONDITIONS = {
    # the clock, whichever way it is asked
    "ts > now() - INTERVAL 1 DAY": CLOCK,
    "ts >= current_timestamp() - INTERVAL '7' DAYS": CLOCK,
    "to_date(ts) = current_date()": CLOCK,
    "datediff(current_date(), to_date(ts)) < 2": CLOCK,
    "unix_timestamp(ts) > unix_timestamp(now()) - 86400": CLOCK,
    "region = 'eu' OR ts > now()": CLOCK,
    # days, by full dates
    "ts >= '2026-11-08'": lost(7),
    "'2026-11-08' <= ts": lost(7),
    "ts >= TIMESTAMP '2026-11-08 00:00:00'": lost(7),
    "ts < '2026-11-08'": lost(7),
    "ts <= '2026-11-08'": lost(6),
    "ts > '2026-11-08 12:00:00'": lost(7),
    "to_date(ts) > '2026-11-08'": lost(8),
    "CAST(ts AS DATE) < DATE '2026-11-08'": lost(7),
    "to_date(ts) = DATE '2026-11-08'": lost(LAST - 1),
    "ts = '2026-11-08 10:00:00'": lost(LAST - 1),
    "to_date(ts) <> DATE '2026-11-08'": lost(1),
    "ts <> '2026-11-08'": NOTHING,
    "ts BETWEEN '2026-11-03' AND '2026-11-12'": lost(4),
    "ts NOT BETWEEN '2026-11-03' AND '2026-11-12'": lost(9),
    "to_date(ts) IN (DATE '2026-11-08', DATE '2026-11-09')": lost(LAST - 2),
    "to_date(ts) NOT IN (DATE '2026-11-08', DATE '2026-11-09')": lost(2),
    "NOT (ts < '2026-11-08')": lost(7),
    "NOT (ts < '2026-11-08' OR ts >= '2026-11-10')": lost(LAST - 2),
    "NOT (ts >= '2026-11-03' AND ts < '2026-11-10')": lost(7),
    "NOT (NOT (ts >= '2026-11-08'))": lost(7),
    "ts < '2026-11-03' OR ts >= '2026-11-10'": lost(7),
    "(ts >= '2026-11-08') AND region = 'eu'": lost(7),
    "year(ts) >= 2027": lost(LAST),
    "2026 = year(ts)": NOTHING,
    "ts IS NULL": lost(LAST),
    "ts IS NOT NULL": NOTHING,
    "ts >= '2026-11-01'": NOTHING,
    "ts >= '2020-01-01' AND ts < '2030-01-01'": NOTHING,
    "region = 'eu'": NOTHING,
    # undecidable filters are reported as such
    "unix_timestamp(ts) >= 1800000000": UNKNOWN,
    "month(ts) = 12": UNKNOWN,
    "date_format(ts, 'yyyy-MM') > '2026-11'": UNKNOWN,
    "ts + INTERVAL '7' DAYS > '2026-11-01'": UNKNOWN,
    "ts > '2026'": UNKNOWN,
    "ts > '2026-11-08Z'": UNKNOWN,
    "ts > to_timestamp(payload)": UNKNOWN,
    "region = 'eu' OR ts >= '2026-11-08'": UNKNOWN,
    "to_date(ts) IN ('2026-11-08', region)": UNKNOWN,
    "coalesce(ts >= '2026-11-08', true)": UNKNOWN,
}


def refusals(condition: str, before: str = "", query: str = "{} WHERE {}") -> list[str]:
    """What C119 says of a condition that a feed gets beside another change, which replays its table."""
    was = live(with_sql(pipeline(), "parse", query.format(PARSE, before)) if before else pipeline())
    other = PARSE.replace("'$.ip'", "'$.addr'")
    done = planned(with_sql(pipeline(), "parse", query.format(other, condition)), was)
    return [p.message for p in done.refusals if p.code == "C119" and p.node == "requests"]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_new_filter_by_time_is_decided_or_said_to_be_undecided(condition: str) -> None:
    problems = refusals(condition)
    if CONDITIONS[condition] == NOTHING:
        assert problems == []
    else:
        assert len(problems) == 1
        assert CONDITIONS[condition] in problems[0]


@pytest.mark.parametrize("condition", ["month(ts) >= 11", "ts >= '2026-11-08'", "unix_timestamp(ts) > 0"])
def test_what_the_live_feed_asks_already_is_not_new(condition: str) -> None:
    assert refusals(condition) != []
    assert refusals(condition, before=condition) == []
    assert refusals(f"region = 'eu' AND ({condition})", before=condition) == []
    assert refusals(condition, before="region = 'eu'") != []


def test_the_clock_says_something_else_today_although_the_live_feed_asked_it_too() -> None:
    condition = "ts > now() - INTERVAL 1 DAY"
    assert len(refusals(condition, before=condition)) == 1


def test_a_filter_below_the_outermost_query_is_seen() -> None:
    inner = "SELECT * FROM ({}) WHERE {}"
    assert lost(7) in refusals("ts >= '2026-11-08'", query=inner)[0]
    union = "{0} WHERE {1} UNION ALL {0} WHERE region = 'us'"
    assert UNKNOWN in refusals("ts >= '2026-11-08'", query=union)[0]
    assert refusals("ts >= '2026-11-08'", before="ts >= '2026-11-08'", query=union) == []
    assert refusals("ts IS NOT NULL", query=union) == []
    cte = "WITH x AS (SELECT * FROM ({}) AS l WHERE {} AND l.day IS NOT NULL) SELECT * FROM x"
    assert refusals("l.ts IS NOT NULL", query=cte) == []
    assert lost(7) in refusals("l.ts >= '2026-11-08'", query=cte)[0]


DERIVED = {  # over requests, whose `day` is the day of its `ts`, and whose `month` is another part of it
    "day >= DATE '2026-11-08'": lost(7),
    "day = '2026-11-08'": lost(LAST - 1),
    "day > current_date() - 3": CLOCK,
    "day IS NULL": lost(LAST),
    "month >= '2026-11-01'": UNKNOWN,
    "day >= '2026-11-01'": NOTHING,
}


@pytest.mark.parametrize("condition", DERIVED)
@pytest.mark.parametrize("time", ["hour", "day"])
def test_a_column_made_of_the_time_alone_is_the_time_too(condition: str, time: str) -> None:
    before = with_column(pipeline(), "month", "date", "trunc(ts, 'month')")
    before = with_table(before, replace(HOURLY, time=time))
    sql = COUNT.replace("FROM requests", f"FROM requests WHERE {condition}")
    done = planned(with_sql(before, "count_hours", sql), live(before))
    messages = [p.message for p in done.refusals if p.code == "C119"]
    expected = DERIVED[condition].replace("requests", "requests_by_hour")
    assert [expected in message for message in messages] == ([True] if expected else [])


def test_a_loss_that_cannot_be_told_is_accepted_by_its_name() -> None:
    (messages,) = (
        p for p in planned(with_sql(pipeline(), "parse", f"{PARSE} WHERE month(ts) = 12")).refusals if p.code == "C119"
    )
    assert "MONTH(ts) = 12 in parse cannot be determined" in messages.message
    assert "--allow-destructive C119:requests" in messages.hint


def test_a_long_condition_is_shortened() -> None:
    condition = f"date_format(ts, 'yyyy') IN ({', '.join(repr(str(n)) for n in range(2000, 2060))})"
    (problems,) = refusals(condition)
    assert "…" in problems
    assert len(problems) < 300


def test_a_day_without_rows_is_no_loss() -> None:
    was = live()
    stats = tuple(
        replace(s, days=tuple(d for d in s.days if d.day >= "2026-11-08")) if s.name == "requests" else s
        for s in was.stats
    )
    sql = PARSE.replace("'$.ip'", "'$.addr'") + " WHERE ts >= '2026-11-08'"
    done = planned(with_sql(pipeline(), "parse", sql), replace(was, stats=stats))
    assert [p for p in done.refusals if p.code == "C119"] == []
